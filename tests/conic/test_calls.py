"""Conic solves inside a call: time limits, Ctrl-C and callbacks end them at once."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.conic import multipliers
from kernelopt.certificates.conic.cones import cone_program
from kernelopt.certificates.conic.multipliers import conic_bound
from kernelopt.certificates.conic.stated import without_attributes
from kernelopt.conic import ladder as conic
from kernelopt.conic.ladder import SolverAttempt
from kernelopt.errors import Stopped
from kernelopt.running import Call
from tests.calls import Ending, after, at_once
from tests.conic.cases import Crashing, Mishap, linear_programme, problems


def slow(order=70):
    """A semidefinite programme that takes every solver many seconds."""
    B = np.random.default_rng(0).normal(size=(order, order))
    K = cp.Variable((order, order), PSD=True)
    return cp.Problem(cp.Minimize(cp.sum(cp.abs(K - B - B.T))))


def slow_linear():
    """A linear programme that takes seconds."""
    rng = np.random.default_rng(0)
    x = cp.Variable(500)
    A = rng.normal(size=(1000, 500))
    return cp.Problem(cp.Minimize(rng.normal(size=500) @ x), [A @ x <= 1 + rng.random(1000), cp.abs(x) <= 10])


TIGHT = {"eps_abs": 1e-14, "eps_rel": 1e-14, "max_iters": 4000}

# SCS and HiGHS run on when their call has been left: their own limits, in seconds, end them in these tests.
RUN_ON = 1.2


SLOW = [
    (
        lambda: slow(55),
        SolverAttempt("CLARABEL", {"time_limit": 60.0}),
    ),  # building its matrices cannot be ended: 0.2 s
    (lambda: slow(70), SolverAttempt("SCS", {**TIGHT, "time_limit_secs": RUN_ON})),
    (lambda: slow(30), SolverAttempt("CVXOPT")),
    (slow_linear, SolverAttempt("HIGHS", {"time_limit": RUN_ON})),
]


def installed(case):
    make, attempt = case
    missing = attempt.name not in cp.installed_solvers()
    return pytest.param(
        attempt.name,
        make,
        attempt,
        id=attempt.name,
        marks=pytest.mark.skipif(missing, reason="not installed"),
    )


slow_solves = pytest.mark.parametrize(("name", "make", "attempt"), [installed(case) for case in SLOW])


def no_worker_is_left(seconds):
    """Whether the threads of abandoned solvers end within so much time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if not any(t.name == "kernelopt solver" for t in threading.enumerate()):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "HIGHS", "CVXOPT"])
