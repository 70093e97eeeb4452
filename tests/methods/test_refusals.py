"""What `solve` refuses, and problems without an optimum."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.conic.ladder import SolverAttempt, check_taken, refused_option
from tests.every import every
from tests.methods.cases import KS, N, Y, learning, weights
from tests.problems import labels, points, solved

# -------------------------------------------------------------------------------------------- refusals


def test_unknown_solvers_are_refused_by_name():
    with pytest.raises(ko.errors.ParameterError, match=r"CLARABEL.*SCS.*Did you mean GUROBI"):
        ko.solve(learning()[0], solver="gurobus")


@every("problem", [None, 3, cp.Variable(), []], ids=repr)
def test_only_problems_are_solved_and_explained(problem):
    for function in (ko.solve, ko.explain):
        with pytest.raises(ko.errors.ParameterError, match=r"cvxpy\.Problem"):
            function(problem)


def test_integers_are_refused():
    mu = cp.Variable(3, boolean=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, KS), Y, ko.hinge())), [cp.sum(mu) <= 2])
    for solve in (ko.solve, lambda p: p.solve(method="exact"), ko.certify):
        with pytest.raises(ko.errors.ParameterError, match="continuous"):
            solve(problem)


@every("solve", [ko.solve, lambda p: p.solve(method="exact"), ko.certify], ids=["ours", "cvxpy's", "certify"])
@pytest.mark.parametrize(
    "make",
    [
        lambda mu, risk: cp.Problem(cp.Maximize(risk), [cp.sum(mu) <= 1]),
        lambda mu, risk: cp.Problem(cp.Minimize(-risk), [cp.sum(mu) <= 1]),
        lambda mu, risk: cp.Problem(cp.Maximize(cp.minimum(risk, 3)), [cp.sum(mu) <= 1]),
        lambda mu, risk: cp.Problem(cp.Maximize(cp.sum(mu)), [risk >= 3, mu <= 4]),
        lambda mu, risk: cp.Problem(cp.Minimize(cp.sum(mu)), [risk >= 1]),
        lambda mu, risk: cp.Problem(cp.Minimize(cp.sum(mu)), [risk == 3]),
    ],
    ids=["maximised", "minus", "minimum", "bound below", "loose bound below", "equation"],
)
def test_what_is_not_convex_is_cvxpys_to_refuse(make, solve):
    _, mu, risk = learning()
    with pytest.raises(cp.DCPError):
        solve(make(mu, risk))


def test_the_refusal_names_what_is_not_convex():
    _, mu, risk = learning()
    sets = [cp.sum(mu) <= 1, cp.norm(mu) >= 1, (cp.sqrt(mu[0]) <= 2).set_label("root")]
    with pytest.raises(cp.DCPError, match=r"got constraint 1: .*norm.*; root\. Minimise convex") as error:
        ko.solve(cp.Problem(cp.Minimize(risk), sets))
    assert "risk" not in str(error.value)
    with pytest.raises(cp.DCPError, match=r"got the objective minimize -.*A risk is convex and decreasing"):
        ko.solve(cp.Problem(cp.Minimize(-risk), sets[:1]))
    price = -1.0
    said = r"whose term -1\.0 \* quad_over_lin.* is concave\. Minimise convex .*prices that are not negative"
    with pytest.raises(cp.DCPError, match=said):
        ko.solve(cp.Problem(cp.Minimize(2 * risk + price * cp.sum_squares(mu) + cp.norm(mu)), sets[:1]))
    with pytest.raises(
        ko.errors.DualizationError, match=r"got the objective .*, whose term -\(?quad_over_lin.* is concave"
    ):
        ko.dualize(cp.Problem(cp.Minimize(risk - cp.sum_squares(mu)), sets[:1]))
    with pytest.raises(cp.DCPError, match=r"whose term -\(?risk.* is concave\. A risk is convex"):
        ko.solve(cp.Problem(cp.Minimize(cp.sum(mu)), [cp.norm(mu) - risk <= 1]))


def test_an_option_that_no_solver_takes_is_named():
    problem, _, _ = learning()
    for solver in (None, "SCS", "CLARABEL"):
        with pytest.raises(
            ko.errors.ParameterError, match=r"'foo': 1, refused by .*Correct the option"
        ) as error:
            ko.solve(problem, "exact", solver=solver, solver_options={"foo": 1})
        assert "scale" not in str(error.value) and str(error.value).count("unrecognized") <= 1
    with pytest.raises(ko.errors.ParameterError, match="'max_iter': 'many', refused by CLARABEL"):
        ko.solve(problem, "exact", solver="CLARABEL", solver_options={"max_iter": "many"})


def test_an_option_of_one_solver_leaves_the_others_out():
    problem, _, _ = learning()
    assert ko.solve(problem, "exact", solver_options={"adaptive_scale": True}).solver == "SCS"
    assert refused_option("SolverError: foo", ["foo"]) is None
    assert refused_option("TypeError: 'food' is invalid", ["foo"]) is None
    attempts = [SolverAttempt("CLARABEL"), SolverAttempt("CVXOPT")]
    check_taken("feastol", 1e-9, attempts)  # CVXOPT takes any option in silence: its own are listed
    with pytest.raises(ko.errors.ParameterError, match="CVXOPT"):
        check_taken("feastool", 1e-9, attempts)


def lazy(n, attributes):
    """Kernels on n points that nobody may evaluate."""

    class Never:
        def __call__(self, *_):
            raise AssertionError("evaluated")

        def diagonal(self, X):
            return np.ones(len(X))

        def rank(self, X):
            return len(X)

        def __repr__(self):
            return "never"

    mu = cp.Variable(2, **attributes)
    K = ko.combine(mu, ko.Grams.from_kernels([Never(), Never()], np.zeros((n, 1))))
    risk = ko.risk(K, np.tile([1.0, -1.0], n // 2), ko.hinge())
    return cp.Problem(cp.Minimize(risk), [ko.trace(K) == n])


def test_a_hopeless_semidefinite_problem_is_refused():
    problem = lazy(2000, {})
    for solve in (lambda p: ko.solve(p, "exact"), lambda p: p.solve(method="exact")):
        with pytest.raises(ko.errors.MethodError, match=r"order 2001.*nonneg=True.*force=True"):
            solve(problem)


def test_memory_decides_what_is_hopeless():
    problem = lazy(300, {})
    with pytest.raises(ko.errors.MethodError, match="GB"):
        ko.solve(problem, "exact", memory=1e6)


# ------------------------------------------------------------------- no optimum: infeasible, unbounded


def test_contradictory_constraints_come_with_a_farkas_ray():
    """All variables plain and no risk: the cone form is cvxpy's own, b - Ax in K, here non-negative."""
    x = cp.Variable(2, name="x")
    constraints = [(x[0] + x[1] <= 1).set_label("roof"), (x >= 1).set_label("floor")]
    problem = cp.Problem(cp.Minimize(x[0]), constraints)
    with pytest.raises(ko.InfeasibleError, match=r"roof.*floor") as caught:
        ko.solve(problem)
    ray = caught.value.proof["ray"]
    data, _, _ = cp.Problem(cp.Minimize(0), constraints).get_problem_data(cp.CLARABEL)
    assert ray.min() >= 0
    assert data["b"] @ ray < -1e-9
    assert np.abs(data["A"].T @ ray).max() <= 1e-9 * ray.max()


