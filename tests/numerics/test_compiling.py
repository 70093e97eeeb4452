"""Loops in Python and as machine code, also in new processes whose caches of machine code are empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from functools import cache

import numpy as np
import pytest

from formulations import lp_norm, similarity
from kernelopt.grams.interpolation import add_moments
from kernelopt.grams.stored import add_rows
from kernelopt.grams.sweeps import SHIFT, look_up, to_distances
from kernelopt.methods.engine import panels, triangle
from kernelopt.methods.engine.panels import mirror
from kernelopt.methods.similarity.secular import (
    eigenvector_loop,
    secular_eigenvector,
    secular_loop,
    secular_sums,
)
from kernelopt.numerics import compiling
from kernelopt.numerics.compiling import affordable, compiled
from kernelopt.running import Call
from tests.problems import labels, stack

COLD = """
import json, sys, time
import numpy as np
from kernelopt.learner.smo import combined_block
from kernelopt.methods.control import Control
from kernelopt.numerics.compiling import compiled

rows = np.arange(24.0).reshape(2, 3, 4)
arguments = rows, np.array([2, 0]), np.array([1, 3, 0]), np.array([0.5, 2.0])
assert "numba" not in sys.modules
control = Control(1e-5, time_limit=1000.0)
with control.running("first", budget=100.0):
    start, before, limit = time.perf_counter(), control.remaining, control.remaining_in_call
    found = compiled(combined_block)(*arguments)
    spent, paid = time.perf_counter() - start, before - control.remaining
    ran = limit - control.remaining_in_call
    seconds = control.compiling
    again = compiled(combined_block)(*arguments)
json.dump({
    "spent": spent, "paid": paid, "ran": ran, "seconds": seconds, "later": control.compiling - seconds,
    "right": bool((found == combined_block(*arguments)).all() and (again == found).all()),
}, sys.stdout)
"""

AUTO = """
import json, math, sys
import numpy as np
from dataclasses import replace
import kernelopt as ko
from kernelopt.methods import driver
from kernelopt.numerics import compiling
from kernelopt.running import Call

compiling.IMPORT = -math.inf  # Python runs no loop
driver.PATIENCE = replace(driver.PATIENCE, first_overrun=(0.0, 0.25))
with Call() as call:
    solution = ko.catalogue()["lp_norm.primal"].example(np.random.default_rng(0)).solve()
json.dump({"method": solution.method, "gap": solution.gap, "seconds": call.compiling}, sys.stdout)
"""


def in_a_new_process(script, cache):
    """Return what a script writes in a process whose numba caches are in the folder `cache`."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_cold_compilation_is_measured_and_not_taken_from_the_budget(tmp_path):
    cold = in_a_new_process(COLD, tmp_path)
    assert cold["right"] and any(tmp_path.rglob("*.nbi"))
    assert 0.7 * cold["spent"] <= cold["seconds"] <= cold["spent"]  # the rest is the call itself
    assert cold["paid"] <= 0.3 * cold["spent"]  # of the budget
    assert cold["ran"] >= cold["spent"]  # of the time limit, which is that of a clock on the wall
    assert cold["later"] == 0


@pytest.mark.slow
def test_auto_keeps_to_the_method_that_it_must_compile_first(tmp_path):
    found = in_a_new_process(AUTO, tmp_path)
    assert found["seconds"] > 0.25, "nothing was compiled"  # longer than the budget
    assert found["method"] == "interleaved" and found["gap"] <= 1e-5


INTERRUPTED = """
import _thread, json, sys
from kernelopt.numerics.compiling import compiled

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types":
            sys.meta_path.remove(self)
            _thread.interrupt_main()

def double(x):
    return 2 * x

sys.meta_path.insert(0, CtrlC())
try:
    compiled(double)
except KeyboardInterrupt:
    json.dump({"then": compiled(double)(3)}, sys.stdout)
"""


def test_ctrl_c_during_the_import_of_numba_leaves_it_whole(tmp_path):
    assert in_a_new_process(INTERRUPTED, tmp_path) == {"then": 6}


# ---------------------------------------------------------------- in Python or as machine code

SMALL = """
import json, sys
from sklearn.datasets import load_iris
from kernelopt.estimators import MKLClassifier
from formulations import similarity
import numpy as np

MKLClassifier().fit(*load_iris(return_X_y=True))
A = np.random.default_rng(0).standard_normal((40, 40))
learning = similarity.single_kernel(A + A.T, np.sign(A[0]), C=1.0, rho=0.5, trace=40.0)
solution = learning.solve("first-order-dual")
json.dump({"numba": "numba" in sys.modules, "gap": solution.gap}, sys.stdout)
"""

