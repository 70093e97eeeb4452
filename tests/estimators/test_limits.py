"""`time_limit` and Ctrl-C bound the whole of `fit`: what comes back is of use, or it is an error."""

from __future__ import annotations

import gc
import signal
import time
import warnings
from contextlib import closing
from dataclasses import dataclass, replace
from io import StringIO

import numpy as np
import pytest
from joblib import parallel_config
from rich.console import Console
from sklearn.datasets import make_classification

import kernelopt as ko
from kernelopt import estimators as es
from kernelopt import running
from kernelopt.estimators.workers import in_workers
from kernelopt.numerics.compiling import numba_clock

X, Y = make_classification(120, 6, n_informative=4, random_state=0)
KERNELS = ["gaussian(1.0)", "gaussian(3.0)", "linear()"]


class Counted:
    """A kernel function that does something at each of its calls on all training points."""

    def __init__(self, act, width=1.0):
        self.act, self.width, self.calls = act, width, 0

    def __call__(self, A, B=None):
        B = A if B is None else B
        if len(A) * len(B) >= 60**2:  # and not for single entries
            self.calls += 1
            self.act(self)
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(2) / (2 * self.width**2 * A.shape[1]))


def slow(clock, seconds):
    """Return an action that takes so many seconds of the clock."""

    def act(kernel):
        clock.now += seconds

    return act


def interrupt_at(call):
    """Return an action that is Ctrl-C at the given call of all kernels together."""
    count = []

    def act(kernel):
        count.append(0)
        if len(count) == call:
            raise KeyboardInterrupt

    return act


MODELS = {
    "MKLClassifier": (lambda **o: es.MKLClassifier(**o), Y),
    "MKLClassifier, three classes": (lambda **o: es.MKLClassifier(**o), np.arange(120) % 3),
    "MKLClassifier, per class": (
        lambda **o: es.MKLClassifier(multiclass="per-class", **o),
        np.arange(120) % 3,
    ),
    "MKLClassifierCV": (lambda **o: es.MKLClassifierCV(Cs=[0.1, 1.0], cv=2, **o), Y),
    "MKLRegressorCV": (lambda **o: es.MKLRegressorCV(Cs=[0.1, 1.0], cv=2, **o), X @ np.arange(6.0)),
    "MKLRegressor": (lambda **o: es.MKLRegressor(**o), X @ np.arange(6.0)),
    "OneClassMKL": (lambda **o: es.OneClassMKL(**o), None),
    "KernelAlignment": (lambda **o: es.KernelAlignment(**o), Y),
    "TransductiveKernelClassifier": (lambda **o: es.TransductiveKernelClassifier(**o), Y),
    "TripletKernel": (lambda **o: es.TripletKernel(n_triplets=40, cone="nonnegative", **o), Y),
    "FormulationClassifier": (lambda **o: es.FormulationClassifier(**o), Y),
    "LinearFunctionalMKLClassifier": (lambda **o: es.LinearFunctionalMKLClassifier(**o), Y),
    "LinearFunctionalMKLRegressor": (lambda **o: es.LinearFunctionalMKLRegressor(**o), X @ np.arange(6.0)),
}


def left_untouched(model):
    """Whether a failed `fit` has left no trace."""
    return set(vars(model)) == set(model.get_params(deep=False))


# ------------------------------------------------------------------------- the evaluation of kernels


@pytest.mark.parametrize("name", MODELS)
def test_an_evaluation_that_takes_too_long_ends_between_two_kernels(name, clock):
    make, y = MODELS[name]
    kernels = [Counted(slow(clock, 3.0), width) for width in range(1, 25)]
    model = make(kernels=kernels, time_limit=10.0)
    with pytest.raises(ko.TimeLimitError, match=r"time_limit = 10, got none: .*samples\."):
        model.fit(X, y)
    assert 10 <= clock.now <= 13.0
    assert left_untouched(model)


