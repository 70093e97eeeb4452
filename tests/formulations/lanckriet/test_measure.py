"""Lanckriet et al. (2004): the performance measure of a kernel."""

from __future__ import annotations

import itertools
from functools import cache
from math import isqrt

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import (
    CRITERIA,
    KS,
    TRACE,
    N,
    Y,
    alternating,
    both_signs,
    close,
    criteria,
    dual_of_omega,
    learned,
    n,
    omega,
    on_data,
    root,
    slack_loss,
    with_learned,
)
from tests.problems import positive_definite, solved


def fixed(K, y, **criterion):
    """The solution at one kernel: omega, not learning anything. Several tests read it."""
    return at_one_kernel(
        np.ascontiguousarray(K).tobytes(), y.tobytes(), *{"C": np.inf, "tau": 0.0, **criterion}.values()
    )


@cache
def at_one_kernel(K, y, C, tau):
    K, y = np.frombuffer(K), np.frombuffer(y)
    K = K.reshape(isqrt(K.size), -1)
    return learned(lanckriet.margin(K[None], y, C=C, tau=tau, trace=float(np.trace(K))))


@criteria
def test_the_primal_is_the_dual(criterion):
    K = positive_definite(N)
    F = root(K[:n, :n])
    w, b = cp.Variable(F.shape[1]), cp.Variable()
    cost, split = slack_loss(1 - cp.multiply(Y, F @ w + b), **criterion)
    primal = solved(cp.Problem(cp.Minimize(cp.sum_squares(w) + cost), split))
    assert primal == close(omega(K, Y, **criterion))
    assert fixed(K, Y, **criterion).value == close(primal)
    loss = lanckriet.margin(K[None], Y, **criterion).risks[0].learner.loss
    assert 2 * float(ko.risk(K, Y, loss).value) == close(primal)


@pytest.mark.parametrize(("C", "tau"), [(0.7, 0.5), (np.inf, 0.5), (0.7, 0.0)])
def test_the_loss_behind_omega(C, tau):
    # h(s) = max_{0 <= a <= C} 2as - tau a^2, against its three pieces and against the language's loss
    s = np.linspace(-2, 3, 41)
    reach = np.linspace(0, 20.0 if np.isinf(C) else C, 200_001)[:, None]
    h = (2 * reach * s - tau * reach**2).max(axis=0)
    quadratic = s**2 / tau if tau else np.inf
    linear = -np.inf if np.isinf(C) else 2 * C * s - tau * C**2
    pieces = np.where(s <= 0, 0.0, np.where(s <= tau * C if tau else False, quadratic, linear))
    assert pieces == pytest.approx(h, abs=1e-7)
    loss = lanckriet.margin(KS, Y, C=C, tau=tau).risks[0].learner.loss
    ours = [2 * loss.value(np.array([1 - v]), np.ones(1)) for v in s]
    assert ours == pytest.approx(pieces, abs=1e-12)


def test_the_printed_one_norm_primal_has_half_the_box():
    C, K = 0.6, positive_definite(n)
    F = root(K)
    w, b, xi = cp.Variable(F.shape[1]), cp.Variable(), cp.Variable(n, nonneg=True)
    margins = [cp.multiply(Y, F @ w + b) >= 1 - xi]
    printed = solved(cp.Problem(cp.Minimize(cp.sum_squares(w) + C * cp.sum(xi)), margins))
    assert printed == close(omega(K, Y, C=C / 2))
    assert printed == close(learned(lanckriet.soft_margin(K[None], Y, C=C / 2)).value)
    assert printed < 0.99 * omega(K, Y, C=C)


def integer_kernel(seed=3):
    """A kernel of whole numbers, so that libsvm, which keeps kernels in single precision, is exact."""
    X = np.random.default_rng(seed).integers(-2, 3, (n, 3)).astype(float)
    return (1 + X @ X.T) ** 2 + 16 * np.eye(n)


@pytest.mark.parametrize("C", [2.0**-7, 2.0**-5, 0.25])
def test_omega_is_twice_the_svm_of_sklearn(C):
    K = integer_kernel()
    svm = SVC(kernel="precomputed", C=C, tol=1e-12).fit(K, Y)
    alpha = np.zeros(n)
    alpha[svm.support_] = svm.dual_coef_[0]
    standard = np.abs(alpha).sum() - alpha @ K @ alpha / 2
    solution = fixed(K, Y, C=C)
    assert solution.value == close(2 * standard)
    assert solution.alpha == pytest.approx(alpha, abs=1e-6 * C)
    assert solution.intercept == pytest.approx(svm.intercept_[0], abs=1e-6)
    assert solution.decision_function() == pytest.approx(svm.decision_function(K), abs=1e-6)


