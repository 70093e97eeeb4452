"""Conic solvers: which are tried in which order, and that a lying one is caught every time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solution import Solution as Answer
from cvxpy.reductions.solution import failure_solution
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

import kernelopt as ko
from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.conic import cones, multipliers
from kernelopt.certificates.conic.cones import cone_program
from kernelopt.certificates.conic.multipliers import conic_bound
from kernelopt.conic import ladder as conic
from kernelopt.conic.ladder import SolverAttempt, ladder
from tests.every import every
from tests.problems import labels, stack

N = 8
KS = stack(N)
LOW = KS[1:]  # of rank 2 and 1: the learned kernel does not determine alpha
Y = labels(N)

# ------------------------------------------------------------------------------- liars


class Liar(CLARABEL):
    """Clarabel, whose answer is falsified on its way back."""

    lie = ""

    def name(self):
        return "LIAR " + self.lie

    def invert(self, solution, inverse_data):
        honest = super().invert(solution, inverse_data)
        return self.falsify(honest, solution, inverse_data)

    def falsify(self, answer, solution, inverse_data):
        raise NotImplementedError


def changed(answer, primal=lambda x: x, dual=lambda z: z, status=None, value=None):
    """The same answer with other numbers; an honest claim of infeasibility stays one."""
    if answer.primal_vars is None:
        return answer
    return Answer(
        answer.status if status is None else status,
        answer.opt_val if value is None else value,
        {k: primal(np.asarray(v)) for k, v in answer.primal_vars.items()},
        {k: dual(np.asarray(v)) for k, v in (answer.dual_vars or {}).items()},
        answer.attr,
    )


def noise(v, seed=0):
    return np.random.default_rng(seed).normal(size=np.shape(v))


class WrongPrimal(Liar):
    lie = "primal"

    def falsify(self, answer, *_):
        return changed(answer, primal=noise)


class WrongDual(Liar):
    lie = "dual"

    def falsify(self, answer, *_):
        return changed(answer, dual=noise)


class Everything(Liar):
    lie = "everything"

    def falsify(self, answer, *_):
        return changed(answer, primal=lambda v: 1e6 * noise(v), dual=lambda v: 1e6 * noise(v, 1), value=-1e3)


class NotANumber(Liar):
    lie = "nan"

    def falsify(self, answer, *_):
        nan = lambda v: np.full(np.shape(v), np.nan)  # noqa: E731
        return changed(answer, primal=nan, dual=nan, status=cp.OPTIMAL, value=np.nan)


class OneNotANumber(Liar):
    lie = "one nan"

    def falsify(self, answer, *_):
        def pierced(v):
            v = np.array(v, dtype=float)
            v.flat[0] = np.nan
            return v

        return changed(answer, primal=pierced)


class Infinite(Liar):
    lie = "infinite"

    def falsify(self, answer, *_):
        return changed(answer, primal=lambda v: np.full(np.shape(v), np.inf))


class ClaimsInfeasible(Liar):
    lie = "infeasible"

    def falsify(self, answer, *_):
        return failure_solution(cp.INFEASIBLE)


class ClaimsUnbounded(Liar):
    lie = "unbounded"

    def falsify(self, answer, *_):
        return failure_solution(cp.UNBOUNDED)


class InventsARay(Liar):
    """Calls the problem unbounded, and anything else solved by a point of huge entries."""

    lie = "ray"

    def __init__(self, sign=-1.0):
        super().__init__()
        self.asked, self.sign = 0, sign

    def falsify(self, answer, *_):
        self.asked += 1
        if self.asked % 2:
            return failure_solution(cp.UNBOUNDED)
        return changed(answer, primal=lambda v: np.full(np.shape(v), self.sign * 1e12))


class SlightlyOff(Liar):
    lie = "by 1e-3"

    def falsify(self, answer, *_):
        return changed(answer, primal=lambda v: v * (1 + 1e-3 * noise(v)), value=answer.opt_val * (1 - 1e-3))


class TooGood(Liar):
    lie = "too good"

    def falsify(self, answer, *_):
        return changed(answer, primal=lambda v: 1.3 * v, dual=lambda v: 1.3 * v, value=answer.opt_val - 1)


class Silent(Liar):
    lie = "no status"

    def falsify(self, answer, *_):
        return changed(answer, status=cp.OPTIMAL_INACCURATE, primal=lambda v: v + 1.0)


class AlwaysOptimal(Liar):
    """Returns "optimal" and the last iterate for an infeasible problem too."""

    lie = "optimal"

    def invert(self, solution, inverse_data):
        dressed = SimpleNamespace(
            status="Solved",
            x=np.asarray(solution.x),
            z=np.asarray(solution.z),
            obj_val=1.0,
            obj_val_dual=1.0,
            solve_time=0.0,
            iterations=1,
        )
        return CLARABEL.invert(self, dressed, inverse_data)


class Mishap(Exception):
    """What a solver raises that knows nothing of cvxpy, such as mosek.Error."""


class Crashing(Liar):
    lie = "crash"

    def __init__(self, error):
        super().__init__()
        self.error = error

    def solve_via_data(self, *_: Any, **__: Any):
        raise self.error


LIARS = [
    WrongPrimal,
    WrongDual,
    Everything,
    NotANumber,
    OneNotANumber,
    Infinite,
    ClaimsInfeasible,
    ClaimsUnbounded,
    InventsARay,
    SlightlyOff,
    TooGood,
    Silent,
]
liars = every("liar", LIARS, ids=lambda liar: liar.lie)


def simplex():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, KS)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == N])


def bounded_risk():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, KS)
    return cp.Problem(cp.Minimize(ko.trace(K)), [ko.risk(K, Y, ko.hinge()) <= 2.5])


def free_sign():
    mu = cp.Variable(2)
    K = ko.combine(mu, LOW)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [K >> 0, ko.trace(K) == N])


def psd_variable():
    K = cp.Variable((4, 4), PSD=True)
    return cp.Problem(cp.Minimize(ko.risk(K, Y[:4], ko.hinge()) + cp.sum_squares(K - np.outer(Y[:4], Y[:4]))))


def linear_programme():
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Maximize(x @ np.array([1.0, 2.0, 0.5])), [cp.sum(x) <= 1, x[1] <= 0.6])


def quadratic_programme():
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([1.0, -1.0, 0.3]))), [cp.sum(x) == 1, x >= 0])


PROBLEMS = [simplex, bounded_risk, free_sign, psd_variable, linear_programme, quadratic_programme]
problems = pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)


@pytest.fixture(scope="module")
def truth():
    """Bounds of every problem by an honest solver."""
    return {make: ko.solve(make()).certificate for make in PROBLEMS}


def outcome(problem, solver):
    """The solution, or the error that says honestly that there is none."""
    try:
        return ko.solve(problem, solver=solver), None
    except (ko.SolverError, ko.InfeasibleError, ko.UnboundedError) as error:
        return None, error


def encloses(certificate, true):
    return certificate.lower <= true.upper + 1e-7 and certificate.upper >= true.lower - 1e-7


@problems
@liars
def test_a_lying_solver_is_caught(make, liar, truth):
    """A small and true gap, or a warning with bounds that hold, or an error that claims no proof."""
    problem = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution, error = outcome(problem, liar())
    if error is not None:
        assert "LIAR" in str(error)
        assert getattr(error, "proof", None) is None
        return
    assert {w.category for w in caught} <= {ko.ConvergenceWarning}
    assert encloses(solution.certificate, truth[make])
    assert solution.solver.startswith("LIAR")
    inaccurate = solution.gap > 1e-5
    assert bool(caught) == inaccurate
    assert solution.status == ("inaccurate" if inaccurate else "optimal")
    assert problem.status == (cp.OPTIMAL_INACCURATE if inaccurate else cp.OPTIMAL)
    if not inaccurate:
        assert solution.value == pytest.approx(truth[make].upper, rel=2e-5, abs=2e-5)
    assert all(np.isfinite(v.value).all() for v in problem.variables())
    assert problem.value == pytest.approx(solution.value, rel=1e-9)


@pytest.mark.parametrize("liar", [WrongPrimal, Everything, ClaimsInfeasible], ids=lambda liar: liar.lie)
def test_wrong_weights_are_warned_of(liar, truth):
    with pytest.warns(ko.ConvergenceWarning, match="gap"):
        solution = ko.solve(simplex(), solver=liar())
    assert solution.gap > 1e-5
    assert encloses(solution.certificate, truth[simplex])
    assert solution.value == solution.upper


def test_a_value_that_is_a_thousandth_off_is_warned_of(truth):
    with pytest.warns(ko.ConvergenceWarning):
        solution = ko.solve(linear_programme(), solver=SlightlyOff())
    assert 1e-5 < solution.gap < 0.1
    assert encloses(solution.certificate, truth[linear_programme])


def test_wrong_multipliers_alone_do_not_mislead(truth):
    """At a low-rank kernel alpha is not determined by the weights: without the multiplier there is a gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(free_sign(), solver=WrongDual())
    assert encloses(solution.certificate, truth[free_sign])
    assert solution.upper == pytest.approx(truth[free_sign].upper, abs=1e-5)


