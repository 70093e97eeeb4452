"""A time limit, Ctrl-C and StopIteration bound a whole call, and leave the best point with its bounds."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from io import StringIO

import cvxpy as cp
import numpy as np
import pytest
from rich.console import Console

import kernelopt as ko
from formulations import lanckriet
from kernelopt import interrupts, running, threads
from kernelopt.conic import calls, costs, process
from kernelopt.conic.ladder import SolverAttempt, run_solver
from kernelopt.errors import Stopped
from kernelopt.learner import learn, learn_blocks, programs, single
from kernelopt.methods.control import Control
from kernelopt.methods.selection import METHODS
from kernelopt.running import Call
from tests.calls import at_once, endless
from tests.every import every
from tests.problems import labels, points


def kernels(n, m):
    X = points(n)
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    return np.array([np.exp(-squares / s) for s in np.geomspace(0.3, 10, m)])


def free(n, m=5):
    """Weights without signs: a semidefinite problem of order n + 1."""
    mu = cp.Variable(m, name="mu")
    K = ko.combine(mu, kernels(n, m))
    return cp.Problem(cp.Minimize(ko.risk(K, labels(n), ko.hinge(C=1.0))), [ko.trace(K) == n, K >> 0])


def ball(n, m=20, loss=None):
    theta = cp.Variable(m, nonneg=True, name="theta")
    K = ko.combine(theta, kernels(n, m))
    return cp.Problem(
        cp.Minimize(ko.risk(K, labels(n), loss or ko.hinge(C=10.0))), [cp.norm(theta, 1.5) <= 1]
    )


def near(n, fidelity=lambda D: cp.sum(cp.abs(D))):
    noise = np.random.default_rng(3).normal(size=(n, n))
    S = kernels(n, 1)[0] + 0.15 * (noise + noise.T)
    K = cp.Variable((n, n), PSD=True, name="K")
    risk = ko.risk(K, labels(n), ko.hinge(C=1.0))
    return cp.Problem(cp.Minimize(risk + 0.01 * fidelity(K - S)), [cp.trace(K) == n])


def honest(solution):
    """The bounds of a call that was ended: a point is known, and the two sides do not cross."""
    assert solution.status == "inaccurate"
    assert np.isfinite(solution.upper)
    assert solution.lower <= solution.upper
    assert solution.certificate.feasible


@contextmanager
def pressed(seconds):
    """Press Ctrl-C so many seconds after the beginning of the block, if it still runs."""
    timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


SMALL = {
    "weights of free sign": lambda: free(12),
    "ball": lambda: ball(20, 3),
    "ball, logistic": lambda: ball(20, 3, ko.logistic(C=10.0)),
    "ball, maximised": lambda: negated(ball(20, 3)),
    "near a similarity": lambda: near(8),
}
SUITS = {
    "exact": tuple(SMALL),
    "cutting-plane": tuple(SMALL),
    "block-descent": ("ball", "ball, logistic"),
    "interleaved": ("ball",),
    "newton": ("ball", "ball, logistic"),
    "smooth-dual": ("ball, logistic",),
    "mirror-descent": ("near a similarity",),
    "first-order-dual": ("near a similarity",),
}


SHORT = {
    "iterations": {"max_iterations": 2},
    "chunks": {"max_chunks": 1, "chunk": 2},
}


def negated(problem):
    return cp.Problem(cp.Maximize(-problem.objective.args[0]), problem.constraints)


@cache
def optimum(name):
    """Certified bounds of the optimum, 1e-6 apart."""
    solution = ko.solve(SMALL[name](), "exact", tol=1e-6)
    return solution.lower, solution.upper


@pytest.mark.parametrize(
    ("method", "name", "end"),
    [
        (method, name, end)
        for method, names in SUITS.items()
        for name in names
        for end, options in SHORT.items()
        if set(options) <= set(METHODS[method].options())
    ],
)
def test_the_bounds_of_a_short_call_contain_the_optimum(method, name, end):
    known = optimum(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(SMALL[name](), method, **SHORT[end])
    assert solution.lower <= known[1] and known[0] <= solution.upper
    assert solution.certificate.feasible
    attained, bound = solution.upper, solution.lower
    if name == "ball, maximised":  # the sides change places
        attained, bound = -solution.lower, -solution.upper
    assert 0 <= bound <= attained < np.inf


@every("error, said", [(KeyboardInterrupt, "interrupted"), (StopIteration, "the callback ended it")])
@pytest.mark.parametrize("method", SUITS)
def test_ctrl_c_and_the_callback_end_a_call_at_its_first_report_with_a_point(method, error, said):
    called = []

    def callback(report):
        called.append(report)
        raise error

    with pytest.warns(ko.ConvergenceWarning, match=said):
        solution = ko.solve(SMALL[SUITS[method][0]](), method, tol=1e-15, callback=callback)
    assert len(called) == 1
    honest(solution)
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is the caller's again
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("name", SMALL)
def test_a_call_that_ends_before_it_has_a_point_has_trained_machines_at_a_known_one(name):
    problem = SMALL[name]()
    with pytest.warns(ko.ConvergenceWarning, match="time limit"):
        solution = ko.solve(problem, "exact", time_limit=1e-6)
    trained = ko.certify(problem, solution.certificate.point)
    assert solution.value == pytest.approx(trained.lower if name == "ball, maximised" else trained.upper)
    assert solution.alpha.any()


@dataclass
class Advising(ko.extend.Method):
    """A method that the caller ends, with advice for the user."""

    advice: bool
    name = "advising"

    def match(self, structure):
        return structure

    def cost(self, match):
        return ko.extend.Cost(1.0)

    def run(self, match, control):
        point = {v.id: np.full(v.shape, 0.1) for v in match.variables}
        with control:
            control.report(0.0, 1.0, point=point)
        return ko.extend.Outcome(point, solver="none", remedy="Read a book.", remedy_at_limit=self.advice)


@pytest.mark.parametrize("advice", [False, True])
def test_an_outcome_says_whether_its_remedy_holds_at_a_limit(advice):
    def stop(report):
        raise StopIteration

    with pytest.warns(ko.ConvergenceWarning, match="the callback ended it") as caught:
        ko.solve(SMALL["ball"](), Advising(advice), callback=stop)
    assert ("Read a book." in str(caught[0].message)) == advice


@pytest.mark.parametrize("last", [1, 2])
def test_stop_iteration_ends_the_exact_method_after_that_solver(last):
    """The callback is told of every solver that ended: to 1e-15 none comes."""
    seen = []

    def callback(report):
        seen.append(report)
        if len(seen) == last:
            raise StopIteration

    with pytest.warns(ko.ConvergenceWarning, match="the callback ended it"):
        solution = ko.solve(free(12), "exact", callback=callback, tol=1e-15)
    assert [report["iteration"] for report in seen] == list(range(1, last + 1))
    honest(solution)
    assert solution.certificate.gap == min(report["gap"] for report in seen) <= 1e-5


def test_stop_iteration_at_a_point_that_is_good_enough_is_no_failure():
    def callback(report):
        raise StopIteration

    solution = ko.solve(free(12), "exact", callback=callback)
    assert solution.status == "optimal" and solution.certificate.gap <= 1e-5


@pytest.mark.parametrize("programme", [None, "words"])
def test_a_compilation_that_would_take_longer_than_there_is_time_is_not_begun(programme, monkeypatch):
    n = 50
    formulation = lanckriet.qcqp(kernels(n, 8), labels(n), C=10.0)
    compiled, real = [], cp.Problem.get_problem_data
    monkeypatch.setattr(
        cp.Problem, "get_problem_data", lambda self, *a, **k: compiled.append(self) or real(self, *a, **k)
    )
    monkeypatch.setattr(costs, "COMPILATION_ENTRY", 1e-3)  # seconds of a slow machine
    with pytest.warns(ko.ConvergenceWarning, match="time limit of 3 s"):
        solution = formulation.solve("exact", programme=programme, time_limit=3.0)
    assert compiled == []
    assert solution.solver == "none" and solution.certificate.feasible
    assert 0 <= solution.lower <= solution.upper < np.inf
    assert formulation.solve("exact", programme=programme, time_limit=300.0).status == "optimal"
    assert compiled


def test_control_c_in_a_conic_solve_returns_a_bounded_point():
    problem = free(60)
    with pressed(0.4), pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        solution = ko.solve(problem, "exact", tol=1e-15)
    honest(solution)
    assert problem.value == solution.value


def test_control_c_in_the_certificate_keeps_the_point(monkeypatch):
    """The first certificate is ended by Ctrl-C: the point of the method stays, with bounds."""
    from kernelopt.methods import results

    calls, real = [], results.certificate_at

    def certificate_at(*args, **options):
        calls.append(options.get("conic", True))
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **options)

    monkeypatch.setattr(results, "certificate_at", certificate_at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(ball(30), "block-descent")
    assert calls == [True, False]
    assert solution.certificate.feasible and np.isfinite(solution.upper)
    assert solution.lower <= solution.upper
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_second_control_c_waits_for_the_answer_to_the_first():
    control = Control(1e-5)
    with control.running("none"):
        raise KeyboardInterrupt
    try:
        signal.raise_signal(signal.SIGINT)  # nothing happens
    finally:
        control.close()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_second_control_c_may_come_while_the_limit_of_threads_is_lifted(monkeypatch):
    lift, lifted = threads._LIMITS.remove, []

    def remove(limit):
        lifted.append(limit)
        signal.raise_signal(signal.SIGINT)
        lift(limit)

    def first(report):
        monkeypatch.setattr(threads._LIMITS, "remove", remove)
        raise KeyboardInterrupt

    with pytest.warns(ko.ConvergenceWarning, match="interrupted"):
        honest(ko.solve(ball(30), "newton", tol=1e-14, callback=first))
    assert lifted
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_control_c_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(interrupts, "RETURN", 0.0)
    control = Control(1e-5)
    control.delay_interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    control.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stopped], ids=lambda e: e.__name__)
@pytest.mark.parametrize("loss", [ko.hinge(), ko.squared_hinge(), ko.logistic()], ids=repr)
@pytest.mark.parametrize("n", [30, 300])
def test_the_training_of_a_machine_can_be_ended(loss, n, error):
    K = kernels(n, 1)[0]
    with at_once(error), pytest.raises(error):
        learn(K, labels(n), loss, True)
    with at_once(error), pytest.raises(error):
        learn_blocks(list(kernels(n, 2)), labels(n), loss, True, np.inf)


@pytest.mark.parametrize("loss", [ko.hinge(), ko.logistic()], ids=repr)
def test_a_machine_inside_a_call_is_the_same_machine(loss):
    Ks, y = list(kernels(40, 2)), labels(40)

    def machines():
        return learn(Ks[0], y, loss, True), learn_blocks(Ks, y, loss, True, 3.0)

    outside = machines()
    with endless():
        inside = machines()
    for one, other in zip(outside, inside, strict=True):
        assert one.value == other.value
        np.testing.assert_array_equal(one.alpha, other.alpha)


def test_training_starts_no_compilation_for_which_the_time_is_too_short(monkeypatch):
    """After Newton's steps a smooth loss goes to a conic solver, whose compilation cannot be interrupted."""
    control, compiled = Control(1e-5, time_limit=100.0), []
    real = single.dual_program
    monkeypatch.setattr(single, "dual_program", lambda *a: compiled.append(0) or real(*a))
    K, y = kernels(30, 1)[0], labels(30)
    with control:
        enough = learn(K, y, ko.logistic(), True, tol=-1.0)
    assert len(compiled) == 1
    monkeypatch.setattr(programs, "DENSE_ENTRY", 1.0)  # seconds of a slow machine
    with control:
        short = learn(K, y, ko.logistic(), True, tol=-1.0)
    assert len(compiled) == 1
    assert short.value == pytest.approx(enough.value, rel=1e-9)


