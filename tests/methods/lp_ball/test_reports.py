"""What the methods for an l_p ball report on the way, and how they are interrupted."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.engine import working_set
from kernelopt.methods.selection import METHODS
from tests.methods.lp_ball.cases import example, learning
from tests.problems import labels, stack

KEYS = {"method", "iteration", "seconds", "lower", "upper", "gap", "point"}
OWN_KEYS = {"newton": {"provider", "passes", "solves"}}
EVERY = [m for m in METHODS if m != "exact" and type(METHODS[m]).__module__.startswith("kernelopt.")]
iterative = pytest.mark.parametrize("method", EVERY)
LIMITED = [m for m in EVERY if any(name.startswith("max_") for name in METHODS[m].options())]


@pytest.fixture(autouse=True)
def small_working_sets(monkeypatch):
    """Let "newton" begin with some of the few points, so that it reports several times."""
    few = replace(working_set.SETTINGS, small=4, fewest=4, smallest_class=2)
    monkeypatch.setattr(working_set, "SETTINGS", few)


def tight(method):
    """A gap that takes the method a few reports."""
    return {"mirror-descent": 1e-4, "spectral-master": 1e-5}.get(method, 1e-7)


@cache
def reported(method):
    """The solution of the example, and what was reported on the way."""
    reports = []
    return ko.solve(example(method), method, tol=tight(method), callback=reports.append), reports


@iterative
def test_the_history_is_monotone_and_ends_at_the_certificate(method):
    solution, reports = reported(method)
    seconds, lower, upper = np.array(solution.history).T
    assert len(seconds) == len(reports) == solution.iterations >= 2
    assert (np.sort(seconds) == seconds).all() and seconds[0] >= 0
    assert (np.sort(lower) == lower).all() and (np.sort(-upper) == -upper).all()
    known = exact(method)
    slack = 1e-9 * max(1.0, abs(known.upper))
    assert lower[-1] <= known.upper + slack and upper[-1] >= known.lower - slack
    assert lower[-1] <= solution.upper + slack and solution.lower <= upper[-1] + slack
    assert upper[-1] - lower[-1] <= tight(method) * max(1.0, abs(upper[-1]))
    assert solution.gap <= tight(method) and solution.status == "optimal"


@iterative
def test_the_callback_hears_of_every_iteration(method):
    solution, reports = reported(method)
    assert all(set(report) == KEYS | OWN_KEYS.get(method, set()) for report in reports)
    assert [report["iteration"] for report in reports] == list(range(1, len(reports) + 1))
    assert {report["method"] for report in reports} == {method}
    heard = [(report["lower"], report["upper"]) for report in reports]
    assert heard == [entry[1:] for entry in solution.history]
    for report in reports:
        expected = (report["upper"] - report["lower"]) / max(1.0, abs(report["upper"]))
        assert report["gap"] == pytest.approx(max(expected, 0.0), abs=1e-15)
        assert report["point"] is not None


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def interrupt():
    raise KeyboardInterrupt


def enough():
    raise StopIteration


class Trigger:
    """A callback that acts at its k-th call."""

    def __init__(self, act, k):
        self.act, self.k, self.calls = act, k, 0

    def __call__(self, report):
        self.calls += 1
        if self.calls == self.k:
            self.act()


@cache
def exact(method):
    return ko.solve(example(method), "exact", tol=1e-8)


@iterative
@pytest.mark.parametrize(
    ("act", "said", "k"),
    [(interrupt, "interrupted", 2), (press_ctrl_c, "interrupted", 1), (enough, "callback", 2)],
    ids=["KeyboardInterrupt", "SIGINT", "StopIteration"],
)
def test_an_interrupt_leaves_the_best_point_so_far(method, act, said, k):
    problem, trigger = example(method), Trigger(act, k)
    with pytest.warns(ko.ConvergenceWarning, match=said):
        solution = ko.solve(problem, method, tol=1e-9, callback=trigger)
    assert trigger.calls == solution.iterations == len(solution.history) == k
    assert (solution.status, problem.status) == ("inaccurate", cp.OPTIMAL_INACCURATE)
    known = exact(method)
    assert solution.lower <= known.upper + 1e-9 and solution.upper >= known.lower - 1e-9
    assert np.isfinite([solution.lower, solution.upper]).all() and solution.gap > 1e-9
    assert all(v.value is not None for v in problem.variables())


@iterative
def test_an_interrupt_before_the_first_point_leaves_one_that_is_known(method, monkeypatch):
    """Equal weights, whose machine f = 0 is bounded without solving anything."""
    monkeypatch.setattr("kernelopt.methods.control.Control.report", lambda *_, **__: press_ctrl_c())
    with pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        solution = ko.solve(example(method), method)
    assert solution.status == "inaccurate" and solution.lower <= solution.upper < np.inf


@iterative
def test_other_exceptions_of_the_callback_propagate(method):
    def fail():
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ko.solve(example(method), method, callback=Trigger(fail, 2))


@iterative
def test_the_time_limit_is_named(method):
    with pytest.warns(ko.ConvergenceWarning, match="time limit of 1e-09 s"):
        solution = ko.solve(example(method), method, tol=1e-9, time_limit=1e-9)
    assert solution.status == "inaccurate" and solution.iterations in (1, None)
    assert solution.lower <= solution.upper < np.inf


@pytest.mark.parametrize("method", LIMITED)
@pytest.mark.parametrize("most", [1, 3])
def test_the_largest_number_of_iterations_is_named(method, most):
    (option,) = [name for name in METHODS[method].options() if name.startswith("max_")]
    with pytest.warns(ko.ConvergenceWarning, match=rf"ended because {most} \w+ were made"):
        solution = ko.solve(example(method), method, tol=1e-9, **{option: most})
    assert solution.status == "inaccurate" and solution.iterations <= most
    assert solution.lower <= solution.upper < np.inf


@iterative
def test_verbose_prints_a_line_per_iteration(method, capsys):
    solution = ko.solve(example(method), method, tol=tight(method), verbose=True)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) == solution.iterations
    assert all(re.match(rf"{method}: iteration {i + 1}, ", line) for i, line in enumerate(lines))
    assert all("<= optimum <=" in line and "gap" in line for line in lines)


@iterative
def test_without_verbose_nothing_is_printed(method, capsys):
    ko.solve(example(method), method, tol=1e-2)
    assert capsys.readouterr() == ("", "")


@iterative
def test_solving_twice_gives_the_same(method):
    problem = example(method)
    first, again = (ko.solve(problem, method, tol=tight(method)) for _ in range(2))
    assert (first.lower, first.upper) == (again.lower, again.upper)
    np.testing.assert_array_equal(first.kernel, again.kernel)


def test_a_callback_that_writes_to_the_point_changes_nothing():
    def write(report):
        report["point"][:] = 0.0

    one = ko.solve(learning(ko.hinge(1.0))[0], "interleaved", callback=write)
    two = ko.solve(learning(ko.hinge(1.0))[0], "interleaved")
    assert one.upper == two.upper and (one.weights == two.weights).all()


@pytest.mark.filterwarnings("ignore:Nothing bounds:kernelopt.errors.ConditionWarning")
def test_the_point_returned_is_as_good_as_the_best_on_the_way():
    """Without a ball the weights run away and no lower bound is found: the best value still counts."""
    theta = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, stack(14)), labels(14), ko.hinge(1.0))))
    with pytest.warns(ko.ConvergenceWarning):
        solution = ko.solve(problem, "cutting-plane", max_iterations=6)
    assert solution.upper <= min(upper for _, _, upper in solution.history) * (1 + 1e-6)


def test_the_exact_method_tells_its_callback_the_same_and_can_be_ended():
    reports = []

    def end(report):
        reports.append(report)
        raise StopIteration

    solution = ko.solve(learning(ko.hinge(1.0))[0], "exact", callback=end)
    assert {"method", "iteration", "seconds", "lower", "upper", "gap", "point"} <= set(reports[0])
    assert len(reports) == 1 and solution.gap == reports[0]["gap"]