@problems
def test_a_false_claim_of_infeasibility_is_no_proof(make, truth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution, error = outcome(make(), ClaimsInfeasible())
    assert getattr(error, "proof", None) is None
    assert error is not None or encloses(solution.certificate, truth[make])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("make", [linear_programme, quadratic_programme], ids=lambda make: make.__name__)
def test_an_invented_ray_is_no_proof_of_unboundedness(make, sign, truth):
    """A point of value -1e12 that violates the constraints says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution, error = outcome(make(), InventsARay(sign))
    assert not isinstance(error, ko.UnboundedError)
    assert error is not None or encloses(solution.certificate, truth[make])


def contradictory():
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, KS)
    floor, ceiling = (mu[0] >= 2).set_label("floor"), (mu[0] <= 1).set_label("ceiling")
    return cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) <= 100, floor, ceiling])


@pytest.mark.parametrize("liar", [AlwaysOptimal, ClaimsUnbounded], ids=lambda liar: liar.lie)
def test_a_false_claim_of_optimality_is_refused(liar):
    with pytest.raises((ko.SolverError, ko.InfeasibleError, ko.UnboundedError)):
        ko.solve(contradictory(), solver=liar())


@pytest.mark.parametrize("make", [simplex, free_sign, linear_programme], ids=lambda make: make.__name__)
@liars
def test_an_honest_solver_after_the_liar_wins(make, liar, truth, monkeypatch):
    monkeypatch.setattr(
        "kernelopt.methods.exact.method.ladder",
        lambda **_: [
            SolverAttempt(liar()),
            SolverAttempt("CLARABEL"),
            SolverAttempt("CLARABEL", {"use_quad_obj": False}),
        ],
    )
    solution = ko.solve(make(), "exact")
    assert solution.status == "optimal" and solution.gap <= 1e-5
    assert encloses(solution.certificate, truth[make])
    assert solution.value == pytest.approx(truth[make].upper, rel=2e-5, abs=2e-5)
    assert solution.solver == "CLARABEL" or len(solution.history) == 1  # a lie that could be repaired
    if liar in (WrongPrimal, Everything, NotANumber, Infinite) and make is not linear_programme:
        assert solution.solver == "CLARABEL"
        assert len(solution.history) >= 2


def test_the_honest_point_stays_when_a_liar_comes_last(monkeypatch, truth):
    """No attempt meets the tolerance: the best of them is put back, not the last one."""
    attempts = [SolverAttempt("CLARABEL"), SolverAttempt(Everything())]
    monkeypatch.setattr("kernelopt.methods.exact.method.ladder", lambda **_: attempts)
    problem = free_sign()
    with pytest.warns(ko.ConvergenceWarning):
        solution = ko.solve(problem, "exact", tol=1e-16)
    assert solution.solver == "CLARABEL"
    assert encloses(solution.certificate, truth[free_sign])
    assert len(solution.history) == 2
    (mu,) = [v for v in problem.variables() if v.shape == (2,)]
    np.testing.assert_array_equal(mu.value, solution.weights)
    assert problem.value == pytest.approx(solution.value, rel=1e-9)


@pytest.mark.parametrize("make", [simplex, free_sign], ids=lambda make: make.__name__)
def test_a_point_of_one_solver_and_the_bound_of_another_are_put_together(make, truth, monkeypatch):
    attempts = [SolverAttempt(WrongDual()), SolverAttempt(WrongPrimal())]
    monkeypatch.setattr("kernelopt.methods.exact.method.ladder", lambda **_: attempts)
    solution = ko.solve(make(), "exact")
    assert solution.status == "optimal" and solution.gap <= 1e-5
    assert encloses(solution.certificate, truth[make])


@pytest.mark.parametrize(
    "error",
    [
        Mishap("err_license"),
        RuntimeError("boom"),
        cp.SolverError("failed"),
        ArithmeticError("nan"),
        KeyError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_crash_of_a_solver_is_a_failed_attempt(error, monkeypatch, truth):
    monkeypatch.setattr(
        "kernelopt.methods.exact.method.ladder",
        lambda **_: [SolverAttempt(Crashing(error)), SolverAttempt("CLARABEL")],
    )
    solution = ko.solve(simplex())
    assert solution.solver == "CLARABEL" and solution.gap <= 1e-5


def test_a_crash_of_the_only_solver_is_told():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution, error = outcome(simplex(), Crashing(RuntimeError("the sky fell")))
    assert "the sky fell" in str(error) if solution is None else solution.status == "inaccurate"


# ------------------------------------------------------------------------------ the ladder


def names(attempts):
    return [attempt.name for attempt in attempts]


def test_clarabel_and_scs_are_always_there():
    for linear, order in ((False, 0), (True, 0), (False, 50), (False, 400)):
        assert {"SCS"} <= set(names(ladder(linear=linear, order=order)))
    assert names(ladder(linear=False, order=0))[0] == "CLARABEL"
    assert names(ladder(linear=False, order=400))[0] == "SCS"


@pytest.mark.parametrize("licensed", [False, True])
def test_mosek_comes_first_with_a_licence_and_not_at_all_without(licensed, monkeypatch):
    real = [*cp.installed_solvers()]
    before = ladder(linear=False, order=20)
    monkeypatch.setattr(conic, "installed_solvers", lambda: [*real, "MOSEK"])
    monkeypatch.setattr(conic, "mosek_is_licensed", lambda: licensed)
    after = ladder(linear=False, order=20)
    assert after == ([SolverAttempt("MOSEK"), *before] if licensed else before)


@pytest.mark.parametrize("licensed", [False, True])
def test_the_licence_is_probed_by_checking_it_out(licensed, monkeypatch):
    class Error(Exception):
        pass

    class Env:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def checkoutlicense(self, feature):
            if not licensed:
                raise Error("no licence")

    fake = SimpleNamespace(Env=Env, Error=Error, feature=SimpleNamespace(pts="pts"))
    monkeypatch.setitem(sys.modules, "mosek", fake)
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS", "MOSEK"])
    assert conic.mosek_is_licensed.__wrapped__() is licensed


def test_no_mosek_needs_no_probe(monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    monkeypatch.setitem(sys.modules, "mosek", None)
    assert conic.mosek_is_licensed.__wrapped__() is False


def test_a_solve_is_unchanged_by_an_unlicensed_mosek(monkeypatch):
    before = ko.solve(simplex())
    real = [*cp.installed_solvers()]
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["MOSEK", *real])
    monkeypatch.setattr(conic, "mosek_is_licensed", lambda: False)
    after = ko.solve(simplex())
    assert (after.solver, after.value) == (before.solver, pytest.approx(before.value, abs=1e-8))


def test_highs_solves_linear_programmes():
    assert "HIGHS" in cp.installed_solvers()
    assert names(ladder(linear=True, order=0))[0] == "HIGHS"
    assert "HIGHS" not in names(ladder(linear=False, order=0))
    solution = ko.solve(linear_programme())
    assert solution.solver == "HIGHS"
    assert solution.value == pytest.approx(1.6, abs=1e-7)


def test_cvxopt_is_a_later_opinion_where_it_is_installed():
    attempts = names(ladder(linear=False, order=20))
    assert ("CVXOPT" in attempts) == ("CVXOPT" in cp.installed_solvers())
    if "CVXOPT" in attempts:
        assert attempts[-1] == "CVXOPT"


@pytest.mark.parametrize("solver", ["CLARABEL", "clarabel", "SCS"])
def test_a_named_solver_is_the_only_one(solver):
    assert names(ladder(linear=True, order=0, solver=solver)) == [solver.upper()]


def test_a_time_limit_reaches_every_solver():
    for attempt in ladder(linear=True, order=0, time_limit=7.0):
        if attempt.name in ("CLARABEL", "HIGHS"):
            assert attempt.options["time_limit"] == 7.0
        if attempt.name == "SCS":
            assert attempt.options["time_limit_secs"] == 7.0
    assert all("time" not in str(attempt.options) for attempt in ladder(linear=True, order=0))


def test_rungs_can_be_attempted_one_by_one():
    problem = linear_programme()
    for attempt in ladder(linear=True, order=0):
        result = conic.run_solver(problem, attempt)
        assert (result.attempt, result.failure) == (attempt, "")
        assert result.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        assert problem.value == pytest.approx(1.6, abs=1e-4)


def test_convexity_errors_are_not_swallowed():
    problem = cp.Problem(cp.Maximize(cp.square(cp.Variable())))
    with pytest.raises(cp.DCPError):
        conic.run_solver(problem, SolverAttempt("CLARABEL"))


# ------------------------------------------------------------------------------- names of solvers


def test_a_misspelt_solver_is_answered_by_the_name_that_was_meant():
    with pytest.raises(ko.ParameterError, match="'CLARABLE'.*Did you mean CLARABEL") as caught:
        ladder(linear=False, order=0, solver="CLARABLE")
    assert "pip install" not in str(caught.value)


def test_a_name_like_no_other_is_answered_by_those_that_are_installed(monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    with pytest.raises(ko.ParameterError, match=r"CLARABEL, SCS\. Pass one of these") as caught:
        ko.solve(simplex(), solver="nonsense")
    assert "pip install" not in str(caught.value)


@pytest.mark.parametrize(
    ("solver", "hint"), [("mosek", r'pip install "cvxpy\[MOSEK\]"'), ("PDCS", "cvxpy's manual")]
)
def test_a_real_solver_that_is_not_installed_is_answered_by_how_to_install_it(solver, hint, monkeypatch):
    monkeypatch.setattr(conic, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    with pytest.raises(ko.ParameterError, match=rf"CLARABEL, SCS.*{hint}"):
        ko.solve(simplex(), solver=solver)


@pytest.mark.parametrize("solver", [3, 2.5, ["CLARABEL"], object, b"SCS"])
def test_a_solver_is_a_name_or_an_object_of_cvxpy(solver):
    with pytest.raises(ko.ParameterError, match="solver must be the name.*or a cvxpy solver object, got"):
        ko.solve(simplex(), solver=solver)


# ------------------------------------------------------------------------- solves that are watched


class Ended(Exception):
    """What a watch raises."""


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
SLOW = [
    (
        lambda: slow(55),
        SolverAttempt("CLARABEL", {"time_limit": 60.0}),
    ),  # building its matrices cannot be ended: 0.2 s
    (lambda: slow(70), SolverAttempt("SCS", {**TIGHT, "time_limit_secs": 2.5})),
    (lambda: slow(30), SolverAttempt("CVXOPT")),
    (slow_linear, SolverAttempt("HIGHS", {"time_limit": 2.5})),
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


def after(seconds, error):
    """A watch that raises once so much time has passed since its first call."""
    first = []

    def watch():
        first.append(time.perf_counter())
        if first[-1] - first[0] > seconds:
            raise error
        return first

    watch.calls = first
    return watch


def no_worker_is_left(seconds):
    """Whether the threads of abandoned solvers end within so much time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if not any(t.name == "kernelopt solver" for t in threading.enumerate()):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "HIGHS", "CVXOPT"])
