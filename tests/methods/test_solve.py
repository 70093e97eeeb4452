"""`solve`: what it leaves in the problem, what the solution says, and what it refuses."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

import kernelopt as ko
from tests.every import every
from tests.problems import labels, points, solved, stack, targets

N = 10
KS = stack(N)
TRACES = KS.trace(axis1=1, axis2=2)
Y = labels(N)
OTHER = np.sign(points(N)[:, 1])


def weights(size=3, name="mu", **attributes):
    return cp.Variable(size, name=name, **(attributes or {"nonneg": True}))


def learning(loss=None, trace=N, y=Y):
    """min risk over the simplex of weights."""
    mu = weights()
    K = ko.combine(mu, KS)
    risk = ko.risk(K, y, loss or ko.hinge(C=1.0))
    return cp.Problem(cp.Minimize(risk), [ko.trace(K) == trace]), mu, risk


def support_vectors(K, y, C=1.0):
    """The signed dual variable of the soft-margin machine by libsvm."""
    machine = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = machine.dual_coef_[0]
    return alpha, float(machine.intercept_[0])


def dual_value(K, alpha, y):
    return y @ alpha - alpha @ K @ alpha / 2


# ---------------------------------------------------------------------- what a problem is left with


@pytest.mark.parametrize("method", ["exact"])
def test_the_solve_of_cvxpy_takes_our_methods(method):
    problem, mu, risk = learning()
    value = problem.solve(method=method)
    assert problem.status == cp.OPTIMAL
    assert value == pytest.approx(problem.value, rel=1e-9)
    assert value == pytest.approx(ko.solve(problem, method).value, abs=1e-5)
    assert all(v.value is not None and np.isfinite(v.value).all() for v in problem.variables())
    assert len(problem.variables()) > 1, "there are hidden variables to be set"
    assert problem.constraints[0].dual_value is not None
    assert risk.alpha.shape == (N,) and np.isfinite(risk.intercept)
    assert mu.value.min() >= 0 and TRACES @ mu.value == pytest.approx(N, rel=1e-9)


def test_the_solve_of_cvxpy_checks_its_options():
    problem, _, _ = learning()
    with pytest.raises(ko.ParameterError, match="tol"):
        problem.solve(method="exact", tol=-1)


def test_the_hidden_variables_fit_the_point():
    """A hidden expression is worth what the oracle says, where it is active."""
    problem, _, risk = learning()
    ko.solve(problem)
    assert float(risk.args[0].value) == pytest.approx(float(risk.value), rel=1e-4)


def test_a_problem_without_risks_is_left_solved():
    x = cp.Variable(3, name="x")
    cap = cp.sum(x) == 1
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - np.array([1.0, 2.0, 0.0]))), [cap])
    solution = ko.solve(problem)
    np.testing.assert_allclose(x.value, [1 / 3, 4 / 3, -2 / 3], atol=1e-6)
    assert (problem.status, solution.status) == (cp.OPTIMAL, "optimal")
    assert problem.value == pytest.approx(4 / 3, abs=1e-6)
    assert cap.dual_value == pytest.approx(4 / 3, abs=1e-5)
    assert solution.alpha is solution.intercept is solution.kernel is solution.tau is None
    assert solution.weights_unique is None
    with pytest.raises(ko.InputError, match="no risk"):
        solution.decision_function()
    with pytest.raises(ko.InputError, match="one risk"):
        _ = solution.margin


def shifted(trace=float(N), room=0.05, solver=None, full=False):
    """A problem with an equality and an active inequality, both of size one."""
    mu = weights()
    K = ko.combine(mu, KS)
    cons = [ko.trace(K) == trace, mu[1] - mu[0] <= room, mu[1] <= 7.0]
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge()) + 0.1 * cp.sum_squares(mu)), cons)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(problem, "exact", tol=1e-8, solver=solver)
    return (solution, cons) if full else solution.value


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_multipliers_are_sensitivities(solver):
    """d value / d right-hand side = -multiplier, in cvxpy's signs, whoever solved it."""
    step = 1e-3
    by_trace = (shifted(N + step) - shifted(N - step)) / (2 * step)
    by_room = (shifted(room=0.05 + step) - shifted(room=0.05 - step)) / (2 * step)
    _, (trace, room, roof) = shifted(solver=solver, full=True)
    assert abs(by_room) > 1e-3, "the constraint is active"
    assert float(trace.dual_value) == pytest.approx(-by_trace, rel=1e-2, abs=1e-4)
    assert float(np.squeeze(room.dual_value)) == pytest.approx(-by_room, rel=1e-2, abs=1e-4)
    assert float(np.squeeze(roof.dual_value)) == pytest.approx(0, abs=1e-5)