FORM = """
import json, sys
import numpy as np
from kernelopt.grams.interpolation import add_moments
from kernelopt.grams.stored import add_rows
from kernelopt.grams.sweeps import SHIFT, look_up, to_distances
from kernelopt.methods.engine import panels, triangle
from kernelopt.methods.engine.panels import mirror
from kernelopt.numerics.compiling import compiled

M = np.arange(9.0).reshape(3, 3)
compiled(mirror, {passes})(M, 0)
json.dump({{"right": bool((M == M.T).all()), "numba": "numba" in sys.modules}}, sys.stdout)
"""


def test_the_first_small_fits_on_a_machine_compile_nothing_and_need_no_numba(tmp_path):
    found = in_a_new_process(SMALL, tmp_path)
    assert not found["numba"] and not any(tmp_path.rglob("*.nbi"))
    assert found["gap"] <= 1e-5


def test_a_large_call_is_compiled_at_once_and_later_processes_take_what_it_has_cached(tmp_path, monkeypatch):
    small, large = FORM.format(passes=9), FORM.format(passes=1e8)
    assert in_a_new_process(large, tmp_path) == {"right": True, "numba": True}
    assert any(tmp_path.rglob("*mirror*.nbi"))
    assert in_a_new_process(small, tmp_path) == {"right": True, "numba": True}
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiling._is_cached(panels.mirror_loop) and not compiling._is_cached(look_up)
    for file in tmp_path.rglob("*.nbi"):  # older than the files of the package: numba would compile anew
        os.utime(file, (0, 0))
    assert not compiling._is_cached(panels.mirror_loop)


TOGETHER = """
import json, sys, time
from pathlib import Path
import numpy as np
import numba
from kernelopt.methods.engine import panels
from kernelopt.numerics.compiling import compiled

loop, folder = compiled(panels.mirror), Path(sys.argv[1])
Path(folder, sys.argv[2]).touch()
while len(list(folder.glob("ready*"))) < 2:
    time.sleep(0.001)
loop(np.tri(4, dtype=np.float32), 0)
json.dump([sum(loop.stats.cache_misses.values()), sum(loop.stats.cache_hits.values())], sys.stdout)
"""