def test_a_watched_solve_is_the_same_solve(solver):
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    plain, watched = linear_programme(), linear_programme()
    first, second = (
        conic.run_solver(plain, SolverAttempt(solver)),
        conic.run_solver(watched, SolverAttempt(solver), watch=lambda: None),
    )
    assert (first.status, first.iterations, first.failure) == (second.status, second.iterations, "")
    for one, other in zip(plain.variables(), watched.variables(), strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    for one, other in zip(plain.constraints, watched.constraints, strict=True):
        np.testing.assert_array_equal(one.dual_value, other.dual_value)
    assert watched.solver_stats.solver_name == solver
    assert watched.compilation_time > 0


@problems
def test_a_watched_problem_has_the_same_answer(make):
    plain, watched = (ko.expand(make()).problem for _ in range(2))
    conic.run_solver(plain, SolverAttempt("CLARABEL"))
    conic.run_solver(watched, SolverAttempt("CLARABEL"), watch=lambda: None)
    assert watched.value == pytest.approx(plain.value, rel=1e-12)


@slow_solves
def test_what_a_watch_raises_ends_the_solve_at_once(name, make, attempt):
    problem = make()
    watch = after(0.8, Ended("enough"))
    with pytest.raises(Ended, match="enough"):
        conic.run_solver(problem, attempt, watch=watch)
    calls = np.diff(watch.calls)
    assert len(calls) >= 3
    assert np.median(calls) < 0.06
    assert watch.calls[-1] - watch.calls[0] < 2.0
    assert problem.variables()[0].value is None
    assert no_worker_is_left(3 if name in ("CLARABEL", "CVXOPT") else 30)


@pytest.mark.slow
@slow_solves
def test_control_c_ends_the_solve_at_once(name, make, attempt):
    """SCS takes the signal for itself while it works."""
    problem = make()
    pressed = threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT])
    compiled = []
    started = time.perf_counter()

    def watch():
        if not compiled:
            compiled.append(time.perf_counter())
            pressed.start()

    with pytest.raises(KeyboardInterrupt):
        conic.run_solver(problem, attempt, watch=watch)
    assert time.perf_counter() - started < 5
    assert time.perf_counter() - compiled[0] < 1.7
    assert no_worker_is_left(30)
    with pytest.raises(KeyboardInterrupt):  # Python has its handler back
        signal.raise_signal(signal.SIGINT)