free_sign_stacks = pytest.mark.parametrize("grams", [KS, KS[1:]], ids=["full rank", "rank 3"])


@free_sign_stacks
@pytest.mark.parametrize("kind", ["risk", "linear"])
def test_the_multiplier_of_a_matrix_inequality(grams, kind):
    """Stationarity in every weight: slope_i + nu tr K_i - <Z, K_i> = 0, with Z PSD and <Z, K> = 0.

    The slope of the risk of K + I/2 is -1/2 a'K_i a; its own domain is not active, so Z is the user's.
    """
    mu = weights(len(grams), symmetric=False)
    K = ko.combine(mu, grams)
    positive, trace = K >> 0, ko.trace(K) == N
    M = points(N, N, seed=6)
    products = np.array([(M @ G + G @ M.T) / 2 for G in grams])
    objective = {
        "risk": lambda: ko.risk(K + 0.5 * np.eye(N), Y, ko.hinge()),
        "linear": lambda: ko.trace(ko.combine(mu, products)),
    }[kind]()
    solution = ko.solve(cp.Problem(cp.Minimize(objective), [positive, trace]))
    Z, nu = positive.dual_value, float(trace.dual_value)
    assert solution.gap <= 1e-5
    assert Z.shape == (N, N)
    np.testing.assert_allclose(Z, Z.T, atol=1e-8)
    assert np.linalg.eigvalsh(Z)[0] >= -1e-6 and np.linalg.eigvalsh(Z)[-1] > 1e-3
    assert np.sum(Z * K.value) == pytest.approx(0, abs=1e-4)
    slopes = np.trace(products, axis1=1, axis2=2)
    if kind == "risk":
        slopes = np.array([-solution.alpha @ G @ solution.alpha / 2 for G in grams])
    residual = slopes + nu * np.trace(grams, axis1=1, axis2=2) - np.sum(Z * grams, axis=(1, 2))
    np.testing.assert_allclose(residual, 0, atol=2e-4)


@free_sign_stacks
def test_the_multiplier_has_the_shape_of_the_kernel_beside_its_own_risk(grams):
    """The risk of K asks for K >> 0 too, so the multiplier is shared: only part of it is the user's."""
    mu = weights(len(grams), symmetric=False)
    K = ko.combine(mu, grams)
    positive = (K >> 0).set_label("psd")
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [positive, ko.trace(K) == N]))
    assert solution.gap <= 1e-5
    assert positive.dual_value.shape == (N, N)
    assert np.linalg.eigvalsh(positive.dual_value)[0] >= -1e-6


def test_solving_twice_gives_the_same():
    problem, mu, _ = learning()
    first = ko.solve(problem)
    again = ko.solve(problem)
    assert again.value == pytest.approx(first.value, abs=1e-9)
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-9)
    np.testing.assert_array_equal(mu.value, again.weights)


def test_an_ordinary_solve_before_and_after_does_no_harm():
    problem, _, risk = learning()
    plain = solved(problem)
    assert risk.alpha is None
    assert ko.solve(problem).value == pytest.approx(plain, abs=1e-5)
    assert solved(problem) == pytest.approx(plain, abs=1e-6)