def test_a_solve_inside_a_call_is_the_same_solve(solver):
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    plain, inside = linear_programme(), linear_programme()
    first = conic.run_solver(plain, SolverAttempt(solver))
    with Call():
        second = conic.run_solver(inside, SolverAttempt(solver))
    assert (first.status, first.iterations, first.failure) == (second.status, second.iterations, "")
    for one, other in zip(plain.variables(), inside.variables(), strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    for one, other in zip(plain.constraints, inside.constraints, strict=True):
        np.testing.assert_array_equal(one.dual_value, other.dual_value)
    assert inside.solver_stats.solver_name == solver
    assert inside.compilation_time > 0


@problems
def test_a_problem_inside_a_call_has_the_same_answer(make):
    plain, inside = (ko.expand(make()).problem for _ in range(2))
    conic.run_solver(plain, SolverAttempt("CLARABEL"))
    with Call():
        conic.run_solver(inside, SolverAttempt("CLARABEL"))
    assert inside.value == pytest.approx(plain.value, rel=1e-12)


@pytest.mark.slow
@slow_solves
def test_the_end_of_the_call_ends_the_solve_at_once(name, make, attempt):
    problem = make()
    with after(0.4) as call, pytest.raises(Stopped):
        conic.run_solver(problem, attempt)
    assert len(call.checks) >= 4
    assert call.lasted < 2.0
    assert problem.variables()[0].value is None
    assert no_worker_is_left(3 if name in ("CLARABEL", "CVXOPT") else 30)


@pytest.mark.slow
@slow_solves
def test_control_c_ends_the_solve_at_once(name, make, attempt):
    """SCS takes the signal for itself while it works."""
    problem = make()
    pressed = threading.Timer(0.4, os.kill, [os.getpid(), signal.SIGINT])
    started = time.perf_counter()

    def press(call):
        if len(call.checks) == 1:
            pressed.start()

    with Ending(press) as call, pytest.raises(KeyboardInterrupt):
        conic.run_solver(problem, attempt)
    assert time.perf_counter() - started < 5
    assert time.perf_counter() - call.checks[0] < 1.4
    assert no_worker_is_left(30)
    with pytest.raises(KeyboardInterrupt):  # Python has its handler back
        signal.raise_signal(signal.SIGINT)


def test_control_c_is_not_kept_by_scs_outside_of_a_call():
    pressed = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    problem = slow(60)
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        conic.run_solver(problem, SolverAttempt("SCS", {**TIGHT, "time_limit_secs": 20.0}))


def test_an_abandoned_problem_can_be_solved_again():
    problem = slow(20)
    with after(0.0), pytest.raises(Stopped):
        conic.run_solver(problem, SolverAttempt("CLARABEL"))
    with Call():
        assert conic.run_solver(problem, SolverAttempt("CLARABEL")).status == cp.OPTIMAL
    assert no_worker_is_left(5)


def test_cvxopt_keeps_its_options_when_it_is_abandoned():
    solvers = pytest.importorskip("cvxopt.solvers")
    before = dict(solvers.options)
    with after(0.1), pytest.raises(Stopped):
        conic.run_solver(slow(25), SolverAttempt("CVXOPT", {"abstol": 1e-3}))
    assert no_worker_is_left(5)
    assert solvers.options == before


def test_a_failure_of_the_solver_is_reported_inside_a_call_too():
    with Call():
        tried = conic.run_solver(linear_programme(), SolverAttempt(Crashing(Mishap("broken"))))
    assert (tried.status, tried.failure) == ("failed", "Mishap: broken")
    with Call():
        tried = conic.run_solver(linear_programme(), SolverAttempt("CLARABEL", {"no_such": 1}))
    assert tried.status == "failed"
    assert "no_such" in tried.failure


def test_a_liar_is_not_replaced_by_clarabel_itself():
    """A solver object that inherits from cvxpy's Clarabel keeps its own call."""
    with Call():
        tried = conic.run_solver(linear_programme(), SolverAttempt(Crashing(Mishap("mine"))))
    assert "mine" in tried.failure


def test_convexity_errors_are_not_swallowed_inside_a_call():
    problem = cp.Problem(cp.Maximize(cp.square(cp.Variable())))
    with Call(), pytest.raises(cp.DCPError):
        conic.run_solver(problem, SolverAttempt("CLARABEL"))


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_cone_programme_can_be_ended(solver):
    program = cone_program(slow(55), solver)
    options = {} if solver == "CLARABEL" else {**TIGHT, "time_limit_secs": RUN_ON}
    with after(0.2) as call, pytest.raises(Stopped):
        program.solve(**options)
    assert call.lasted < 2.0
    assert no_worker_is_left(3 if solver == "CLARABEL" else 30)
    small = cone_program(linear_programme(), solver)
    plain = small.solve()
    with Call():
        inside = small.solve()
    assert plain[0] == inside[0]
    np.testing.assert_array_equal(plain[1], inside[1])
    np.testing.assert_array_equal(plain[2], inside[2])


def distance():
    """A problem whose bound takes a solver and a repair."""
    x = cp.Variable(6)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.arange(6.0)) + cp.norm1(x)), [cp.norm2(x) <= 3])


def test_a_bound_by_multipliers_can_be_ended_and_keeps_what_it_found():
    problem = distance()
    boxes, plain = known_boxes(ko.Structure(problem)), without_attributes(problem, problem.variables())
    whole: list[Any] = []
    with Call():
        bound = conic_bound(plain, problem.variables(), boxes, found=whole)
    assert bound == conic_bound(plain, problem.variables(), boxes)
    assert whole[-1] == bound
    assert [b.value for b in whole] == sorted(b.value for b in whole)

    with at_once(), pytest.raises(Stopped):
        conic_bound(plain, problem.variables(), boxes, found=[])


def test_the_best_bound_survives_a_call_that_ends_later(monkeypatch):
    """The second solve of a tilted problem is ended: the bound of the first stands."""
    unmet = replace(
        multipliers.SETTINGS, sufficient_gap=-1.0
    )  # no bound is good enough: all tilts are solved
    monkeypatch.setattr(multipliers, "SETTINGS", unmet)
    problem, found = distance(), []
    boxes = known_boxes(ko.Structure(problem))

    with Ending(lambda _: bool(found)), pytest.raises(Stopped):
        conic_bound(without_attributes(problem, problem.variables()), problem.variables(), boxes, found)
    value = ko.solve(problem).value
    assert value - 1e-3 <= found[-1].value <= value + 1e-9


def test_two_threads_solve_without_disturbing_each_other():
    """The filters of warnings, the numbers of cvxpy's variables and CVXOPT's options are shared."""
    filters = list(warnings.filters)
    solvers = [name for name in ("CLARABEL", "SCS", "HIGHS", "CVXOPT") if name in cp.installed_solvers()]
    values, errors = [], []

    def work(turn):
        try:
            for i in range(12):
                problem = linear_programme()
                with Call() if i % 2 else nullcontext():
                    tried = conic.run_solver(problem, SolverAttempt(solvers[(turn + i) % len(solvers)]))
                values.append(problem.value if tried.failure == "" else tried.failure)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[turn]) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(values) == 48
    assert values == pytest.approx([1.6] * 48, abs=1e-3)
    assert warnings.filters == filters