def test_control_c_is_not_kept_by_scs_without_a_watch():
    pressed = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    problem = slow(60)
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        conic.run_solver(problem, SolverAttempt("SCS", {**TIGHT, "time_limit_secs": 20.0}))


def test_an_abandoned_problem_can_be_solved_again():
    problem = slow(20)
    with pytest.raises(Ended):
        conic.run_solver(problem, SolverAttempt("CLARABEL"), watch=after(0.0, Ended()))
    assert conic.run_solver(problem, SolverAttempt("CLARABEL"), watch=lambda: None).status == cp.OPTIMAL
    assert no_worker_is_left(5)


def test_cvxopt_keeps_its_options_when_it_is_abandoned():
    solvers = pytest.importorskip("cvxopt.solvers")
    before = dict(solvers.options)
    with pytest.raises(Ended):
        conic.run_solver(slow(25), SolverAttempt("CVXOPT", {"abstol": 1e-3}), watch=after(0.1, Ended()))
    assert no_worker_is_left(5)
    assert solvers.options == before


def test_a_failure_of_the_solver_is_reported_under_a_watch_too():
    tried = conic.run_solver(
        linear_programme(), SolverAttempt(Crashing(Mishap("broken"))), watch=lambda: None
    )
    assert (tried.status, tried.failure) == ("failed", "Mishap: broken")
    tried = conic.run_solver(
        linear_programme(), SolverAttempt("CLARABEL", {"no_such": 1}), watch=lambda: None
    )
    assert tried.status == "failed"
    assert "no_such" in tried.failure