# ----------------------------------------------------------------------------------- alpha


def ridged():
    """A kernel that is positive definite for all weights, so that alpha is unique."""
    mu = weights()
    return mu, ko.combine(mu, KS) + 0.5 * np.eye(N)


def composed(kind):
    """A problem with one risk, and the kernel; 3.0 is below its least, 30.0 above it."""
    mu, K = ridged()
    risk = ko.risk(K, Y, ko.hinge())
    price = 0.2 * cp.sum_squares(mu)
    size = [TRACES @ mu <= N]
    factor = cp.Parameter(nonneg=True, value=0.7)
    problem = {
        "alone": lambda: cp.Problem(cp.Minimize(risk + price), size),
        "twice": lambda: cp.Problem(cp.Minimize(2 * risk + price), size),
        "parameter": lambda: cp.Problem(cp.Minimize(factor * risk + price), size),
        "maximised": lambda: cp.Problem(cp.Maximize(1 - 3 * risk - price), size),
        "bounded": lambda: cp.Problem(cp.Minimize(price + TRACES @ mu), [risk <= 3.5]),
        "squared": lambda: cp.Problem(cp.Minimize(cp.square(risk) + price), size),
        "active maximum": lambda: cp.Problem(cp.Minimize(cp.maximum(risk, 0.1) + price), size),
        "inactive maximum": lambda: cp.Problem(cp.Minimize(cp.maximum(risk, 30.0) + price), size),
        "slack bound": lambda: cp.Problem(cp.Minimize(price - mu[0]), [*size, risk <= 1000]),
    }[kind]()
    return problem, K, risk


KINDS = [
    "alone",
    "twice",
    "parameter",
    "maximised",
    "bounded",
    "squared",
    "active maximum",
    "inactive maximum",
    "slack bound",
]


@pytest.mark.parametrize("kind", KINDS)
def test_alpha_is_that_of_the_machine_at_the_learned_kernel(kind):
    """The raw multiplier is 2, 0.7, 0 or another factor times this."""
    problem, K, risk = composed(kind)
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    alpha, intercept = support_vectors(K.value, Y)
    assert dual_value(K.value, risk.alpha, Y) == pytest.approx(dual_value(K.value, alpha, Y), rel=1e-5)
    np.testing.assert_allclose(risk.alpha, alpha, atol=5e-3)
    assert np.abs(risk.alpha).max() <= 1 + 1e-12 and abs(risk.alpha.sum()) <= 1e-12
    np.testing.assert_array_equal(risk.alpha, solution.alpha)
    assert risk.intercept == solution.intercept
    free = (np.abs(alpha) > 1e-6) & (np.abs(alpha) < 1 - 1e-6)
    if free.any():  # otherwise an interval of intercepts is optimal
        assert risk.intercept == pytest.approx(intercept, abs=1e-2)


def test_alpha_of_a_low_rank_kernel_comes_from_the_multiplier():
    """A machine trained again at a kernel of rank 2 has another alpha, and a gap of per cents."""
    mu = weights(2, symmetric=False)
    K = ko.combine(mu, KS[1:])
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [K >> 0, ko.trace(K) == N])
    assert ko.solve(problem).gap <= 1e-5