@pytest.mark.parametrize(
    ("limit", "seconds", "said", "shape"),
    [
        (20.0, [0.0], "scored on 3 splits, got 2 of them within time_limit = 20", (2, 2)),
        (18.0, [3.0], "got 1 of them and only C up to 0.1 of the 2 values within", (1, 1)),
        (25.0, [3.0], "got 1 of them within", (1, 2)),
        (35.0, [3.0, 3.0, 10.0], "got 1 of them within", (1, 2)),  # the second split has a score for one C
        (35.0, [3.0], "got 2 of them within", (2, 2)),
    ],
)
def test_a_cross_validation_uses_the_splits_that_it_has_scored(limit, seconds, said, shape, clock):
    """Kernels take four seconds, and scores so many, the last number of them again and again."""
    times = [0.0]

    def score(model, A, b):
        clock.now += (seconds + seconds[-1:] * 6)[len(times) - 1]
        times.append(clock.now)
        return -clock.now

    kernels = [Counted(slow(clock, 1.0)), Counted(slow(clock, 1.0), 2.0)]
    options = {"Cs": [0.1, 1.0], "cv": 3, "scoring": score}
    with pytest.warns(ko.ConvergenceWarning, match=said):
        model = es.MKLClassifierCV(kernels, time_limit=limit, **options).fit(X, Y)
    assert model.scores_.shape == shape and model.Cs_.tolist() == [0.1, 1.0][: shape[1]]
    assert clock.now <= limit and model.C_ in model.Cs_ and model.support_.size
    assert model.certify(X, Y).gap <= model.tol
    with pytest.raises(ko.TimeLimitError, match="split 1 of 3"):  # there is no score
        es.MKLClassifierCV(kernels, time_limit=1.5, **options).fit(X, Y)


def test_processes_of_a_cross_validation_have_their_parts_of_the_time(clock):
    """Kernels take four seconds in each split: two splits of four fit into the limit."""
    kernels = [Counted(slow(clock, 1.0)), Counted(slow(clock, 1.0), 2.0)]
    with parallel_config(backend="threading"):
        model = es.MKLRegressorCV(kernels, Cs=[0.1, 1.0], cv=4, n_jobs=2, time_limit=1e3)
        assert model.fit(X, X @ np.arange(6.0)).scores_.shape == (4, 2)
        with pytest.raises(ko.TimeLimitError, match=r"MKLRegressorCV had"):
            model.set_params(time_limit=6.0).fit(X, X @ np.arange(6.0))  # two seconds for each split


def test_a_cross_validation_with_time_for_all_splits_has_no_warning(clock):
    kernels = [Counted(slow(clock, 1.0)), Counted(slow(clock, 1.0), 2.0)]
    model = es.MKLClassifierCV(kernels, Cs=[0.1, 1.0], cv=3, time_limit=30.0).fit(X, Y)
    assert model.scores_.shape == (3, 2)


def test_the_error_says_what_was_done_and_how_many_seconds_are_enough(clock):
    kernels = [Counted(slow(clock, 1.0), width) for width in range(1, 25)]
    with pytest.raises(ko.TimeLimitError) as caught:
        es.MKLClassifier(kernels, time_limit=6.0).fit(X, Y)
    assert "evaluated 6 of 24 kernels in 6.0 s" in str(caught.value)
    assert "The kernels alone take about 24 s" in str(caught.value)
    clock.now = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        es.MKLClassifier(kernels, time_limit=60.0).fit(X, Y)


def test_the_error_names_the_kernels_that_need_no_matrix(clock):
    remedy = "kernels=['gaussian(0.6 median)', 'gaussian(1.2 median)'], with normalize=\"trace\""
    for model in (es.MKLClassifier, es.MKLRegressor):
        with pytest.raises(ko.TimeLimitError) as caught:
            model([Counted(slow(clock, 1.0))] * 3, time_limit=1.5).fit(X, Y)
        assert remedy in str(caught.value) and '"newton"' in str(caught.value)
        clock.now = 0.0
    named = ["gaussian(0.6 median)", "gaussian(1.2 median)"]
    assert es.MKLClassifier(named, normalize="trace", method="newton").fit(X, Y).dual_gap_ <= 1e-3
    with pytest.raises(ko.TimeLimitError) as caught:  # another problem, of matrices whatever the kernels are
        es.KernelAlignment([Counted(slow(clock, 1.0))] * 3, time_limit=1.5).fit(X, Y)
    assert "newton" not in str(caught.value)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("call", [1, 5])
def test_control_c_while_kernels_are_evaluated_is_a_keyboard_interrupt_at_once(name, call):
    make, y = MODELS[name]
    act = interrupt_at(call)
    kernels = [Counted(act, width) for width in range(1, 9)]
    model = make(kernels=kernels)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, y)
    assert sum(kernel.calls for kernel in kernels) == call
    assert any(type(model).__name__ in note for note in caught.value.__notes__)
    assert left_untouched(model)
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is the caller's again
        signal.raise_signal(signal.SIGINT)