def test_a_liar_is_not_replaced_by_clarabel_itself():
    """A solver object that inherits from cvxpy's Clarabel keeps its own call."""
    tried = conic.run_solver(linear_programme(), SolverAttempt(Crashing(Mishap("mine"))), watch=lambda: None)
    assert "mine" in tried.failure


def test_convexity_errors_are_not_swallowed_under_a_watch():
    problem = cp.Problem(cp.Maximize(cp.square(cp.Variable())))
    with pytest.raises(cp.DCPError):
        conic.run_solver(problem, SolverAttempt("CLARABEL"), watch=lambda: None)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_cone_programme_can_be_watched(solver):
    program = cone_program(slow(55), solver)
    options = {} if solver == "CLARABEL" else {**TIGHT, "time_limit_secs": 2.5}
    watch = after(0.2, Ended())
    with pytest.raises(Ended):
        program.solve(watch=watch, **options)
    assert watch.calls[-1] - watch.calls[0] < 2.0
    assert no_worker_is_left(3 if solver == "CLARABEL" else 30)
    small = cone_program(linear_programme(), solver)
    plain, watched = small.solve(), small.solve(watch=lambda: None)
    assert plain[0] == watched[0]
    np.testing.assert_array_equal(plain[1], watched[1])
    np.testing.assert_array_equal(plain[2], watched[2])


