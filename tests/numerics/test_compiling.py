"""Seconds in which numba compiles, measured in new processes whose caches of machine code are empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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
import json, sys
import numpy as np
from dataclasses import replace
import kernelopt as ko
from kernelopt.methods import driver
from kernelopt.running import Call

driver.PATIENCE = replace(driver.PATIENCE, first_overrun=(0.0, 1.0))
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
    assert found["seconds"] > 1.0, "nothing was compiled"  # longer than the budget
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