@pytest.mark.parametrize(
    "method", ["exact", "cutting-plane", "block-descent", "interleaved", "newton", "smooth-dual"]
)
def test_a_solve_inside_a_call_obeys_the_limit_of_that_call(method):
    """It has no limit of its own; the limit ends the block of the call, and not the solve."""
    problem = ball(20, loss=ko.squared_hinge())
    with closing(Call(1e-9)) as call, call:
        ko.solve(problem, method)
        raise AssertionError("the limit was not obeyed")
    assert ko.solve(problem, method).status == "optimal"


def test_where_nothing_is_known_the_limit_is_named():
    """Nothing tells a feasible point: neither zero nor a set whose middle is known."""
    X = cp.Variable((40, 40), symmetric=True, name="X")
    B = np.random.default_rng(0).normal(size=(40, 40))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.abs(X - B))), [X >> np.eye(40) + B @ B.T / 40])
    with pytest.raises(ko.SolverError, match=r"before the time limit of 0.3 s.*explain"):
        ko.solve(problem, "exact", time_limit=0.3)
    with pressed(0.3), pytest.raises(KeyboardInterrupt):
        ko.solve(problem, "exact")


def test_a_large_set_up_goes_into_a_process_and_gives_the_same_bits(monkeypatch):
    values = []
    for longest in (np.inf, 0.0):
        monkeypatch.setattr(calls, "SHORT_SETUP", longest)
        problem = ko.expand(free(12)).problem
        with endless():
            tried = run_solver(problem, SolverAttempt("CLARABEL", {"max_iter": 60}))
        assert tried.status == cp.OPTIMAL and tried.iterations > 5
        values.append([variable.value for variable in problem.variables()])
    for one, other in zip(*values, strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_no_process_can_be_started_the_thread_does_the_work(monkeypatch):
    def refused(*_, **__):
        raise OSError("no processes here")

    monkeypatch.setattr(calls, "SHORT_SETUP", 0.0)
    monkeypatch.setattr(process.subprocess, "Popen", refused)
    problem = ko.expand(free(12)).problem
    with endless():
        assert run_solver(problem, SolverAttempt("CLARABEL")).status == cp.OPTIMAL
    monkeypatch.setattr(calls, "SETUP_SECONDS", 1.0)  # seconds for an entry: it would take an hour
    with Call(10.0):
        tried = run_solver(problem, SolverAttempt("CLARABEL"))
    assert tried.status == "failed" and "no time to set up" in tried.failure


def test_the_callback_has_its_keys():
    seen = []
    ko.solve(free(8), "exact", callback=seen.append)
    common = {"method", "iteration", "seconds", "lower", "upper", "gap", "point"}
    assert set(seen[0]) == common | {"solver", "status", "certificate"}
    seen.clear()
    ko.solve(ball(20, 3), "block-descent", callback=seen.append)
    assert set(seen[0]) == common


def test_a_terminal_shows_what_is_done(monkeypatch):
    out = StringIO()
    monkeypatch.setattr(running, "QUIET", 0.0)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=out, force_terminal=True, width=100))
    ko.solve(free(24), "exact")  # the terminal is written to every tenth of a second
    assert "exact: CLARABEL" in out.getvalue()
    assert "certifying" in out.getvalue()


