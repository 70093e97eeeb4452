"""Conic solvers that lie are caught every time."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solution import Solution as Answer
from cvxpy.reductions.solution import failure_solution
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

import kernelopt as ko
from kernelopt.conic.ladder import SolverAttempt
from tests.conic.cases import (
    KS,
    PROBLEMS,
    Crashing,
    Liar,
    Mishap,
    Y,
    free_sign,
    linear_programme,
    quadratic_programme,
    simplex,
)


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


def pierced(v):
    v = np.array(v, dtype=float)
    v.flat[0] = np.nan
    return v


def nan(v):
    return np.full(np.shape(v), np.nan)


LIES = {
    "primal": lambda a: changed(a, primal=noise),
    "dual": lambda a: changed(a, dual=noise),
    "everything": lambda a: changed(
        a, primal=lambda v: 1e6 * noise(v), dual=lambda v: 1e6 * noise(v, 1), value=-1e3
    ),
    "nan": lambda a: changed(a, primal=nan, dual=nan, status=cp.OPTIMAL, value=np.nan),
    "one nan": lambda a: changed(a, primal=pierced),
    "infinite": lambda a: changed(a, primal=lambda v: np.full(np.shape(v), np.inf)),
    "infeasible": lambda a: failure_solution(cp.INFEASIBLE),
    "unbounded": lambda a: failure_solution(cp.UNBOUNDED),
    "by 1e-3": lambda a: changed(a, primal=lambda v: v * (1 + 1e-3 * noise(v)), value=a.opt_val * (1 - 1e-3)),
    "too good": lambda a: changed(a, primal=lambda v: 1.3 * v, dual=lambda v: 1.3 * v, value=a.opt_val - 1),
    "no status": lambda a: changed(a, status=cp.OPTIMAL_INACCURATE, primal=lambda v: v + 1.0),
}


class Lying(Liar):
    """Clarabel with a lie of the table."""

    def __init__(self, lie):
        super().__init__()
        self.lie = lie

    def falsify(self, answer, *_):
        return LIES[self.lie](answer)


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


class AlwaysOptimal(Liar):
    """Returns "optimal" and the last iterate for an infeasible problem too."""

    lie = "optimal"

    def invert(self, solution, inverse_data):
        numbers = {"obj_val": 1.0, "obj_val_dual": 1.0, "solve_time": 0.0, "iterations": 1}
        x, z = np.asarray(solution.x), np.asarray(solution.z)
        return CLARABEL.invert(self, SimpleNamespace(status="Solved", x=x, z=z, **numbers), inverse_data)


def liar(lie):
    return InventsARay() if lie == "ray" else Lying(lie)


def halves(half):
    """Pairs of a problem and a liar: in each half a liar meets three of the problems."""
    lies = [*LIES, "ray"]
    return [(make, lie) for k, make in enumerate(PROBLEMS) for lie in lies[(k + half) % 2 :: 2]]


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


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_a_lying_solver_is_caught(half, truth):
    for make, lie in halves(half):
        check_lie(make, liar(lie), truth)


def check_lie(make, solver, truth):
    """A small and true gap, or a warning with bounds that hold, or an error that claims no proof."""
    problem = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution, error = outcome(problem, solver)
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


@pytest.mark.parametrize("lie", ["primal", "everything", "infeasible"])
def test_wrong_weights_are_warned_of(lie, truth):
    with pytest.warns(ko.ConvergenceWarning, match="gap"):
        solution = ko.solve(simplex(), solver=Lying(lie))
    assert solution.gap > 1e-5
    assert encloses(solution.certificate, truth[simplex])
    assert solution.value == solution.upper


def test_a_value_that_is_a_thousandth_off_is_warned_of(truth):
    with pytest.warns(ko.ConvergenceWarning):
        solution = ko.solve(linear_programme(), solver=Lying("by 1e-3"))
    assert 1e-5 < solution.gap < 0.1
    assert encloses(solution.certificate, truth[linear_programme])


def test_wrong_multipliers_alone_do_not_mislead(truth):
    """At a low-rank kernel alpha is not determined by the weights: without the multiplier there is a gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(free_sign(), solver=Lying("dual"))
    assert encloses(solution.certificate, truth[free_sign])
    assert solution.upper == pytest.approx(truth[free_sign].upper, abs=1e-5)


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


@pytest.mark.parametrize("solver", [AlwaysOptimal(), Lying("unbounded")], ids=lambda solver: solver.lie)
def test_a_false_claim_of_optimality_is_refused(solver):
    with pytest.raises((ko.SolverError, ko.InfeasibleError, ko.UnboundedError)):
        ko.solve(contradictory(), solver=solver)


@pytest.fixture
def attempts(monkeypatch):
    """Let "exact" make these attempts."""

    def make(*solvers):
        ladder = [SolverAttempt(solver) for solver in solvers]
        monkeypatch.setattr("kernelopt.methods.exact.method.ladder", lambda **_: ladder)

    return make


@pytest.mark.parametrize("make", [simplex, free_sign, linear_programme], ids=lambda make: make.__name__)
def test_an_honest_solver_after_the_liar_wins(make, truth, attempts):
    for lie in ("primal", "everything", "nan", "infinite", "unbounded", "too good"):
        attempts(Lying(lie), "CLARABEL", "CLARABEL")
        solution = ko.solve(make(), "exact")
        assert solution.status == "optimal" and solution.gap <= 1e-5
        assert encloses(solution.certificate, truth[make])
        assert solution.value == pytest.approx(truth[make].upper, rel=2e-5, abs=2e-5)
        assert solution.solver == "CLARABEL" or len(solution.history) == 1  # a lie that could be repaired
        if lie in ("primal", "everything", "nan", "infinite") and make is not linear_programme:
            assert solution.solver == "CLARABEL"
            assert len(solution.history) >= 2


def test_the_honest_point_stays_when_a_liar_comes_last(attempts, truth):
    """No attempt meets the tolerance: the best of them is put back, not the last one."""
    attempts("CLARABEL", Lying("everything"))
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
def test_a_point_of_one_solver_and_the_bound_of_another_are_put_together(make, truth, attempts):
    attempts(Lying("dual"), Lying("primal"))
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
def test_a_crash_of_a_solver_is_a_failed_attempt(error, attempts):
    attempts(Crashing(error), "CLARABEL")
    solution = ko.solve(simplex())
    assert solution.solver == "CLARABEL" and solution.gap <= 1e-5


def test_a_crash_of_the_only_solver_is_told():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution, error = outcome(simplex(), Crashing(RuntimeError("the sky fell")))
    assert "the sky fell" in str(error) if solution is None else solution.status == "inaccurate"