def test_a_failed_fit_leaves_the_model_of_the_fit_before(clock):
    model = es.MKLClassifier(KERNELS).fit(X, Y)
    before = model.decision_function(X)
    model.set_params(kernels=[Counted(slow(clock, 1.0))] * 5, time_limit=2.0)
    with pytest.raises(ko.TimeLimitError):
        model.fit(X[:60], Y[:60])
    np.testing.assert_array_equal(model.decision_function(X), before)


# --------------------------------------------------------------------------------- a limit at once


@pytest.mark.parametrize("name", MODELS)
def test_a_solve_that_has_no_time_trains_at_equal_weights(name, clock, monkeypatch):
    """The kernels are evaluated, and then the limit is over: a machine on a sample comes back."""
    make, y = MODELS[name]
    evaluated = running.Call.__enter__

    def late(call):
        if call.enclosing is not None and clock.now == 0.0:
            clock.now = 10.0
        return evaluated(call)

    monkeypatch.setattr(running.Call, "__enter__", late)
    model = make(kernels=KERNELS, time_limit=10.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ko.ConvergenceWarning)
            model.fit(X, y)
    except ko.TimeLimitError:
        assert left_untouched(model)
        return
    assert np.any(model.weights_)
    if hasattr(model, "predict"):
        assert model.support_.size
    if hasattr(model, "score") and name != "MKLClassifier, three classes" and "per class" not in name:
        constant = max(np.mean(y == k) for k in np.unique(y)) if hasattr(model, "classes_") else 0.0
        assert model.score(X, y) > constant


def test_the_certificate_of_a_sample_is_that_of_all_points(monkeypatch):
    """Its lower bound is one of the optimum on all points, and its upper bound is attained there."""
    from kernelopt.methods import fallback, results

    n = 600
    A, b = make_classification(n, 6, n_informative=4, random_state=1)
    monkeypatch.setattr(fallback, "PATIENCE", replace(fallback.PATIENCE, sample_share=1e-9))
    slow = replace(results.PATIENCE, training_entry=1.0)  # a slow machine: none is trained on all points
    monkeypatch.setattr(results, "PATIENCE", slow)
    with pytest.warns(ko.ConvergenceWarning, match=r"trained on 1\d\d of 600 points\. Give it more time"):
        model = es.MKLClassifier(KERNELS, time_limit=10.0, method=Late()).fit(A, b)
    best = es.MKLClassifier(KERNELS, tol=1e-6).fit(A, b).certificate_
    found = model.certificate_
    assert 0 < model.support_.size <= fallback.PATIENCE.sample + 40
    assert found.lower <= best.upper and best.lower <= found.upper
    assert found.lower > 0 and found.upper < 1.0 * n  # the value of f = 0 is at least that of the rarer class
    assert model.score(A, b) > 0.6
    again = model.certify(A, b)
    assert again.lower == pytest.approx(found.lower) and again.upper <= found.upper * (1 + 1e-9)


@dataclass
class Late(ko.extend.Method):
    """A method that is ended by its time limit before it has a point."""

    name = "late"

    def match(self, structure):
        return structure

    def cost(self, match):
        return ko.extend.Cost(1.0)

    def run(self, match, control):
        raise ko.errors.Stopped


@pytest.mark.parametrize("last", [1, 2, 3])
def test_the_search_of_c_ends_at_the_solve_that_its_limit_has_ended(last, monkeypatch):
    """The share of a machine on a sample says nothing of the next C: its sign misled the bisection."""
    solve, count = es.OneClassMKL._solve, []

    def ended(self, *args, **options):
        count.append(0)
        if len(count) == last:
            self.method = Late()
        return solve(self, *args, **options)

    monkeypatch.setattr(es.OneClassMKL, "_solve", ended)
    with pytest.warns(ko.ConvergenceWarning):
        model = es.OneClassMKL(KERNELS, nu=0.2, time_limit=10.0).fit(X)
    assert len(count) == last
    assert model.support_.size and np.mean(model.predict(X) == -1) <= 0.2