@pytest.mark.parametrize("tau", [1.0, 8.0])
def test_the_two_norm_is_the_hard_margin_of_a_ridged_kernel(tau):
    K = integer_kernel()
    svm = SVC(kernel="precomputed", C=1e6, tol=1e-12).fit(K + tau * np.eye(n), Y)
    alpha = np.zeros(n)
    alpha[svm.support_] = svm.dual_coef_[0]
    standard = np.abs(alpha).sum() - alpha @ (K + tau * np.eye(n)) @ alpha / 2
    solution = learned(lanckriet.soft_margin_squared(K[None], Y, C=1 / tau))
    assert solution.value == close(2 * standard)
    assert solution.alpha == pytest.approx(alpha, abs=1e-6 * np.abs(alpha).max())
    assert solution.intercept == pytest.approx(svm.intercept_[0], abs=1e-6)
    assert solution.decision_function() == pytest.approx(
        K @ alpha + svm.intercept_[0], abs=1e-6
    )  # K, no ridge
    assert fixed(K + tau * np.eye(n), Y).value == close(solution.value)


@with_learned
def test_kkt_of_the_machine(criterion):
    written, solution = on_data(**criterion)
    C = criterion.get("C", np.inf)
    tau = solution.tau if criterion["tau"] == "learned" else criterion["tau"]
    polished = written.risks[0].oracle()  # the plain SVM at the learned kernel
    K = solution.kernel[:n, :n]
    # alpha of the learning problem is known to the root of the gap; the polished one to 1e-6
    for alpha, intercept, tol in (
        (solution.alpha, solution.intercept, 2e-4),
        (polished.alpha, polished.intercept, 2e-6),
    ):
        a, margins = Y * alpha, Y * (K @ alpha + intercept)
        assert a.min() >= 0 and (a <= C).all() and abs(Y @ a) <= 1e-12
        zero, full = a <= 1e-3 * a.max(), a >= C * (1 - 1e-3)
        free = ~zero & ~full
        assert free.any() and (full.any() or np.isinf(C))
        assert (margins[zero] >= 1 - tol).all()
        assert margins[free] == pytest.approx(1 - tau * a[free], abs=tol)
        assert (margins[full] <= 1 - tau * C + tol).all()


@criteria
def test_bias_is_the_mean_over_free_points_and_half_a_multiplier(criterion):
    K = positive_definite(n)
    _value, a, multiplier = dual_of_omega(K, Y, **criterion)
    each = Y * (1 - criterion["tau"] * a) - K @ (a * Y)
    free = (a > 1e-4 * a.max()) & (a < (1 - 1e-4) * criterion["C"])
    assert free.any() and np.ptp(each[free]) <= 1e-6
    solution = fixed(K, Y, **criterion)
    assert solution.intercept == pytest.approx(each[free].mean(), abs=1e-6)
    assert solution.intercept == pytest.approx(multiplier / 2, abs=1e-6)


@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_bias_is_the_midpoint_without_free_points(tau):
    # C so small that every point is at the bound: balanced classes, alpha = C.
    K, C = positive_definite(12), 1e-2
    y = np.array([1.0, -1.0] * 6)
    each = y * (1 - tau * C) - K @ (C * y)
    lower, upper = each[y < 0].max(), each[y > 0].min()  # over L and U of Lanckriet 1.6
    assert lower < upper - 0.1
    solution = fixed(K, y, C=C, tau=tau)
    assert solution.alpha == pytest.approx(C * y, abs=1e-9)
    assert solution.intercept == pytest.approx((lower + upper) / 2, abs=1e-6)
    if tau == 0:
        assert solution.intercept == pytest.approx(
            SVC(kernel="precomputed", C=C, tol=1e-12).fit(K, y).intercept_[0], abs=1e-6
        )


@criteria
@pytest.mark.parametrize("kappa", [0.2, 7.0])
def test_scaling_the_kernel_scales_C_and_tau(criterion, kappa):
    K = positive_definite(n)
    scaled = {"C": kappa * criterion["C"], "tau": criterion["tau"] / kappa}
    left, right = fixed(kappa * K, Y, **criterion), fixed(K, Y, **scaled)
    assert left.value == close(right.value / kappa)
    assert left.decision_function() == pytest.approx(right.decision_function(), abs=1e-5)
    if criterion == CRITERIA["hard margin"]:
        assert left.value == close(fixed(K, Y).value / kappa)
        assert left.margin == close(np.sqrt(kappa) * fixed(K, Y).margin)


