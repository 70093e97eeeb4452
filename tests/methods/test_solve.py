"""What `solve` leaves in the problem, and what the solution says."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

import kernelopt as ko
from tests.methods.cases import KS, N, Y, learning, transductive, weights
from tests.problems import points, solved

TRACES = KS.trace(axis1=1, axis2=2)


OTHER = np.sign(points(N)[:, 1])


def support_vectors(K, y, C=1.0):
    """The signed dual variable of the soft-margin machine by libsvm."""
    machine = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = machine.dual_coef_[0]
    return alpha, float(machine.intercept_[0])


def dual_value(K, alpha, y):
    return y @ alpha - alpha @ K @ alpha / 2


# ------------------------------------------------------------------------- what a problem is left with


@pytest.mark.parametrize("method", ["exact"])
def test_the_solve_of_cvxpy_takes_our_methods(method):
    problem, mu, risk = learning()
    value = problem.solve(method=method)
    assert problem.status == cp.OPTIMAL
    assert value == pytest.approx(problem.value, rel=1e-9)
    assert value == pytest.approx(ko.solve(problem, method).value, abs=1e-5)
    assert all(v.value is not None and np.isfinite(v.value).all() for v in problem.variables())
    assert len(problem.variables()) > 1, "there are hidden variables to be set"
    assert float(risk.args[0].value) == pytest.approx(float(risk.value), rel=1e-4)  # where it is active
    assert problem.constraints[0].dual_value is not None
    assert risk.alpha.shape == (N,) and np.isfinite(risk.intercept)
    assert mu.value.min() >= 0 and TRACES @ mu.value == pytest.approx(N, rel=1e-9)


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
    solution, (trace, room, roof) = shifted(solver=solver, full=True)
    assert solution.solver == solver
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


def test_solving_twice_gives_the_same_and_does_no_harm_to_ordinary_solves():
    problem, _, risk = learning()
    plain = solved(problem)
    assert risk.alpha is None
    first, again = ko.solve(problem), ko.solve(problem)
    assert first.value == pytest.approx(plain, abs=1e-5)
    assert again.value == pytest.approx(first.value, abs=1e-9)
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-9)
    assert solved(problem) == pytest.approx(plain, abs=1e-6)


# ----------------------------------------------------------------------------------------------- alpha


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


@pytest.mark.parametrize(
    "kind",
    ["alone", "twice", "parameter", "maximised", "bounded", "squared", "active maximum", "inactive maximum",
     "slack bound"],
)  # fmt: skip
def test_alpha_is_that_of_the_machine_at_the_learned_kernel(kind):
    """The raw multiplier is 2, 0.7, 0 or another factor times this."""
    problem, K, risk = composed(kind)
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    assert solution.value == (solution.lower if kind == "maximised" else solution.upper)
    assert problem.value == pytest.approx(solution.value, rel=1e-9)
    alpha, intercept = support_vectors(K.value, Y)
    assert dual_value(K.value, risk.alpha, Y) == pytest.approx(dual_value(K.value, alpha, Y), rel=1e-5)
    np.testing.assert_allclose(risk.alpha, alpha, atol=5e-3)
    assert np.abs(risk.alpha).max() <= 1 + 1e-12 and abs(risk.alpha.sum()) <= 1e-12
    np.testing.assert_array_equal(risk.alpha, solution.alpha)
    assert risk.intercept == solution.intercept
    free = (np.abs(alpha) > 1e-6) & (np.abs(alpha) < 1 - 1e-6)
    if free.any():  # otherwise an interval of intercepts is optimal
        assert risk.intercept == pytest.approx(intercept, abs=1e-2)


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
    assert solution.weights_unique is True
    for k, risk in enumerate((first, second)):
        f = solution.kernel[k] @ solution.alpha[k] + solution.intercept[k]
        np.testing.assert_allclose(solution.decision_function(risk=k), f)
        loss = [np.maximum(1 - Y * f, 0).sum(), np.maximum(1 - OTHER * f, 0) @ np.maximum(1 - OTHER * f, 0)][
            k
        ]
        value = loss + solution.alpha[k] @ solution.kernel[k] @ solution.alpha[k] / 2
        assert value == pytest.approx(float(risk.value), rel=1e-4)


# ---------------------------------------------------------------------------------------- the solution


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


# ------------------------------------------------------------------------------------------ uniqueness


def test_uniqueness_is_not_claimed_where_it_is_not_known():
    problem, _, _ = transductive(attributes={"symmetric": False})
    assert ko.solve(problem).weights_unique is None
    # At two support vectors both kernels are equal, and the third point is far inside its margin with either.
    far = [np.array([[1.0, 0], [-1, 0], [a, b]]) for a, b in ((3, 0), (4, 1))]
    kernels, y = np.array([F @ F.T for F in far]), np.array([1, -1, 1])
    values = [ko.solve(cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())))).value for K in kernels]
    solution = on_ball(kernels, [y], 1)
    assert values == [pytest.approx(solution.value, rel=1e-5)] * 2  # so that both ends are optimal
    assert solution.weights_unique is None


HINGE = ko.hinge(1.0)


def on_ball(kernels, ys, p, loss=HINGE, method="newton"):
    """The solution of the sum of a risk for each y, with common weights in an l_p ball."""
    theta = cp.Variable(len(kernels), nonneg=True)
    K = ko.combine(theta, kernels)
    total = sum(ko.risk(K, y, loss) for y in ys)
    return ko.solve(cp.Problem(cp.Minimize(total), ko.lp_ball(theta, p)), method, tol=1e-6)


def test_uniqueness_on_a_ball_is_decided_for_every_exponent():
    """Of duplicates only the sum of the weights is determined at p = 1, and each weight for p > 1."""
    twice, with_zero = KS[[0, 1, 1, 2]], np.array([*KS, np.zeros((N, N))])
    for p in (1, 4 / 3, np.inf):
        for ys in ([Y], [Y, OTHER]):
            assert on_ball(twice, ys, p).weights_unique is (p > 1)
            assert on_ball(with_zero, ys, p).weights_unique is (p < np.inf)
        assert on_ball(0 * KS, [Y, OTHER], p).weights_unique is False
    # Every point has both labels: f = 0 is optimal, at an alpha that a solver finds up to its tolerance.
    both = np.kron(np.ones((2, 2)), KS)
    for p in (1, 4 / 3, np.inf):
        for loss, method in ((ko.logistic(1.0), "exact"), (ko.squared_hinge(1.0), "newton")):
            found = on_ball(both, [np.r_[Y, -Y], np.r_[-OTHER, OTHER]], p, loss, method)
            assert not found.weights_unique
    # Of proportional kernels at p = 1 the largest has all the weight, also if a solver gives others some.
    proportional = np.array([1, 0.5, 0.5])[:, None, None] * KS[0]
    for C in (1e-4, 1.0):
        assert on_ball(proportional, [Y], 1, ko.epsilon_insensitive(C), "exact").weights_unique is not False
    # A kernel of small entries has a weight of its own, at p = inf up to the distance of the bounds.
    for p in (4 / 3, np.inf):
        scaled = on_ball(np.array([1, 1, 1e-14])[:, None, None] * KS, [Y], p)
        assert scaled.weights_unique is (True if p < np.inf else None)
    # K_2 = K_0 + K_1 has the largest form, and so all the weight at p = 1, alone or with its duplicate.
    L = np.array([np.diag([1.0, 1, 0, 0]), np.diag([0, 0, 1.0, 1]), np.eye(4)])
    for unique, kernels in ((True, L), (False, L[[0, 1, 2, 2]])):
        solution = on_ball(kernels, [[1, -1, 1, -1], [-1, 1, 1, -1]], 1, ko.hinge(10.0))
        np.testing.assert_allclose(solution.weights[:2], 0, atol=1e-4)
        assert solution.weights_unique is unique


# ------------------------------------------------------------------------------------------ parameters


def test_a_parameter_is_read_at_every_solve():
    C, size, factor = (cp.Parameter(pos=True) for _ in range(3))
    mu = weights()
    K = ko.combine(mu, KS)
    risk = ko.risk(K, Y, ko.hinge(C=C))
    problem = cp.Problem(cp.Minimize(factor * risk), [ko.trace(K) == size])
    for c, s, scale in ((1.0, 10.0, 1.0), (0.1, 10.0, 0.5), (0.1, 3.0, 4.0)):
        C.value, size.value, factor.value = c, s, scale
        fixed, _, _ = learning(ko.hinge(C=c), trace=s)
        solution = ko.solve(problem)
        assert solution.gap <= 1e-5
        assert solution.value == pytest.approx(scale * ko.solve(fixed).value, abs=1e-4)
        assert np.abs(risk.alpha).max() <= c * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["zero", "zero parameter"])
def test_a_risk_of_weight_zero_costs_nothing(kind):
    factor = 0.0 if kind == "zero" else cp.Parameter(nonneg=True, value=0.0)
    mu, K = ridged()
    problem = cp.Problem(cp.Minimize(factor * ko.risk(K, Y, ko.hinge()) + cp.sum_squares(mu - 1)), [mu <= 5])
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    np.testing.assert_allclose(mu.value, 1, atol=1e-3)


# --------------------------------------------------------------------------------------- fixed kernels


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


# -------------------------------------------------------------------------------------------- extremes


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


def test_a_second_order_cone_is_the_norm_that_it_states():
    values = []
    for cone in (lambda x, t: cp.SOC(t, x - 1), lambda x, t: cp.norm2(x - 1) <= t):
        x, t = cp.Variable(3, name="x"), cp.Variable(name="t")
        objective = t + 0.5 * cp.square(t - 1) + 0.1 * cp.sum_squares(x - 2)
        problem = cp.Problem(cp.Minimize(objective), [cone(x, t), x >= 0, t <= 9])
        values.append(ko.solve(problem))
    one, other = values
    assert one.gap <= 1e-5 and one.lower <= other.upper + 1e-9 and other.lower <= one.upper + 1e-9