def nearly_dependent():
    """min of <B, K> over combinations K >> 0 of trace n of matrices that nearly depend on each other."""
    rng = np.random.default_rng(4)
    B, C, x = rng.normal(size=(6, 6)), rng.normal(size=(6, 6)), cp.Variable(3, name="x")
    parts = [np.eye(6), B + B.T, B + B.T + 1e-5 * (C + C.T)]
    K = sum(x[i] * part for i, part in enumerate(parts))
    return cp.Problem(cp.Minimize(cp.trace(np.diag(np.arange(6.0)) @ K)), [K >> 0, cp.trace(K) == 6])


def test_a_cone_programme_in_orthogonal_coordinates_is_the_same_programme():
    program = cone_program(nearly_dependent())
    turned = program.orthogonal()
    assert np.linalg.cond(program.A.toarray()) > 1e4
    np.testing.assert_allclose(turned.A.T @ turned.A.toarray(), np.eye(3), atol=1e-12)
    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(turned.A @ (turned.factor @ x), program.A @ x, rtol=1e-10, atol=1e-10)
    assert turned.c @ (turned.factor @ x) == pytest.approx(program.c @ x, rel=1e-9)
    status, x, z = turned.solve()
    assert status == "Solved"
    rest = program.A.T @ z + program.c  # z is a multiplier of the original, to its residual
    assert np.abs(rest).max() <= 1e-6
    assert program.c @ x == pytest.approx(-program.b @ z, abs=1e-6)
    (_, trace, _), (_, block, order) = program.blocks()
    slack = program.b - program.A @ x
    assert np.abs(slack[trace]).max() <= 1e-6
    assert np.linalg.eigvalsh(program.matrix(slack[block], order))[0] >= -1e-6