def test_every_risk_has_its_own_machine():
    mu = weights()
    K = ko.combine(mu, KS)
    first, second = ko.risk(K, Y, ko.hinge()), ko.risk(K, OTHER, ko.squared_hinge(C=2.0))
    solution = ko.solve(cp.Problem(cp.Minimize(first + 2 * second), [ko.trace(K) == N]))
    assert [a.shape for a in solution.alpha] == [(N,), (N,)]
    np.testing.assert_array_equal(solution.alpha[0], first.alpha)
    np.testing.assert_array_equal(solution.alpha[1], second.alpha)
    assert solution.intercept == (first.intercept, second.intercept)
    np.testing.assert_array_equal(solution.weights, mu.value)  # one array: both risks are of one mu
    assert solution.weights_unique is None
    for k, risk in enumerate((first, second)):
        f = solution.kernel[k] @ solution.alpha[k] + solution.intercept[k]
        np.testing.assert_allclose(solution.decision_function(risk=k), f)
        loss = [np.maximum(1 - Y * f, 0).sum(), np.maximum(1 - OTHER * f, 0) @ np.maximum(1 - OTHER * f, 0)][
            k
        ]
        value = loss + solution.alpha[k] @ solution.kernel[k] @ solution.alpha[k] / 2
        assert value == pytest.approx(float(risk.value), rel=1e-4)


def test_the_intercept_of_a_regression():
    y = targets(N)
    problem, _, risk = learning(ko.squared(C=2.0), y=y)
    solution = ko.solve(problem)
    residual = y - solution.decision_function()
    assert residual.sum() == pytest.approx(0, abs=1e-4)
    np.testing.assert_allclose(risk.alpha, 2 * residual, atol=1e-3)


# -------------------------------------------------------------------------------- the solution


def test_the_fields_of_a_solution_are_consistent():
    problem, mu, risk = learning()
    solution = ko.solve(problem)
    certificate = solution.certificate
    assert (solution.status, solution.method, solution.solver) == ("optimal", "exact", "CLARABEL")
    assert (solution.lower, solution.upper) == (certificate.lower, certificate.upper)
    assert solution.value == solution.upper
    assert solution.gap == certificate.gap <= 1e-5
    np.testing.assert_array_equal(solution.weights, mu.value)
    np.testing.assert_allclose(solution.kernel, np.tensordot(solution.weights, KS, 1), rtol=1e-12)
    assert solution.margin == pytest.approx((2 * float(risk.value)) ** -0.5)
    assert solution.tau is None
    assert solution.iterations > 0
    assert min(solution.build_time, solution.solve_time, solution.certify_time) >= 0
    assert len(solution.history) >= 1
    seconds, lower, upper = np.array(solution.history).T
    assert (np.diff(seconds) >= 0).all() and seconds[0] > 0
    assert (solution.lower, solution.upper) in list(zip(lower, upper, strict=True))
    assert certificate.residuals is not None
    assert "optimal by exact (CLARABEL)" in str(solution) and "optimum" in str(solution)


def test_the_value_of_a_maximisation_is_its_lower_bound():
    mu, K = ridged()
    problem = cp.Problem(cp.Maximize(5 - ko.risk(K, Y, ko.hinge())), [TRACES @ mu <= N])
    solution = ko.solve(problem)
    assert solution.value == solution.lower <= solution.upper
    assert solution.gap <= 1e-5
    assert problem.value == pytest.approx(solution.value, rel=1e-9)


def test_every_certified_point_is_reported():
    seen = []
    problem, _, _ = learning()
    solution = ko.solve(problem, callback=seen.append)
    assert len(seen) == len(solution.history)
    assert all({"solver", "status", "certificate"} <= set(call) for call in seen)
    assert seen[-1]["certificate"].gap == solution.gap
    assert seen[-1]["solver"] == solution.solver


def test_rungs_are_walked_until_the_tolerance_is_met():
    problem, _, _ = learning()
    with pytest.warns(ko.ConvergenceWarning, match="1e-17"):
        solution = ko.solve(problem, "exact", tol=1e-17)
    assert len(solution.history) > 1
    assert solution.status == "inaccurate" and problem.status == cp.OPTIMAL_INACCURATE
    widths = [upper - lower for _, lower, upper in solution.history]
    assert solution.upper - solution.lower == pytest.approx(min(widths), abs=1e-15)


# ------------------------------------------------------------------------------- prediction


X_ALL = points(N + 5, seed=8)
X_NEW = points(4, seed=9)
KERNELS = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2)]