@pytest.mark.parametrize(
    "objective",
    [lambda x: cp.Minimize(0 * x[0]), lambda x: cp.Minimize(x[0]), lambda x: cp.Minimize(cp.norm(x))],
    ids=["feasibility", "linear", "norm"],
)
def test_a_far_away_feasible_point_is_not_called_impossible(objective):
    """x = (5e8, 5e8 - 1) is feasible. Solvers may give up; a proof would be false."""
    x = cp.Variable(2, name="x")
    problem = cp.Problem(objective(x), [x[0] - x[1] >= 1, x[0] - (1 + 1e-9) * x[1] <= 0.5])
    proof = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        try:
            ko.solve(problem)
        except ko.InfeasibleError as error:
            proof = error.proof
        except (ko.SolverError, ko.UnboundedError):
            pass
    assert proof is None


def hard(K, y, bias=None):
    mu = weights(len(K))
    kernel = ko.combine(mu, np.asarray(K))
    return cp.Problem(
        cp.Minimize(ko.risk(kernel, y, ko.hard_margin(), bias=bias)), [ko.trace(kernel) == len(y)]
    )


def twins():
    """Two points at one place with both labels, among others."""
    X = points(8, seed=4)
    X[1] = X[0]
    y = labels(8, seed=4)
    y[:2] = 1.0, -1.0
    return [np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / w) for w in (1.0, 8.0)], y