@criteria
def test_constants_are_free_but_not_for_the_trace(criterion):
    K = positive_definite(n)
    centre = np.eye(n) - 1 / n
    plain = fixed(K, Y, **criterion)
    for other in (K + 3.0, centre @ K @ centre):
        solution = fixed(other, Y, **criterion)
        assert solution.value == close(plain.value)
        assert solution.alpha == pytest.approx(plain.alpha, abs=1e-5)
        assert solution.decision_function() == pytest.approx(plain.decision_function(), abs=1e-5)
    shifted = KS[:2] + np.array([5.0, 0.0])[:, None, None]  # the first kernel has become expensive
    assert learned(lanckriet.margin(shifted, Y, **criterion, trace=TRACE)).value > 1.01 * (
        learned(lanckriet.margin(KS[:2], Y, **criterion, trace=TRACE)).value
    )


@every(("criterion", "weights"), alternating(("nonnegative", "free")))
def test_flipping_the_labels_flips_the_intercept(criterion, weights):
    _, one = on_data(weights, **criterion)
    two = learned(lanckriet.margin(KS, -Y, **criterion, weights=weights))
    assert two.value == close(one.value)
    # alpha of the LMI is good to the root of the gap
    assert two.alpha == pytest.approx(-one.alpha, abs=1e-4)
    assert two.intercept == pytest.approx(-one.intercept, abs=1e-4)
    assert two.decision_function() == pytest.approx(-one.decision_function(), abs=1e-3)


@criteria
def test_omega_does_not_increase_in_tau_and_K_nor_decrease_in_C(criterion):
    K = positive_definite(n)
    C, tau = criterion["C"], criterion["tau"]
    here = fixed(K, Y, **criterion).value
    assert fixed(K, Y, C=C, tau=tau + 0.1).value < here
    for bump in (np.outer(Y, Y), np.outer(K[0], K[0]), np.eye(n)):
        assert fixed(K + 0.1 * bump, Y, **criterion).value < here
    assert fixed(K + 0.1, Y, **criterion).value == close(here)  # a larger kernel in the Loewner order too
    values = [fixed(K, Y, C=bound, tau=tau).value for bound in (0.05, 0.3, np.inf)]
    assert all(small <= large * (1 + 1e-8) for small, large in itertools.pairwise(values))
    assert values[0] < 0.9 * values[-1]


@criteria
def test_omega_is_jointly_convex_in_kernel_and_ridge(criterion):
    one, two = positive_definite(n), KS[1][:n, :n] + np.eye(n)
    C, tau = criterion["C"], criterion["tau"]
    middle = omega(0.3 * one + 0.7 * two, Y, C, 0.3 * tau + 0.7 * (tau + 1))
    assert middle <= 0.3 * omega(one, Y, C, tau) + 0.7 * omega(two, Y, C, tau + 1)


def test_a_large_box_is_a_hard_margin():
    K = positive_definite(n)
    hard = fixed(K, Y)
    largest = np.abs(hard.alpha).max()
    for factor in (1.001, 10.0):
        assert fixed(K, Y, C=factor * largest).value == close(hard.value)
    assert fixed(K, Y, C=0.9 * largest).value < hard.value * (1 - 1e-6)


@pytest.mark.parametrize("tau", [1.0, 1e2, 1e4, 1e5])
def test_a_large_ridge_leaves_the_class_sizes(tau):
    # 0 <= G <= lambda I puts tau omega between limit / (1 + lambda / tau) and the limit.
    K = positive_definite(n)
    limit = 4 * (Y > 0).sum() * (Y < 0).sum() / n
    value = tau * fixed(K, Y, tau=tau).value
    assert limit / (1 + np.linalg.eigvalsh(K)[-1] / tau) <= value * (1 + 1e-6)
    assert value <= limit * (1 + 1e-6)
    if tau == 1e5:
        assert value == close(limit, 1e-3)


@criteria
def test_one_class_has_the_value_zero(criterion):
    # A_C = {0}: a solver would not notice, so the builder must.
    y = np.ones(n)
    assert omega(KS[0], y, **criterion) == pytest.approx(0, abs=1e-8)
    with pytest.raises(ValueError, match="both labels, got only \\+1 .* every kernel is optimal"):
        lanckriet.margin(KS, y, **criterion)