def transductive(ridge=False, attributes=None):
    """Kernels on more points than there are labels."""
    grams = ko.Grams.from_kernels(KERNELS, X_ALL)
    mu = weights(3, **(attributes or {}))
    K = ko.combine(mu, grams)
    extra = []
    if ridge:
        tau = cp.Variable(nonneg=True, name="tau")
        K = K + tau * np.eye(N + 5)
        extra = [tau >= 0.1]
    if attributes:
        extra = [K >> 0]
    risk = ko.risk(K, Y, ko.hinge())
    return cp.Problem(cp.Minimize(risk), [ko.trace(K) == N + 5, *extra]), grams, risk


def test_predictions_on_all_points():
    problem, grams, risk = transductive()
    solution = ko.solve(problem)
    K = grams.combine(solution.weights)
    f = solution.decision_function()
    assert f.shape == (N + 5,)
    np.testing.assert_allclose(solution.kernel, K)
    np.testing.assert_allclose(f, K[:, :N] @ solution.alpha + solution.intercept)
    hinge = np.maximum(1 - Y * f[:N], 0).sum() + solution.alpha @ K[:N, :N] @ solution.alpha / 2
    assert hinge == pytest.approx(solution.value, rel=1e-4)
    assert float(risk.value) == pytest.approx(solution.value, rel=1e-9)


def test_predictions_at_new_points():
    problem, grams, _ = transductive()
    solution = ko.solve(problem)
    cross = grams.cross(X_NEW)
    expected = np.tensordot(solution.weights, cross, 1)[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(cross), expected)
    np.testing.assert_allclose(solution.decision_function(cross[:, :, :N]), expected)
    np.testing.assert_allclose(
        solution.decision_function(grams.cross(X_ALL)), solution.decision_function(), atol=1e-9
    )


@pytest.mark.parametrize("shape", [(2, 4, N), (3, 4, N - 1), (4, N), (3, 4)])
def test_cross_kernels_of_another_shape_are_refused(shape):
    problem, _, _ = transductive()
    solution = ko.solve(problem)
    with pytest.raises(ko.ShapeError, match="cross must have"):
        solution.decision_function(np.zeros(shape))


def test_weights_of_free_sign_do_not_extend_to_new_points():
    problem, grams, _ = transductive(attributes={"symmetric": False})
    solution = ko.solve(problem)
    assert solution.decision_function().shape == (N + 5,)
    with pytest.raises(ko.InputError, match=r"non-negative.*among the N"):
        solution.decision_function(grams.cross(X_NEW))


def test_a_psd_variable_does_not_extend_to_new_points():
    K = cp.Variable((N, N), PSD=True)
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [cp.trace(K) <= N]))
    assert solution.weights is None
    np.testing.assert_allclose(solution.kernel, K.value)
    with pytest.raises(ko.InputError, match="new points"):
        solution.decision_function(np.zeros((1, 2, N)))


def test_tau_is_reported_and_left_out_of_predictions():
    problem, grams, _ = transductive(ridge=True)
    solution = ko.solve(problem)
    (tau,) = [v for v in problem.variables() if v.name() == "tau"]
    assert solution.tau == pytest.approx(float(tau.value)) and solution.tau >= 0.1 - 1e-6
    assert solution.weights.shape == (3,)
    K = grams.combine(solution.weights)
    np.testing.assert_allclose(solution.kernel, K)
    f = K[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), f)
    cross = np.tensordot(solution.weights, grams.cross(X_NEW), 1)[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(grams.cross(X_NEW)), cross)


def test_a_list_of_kernels_predicts_with_all_of_them():
    problem = cp.Problem(cp.Minimize(ko.risk(list(KS + np.eye(N)), Y, ko.hinge(), norm=1.5)))
    solution = ko.solve(problem)
    assert solution.weights.shape == (3,)
    f = np.tensordot(solution.weights, KS + np.eye(N), 1) @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), f)


