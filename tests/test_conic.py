"""Conic solvers: which are tried in which order, and that a lying one is caught every time."""

from __future__ import annotations

import sys
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
from kernelopt import conic
from kernelopt.conic import Rung, ladder
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
liars = pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.lie)


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


@problems
@liars
def test_an_honest_solver_after_the_liar_wins(make, liar, truth, monkeypatch):
    monkeypatch.setattr(
        "kernelopt.solvers.exact.ladder",
        lambda **_: [Rung(liar()), Rung("CLARABEL"), Rung("CLARABEL", {"use_quad_obj": False})],
    )
    solution = ko.solve(make())
    assert solution.status == "optimal" and solution.gap <= 1e-5
    assert encloses(solution.certificate, truth[make])
    assert solution.value == pytest.approx(truth[make].upper, rel=2e-5, abs=2e-5)
    assert solution.solver == "CLARABEL" or len(solution.history) == 1  # a lie that could be repaired
    if liar in (WrongPrimal, Everything, NotANumber, Infinite) and make is not linear_programme:
        assert solution.solver == "CLARABEL"
        assert len(solution.history) >= 2


def test_the_honest_point_stays_when_a_liar_comes_last(monkeypatch, truth):
    """No rung meets the tolerance: the best of them is put back, not the last one."""
    rungs = [Rung("CLARABEL"), Rung(Everything())]
    monkeypatch.setattr("kernelopt.solvers.exact.ladder", lambda **_: rungs)
    problem = free_sign()
    with pytest.warns(ko.ConvergenceWarning):
        solution = ko.solve(problem, tol=1e-16)
    assert solution.solver == "CLARABEL"
    assert encloses(solution.certificate, truth[free_sign])
    assert len(solution.history) == 2
    (mu,) = [v for v in problem.variables() if v.shape == (2,)]
    np.testing.assert_array_equal(mu.value, solution.weights)
    assert problem.value == pytest.approx(solution.value, rel=1e-9)


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
        "kernelopt.solvers.exact.ladder", lambda **_: [Rung(Crashing(error)), Rung("CLARABEL")]
    )
    solution = ko.solve(simplex())
    assert solution.solver == "CLARABEL" and solution.gap <= 1e-5


def test_a_crash_of_the_only_solver_is_told():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution, error = outcome(simplex(), Crashing(RuntimeError("the sky fell")))
    assert "the sky fell" in str(error) if solution is None else solution.status == "inaccurate"


# ------------------------------------------------------------------------------ the ladder


def names(rungs):
    return [rung.name for rung in rungs]


def test_clarabel_and_scs_are_always_there():
    for linear, order in ((False, 0), (True, 0), (False, 50), (False, 400)):
        assert {"SCS"} <= set(names(ladder(linear=linear, order=order)))
    assert names(ladder(linear=False, order=0))[0] == "CLARABEL"
    assert names(ladder(linear=False, order=400))[0] == "SCS"


@pytest.mark.parametrize("licensed", [False, True])
def test_mosek_comes_first_with_a_licence_and_not_at_all_without(licensed, monkeypatch):
    real = [*cp.installed_solvers()]
    before = ladder(linear=False, order=20)
    monkeypatch.setattr(cp, "installed_solvers", lambda: [*real, "MOSEK"])
    monkeypatch.setattr(conic, "mosek_is_licensed", lambda: licensed)
    after = ladder(linear=False, order=20)
    assert after == ([Rung("MOSEK"), *before] if licensed else before)


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
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL", "SCS", "MOSEK"])
    assert conic.mosek_is_licensed.__wrapped__() is licensed


def test_no_mosek_needs_no_probe(monkeypatch):
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    monkeypatch.setitem(sys.modules, "mosek", None)
    assert conic.mosek_is_licensed.__wrapped__() is False


def test_a_solve_is_unchanged_by_an_unlicensed_mosek(monkeypatch):
    before = ko.solve(simplex())
    real = [*cp.installed_solvers()]
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["MOSEK", *real])
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
    rungs = names(ladder(linear=False, order=20))
    assert ("CVXOPT" in rungs) == ("CVXOPT" in cp.installed_solvers())
    if "CVXOPT" in rungs:
        assert rungs[-1] == "CVXOPT"


@pytest.mark.parametrize("solver", ["CLARABEL", "clarabel", "SCS"])
def test_a_named_solver_is_the_only_one(solver):
    assert names(ladder(linear=True, order=0, solver=solver)) == [solver.upper()]


@pytest.mark.parametrize("solver", ["MOSEK", "nonsense"])
def test_a_solver_that_is_not_installed_is_refused(solver, monkeypatch):
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL", "SCS"])
    with pytest.raises(ko.ParameterError, match=r"CLARABEL, SCS.*pip install"):
        ko.solve(simplex(), solver=solver)


def test_a_time_limit_reaches_every_solver():
    for rung in ladder(linear=True, order=0, time_limit=7.0):
        if rung.name in ("CLARABEL", "HIGHS"):
            assert rung.options["time_limit"] == 7.0
        if rung.name == "SCS":
            assert rung.options["time_limit_secs"] == 7.0
    assert all("time" not in str(rung.options) for rung in ladder(linear=True, order=0))


def test_rungs_can_be_attempted_one_by_one():
    problem = linear_programme()
    for rung in ladder(linear=True, order=0):
        attempt = conic.attempt(problem, rung)
        assert (attempt.rung, attempt.failure) == (rung, "")
        assert attempt.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        assert problem.value == pytest.approx(1.6, abs=1e-4)


def test_convexity_errors_are_not_swallowed():
    problem = cp.Problem(cp.Maximize(cp.square(cp.Variable())))
    with pytest.raises(cp.DCPError):
        conic.attempt(problem, Rung("CLARABEL"))