def test_quadratic_objectives_turn_with_the_coordinates():
    x = cp.Variable(3, name="x")
    M = np.array([[1.0, 2, 0], [0, 1, 1], [3, 0, 1], [1, 1, 1]])
    program = cone_program(cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [M @ x >= 1]))
    turned, at = program.orthogonal(), np.linspace(-1, 2, program.c.size)
    inner = turned.factor @ at
    assert inner @ (turned.P @ inner) == pytest.approx(at @ (program.P @ at), rel=1e-12)
    np.testing.assert_allclose(turned.solve()[1], program.solve()[1], atol=1e-6)


def test_dependent_columns_and_large_programmes_are_not_turned(monkeypatch):
    x = cp.Variable(2, name="x")
    twice = cone_program(cp.Problem(cp.Minimize(cp.sum(x)), [cp.sum(x) >= k for k in range(4)]))
    assert twice.orthogonal() is None
    monkeypatch.setattr(cones, "LARGEST_ROTATION", 10.0)
    assert cone_program(nearly_dependent()).orthogonal() is None


def distance():
    """A problem whose bound takes a solver and a repair."""
    x = cp.Variable(6)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.arange(6.0)) + cp.norm1(x)), [cp.norm2(x) <= 3])


def test_a_bound_by_multipliers_can_be_ended_and_keeps_what_it_found():
    problem = distance()
    boxes = known_boxes(ko.Structure(problem), None)
    whole: list[Any] = []
    bound = conic_bound(problem, problem.variables(), boxes, watch=lambda: None, found=whole)
    assert bound == conic_bound(problem, problem.variables(), boxes)
    assert whole[-1] == bound
    assert [b.value for b in whole] == sorted(b.value for b in whole)

    def watch():
        raise Ended

    with pytest.raises(Ended):
        conic_bound(problem, problem.variables(), boxes, watch=watch, found=[])


def test_the_best_bound_survives_a_watch_that_raises_later(monkeypatch):
    """The second solve of a tilted problem is ended: the bound of the first stands."""
    monkeypatch.setattr(multipliers, "SUFFICIENT_GAP", -1.0)  # no bound is good enough: all tilts are solved
    problem, found = distance(), []
    boxes = known_boxes(ko.Structure(problem), None)

    def watch():
        if found:
            raise Ended

    with pytest.raises(Ended):
        conic_bound(problem, problem.variables(), boxes, watch, found)
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
                watch = (lambda: None) if i % 2 else None
                tried = conic.run_solver(
                    problem, SolverAttempt(solvers[(turn + i) % len(solvers)]), watch=watch
                )
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