@pytest.mark.slow
def test_of_several_processes_one_compiles_and_the_others_wait_for_it(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    calls = [
        subprocess.Popen(  # noqa: S603 - our own text
            [sys.executable, "-c", TOGETHER, str(tmp_path), f"ready{k}"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(2)
    ]
    found = [json.loads(call.communicate(timeout=600)[0]) for call in calls]
    assert np.sum(found, axis=0).tolist() == [1, 1]


@pytest.fixture
def machine(monkeypatch):
    """A function that lets loops take these seconds in Python, on a machine without machine code."""
    monkeypatch.setattr(compiling, "_is_cached", lambda loop: False)
    monkeypatch.setattr(compiling, "_code", cache(compiling._Code))
    monkeypatch.setattr(compiling._Code, "spent", 0.0)
    monkeypatch.setattr(compiling, "COMPILATION", 0.0)
    monkeypatch.setattr(compiling, "is_loaded", lambda: False)
    return lambda seconds: monkeypatch.setattr(compiling, "IMPORT", seconds)


def wait(seconds):
    """Work for so many seconds of the processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_python_runs_a_loop_until_its_runs_have_taken_as_long_as_a_compilation(machine, monkeypatch):
    monkeypatch.setattr(compiling, "_dispatcher", lambda loop, options: "machine code")
    machine(0.05)
    allowed = 0.05 / compiling.PASS
    assert compiled(wait) == compiled(mirror, 1.1 * allowed) == "machine code"  # at once
    runs = 0
    monkeypatch.setattr(compiling, "_code", cache(compiling._Code))
    while (form := compiled(wait, 0.1 * allowed)) != "machine code":
        form(0.01)
        runs += 1
    assert runs == 5  # then less than the predicted 0.005 s are left
    assert compiled(wait, 1) == "machine code"


def test_the_steps_of_a_call_are_those_that_python_can_run(machine, monkeypatch):
    machine(0.05)
    passes = 0.05 / compiling.PASS / 3.5  # of a step
    assert affordable(mirror, 2, passes) == 2
    assert affordable(mirror, 100, passes) == 3
    monkeypatch.setattr(compiling, "_dispatcher", None)  # nothing can be compiled
    compiled(mirror, affordable(mirror, 100, passes / 10) * passes / 10)(np.eye(3), 0)
    assert affordable(mirror, 100, 4 * passes) == 100  # compiled, as not even one step can be run
    machine(-np.inf)
    assert affordable(mirror, 100, passes) == 100


def test_a_run_in_python_divides_as_numpy_does_and_extends_the_budgets(machine):
    def divided(a, seconds):
        wait(seconds)
        return a[0] / a[1]

    machine(np.inf)
    with warnings.catch_warnings(), Call() as call:
        warnings.simplefilter("error")
        call._budget_end = 7.0
        assert compiled(divided, 1)(np.array([1.0, 0.0]), 0.02) == np.inf
    assert 7.02 <= call._budget_end <= 7.1 and call.compiling == 0


def near(form):
    rng = np.random.default_rng(0)
    S = rng.standard_normal((2, 12, 12))
    return getattr(similarity, form)(S + S.transpose(0, 2, 1), labels(12), C=1.0, rho=0.5, trace=12.0)


PROBLEMS = {
    "newton": lambda: lp_norm.primal(stack(40), labels(40), p=1.5),
    "interleaved": lambda: lp_norm.primal(stack(40), labels(40), p=1.5),
    "cutting-plane": lambda: lp_norm.primal(stack(160), labels(160), p=1.0),
    "first-order-dual": lambda: near("kernel_per_similarity"),
    "first-order-dual of spectra": lambda: near("restricted_spectral"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bounds_of_both_forms_enclose_one_optimum(name, machine):
    found = {}
    for seconds in (np.inf, -np.inf):
        machine(seconds)
        found[seconds] = PROBLEMS[name]().solve(name.split()[0], tol=1e-6)
    python, compiled_ = found.values()
    assert max(python.gap, compiled_.gap) <= 1e-6
    assert max(python.lower, compiled_.lower) <= min(python.upper, compiled_.upper)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_functions_of_numpy_are_the_loops_that_are_compiled_in_their_place(n):
    """Those of the secular equation; `PANELS` has the others."""
    rng = np.random.default_rng(n)
    gaps, squares, u, poles = rng.uniform(1, 2, (4, n))
    for split in {0, n // 2, n}:
        sums = [form(gaps, squares, 0.5, split) for form in (secular_sums, secular_loop)]
        assert sums[0] == pytest.approx(sums[1], rel=1e-14)
    rows = np.empty((2, n))
    forms = zip((secular_eigenvector, eigenvector_loop), rows, strict=True)
    numbers = [form(gaps, 0.5, squares, poles, u, row) for form, row in forms]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-14)
    assert rows[0] == pytest.approx(rows[1], rel=1e-15)


def panels_of(rng, m=3, size=7):
    return rng.standard_normal(m * size * (size + 1) // 2).astype(np.float32)


def sparse(rng, size):
    return rng.standard_normal(size) * (rng.random(size) < 0.5)


BASE = int(np.float32(0.01).view(np.int32)) >> SHIFT
BASE_CELLS = (int(np.float32(1.0).view(np.int32)) >> SHIFT) - BASE
PANELS = {  # arguments of a seed: the last one is written
    panels.put_panels: lambda rng: (rng.standard_normal((3, 2, 9)), rng.random(3), 4, panels_of(rng)),
    panels.combine_panels: lambda rng: (panels_of(rng), 3, np.array([0, 2]), rng.random(2), np.zeros((7, 9))),
    triangle.gather_pairs: lambda rng: (
        rng.random(28), rng.permutation(7)[:4], rng.permutation(7)[:5], np.zeros((4, 5)),
    ),
    triangle.look_up_rows: lambda rng: (
        np.append(rng.random(26), [0.0, 2.0]).astype(np.float32).view(np.int32), BASE,
        *rng.random((2, BASE_CELLS), np.float32), np.zeros((7, 7), np.float32),
    ),
    panels.mirror: lambda rng: (rng.standard_normal((40, 40)), 35),
    panels.panel_images: lambda rng: (
        panels_of(rng), 3, sparse(rng, 5), rng.random(7) < 0.5, rng.standard_normal((3, 7)),
    ),
    add_rows: lambda rng: (
        rng.standard_normal((3, 8, 6)).astype(np.float32), np.array([7, 0, 3, 1, 4]), rng.random(5),
        rng.standard_normal((3, 6)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("function", PANELS, ids=lambda function: function.__name__)
def test_rows_of_numpy_are_the_loops_that_are_compiled_in_their_place(function):
    for seed in range(5):
        one, two = (PANELS[function](np.random.default_rng(seed)) for _ in range(2))
        function(*one)
        compiled(function)(*two)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)


def in_cells(rng):
    D = rng.uniform(0.1, 1.0, (6, 5)).astype(np.float32)
    first, moments = int(np.float32(0.1).view(np.int32)) >> 19, np.zeros((3, 40, 9))
    return D[[4, 0, 2]].view(np.int32), 19, first, rng.random(5), moments, np.zeros(15, int)


SAME_BITS = {  # of loops that run in workers too, the arguments
    to_distances: lambda rng: (rng.random((4, 6), np.float32), *(rng.random(n, np.float32) for n in (4, 6))),
    add_moments: in_cells,
}


@pytest.mark.parametrize("loop", SAME_BITS, ids=lambda loop: loop.__name__)
def test_loops_that_workers_run_have_the_same_bits_in_both_forms(loop):
    one, two = (SAME_BITS[loop](np.random.default_rng(0)) for _ in range(2))
    for _ in range(2):  # the second call adds to the sums of the first
        assert loop(*one) == compiled(loop)(*two)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