# ------------------------------------------------------------------------------- uniqueness


def test_generic_weights_are_unique():
    assert ko.solve(learning()[0]).weights_unique is True


def test_duplicated_kernels_have_no_unique_weights():
    mu = weights(4)
    K = ko.combine(mu, KS[[0, 1, 1, 2]])
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == N]))
    assert solution.weights_unique is False
    assert solution.value == pytest.approx(ko.solve(learning()[0]).value, abs=1e-5)


def test_uniqueness_is_not_claimed_where_it_is_not_known():
    problem, _, _ = transductive(attributes={"symmetric": False})
    assert ko.solve(problem).weights_unique is None


# ----------------------------------------------------------------------------- parameters


def test_a_parameter_is_read_at_every_solve():
    C, size = cp.Parameter(pos=True), cp.Parameter(pos=True)
    mu = weights()
    K = ko.combine(mu, KS)
    risk = ko.risk(K, Y, ko.hinge(C=C))
    problem = cp.Problem(cp.Minimize(risk), [ko.trace(K) == size])
    for c, s in ((1.0, 10.0), (0.1, 10.0), (0.1, 3.0)):
        C.value, size.value = c, s
        fixed, _, _ = learning(ko.hinge(C=c), trace=s)
        solution = ko.solve(problem)
        assert solution.gap <= 1e-5
        assert solution.value == pytest.approx(ko.solve(fixed).value, abs=2e-5)
        assert np.abs(risk.alpha).max() <= c * (1 + 1e-12)


def test_a_parameter_that_weighs_a_risk_is_read_at_every_solve():
    factor = cp.Parameter(nonneg=True)
    mu, K = ridged()
    risk = ko.risk(K, Y, ko.hinge())
    problem = cp.Problem(cp.Minimize(factor * risk + cp.sum(mu)), [mu <= 5])
    for value in (0.5, 4.0):
        factor.value = value
        solution = ko.solve(problem)
        assert solution.gap <= 1e-5
        expected = support_vectors(K.value, Y)[0]
        assert dual_value(K.value, risk.alpha, Y) == pytest.approx(dual_value(K.value, expected, Y), rel=1e-4)


@pytest.mark.parametrize("kind", ["zero", "zero parameter"])
def test_a_risk_of_weight_zero_costs_nothing(kind):
    factor = 0.0 if kind == "zero" else cp.Parameter(nonneg=True, value=0.0)
    mu, K = ridged()
    problem = cp.Problem(cp.Minimize(factor * ko.risk(K, Y, ko.hinge()) + cp.sum_squares(mu - 1)), [mu <= 5])
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    np.testing.assert_allclose(mu.value, 1, atol=1e-3)


# ----------------------------------------------------------------------------- fixed kernels


@pytest.mark.parametrize(
    "loss", [ko.hinge(), ko.squared_hinge(C=2.0), ko.logistic(), ko.hard_margin()], ids=repr
)
def test_a_fixed_kernel_is_an_ordinary_machine(loss):
    risk = ko.risk(KS[0], Y, loss)
    solution = ko.solve(cp.Problem(cp.Minimize(risk)))
    assert solution.gap <= 1e-5
    assert solution.value == pytest.approx(float(risk.value), rel=1e-5)
    np.testing.assert_allclose(solution.kernel, KS[0])
    assert solution.decision_function().shape == (N,)


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("tol", [0, -1e-5, np.nan, np.inf, "small", None, True])
def test_bad_tolerances_are_refused(tol):
    with pytest.raises(ko.ParameterError, match="tol"):
        ko.solve(learning()[0], tol=tol)


@pytest.mark.parametrize("option", ["time_limit", "memory"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, "long"])
def test_bad_limits_are_refused(option, value):
    with pytest.raises(ko.ParameterError, match=option):
        ko.solve(learning()[0], **{option: value})