def exclusive_or():
    X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    return [X @ X.T, np.outer(X[:, 0], X[:, 0])], np.array([1.0, 1.0, -1.0, -1.0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("data", [twins, exclusive_or])
def test_a_hard_margin_on_inseparable_data_is_infeasible_with_proof(data, bias):
    """y a >= 0, |a|_1 = 2, sum a = 0 (with an intercept) and K_i a = 0 for every kernel."""
    Ks, y = data()
    with pytest.raises(ko.InfeasibleError, match="proof") as caught:
        ko.solve(hard(Ks, y, bias))
    alpha = caught.value.proof["alpha"]
    assert (y * alpha).min() >= 0
    assert np.abs(alpha).sum() == pytest.approx(2)
    if bias:
        assert alpha.sum() == pytest.approx(0, abs=1e-9)
    for K in Ks:
        assert np.abs(K @ alpha).max() <= 2e-5
        assert alpha @ K @ alpha <= 1e-9


def test_a_hard_margin_on_separable_data_is_solved():
    X = points(N)
    problem = hard([X @ X.T + 2.0, np.exp(-((X[:, None] - X[None]) ** 2).sum(2))], Y)
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    assert (Y * solution.decision_function()).min() >= 1 - 1e-5
    assert solution.margin == pytest.approx((2 * solution.value) ** -0.5)


def test_a_barely_separable_hard_margin_is_warned_of():
    """Two points of both labels 1e-3 apart: squared distance 1e-6 where the diagonal is one."""
    X = np.array([[0.0], [1e-3], [2.0], [3.0]])
    K = np.exp(-((X - X.T) ** 2) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        with pytest.warns(ko.errors.ConditionWarning, match="soft margin"):
            solution = ko.solve(hard([K], np.array([1.0, -1.0, 1.0, -1.0])))
    value = solved_hard_margin(K, np.array([1.0, -1.0, 1.0, -1.0]))
    assert solution.lower <= value * (1 + 1e-4) and solution.upper >= value * (1 - 1e-4)


def solved_hard_margin(K, y):
    """max 1'a - 1/2 a'YKYa, with alpha = y a large: scaled by 1e6."""
    a = cp.Variable(len(y), nonneg=True)
    L = np.linalg.cholesky(K)
    scale = 1e6
    objective = cp.sum(a) - scale * cp.sum_squares(L.T @ cp.multiply(y, a)) / 2
    return scale * solved(cp.Problem(cp.Maximize(objective), [y @ a == 0]))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: cp.Problem(cp.Minimize(-cp.sum(x)), [x >= 0]),
        lambda x: cp.Problem(cp.Maximize(cp.sum(x)), [x >= 0]),
        lambda x: cp.Problem(cp.Minimize(cp.square(x[0]) - x[1])),
    ],
    ids=["linear", "maximised", "quadratic"],
)
def test_unbounded_problems_are_called_so(make):
    problem = make(cp.Variable(2, name="x"))
    for solve in (ko.solve, lambda p: p.solve(method="exact")):
        with pytest.raises(ko.UnboundedError, match="bound"):
            solve(problem)


def test_an_unbounded_problem_with_a_risk_is_never_called_optimal():
    mu = weights()
    risk = ko.risk(ko.combine(mu, KS), Y, ko.hinge())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            solution = ko.solve(cp.Problem(cp.Minimize(risk - cp.sum(mu))))
        except ko.UnboundedError:
            return
    assert solution.lower == -np.inf and solution.status == "inaccurate" and caught


def test_a_farkas_ray_is_told_in_sentences():
    _, mu, risk = learning()
    with pytest.raises(ko.InfeasibleError) as error:
        ko.solve(cp.Problem(cp.Minimize(risk), [cp.sum(mu) <= 1, cp.norm(mu - 5) <= 1]), "exact")
    said = str(error.value)
    assert "contradict each other. Multipliers of the constraints prove this: proof['ray'] is" in said
    assert "save(path)" not in said and "Loosen one of: constraint 0" in said