def inseparable(seed):
    """Ten noisy labels in the plane, two unlabelled points, and kernels that stay in the plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.array([X @ X.T, np.outer(X[:, 0], X[:, 0])]), y


def check_proof(error, Ks, y):
    """The proof in the words of the message: y a >= 0, sum |a| = 2, sum a = 0, and K_i a = 0."""
    alpha = error.proof["alpha"]
    assert (y * alpha >= 0).all() and np.abs(alpha).sum() == close(2) and abs(alpha.sum()) <= 1e-9
    labelled = Ks[:, : y.size, : y.size]
    assert np.abs(labelled @ alpha).max() <= 1e-4 * np.abs(labelled).max()
    assert max(alpha @ K @ alpha for K in labelled) <= 1e-9 * np.abs(labelled).max()


@both_signs
@pytest.mark.parametrize("seed", [0, 10, 11])
def test_a_hard_margin_that_no_kernel_can_meet(weights, seed):
    Ks, y = inseparable(seed)
    for written in (
        lanckriet.hard_margin(Ks, y, weights=weights),
        lanckriet.margin(Ks, y, weights=weights),
        lanckriet.sdp(Ks, y, weights=weights),
        lanckriet.block_norm(Ks, y),
    ):
        with pytest.raises(
            ko.InfeasibleError, match="got none in the set.*Use soft_margin, soft_margin_squared or"
        ) as e:
            written.solve()
        check_proof(e.value, Ks, y)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        ko.solve(lanckriet.hard_margin(Ks, y, weights=weights).problem)
    with pytest.raises(ko.InfeasibleError, match="got none in the set"):
        lanckriet.rank_one(np.random.default_rng(seed).normal(size=(12, 2)), y).solve()


@both_signs
@pytest.mark.parametrize("points", [[0, 0, 1, 2, 3, 4, 5], [3, 1, 2, 5, 3, 0]])
def test_a_point_with_both_labels(weights, points):
    Ks = KS[:, points][:, :, points]
    twin = points.index(points[0], 1)
    y = np.array([1.0, -1, 1, -1, 1, -1])[: len(points)]
    y[0], y[twin] = 1.0, -1.0
    with pytest.raises(ko.InfeasibleError, match="got none in the set.*Use soft_margin") as caught:
        lanckriet.hard_margin(Ks, y, weights=weights).solve()
    check_proof(caught.value, Ks, y)


@pytest.mark.parametrize("seed", range(4))
def test_hulls_that_touch(seed):
    # a kernel of full rank but one, where a point of one class is a mean of points of the other
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(10, 13))
    y = np.where(rng.normal(size=10) > 0, 1.0, -1.0)
    y[0], y[1:4] = 1.0, -1.0
    F[0] = rng.dirichlet(np.ones(3)) @ F[1:4]
    Ks = (F @ F.T)[None]
    with pytest.raises(ko.InfeasibleError, match="got none in the set") as caught:
        lanckriet.hard_margin(Ks, y).solve()
    check_proof(caught.value, Ks, y)


@both_signs
@pytest.mark.parametrize("criterion", [{"C": 0.6}, {"tau": 0.5}, {"C": 0.6, "tau": 0.5}, {"tau": "learned"}])
def test_soft_criteria_are_always_attained(weights, criterion):
    Ks, y = inseparable(0)
    solution = lanckriet.margin(Ks, y, weights=weights, **criterion).solve()
    assert solution.gap <= 1e-5 and 0 < solution.value < 100


@pytest.mark.parametrize("kappa", [0.1, 1.0, 30.0])
def test_the_separability_test_is_one_over_omega(kappa):
    K = kappa * KS[0][:n, :n]
    a = cp.Variable(n, nonneg=True)
    form = cp.quad_form(cp.multiply(Y, a), cp.psd_wrap(K))
    least = solved(cp.Problem(cp.Minimize(form), [cp.sum(a) == 1, Y @ a == 0]))
    assert 1 / least == close(fixed(K, Y).value)


def test_statuses_of_solvers_are_not_proofs():
    # Interior-point solves of the LMI on inseparable data have come back "optimal" at 1e7, or failed;
    # the QCQP is unbounded, and says so. `solve` does not ask them.
    seen = []
    for seed in (0, 10, 11):
        Ks, y = inseparable(seed)
        qcqp = lanckriet.qcqp(Ks, y).programmes["qcqp"]().problem
        qcqp.solve(solver=cp.CLARABEL, warm_start=False)
        assert qcqp.status == cp.UNBOUNDED
        for weights in ("nonnegative", "free"):
            lmi = lanckriet.sdp(Ks, y, weights=weights).programmes["sdp"]().problem
            try:
                lmi.solve(solver=cp.CLARABEL, warm_start=False)
            except (cp.SolverError, UserWarning):
                continue
            seen.append((lmi.status, float(lmi.value)))
    assert all(status == cp.INFEASIBLE or value > 1e6 for status, value in seen)


def test_a_tiny_margin_warns():
    # two points of opposite labels at distance 1e-3 of unit kernels: omega is about 4e6
    X = np.array([0.0, 1e-3, 2.0, 3.0])
    K = np.exp(-((X[:, None] - X) ** 2) / 2)
    with pytest.warns(ko.errors.ConditionWarning, match="squared distance of only.*Prefer a soft margin"):
        solution = lanckriet.hard_margin(K[None], [1, -1, 1, -1]).solve()
    assert solution.value > 1e6