def test_a_constant_machine_that_is_optimal_can_be_saved(tmp_path):
    model = es.MKLRegressor(KERNELS, loss="epsilon_insensitive", epsilon=10.0)
    model.fit(X, X[:, 0])  # all targets are in the tube
    assert not model.support_.size and model.dual_gap_ <= model.tol
    assert ko.load(model.save(tmp_path / "model.npz")).predict(X[:2]) == pytest.approx(model.predict(X[:2]))


# ------------------------------------------------------------------------------------- Ctrl-C in a solve


def test_control_c_in_a_solve_returns_the_best_machine(monkeypatch):
    from kernelopt.methods.control import Control

    reported = Control.report

    def report(self, *args, **more):
        stop = reported(self, *args, **more)
        if self.iterations == 1:
            raise KeyboardInterrupt
        return stop

    monkeypatch.setattr(Control, "report", report)
    with pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        model = es.MKLClassifier(KERNELS, tol=1e-12).fit(X, Y)
    assert model.score(X, Y) > 0.6
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_control_c_in_a_cross_validation_says_how_far_it_was(monkeypatch):
    act = interrupt_at(8)
    with pytest.raises(KeyboardInterrupt) as caught:
        es.MKLClassifierCV([Counted(act), Counted(act, 2.0)], Cs=[0.1, 1.0], cv=3).fit(X, Y)
    assert "split" in caught.value.__notes__[0]


# --------------------------------------------------------------------------------------- what is shown


def test_the_progress_line_counts_kernels_and_says_how_long_it_will_take(clock, monkeypatch):
    lines = []
    monkeypatch.setattr(running.ProgressLine, "show", lambda self, line, seconds: lines.append(line))
    kernels = [Counted(slow(clock, 2.0), width) for width in range(1, 25)]
    es.MKLClassifier(kernels).fit(X, Y)
    counted = [line for line in lines if line.startswith("evaluating kernels")]
    assert counted[0] == "evaluating kernels 2 of 24, about 46 s left"
    assert counted[22] == "evaluating kernels 24 of 24, about 2 s left"
    assert lines[0] == "reading the samples"


def test_the_progress_line_names_the_split_of_a_cross_validation(monkeypatch):
    lines = []
    monkeypatch.setattr(running.ProgressLine, "show", lambda self, line, seconds: lines.append(line))
    es.MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2).fit(X, Y)
    assert any(line.startswith("split 2 of 2: ") for line in lines)
    assert not any("provider" in line or "passes" in line for line in lines)


def test_a_line_appears_by_itself_while_nothing_is_checked(monkeypatch):
    """Numba compiles for seconds without a check."""
    out = StringIO()
    monkeypatch.setattr(running, "QUIET", 0.05)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=out, force_terminal=True, width=100))
    call = running.Call()
    call.show("compiling (first call on this machine)")
    for _ in range(100):
        time.sleep(0.02)
        if out.getvalue():
            break
    call.close()
    assert "compiling (first call on this machine)" in out.getvalue()


def test_a_compilation_is_named_while_it_lasts():
    with closing(running.Call()) as call, call:
        call.show("newton: 300 of 300 points")
        numba_clock.start()
        assert call.doing == "compiling (first call on this machine)"
        numba_clock.stop()
        assert call.doing == "newton: 300 of 300 points"


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(running, "QUIET", 0.0)
    es.MKLClassifier(KERNELS).fit(X, Y)
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------------------------- on the processor


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_time_limit_bounds_fit_on_the_processor(limit, monkeypatch):
    """At most the limit, a tenth and half a second; the margin allows for other machines."""
    A, b = make_classification(5000, 20, n_informative=10, random_state=0)
    es.MKLClassifier(tol=0.1).fit(A[:3200], b[:3200])  # compiles
    monkeypatch.setattr(running, "clock", time.process_time)
    began = time.process_time()
    model = es.MKLClassifier(time_limit=limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ko.ConvergenceWarning)
            model.fit(A, b)
    except ko.TimeLimitError:
        assert left_untouched(model)
    taken = time.process_time() - began
    assert taken <= 1.1 * limit + 1.0
    assert left_untouched(model) or model.score(A, b) > 0.6


def test_results_of_processes_that_nobody_reads_leave_no_warning():
    """Threads have finished several tasks when the caller ends after the first result."""
    with parallel_config(backend="threading"):
        results = in_workers(time.sleep, [(0.01,)] * 6, 2, "sleeping")
        next(results)
        time.sleep(0.1)
        results.close()
    gc.collect()