def test_unknown_methods_are_refused_by_name():
    with pytest.raises(ko.MethodError, match=r"'exact'.*'simplex'"):
        ko.solve(learning()[0], "simplex")


def test_unknown_solvers_are_refused_by_name():
    with pytest.raises(ko.ParameterError, match=r"CLARABEL.*SCS.*Did you mean GUROBI"):
        ko.solve(learning()[0], solver="gurobus")


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="tolerance"):
        ko.solve(learning()[0], tolerance=1e-3)


@pytest.mark.parametrize("problem", [None, 3, cp.Variable(), []], ids=repr)
def test_only_problems_are_solved(problem):
    with pytest.raises(ko.ParameterError, match=r"cvxpy\.Problem"):
        ko.solve(problem)


def test_integers_are_refused():
    mu = cp.Variable(3, boolean=True)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, KS), Y, ko.hinge())), [cp.sum(mu) <= 2])
    for solve in (ko.solve, lambda p: p.solve(method="exact"), ko.certify):
        with pytest.raises(ko.ParameterError, match="continuous"):
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
    for solve in (ko.solve, lambda p: p.solve(method="exact")):
        with pytest.raises(ko.MethodError, match=r"order 2001.*nonneg=True.*force=True"):
            solve(problem)


def test_memory_decides_what_is_hopeless():
    problem = lazy(300, {})
    with pytest.raises(ko.MethodError, match="GB"):
        ko.solve(problem, memory=1e6)


# ------------------------------------------------------------- no optimum: infeasible, unbounded


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


def test_contradictory_weights_are_infeasible_with_proof():
    problem, mu, _ = learning()
    wrong = cp.Problem(problem.objective, [*problem.constraints, (mu <= -1).set_label("negative")])
    for solve in (ko.solve, lambda p: p.solve(method="exact")):
        with pytest.raises(ko.InfeasibleError, match="negative") as caught:
            solve(wrong)
        assert np.isfinite(caught.value.proof["ray"]).all()


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
        with pytest.warns(ko.ConditionWarning, match="soft margin"):
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


# --------------------------------------------------------------------------------- extremes


def test_a_single_solver_can_be_forced():
    problem, _, _ = learning()
    solution = ko.solve(problem, solver="SCS", tol=1e-3)
    assert solution.solver == "SCS"
    assert solution.value == pytest.approx(ko.solve(problem).value, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_badly_scaled_kernels_keep_honest_bounds(scale):
    """risk(sK, C) = risk(K, sC) / s."""
    mu = weights()
    K = ko.combine(mu, scale * KS)
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge(C=1.0 / scale))), [TRACES @ mu == N])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(problem)
    value = ko.solve(learning()[0]).value / scale
    assert solution.lower <= value * (1 + 2e-5) and solution.upper >= value * (1 - 2e-5)


def test_a_zero_kernel_among_others_changes_nothing():
    mu = weights(4)
    K = ko.combine(mu, np.concatenate([KS, np.zeros((1, N, N))]))
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == N, mu <= 100]))
    assert solution.value == pytest.approx(ko.solve(learning()[0]).value, abs=1e-5)


def test_weights_that_must_vanish():
    """No strictly feasible point: the constraints leave one weight."""
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(
        cp.Minimize(ko.risk(K, Y, ko.hinge())), [ko.trace(K) == N, mu[0] + mu[2] <= 0, mu[1] <= 100]
    )
    solution = ko.solve(problem)
    alone = float(ko.risk(N / TRACES[1] * KS[1], Y, ko.hinge()).value)
    assert solution.gap <= 1e-5
    assert solution.value == pytest.approx(alone, rel=1e-5)


def test_a_time_limit_leaves_honest_bounds():
    problem, _, _ = learning()
    value = ko.solve(problem).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(problem, time_limit=1e-6)
    assert solution.lower <= value + 1e-5 and solution.upper >= value - 1e-5
    assert len(solution.history) <= 1
