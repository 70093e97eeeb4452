"""Lanckriet 1.1 to 4.6 (docs/theory): the measure of a kernel, its inequality, and its minimum over weights.

The page lists the tests of each fact.
"""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.svm import SVC

import kernelopt as ko
from formulations import lanckriet
from tests import problems
from tests.every import every
from tests.problems import positive_definite, solved

n, N = 14, 18


def case(seed=3):
    """Three kernels of unequal traces, N in sum, and noisy labels; all three are in use at a hard margin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y = np.sign(X[:n, 0] + X[:n, 2] + 0.5 * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    left, right = (np.exp(-((Z[:, None] - Z[None]) ** 2).sum(2) / 2) for Z in (X[:, :2], X[:, 2:]))
    kernels = np.array([left, 3 * right, X[:, ::2] @ X[:, ::2].T])
    return N / np.trace(kernels.sum(axis=0)) * kernels, y


KS, Y = case()
R = np.trace(KS, axis1=1, axis2=2)
TRACE = float(N)
CRITERIA = {
    "hard margin": {"C": np.inf, "tau": 0.0},
    "1-norm": {"C": 0.6, "tau": 0.0},
    "2-norm": {"C": np.inf, "tau": 0.5},
    "general": {"C": 0.6, "tau": 0.5},
}
criteria = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
with_learned = pytest.mark.parametrize(
    "criterion", [*CRITERIA.values(), {"tau": "learned"}], ids=[*CRITERIA, "learned tau"]
)


def close(value, rel=1e-6):
    return pytest.approx(value, rel=rel, abs=0.0)


def learned(formulation):
    """The solution of a formulation, certified to 1e-6."""
    solution = formulation.solve(tol=1e-6)
    assert solution.status == "optimal" and solution.gap <= 1e-6
    return solution


def fixed(K, y, **criterion):
    """The solution at one kernel: omega, not learning anything."""
    return learned(lanckriet.margin(K[None], y, **criterion, trace=float(np.trace(K))))


def root(K):
    """F with K = F F', by eigenvectors; those of eigenvalues below 1e-11 of the largest are dropped."""
    eigenvalues, vectors = np.linalg.eigh(K)
    kept = eigenvalues > 1e-11 * eigenvalues[-1]
    return vectors[:, kept] * np.sqrt(eigenvalues[kept])


def dual_of_omega(K, y, C=np.inf, tau=0.0):
    """Lanckriet 1.1 written out: omega, alpha >= 0, and the multiplier of y'alpha = 0."""
    a = cp.Variable(y.size)
    balance = y @ a == 0
    domain = [a >= 0, balance] + ([] if np.isinf(C) else [a <= C])
    form = cp.sum_squares(root(K[: y.size, : y.size]).T @ cp.multiply(y, a)) + tau * cp.sum_squares(a)
    value = solved(cp.Problem(cp.Maximize(2 * cp.sum(a) - form), domain))
    return value, a.value, float(balance.dual_value)


def omega(K, y, C=np.inf, tau=0.0):
    return dual_of_omega(K, y, C, tau)[0]


def slack_loss(slack, C, tau):
    """h_{C,tau}(slack) for cvxpy: min over a split of the slack into a linear and a quadratic part."""
    cost = rest = cp.Constant(np.zeros(slack.size))
    if np.isfinite(C):
        linear = cp.Variable(slack.size, nonneg=True)
        cost, rest = cost + 2 * C * linear, rest + linear
    if tau:
        square = cp.Variable(slack.size, nonneg=True)
        cost, rest = cost + cp.square(square) / tau, rest + square
    return cp.sum(cost), [slack <= rest]