def test_a_line_waits_until_the_call_has_taken_a_while(monkeypatch):
    """The line is set before the solver starts, and shown while it works."""
    out = StringIO()
    monkeypatch.setattr(running, "QUIET", 0.2)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=out, force_terminal=True, width=100))
    control = Control(1e-5)
    control.show("exact: CLARABEL")
    control.check()
    assert out.getvalue() == ""
    time.sleep(0.25)
    control.check()
    control.close()
    assert "exact: CLARABEL" in out.getvalue()


# ------------------------------------------------------------------------------- two threads


def fingerprint(solution):
    return (solution.lower, solution.upper, solution.value, solution.weights.tobytes())


def test_two_threads_give_what_one_gives():
    """On the same kernels, with warnings as errors, and to the last bit."""
    K, pair = kernels(16, 4), ("exact", "interleaved")

    def made(method):
        theta = cp.Variable(4, nonneg=True)
        combined = ko.combine(theta, K)
        risk = ko.risk(combined, labels(16), ko.hinge(C=1.0))
        return ko.solve(cp.Problem(cp.Minimize(risk), [cp.norm(theta, 2) <= 1]), method)

    alone = [fingerprint(made(method)) for method in pair]
    for _ in range(4):
        found, errors = [None, None], []

        def work(k, found=found, errors=errors):
            try:
                found[k] = fingerprint(made(pair[k]))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=[k]) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert found == alone