def random_kernels(size, m, rank, seed):
    """m kernels of a given rank and of very unequal traces."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, size, rank)) * rng.uniform(0.3, 2.0, (m, 1, 1))
    return V @ V.transpose(0, 2, 1)


# ----------------------------------------------------------- Lanckriet 1: the measure of a kernel


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
    written = lanckriet.margin(KS, Y, **criterion)
    solution = learned(written)
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


@with_learned
@every("weights", ["nonnegative", "free"])
def test_flipping_the_labels_flips_the_intercept(criterion, weights):
    one = learned(lanckriet.margin(KS, Y, **criterion, weights=weights))
    two = learned(lanckriet.margin(KS, -Y, **criterion, weights=weights))
    assert two.value == close(one.value)
    # alpha of the LMI is good to the root of the gap
    assert two.alpha == pytest.approx(-one.alpha, abs=1e-4)
    assert two.intercept == pytest.approx(-one.intercept, abs=1e-4)
    assert two.decision_function() == pytest.approx(-one.decision_function(), abs=1e-3)


@criteria
def test_omega_decreases_in_tau_and_K_and_increases_in_C(criterion):
    K = positive_definite(n)
    C, tau = criterion["C"], criterion["tau"]
    here = fixed(K, Y, **criterion).value
    assert fixed(K, Y, C=C, tau=tau + 0.1).value < here
    for bump in (np.outer(Y, Y), np.outer(K[0], K[0]), np.eye(n)):
        assert fixed(K + 0.1 * bump, Y, **criterion).value < here
    values = [fixed(K, Y, C=bound, tau=tau).value for bound in (0.05, 0.3, 1.0, np.inf)]
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


# ------------------------------------------------------ Lanckriet 2: the linear matrix inequality


@criteria
@pytest.mark.parametrize("m", [3])
def test_multipliers_of_the_lmi(criterion, m):
    # Lanckriet 2.1. The LMI is good to 1e-4 in everything but its value.
    C, tau = criterion["C"], criterion["tau"]
    written = lanckriet.sdp(KS[:m], Y, **criterion, trace=float(R[:m].sum()))
    solution = learned(written)
    programme = written.programmes["sdp"]()
    programme.problem.solve(solver=cp.CLARABEL, warm_start=False)
    parts = programme.problem.var_dict
    lmi, trace, *_ = programme.problem.constraints
    assert solution.value == close(omega(solution.kernel, Y, **criterion))
    assert float(programme.problem.value) == close(solution.value, 1e-5)
    assert written.solve("exact", programme="sdp", tol=1e-6).value == close(solution.value)
    Z = lmi.dual_value
    assert Z[-1, -1] == pytest.approx(1, abs=1e-5)
    a = -Z[:-1, -1] / Z[-1, -1]
    assert programme.recover()[1][0] == pytest.approx(Y * a)
    exact = dual_of_omega(solution.kernel, Y, **criterion)
    assert a == pytest.approx(exact[1], abs=1e-3)
    push = 1 + parts["nu"].value + float(parts["lambda"].value) * Y
    delta = parts["delta"].value if "delta" in parts else np.zeros(n)
    K = solution.kernel[:n, :n]
    G = np.outer(Y, Y) * K + tau * np.eye(n)
    assert (G @ a) == pytest.approx(push - delta, abs=1e-3)
    margins = Y * (K @ (Y * a) - float(parts["lambda"].value))  # b = -lambda
    assert 1 - margins == pytest.approx(tau * a + delta - parts["nu"].value, abs=1e-3)
    assert -float(parts["lambda"].value) == pytest.approx(solution.intercept, abs=1e-3)
    assert parts["nu"].value * a == pytest.approx(np.zeros(n), abs=1e-3)
    assert trace.label == "trace" and np.trace(solution.kernel) == close(R[:m].sum())
    if np.isfinite(C):
        assert delta * (C - a) == pytest.approx(np.zeros(n), abs=1e-3)
        assert delta.max() > 0.1  # some point is at the bound
    if tau == 0 and np.isfinite(C):
        xi = np.maximum(1 - Y * solution.decision_function()[:n], 0)
        assert delta == pytest.approx(xi, abs=1e-3)


@pytest.mark.parametrize("unlabelled", [0, 3])
@pytest.mark.parametrize("y", [[1, 1, 1, 1, -1], [1, -1, 1, -1, 1, -1], [-1, -1, 1]])
def test_the_whole_psd_cone_has_a_closed_form(y, unlabelled):
    # primal: K = c abar abar' / |a|^2; dual: a_i = (1 - ybar y_i) / c; value 4 n+ n- / (n c)
    y, c = np.array(y, dtype=float), 5.0
    size = y.size + unlabelled
    a = (1 - y.mean() * y) / c
    value = 4 * (y > 0).sum() * (y < 0).sum() / (y.size * c)
    bar = np.concatenate([a * y, np.zeros(unlabelled)])
    best = c * np.outer(bar, bar) / (a @ a)
    assert np.trace(best) == close(c)
    assert omega(best, y) == close(value)
    K = cp.Variable((size, size), PSD=True, name="K")
    problem = cp.Problem(cp.Minimize(2 * ko.risk(K, y, ko.hard_margin())), [ko.trace(K) == c])
    given = ko.certify(problem, {K: best}, alpha=a * y)
    assert given.gap <= 1e-9 and given.upper == close(value)
    solution = ko.solve(problem)
    assert solution.gap <= 1e-6 and solution.value == close(value)
    # A gap of 1e-6 determines alpha and K to about its root; the test block is zero.
    assert solution.alpha == pytest.approx(a * y, abs=1e-3)
    assert K.value == pytest.approx(best, abs=1e-3)


# ------------------------------------------------------------------------ Lanckriet 3: free signs


@with_learned
@pytest.mark.parametrize("grams", ["data", "random"])
def test_free_signs_primal_is_dual(criterion, grams):
    Ks = KS if grams == "data" else random_kernels(N, 4, 6, 5)
    written = lanckriet.sdp(Ks, Y, **criterion, trace=TRACE)
    solution = learned(written)
    assert np.linalg.eigvalsh(solution.kernel)[0] >= -1e-9 * np.linalg.eigvalsh(solution.kernel)[-1]
    dual = written.dual()
    assert solved(dual) == close(solution.value)


def test_free_signs_take_indefinite_kernels():
    # The difference of two kernels: the set of kernels is the same, written with another basis.
    A, B = KS[0], KS[1]
    one = learned(lanckriet.sdp([A, B], Y, C=0.6, trace=TRACE))
    two = learned(lanckriet.sdp([A, B - A], Y, C=0.6, trace=TRACE))
    assert np.linalg.eigvalsh(B - A)[0] < -0.1
    assert two.value == close(one.value)
    assert two.kernel == pytest.approx(one.kernel, abs=1e-3)


SMALL = 8  # points of the cases below: six labelled, kernels of rank five, mean diagonal one


def small_case(seed):
    y = np.where(np.random.default_rng(seed + 50).normal(size=6) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return random_kernels(SMALL, 3, 5, seed), y


@criteria
@pytest.mark.parametrize("seed", [0, 5, 6])
def test_the_multiplier_of_K_is_orthogonal_to_it(criterion, seed):
    Ks, y = small_case(seed)
    written = lanckriet.sdp(Ks, y, **criterion, trace=SMALL)
    solution = learned(written)
    Z = next(c for c in written.problem.constraints if c.label == "K >> 0").dual_value
    assert np.linalg.eigvalsh(Z)[0] >= -1e-6
    assert Z @ solution.kernel == pytest.approx(np.zeros_like(Z), abs=1e-3)
    assert np.linalg.norm(Z) > 1e-2 or seed == 6  # at the border of the cone, but for the last


@with_learned
def test_free_signs_are_never_worse_and_sometimes_better(criterion):
    strict = 0
    for seed in range(4):
        Ks, y = small_case(seed)
        free = learned(lanckriet.sdp(Ks, y, **criterion, trace=SMALL))
        tied = learned(lanckriet.qcqp(Ks, y, **criterion, trace=SMALL))
        assert free.value <= tied.value * (1 + 1e-6)
        if free.weights.min() >= -1e-6:
            assert free.value == close(tied.value)
        if free.upper < tied.lower * (1 - 1e-3):  # proved by the bounds
            assert free.weights.min() < -1e-3
            strict += 1
    assert 1 <= strict < 4


@with_learned
@every("seed", [0, 5])
@every("rank", [5, 2])
def test_bounds_for_free_signs_bracket_the_optimum(criterion, seed, rank):
    # Rank 2: the kernels span six of eight dimensions, so that Q is a true basis.
    rng = np.random.default_rng(seed)
    Ks, y = small_case(seed)
    if rank == 2:
        Ks = random_kernels(SMALL, 3, 2, seed)
    c, r = float(SMALL), np.trace(Ks, axis1=1, axis2=2)
    solution = learned(lanckriet.sdp(Ks, y, **criterion, trace=c))
    C, fixed_tau = criterion.get("C", np.inf), criterion["tau"]
    is_learned = fixed_tau == "learned"
    tau = 0.0 if is_learned else fixed_tau
    eigenvalues, vectors = np.linalg.eigh(Ks.sum(axis=0))
    Q = vectors[:, eigenvalues > 1e-10 * eigenvalues[-1]]
    assert Q.shape[1] == (8 if rank == 5 else 6)
    span, *_ = np.linalg.svd(Ks.reshape(3, -1).T, full_matrices=False)

    def complement(M):
        flat = M.ravel() - span @ (span.T @ M.ravel())
        return (flat.reshape(M.shape) + flat.reshape(M.shape).T) / 2

    def lower(a, M):
        bar = np.concatenate([y * a, np.zeros(SMALL - y.size)])
        top = np.linalg.eigvalsh(Q.T @ (np.outer(bar, bar) - M) @ Q)[-1]
        if is_learned:  # tr K + N tau = c: the larger of the two prices
            top = max(top, a @ a / SMALL)
        return 2 * a.sum() - tau * a @ a - c * top

    dual = lanckriet.sdp(Ks, y, **criterion, trace=c).dual()
    value = solved(dual)
    assert value == close(solution.value)
    a = balanced(dual.var_dict["alpha"].value, y, C)
    U = dual.var_dict["U"].value[:-1, :-1]
    M = complement(U - float(dual.var_dict["eta"].value) * np.eye(SMALL))
    # the best M for an alpha is worth finding: with it the bound is tight
    assert solution.value * (1 - 1e-4) <= lower(a, M) <= solution.upper * (1 + 1e-9)
    for _ in range(5):
        other = balanced(a * rng.uniform(0.5, 1.5, y.size), y, C)
        assert lower(other, M + 0.1 * complement(rng.normal(size=M.shape))) <= solution.upper * (1 + 1e-9)

    def upper(mu, ridge):
        total = c / (mu @ r + SMALL * ridge)
        mu, ridge = total * mu, total * ridge
        inner = np.full(3, (c - SMALL * ridge) / r.sum())
        K0 = np.tensordot(inner, Ks, 1)
        values, basis = np.linalg.eigh(Q.T @ K0 @ Q)
        half = Q @ basis * values**-0.5
        s = max(0.0, -np.linalg.eigvalsh(half.T @ np.tensordot(mu, Ks, 1) @ half)[0])
        share = s / (1 + s)
        K = np.tensordot((1 - share) * mu + share * inner, Ks, 1)
        assert np.trace(K) + SMALL * ridge == close(c) and np.linalg.eigvalsh(K)[0] >= -1e-12
        return omega(nearest(K), y, C, ridge if is_learned else tau)

    ridge = solution.tau if is_learned else 0.0
    tight = upper(solution.weights, ridge)
    assert solution.lower * (1 - 1e-7) <= tight <= solution.value * (1 + 1e-4)
    for noise in (1e-3, 0.1):
        rough = upper(solution.weights * (1 + noise * rng.normal(size=3)), ridge)
        assert rough >= solution.lower * (1 - 1e-7)


def nearest(K):
    """K without round-off below zero."""
    eigenvalues, vectors = np.linalg.eigh(K)
    return (vectors * np.maximum(eigenvalues, 0)) @ vectors.T


def balanced(a, y, C):
    """Lanckriet 8.1: clip, then shrink the heavier class; exactly in A_C."""
    a = np.clip(a, 0, C)
    plus, minus = a[y > 0].sum(), a[y < 0].sum()
    a[y > 0] *= min(plus, minus) / plus
    a[y < 0] *= min(plus, minus) / minus
    return a


# -------------------------------------------------------------- Lanckriet 4: non-negative weights


@criteria
def test_the_qcqp_is_the_minimum_over_weights(criterion):
    # one weight is left of two kernels and a trace: scan it, trusting nothing but Lanckriet 1.1
    Ks, r, c = KS[[0, 2]], R[[0, 2]], TRACE

    def at(share):
        return omega(np.tensordot(c * np.array([share, 1 - share]) / r, Ks, 1), Y, **criterion)

    scan = minimize_scalar(at, bounds=(0.02, 1), method="bounded", options={"xatol": 1e-6})
    solution = learned(lanckriet.qcqp(Ks, Y, **criterion, trace=c))
    assert solution.value == close(scan.fun)
    assert 0.1 < scan.x < 0.9 and solution.weights[0] * r[0] / c == pytest.approx(scan.x, abs=1e-3)


@with_learned
@pytest.mark.parametrize("grams", ["data", "random"])
def test_the_forms_for_nonnegative_weights_agree(criterion, grams):
    Ks = KS if grams == "data" else random_kernels(N, 4, 6, 5)
    qcqp, sdp = lanckriet.qcqp(Ks, Y, **criterion), lanckriet.sdp(Ks, Y, **criterion, weights="nonnegative")
    one, two = learned(qcqp), learned(sdp)
    assert one.value == close(two.value)
    programme = qcqp.programmes["qcqp"]()
    assert solved(programme.problem) == close(one.value)  # the programme's own number
    assert two.weights.min() >= 0
    assert one.weights == pytest.approx(two.weights, abs=1e-3)


@with_learned
def test_weights_are_multipliers_over_traces(criterion):
    # Lanckriet 4.1 as printed, and its scaled variant; traces 2.8, 8.5 and 6.7.
    c, C = float(N), criterion.get("C", np.inf)
    is_learned = criterion["tau"] == "learned"
    tau = 0.0 if is_learned else criterion["tau"]
    factors = [np.diag(Y) @ root(K[:n, :n]) for K in KS] + ([np.eye(n)] if is_learned else [])
    r = np.append(R, N) if is_learned else R
    a, t = cp.Variable(n), cp.Variable()
    domain = [a >= 0, Y @ a == 0] + ([] if np.isinf(C) else [a <= C])
    gain = 2 * cp.sum(a) - tau * cp.sum_squares(a)
    as_printed = [cp.sum_squares(F.T @ a) / ri <= t for F, ri in zip(factors, r, strict=True)]
    value = solved(cp.Problem(cp.Maximize(gain - c * t), domain + as_printed))
    p = np.array([float(np.ravel(cap.dual_value)[0]) for cap in as_printed])
    scaled = [cp.sum_squares(np.sqrt(c / ri) * F.T @ a) <= t for F, ri in zip(factors, r, strict=True)]
    assert solved(cp.Problem(cp.Maximize(gain - t), domain + scaled)) == close(value)
    shares = np.array([float(np.ravel(cap.dual_value)[0]) for cap in scaled])
    assert p.sum() == close(c) and shares.sum() == close(1)
    assert c * shares == pytest.approx(p, abs=1e-3)  # multipliers: to the root of the gap
    solution = learned(lanckriet.qcqp(KS, Y, **criterion, trace=c))
    assert solution.value == close(value)
    assert solution.weights == pytest.approx(p[:3] / R, abs=1e-3)
    assert np.abs(solution.weights - p[:3]).max() > 0.1  # the multiplier is not the weight
    if is_learned:
        assert solution.tau == pytest.approx(p[3] / N, abs=1e-4)
    else:
        assert omega(np.tensordot(p / R, KS, 1), Y, C, tau) == close(value)


@with_learned
def test_kernels_with_weight_have_the_largest_form(criterion):
    Ks = np.concatenate([KS, random_kernels(N, 2, 3, 1)])
    solution = learned(lanckriet.qcqp(Ks, Y, **criterion))
    r = np.trace(Ks, axis1=1, axis2=2)
    a = solution.alpha
    forms = np.array([a @ K[:n, :n] @ a for K in Ks]) / r
    weights = solution.weights
    if criterion["tau"] == "learned":
        forms, weights = np.append(forms, a @ a / N), np.append(weights, solution.tau)
        assert solution.weights @ r + N * solution.tau == close(r.sum() + N)
    else:
        assert solution.weights @ r == close(r.sum())
    used = weights > 1e-4 * weights.max()
    assert weights.min() >= 0 and 1 < used.sum() < weights.size
    assert forms[used] == pytest.approx(forms.max(), rel=1e-4)
    assert (forms <= forms[used].mean() * (1 + 1e-4)).all()


@with_learned
@every("weights", ["nonnegative", "free"])
def test_zero_kernels_are_dropped(criterion, weights):
    plain = learned(lanckriet.margin(KS[:2], Y, **criterion, weights=weights))
    Ks = np.stack([KS[0], np.zeros((N, N)), KS[1]])
    solution = learned(lanckriet.margin(Ks, Y, **criterion, weights=weights))
    assert solution.value == close(plain.value)
    assert solution.weights.shape == (3,) and solution.weights[1] == 0
    assert solution.weights[[0, 2]] == pytest.approx(plain.weights, abs=1e-4)
    with pytest.raises(
        ValueError, match="at least one kernel must be different from zero, got 2 zero kernels"
    ):
        lanckriet.margin(np.zeros((2, N, N)), Y, **criterion, weights=weights)


@with_learned
def test_the_block_norm_has_the_same_value_and_weights(criterion):
    c, C = float(N), criterion.get("C", np.inf)
    is_learned = criterion["tau"] == "learned"
    # written out here, with the weights from the lengths of the parts
    factors = [root(K[:n, :n]) for K in KS]
    ws, b = [cp.Variable(F.shape[1]) for F in factors], cp.Variable()
    f = sum(F @ w for F, w in zip(factors, ws, strict=True)) + b
    total = cp.sum([np.sqrt(r) * cp.norm2(w) for r, w in zip(R, ws, strict=True)])
    if is_learned:
        xi = cp.Variable(n)
        problem = cp.Minimize(cp.square(total + np.sqrt(N) * cp.norm2(xi)) / c)
        value = solved(cp.Problem(problem, [cp.multiply(Y, f) >= 1 - xi]))
    else:
        cost, split = slack_loss(1 - cp.multiply(Y, f), C, criterion["tau"])
        value = solved(cp.Problem(cp.Minimize(cp.square(total) / c + cost), split))
    lengths = np.array([np.linalg.norm(w.value) for w in ws])
    whole = np.sqrt(R) @ lengths + (np.sqrt(N) * np.linalg.norm(xi.value) if is_learned else 0.0)
    by_hand = c * lengths / (np.sqrt(R) * whole)
    one = learned(lanckriet.qcqp(KS, Y, **criterion, trace=c))
    written = lanckriet.block_norm(KS, Y, **criterion, trace=c)
    two = learned(written)
    assert two.value == close(one.value) == close(value)
    programme = written.programmes["block norm"]()
    assert problems.solved(programme.problem) == close(one.value, 1e-5)
    assert written.solve("exact", programme="block norm", tol=1e-6).value == close(one.value)
    assert two.weights == pytest.approx(one.weights, abs=1e-3)
    assert by_hand == pytest.approx(one.weights, abs=1e-3)
    if is_learned:
        assert two.tau == pytest.approx(one.tau, abs=1e-4)


def rescaled():
    scales = np.array([0.1, 3.0, 20.0])
    return scales[:, None, None] * KS, Y, lambda mu: mu * scales


def permuted_kernels():
    order = [2, 0, 1]
    return KS[order], Y, lambda mu: mu[np.argsort(order)]


def permuted_points():
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(n), n + rng.permutation(N - n)])
    return KS[:, order][:, :, order], Y[order[:n]], lambda mu: mu


def split_in_two():
    return np.concatenate([KS, [KS[2] / 3]]), Y, lambda mu: mu[:3] + np.array([0, 0, mu[3] / 3])


def with_zero():
    return np.concatenate([KS, [np.zeros((N, N))]]), Y, lambda mu: mu[:3]


def with_constant():
    return np.concatenate([KS, [np.ones((N, N))]]), Y, lambda mu: mu[:3]


CHANGES = [rescaled, permuted_kernels, permuted_points, split_in_two, with_zero, with_constant]


@with_learned
@every("change", CHANGES)
def test_invariances_of_learned_weights(criterion, change):
    plain = learned(lanckriet.margin(KS, Y, **criterion, trace=TRACE))
    Ks, y, back = change()
    solution = learned(lanckriet.margin(Ks, y, **criterion, trace=TRACE))
    assert solution.value == close(plain.value)
    assert back(solution.weights) == pytest.approx(plain.weights, abs=1e-3)
    if change is with_constant:
        assert solution.weights[3] <= 1e-5
    if change is split_in_two:
        assert not solution.weights_unique  # compare kernels, not weights
    if change is not permuted_points:
        assert solution.kernel == pytest.approx(plain.kernel, abs=1e-3)


@with_learned
@every("kappa", [0.3, 5.0])
def test_budget_scaling(criterion, kappa):
    left = learned(lanckriet.margin(KS, Y, **criterion, trace=kappa * TRACE))
    other = dict(criterion)
    if criterion["tau"] != "learned":
        other = {"C": kappa * criterion["C"], "tau": criterion["tau"] / kappa}
    right = learned(lanckriet.margin(KS, Y, **other, trace=TRACE))
    assert left.value == close(right.value / kappa)


@criteria
@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_one_kernel_gets_the_whole_budget(criterion, weights):
    c = 7.0
    solution = learned(lanckriet.margin(KS[:1], Y, **criterion, weights=weights, trace=c))
    assert solution.weights == pytest.approx([c / R[0]], rel=1e-9)
    assert solution.value == close(omega(c / R[0] * KS[0], Y, **criterion))


@criteria
@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_learning_is_never_worse_than_a_single_scaled_kernel(criterion, weights):
    # Lanckriet 4.6
    solution = learned(lanckriet.margin(KS, Y, **criterion, weights=weights))
    singles = [omega(TRACE / R[0] * KS[0], Y, **criterion)]
    if criterion["tau"] or np.isfinite(criterion["C"]):  # the others do not separate
        singles += [omega(TRACE / r * K, Y, **criterion) for r, K in zip(R[1:], KS[1:], strict=True)]
    assert solution.value <= min(singles) * (1 + 1e-7)
