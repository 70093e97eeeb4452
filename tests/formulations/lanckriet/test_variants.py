"""Lanckriet 5.1 to 8.3 (docs/theory): kernels of rank one, a learned tau, alignment, and bounds.

The page lists the tests of each fact.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.test_lanckriet import (
    KS,
    TRACE,
    N,
    R,
    Y,
    balanced,
    close,
    criteria,
    learned,
    n,
    omega,
    random_kernels,
    root,
    solved,
    with_learned,
)
from tests.problems import labels, points

# --------------------------------------------------------------- Lanckriet 5: kernels of rank one


def vectors(kind, seed=0, m=5):
    """m columns on N points of which the first two separate half of the labels each; unit length or not."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(N, m))
    half = np.arange(n) % 2 == 0
    V[:n, 0] = Y * np.where(half, 1.5, 0.1) * rng.uniform(0.7, 1.3, n)
    V[:n, 1] = Y * np.where(half, 0.1, 1.5) * rng.uniform(0.7, 1.3, n)
    return np.linalg.qr(V)[0] if kind == "orthonormal" else V * np.linspace(0.8, 1.2, m)


kinds = pytest.mark.parametrize("kind", ["orthonormal", "independent"])


@criteria
@kinds
def test_rank_one_forms_agree(criterion, kind):
    V = vectors(kind)
    assert np.linalg.matrix_rank(V) == 5
    grams = ko.Grams.rank_one(V)
    qp = learned(lanckriet.rank_one(V, Y, **criterion, trace=TRACE))
    qcqp = learned(lanckriet.qcqp(grams, Y, **criterion, trace=TRACE))
    sdp = learned(lanckriet.sdp(np.asarray(grams), Y, **criterion, trace=TRACE))
    assert qp.value == close(qcqp.value) == close(sdp.value)
    assert sdp.weights.min() >= -1e-6 * sdp.weights.max()
    assert qp.weights == pytest.approx(qcqp.weights, abs=1e-3 * qp.weights.max())
    assert qp.weights == pytest.approx(sdp.weights, abs=1e-3 * qp.weights.max())
    assert (qp.weights > 1e-2 * qp.weights.max()).sum() > 1
    if kind == "orthonormal":  # r_i = 1 over all N coordinates; the truncated vectors are not orthonormal
        assert qp.weights.sum() == close(TRACE)
        assert np.abs(V[:n].T @ V[:n] - np.eye(5)).max() > 0.1


@criteria
@kinds
def test_rank_one_weights_are_multipliers(criterion, kind):
    V, c = vectors(kind, seed=1), 3.0
    C, tau = criterion["C"], criterion["tau"]
    lengths = np.linalg.norm(V, axis=0)
    flipped = (V[:n].T * Y) / lengths[:, None]
    a, s = cp.Variable(n), cp.Variable()
    domain = [a >= 0, Y @ a == 0] + ([] if np.isinf(C) else [a <= C])
    above, below = flipped @ a <= s, -flipped @ a <= s
    gain = 2 * cp.sum(a) - tau * cp.sum_squares(a) - c * cp.square(s)
    value = solved(cp.Problem(cp.Maximize(gain), [*domain, above, below]))
    mu = (above.dual_value + below.dual_value) / (2 * s.value * lengths**2)
    assert mu @ lengths**2 == close(c)
    assert omega((V * mu) @ V.T, Y, C, tau) == close(value)
    solution = learned(lanckriet.rank_one(V, Y, **criterion, trace=c))
    assert solution.value == close(value)
    assert solution.weights == pytest.approx(mu, abs=1e-3 * mu.max())


@kinds
@pytest.mark.parametrize("c", [1.0, 5.0])
def test_the_rank_one_hard_margin_is_a_linear_programme(kind, c):
    V = vectors(kind, seed=2)
    lengths, m = np.linalg.norm(V, axis=0), V.shape[1]
    flipped = V[:n].T * Y
    dual = linprog(
        -np.ones(n), np.vstack([flipped, -flipped]), np.tile(lengths, 2), Y[None], [0.0], (0, None)
    )
    # the l1-norm machine: min sum |v_i| |w_i| s.t. y (V w + b) >= 1, with w = plus - minus
    columns = np.hstack([V[:n], -V[:n], np.ones((n, 1)), -np.ones((n, 1))])
    costs = np.concatenate([lengths, lengths, [0.0, 0.0]])
    primal = linprog(costs, -Y[:, None] * columns, -np.ones(n), bounds=(0, None))
    assert dual.status == primal.status == 0 and primal.x.size == 2 * m + 2
    assert -dual.fun == close(primal.fun)
    assert learned(lanckriet.rank_one(V, Y, trace=c)).value == close(primal.fun**2 / c)


@pytest.mark.parametrize("C", [0.6, np.inf])
def test_a_vector_may_vanish_on_the_labelled_points(C):
    V = vectors("independent")
    V[:n, 2] = 0.0
    qp = learned(lanckriet.rank_one(V, Y, C=C, trace=TRACE))
    without = learned(lanckriet.rank_one(np.delete(V, 2, axis=1), Y, C=C, trace=TRACE))
    assert qp.weights[2] <= 1e-6 * qp.weights.max()  # it costs trace and helps nothing
    assert qp.value == close(without.value)
    assert learned(lanckriet.qcqp(ko.Grams.rank_one(V), Y, C=C, trace=TRACE)).value == close(without.value)
    assert learned(lanckriet.block_norm(ko.Grams.rank_one(V), Y, C=C, trace=TRACE)).value == close(
        without.value
    )


def test_a_zero_column_gets_no_weight():
    V = vectors("independent")
    V[:, 3] = 0.0
    solution = learned(lanckriet.rank_one(V, Y, C=0.6))
    assert solution.weights.shape == (5,) and solution.weights[3] == 0
    assert solution.value == close(learned(lanckriet.rank_one(np.delete(V, 3, axis=1), Y, C=0.6)).value)


@criteria
def test_dependent_vectors_leave_room_for_negative_weights(criterion):
    # v_1, v_2 and v_1 + v_2 span every symmetric matrix on a plane: K = a a' with any a in it is allowed.
    V = vectors("independent", seed=4, m=2)
    V = np.column_stack([V, V.sum(axis=1)])
    free = learned(lanckriet.sdp(np.asarray(ko.Grams.rank_one(V)), Y, **criterion, trace=TRACE))
    tied = learned(lanckriet.rank_one(V, Y, **criterion, trace=TRACE))
    assert free.upper < tied.lower * (1 - 1e-3)
    assert free.weights.min() < -1e-2


def test_a_rank_one_ridge_is_a_number():
    with pytest.raises(ValueError, match="must be a number for rank-one kernels.*Use learned_tau"):
        lanckriet.rank_one(vectors("orthonormal"), Y, tau="learned")


# ---------------------------------------------------------------------- Lanckriet 6: learning tau


def similar_kernels(n, m, seed):
    """Gaussian kernels of close widths: combinations with large weights of both signs nearly cancel."""
    X, y = points(n, d=4, seed=seed), labels(n, seed)
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    return np.array([np.exp(-squares / width) for width in np.geomspace(0.1, 10, m)]), y


@pytest.mark.parametrize(
    ("n", "programme"),
    [(12, "sdp"), *(pytest.param(30, name, marks=pytest.mark.slow) for name in ("sdp", "words"))],
)
def test_free_weights_of_similar_kernels_are_certified(n, programme):
    """The optimum depends on the span of the kernels alone: an orthonormal basis of it has the same."""
    grams, y = similar_kernels(n, 10, seed=1)
    c = float(np.trace(grams.sum(0)))
    solution = lanckriet.sdp(grams, y, C=1.0).solve("exact", programme=programme)
    assert solution.certificate.gap <= 1e-5
    basis = np.linalg.qr(grams.reshape(10, -1).T)[0].T.reshape(grams.shape)
    other = lanckriet.sdp((basis + basis.transpose(0, 2, 1)) / 2, y, C=1.0, trace=c).solve("exact")
    assert other.certificate.gap <= 1e-5
    assert max(solution.lower, other.lower) <= min(solution.upper, other.upper) + 1e-9


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_the_sdp_learns_tau(seed):
    y = Y[:6]
    Ks, c = random_kernels(8, 3, 5, seed), 8.0
    written = lanckriet.sdp(Ks, y, tau="learned", trace=c)
    solution = learned(written)
    r = np.trace(Ks, axis1=1, axis2=2)
    assert solution.tau >= 0 and solution.weights @ r + 8 * solution.tau == close(c)
    eigenvalues = np.linalg.eigvalsh(solution.kernel)
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]  # K(mu) >> 0, not only K(mu) + tau I
    # the dual, written out: |alpha|^2 <= eta N in the place of the ridge
    a, eta, Z = cp.Variable(6), cp.Variable(), cp.Variable((8, 8), PSD=True)
    bar = cp.hstack([cp.multiply(y, a), np.zeros(2)])
    whole = cp.Variable((9, 9), PSD=True)
    linked = [whole[:8, 8] == bar, whole[8, 8] == 1]
    forms = [cp.trace((whole[:8, :8] + Z) @ K) == eta * ri for K, ri in zip(Ks, r, strict=True)]
    domain = [a >= 0, y @ a == 0, cp.sum_squares(a) <= eta * 8]
    problem = cp.Problem(cp.Maximize(2 * cp.sum(a) - c * eta), [*linked, *forms, *domain])
    assert solved(problem) == close(solution.value)
    assert solved(written.dual()) == close(solution.value)
    # with the identity as one more kernel, K(mu) + tau I >> 0 alone is asked: never worse
    looser = learned(lanckriet.sdp(np.concatenate([Ks, [np.eye(8)]]), y, trace=c))
    assert looser.value <= solution.value * (1 + 1e-6)
    assert learned(lanckriet.qcqp(Ks, y, tau="learned", trace=c)).value >= solution.value * (1 - 1e-6)


@pytest.mark.parametrize("c", [TRACE, 6 * TRACE])
def test_tau_is_the_weight_of_the_identity(c):
    # the QCQP as printed, one more constraint |alpha|^2 / N <= t
    a, t = cp.Variable(n), cp.Variable()
    factors = [*(np.diag(Y) @ root(K[:n, :n]) for K in KS), np.eye(n)]
    r = np.append(R, N)
    caps = [cp.sum_squares(F.T @ a) / ri <= t for F, ri in zip(factors, r, strict=True)]
    value = solved(cp.Problem(cp.Maximize(2 * cp.sum(a) - c * t), [a >= 0, Y @ a == 0, *caps]))
    p = np.array([float(np.ravel(cap.dual_value)[0]) for cap in caps])
    solution = learned(lanckriet.learned_tau(KS, Y, trace=c))
    assert solution.value == close(value)
    assert p.sum() == close(c, 1e-5)
    assert solution.weights == pytest.approx(p[:3] / R, abs=1e-3 * c / TRACE)
    assert solution.tau == pytest.approx(p[3] / N, abs=1e-3)
    extra = learned(lanckriet.hard_margin(np.concatenate([KS, [np.eye(N)]]), Y, trace=c))
    assert extra.value == close(solution.value)
    assert extra.weights[3] == pytest.approx(solution.tau, abs=1e-3)
    assert extra.weights[:3] == pytest.approx(solution.weights, abs=1e-3 * c / TRACE)
    assert extra.alpha == pytest.approx(solution.alpha, abs=1e-3 * np.abs(solution.alpha).max())


def doubled():
    """Every labelled point twice, with both labels."""
    order = np.concatenate([np.arange(n), np.arange(n), np.arange(n, N)])
    return KS[:, order][:, :, order], np.concatenate([Y, -Y])


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_contradictory_labels_are_feasible(weights):
    Ks, y = KS[:, [0, 0, 1, 2, 3, 4, 5]][:, :, [0, 0, 1, 2, 3, 4, 5]], np.array([1.0, -1, 1, -1, 1, -1])
    solution = learned(lanckriet.learned_tau(Ks, y, weights=weights))
    assert np.isfinite(solution.value) and solution.tau > 1e-3
    with pytest.raises(ko.InfeasibleError):
        lanckriet.hard_margin(Ks, y, weights=weights).solve()


def test_everything_contradictory_leaves_only_the_ridge():
    # K alpha = 0 is forced for nothing: alpha_i = alpha_i' makes every form vanish but |alpha|^2 / N
    Ks, y = doubled()
    size = len(Ks[0])
    solution = learned(lanckriet.learned_tau(Ks, y, trace=2.0 * size))
    assert solution.tau == close(2.0)
    assert solution.weights == pytest.approx(np.zeros(3), abs=1e-6)
    assert solution.value == close(y.size / 2)  # max 2e'a - 2|a|^2


@pytest.mark.parametrize("c", [TRACE, 6 * TRACE])
def test_the_primal_of_a_learned_tau(c):
    factors = [root(K[:n, :n]) for K in KS]
    ws, b, xi = [cp.Variable(F.shape[1]) for F in factors], cp.Variable(), cp.Variable(n)
    f = sum(F @ w for F, w in zip(factors, ws, strict=True)) + b
    total = cp.sum([np.sqrt(r) * cp.norm2(w) for r, w in zip(R, ws, strict=True)]) + np.sqrt(N) * cp.norm2(xi)
    value = solved(cp.Problem(cp.Minimize(cp.square(total) / c), [cp.multiply(Y, f) >= 1 - xi]))
    written = lanckriet.block_norm(KS, Y, tau="learned", trace=c)
    for solution in (learned(lanckriet.learned_tau(KS, Y, trace=c)), learned(written)):
        assert solution.value == close(value)
        assert solution.tau == pytest.approx(
            c * np.linalg.norm(xi.value) / (np.sqrt(N) * total.value), abs=1e-3
        )


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_fixing_the_learned_tau_changes_nothing(weights):
    solution = learned(lanckriet.learned_tau(KS, Y, weights=weights))
    c = 2 * TRACE
    assert solution.weights @ R + N * solution.tau == close(c)
    again = learned(lanckriet.margin(KS, Y, tau=solution.tau, trace=c - N * solution.tau, weights=weights))
    assert again.value == close(solution.value)
    squared = lanckriet.soft_margin_squared(
        KS, Y, C=1 / solution.tau, trace=c - N * solution.tau, weights=weights
    )
    assert learned(squared).value == close(solution.value)
    assert again.decision_function() == pytest.approx(solution.decision_function(), abs=1e-3)


@pytest.mark.parametrize("other", [np.eye(6), np.diag(np.arange(1.0, 7.0))])
def test_tau_may_be_zero(other):
    # K_1 = yy': (e'a)^2 / n >= |a|^2 / n, so that the identity is never tight
    y = np.array([1.0, -1, 1, 1, -1, -1])
    solution = learned(lanckriet.learned_tau([np.outer(y, y), other], y, trace=3.0))
    assert solution.tau == pytest.approx(0, abs=1e-6)
    assert solution.weights == pytest.approx([0.5, 0], abs=1e-5)
    assert solution.value == close(6 / 3.0)  # max 2s - c s^2 / n with s = e'a
    hard = learned(lanckriet.hard_margin([np.outer(y, y), other], y, trace=3.0))
    assert hard.value == close(solution.value)  # C is infinite


def test_one_kernel_tunes_its_C():
    K, c = KS[2], 2 * TRACE
    solution = learned(lanckriet.learned_tau(K[None], Y, trace=c))

    def cost(tau):
        return omega((c - N * tau) / R[2] * K, Y, tau=tau)

    scan = minimize_scalar(cost, bounds=(0.05, 1.95), method="bounded", options={"xatol": 1e-7})
    assert solution.value == close(scan.fun)
    assert 0.1 < solution.tau < 1.9 and solution.tau == pytest.approx(scan.x, abs=1e-3)


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_prediction_leaves_the_ridge_out(weights):
    solution = learned(lanckriet.learned_tau(KS, Y, weights=weights))
    K = np.tensordot(solution.weights, KS, 1)
    assert solution.kernel == pytest.approx(K, abs=1e-12) and solution.tau > 0.1
    values = solution.decision_function()
    assert values == pytest.approx(K[:, :n] @ solution.alpha + solution.intercept, abs=1e-12)
    a = Y * solution.alpha
    free = a > 1e-2 * a.max()
    # y f = 1 - tau alpha; with K + tau I it would be 1. alpha is good to the root of the gap
    assert (Y * values[:n])[free] == pytest.approx(1 - solution.tau * a[free], abs=1e-3)
    assert solution.tau * a[free].max() > 0.1


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_a_learned_tau_is_never_worse_than_a_fixed_one(weights):
    best = learned(lanckriet.learned_tau(KS, Y, weights=weights)).value  # budget sum r + N
    for tau in (0.2, 1.0, 1.8):
        fixed = learned(
            lanckriet.soft_margin_squared(KS, Y, C=1 / tau, trace=2 * TRACE - N * tau, weights=weights)
        )
        assert best <= fixed.value * (1 + 1e-6)


# ------------------------------------------------------------------------- Lanckriet 7: alignment


def angles(Ks, y, norm="full"):
    """q_i = y'K_{i,tr}y and S_ij = <K_i, K_j>."""
    labelled = Ks[:, : y.size, : y.size]
    blocks = labelled if norm == "train" else Ks
    return np.einsum("i,mij,j->m", y, labelled, y), np.einsum("aij,bij->ab", blocks, blocks)


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_is_the_printed_sdp(weights, seed):
    size, y = 8, Y[:6]
    Ks = random_kernels(size, 3, 2, seed)
    solution = learned(lanckriet.alignment(Ks, y, weights=weights))
    mu, A = cp.Variable(3), cp.Variable((size, size), symmetric=True)
    K = cp.sum([mu[i] * Ks[i] for i in range(3)])
    sign = [mu >= 0] if weights == "nonnegative" else [K >> 0]
    target = cp.sum(cp.multiply(np.outer(y, y), K[:6, :6]))
    lmi = [cp.trace(A) <= 1, cp.bmat([[A, K.T], [K, np.eye(size)]]) >> 0]
    assert solved(cp.Problem(cp.Maximize(target), [*lmi, *sign])) == close(solution.value)
    q, S = angles(Ks, y)
    assert solution.weights @ S @ solution.weights == close(1) and q @ solution.weights == close(
        solution.value
    )
    assert solution.weights == pytest.approx(mu.value, abs=1e-3)
    L = np.linalg.cholesky(S)
    short = solved(cp.Problem(cp.Maximize(q @ mu), [cp.norm2(L.T @ mu) <= 1, *sign]))
    assert short == close(solution.value)
    singles = q / np.sqrt(np.diag(S))
    assert solution.value >= max(singles.max(), q.sum() / np.sqrt(S.sum())) * (1 - 1e-9)


def test_free_signs_align_better():
    strict = 0
    for seed in range(6):
        Ks, y = random_kernels(8, 3, 5, seed), Y[:6]
        free = learned(lanckriet.alignment(Ks, y, weights="free"))
        tied = learned(lanckriet.alignment(Ks, y))
        assert free.value >= tied.value * (1 - 1e-6)
        strict += free.lower > tied.upper * (1 + 1e-3)
        assert np.linalg.eigvalsh(free.kernel)[0] >= -1e-8
    assert strict >= 1


@pytest.mark.parametrize("norm", ["full", "train"])
def test_alignment_is_a_quadratic_programme(norm):
    q, S = angles(KS, Y, norm)
    solution = learned(lanckriet.alignment(KS, Y, norm=norm))
    mu = cp.Variable(3)
    value = solved(cp.Problem(cp.Minimize(cp.quad_form(mu, S) - 2 * q @ mu), [mu >= 0]))
    assert value == close(-(solution.value**2))
    assert mu.value / solution.value == pytest.approx(solution.weights, abs=1e-4)
    assert mu.value / solution.value == pytest.approx(solution.weights, rel=1e-3, abs=1e-6)


def test_alignment_of_orthonormal_rank_one_kernels():
    V = vectors("orthonormal", m=6)
    solution = learned(lanckriet.alignment(ko.Grams.rank_one(V), Y))
    q = (V[:n].T @ Y) ** 2
    assert solution.value == close(np.linalg.norm(q))
    assert solution.weights == pytest.approx(q / np.linalg.norm(q), abs=1e-3)  # root of the gap


@pytest.mark.parametrize("norm", ["full", "train"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_bounds_for_any_weights(norm, seed):
    rng = np.random.default_rng(seed)
    Ks = np.concatenate([KS, random_kernels(N, 2, 3, seed)])
    q, S = angles(Ks, Y, norm)
    solution = lanckriet.alignment(Ks, Y, norm=norm).solve(tol=1e-9)

    def bounds(mu):
        length = np.sqrt(mu @ S @ mu)
        return q @ mu / length, length * (q / (S @ mu)).max()

    for mu in [*rng.uniform(size=(20, 5)), *np.eye(5), solution.weights * rng.uniform(0.999, 1.001, 5)]:
        lower, upper = bounds(mu)
        assert lower <= solution.upper * (1 + 1e-12) and upper >= solution.lower * (1 - 1e-12)
        assert bounds(7 * mu) == pytest.approx((lower, upper), rel=1e-12)
    lower, upper = bounds(solution.weights)
    # the upper bound is of first order in the error of the weights, the root of the gap
    assert lower == close(solution.value) and upper == close(solution.value, 1e-4)


def test_alignment_norms():
    full, train = (learned(lanckriet.alignment(KS, Y, norm=norm)) for norm in ("full", "train"))
    assert train.value > full.value * 1.01  # a smaller norm
    K, L = full.kernel, train.kernel[:n, :n]
    assert np.linalg.norm(K) == close(1) and np.linalg.norm(L) == close(1)
    assert Y @ K[:n, :n] @ Y == close(full.value) and Y @ L @ Y == close(train.value)
    assert train.value / n <= 1
    square = KS[:, :n, :n]
    one, two = (learned(lanckriet.alignment(square, Y, norm=norm)) for norm in ("full", "train"))
    assert one.value == close(two.value) == close(train.value)
    assert one.weights == pytest.approx(two.weights, abs=1e-6)
    ideal = learned(lanckriet.alignment([np.outer(Y, Y), square[0]], Y))
    assert ideal.value / n == close(1)  # the labels' own kernel


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_has_no_scale(weights):
    plain = learned(lanckriet.alignment(KS, Y, weights=weights))
    s = np.array([0.1, 5.0, 3.0])
    scaled = learned(lanckriet.alignment(s[:, None, None] * KS, Y, weights=weights))
    flipped = learned(lanckriet.alignment(KS, -Y, weights=weights))
    assert plain.value == close(scaled.value) == close(flipped.value)
    assert s * scaled.weights == pytest.approx(plain.weights, abs=1e-3)
    zero = learned(lanckriet.alignment(np.concatenate([KS, np.zeros((1, N, N))]), Y, weights=weights))
    assert zero.value == close(plain.value) and zero.weights[3] == 0


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_needs_a_kernel_that_is_aligned(weights):
    y = np.array([1.0, -1, 1, -1])
    constant = np.ones((1, 4, 4))
    with pytest.raises(ValueError, match="none is aligned with the labels. Add a kernel, or centre them"):
        lanckriet.alignment(constant, y, weights=weights)


# ---------------------------------------------------------------------- Lanckriet 8: certificates


def bracket(alpha, mu, tau, C, c, ridge=None):
    """Lanckriet 8.1 to 8.3 from any unsigned alpha and mu; `ridge` is the candidate of a learned tau."""
    # 1. repair alpha
    a = balanced(alpha.copy(), Y, C)
    assert (a >= 0).all() and (a <= C).all() and abs(Y @ a) <= 1e-12 * a.sum()
    # 2. repair mu
    mu = np.maximum(mu, 0)
    if ridge is not None:
        scale = c / (mu @ R + N * max(ridge, 0))
        mu, tau = scale * mu, scale * max(ridge, 0)
    else:
        mu = c * mu / (mu @ R)
    # 3. lower bound
    G = KS[:, :n, :n] * np.outer(Y, Y)
    forms = np.einsum("i,mij,j->m", a, G, a) / R
    Q = c * max(forms.max(), a @ a / N) if ridge is not None else c * forms.max() + tau * a @ a
    s = min(a.sum() / Q, C / a.max())
    lower = 2 * s * a.sum() - s**2 * Q
    if np.isinf(C):
        assert lower == close(a.sum() ** 2 / Q, 1e-12)
    # 4. upper bound
    g = np.tensordot(mu, KS[:, :n, :n], 1) @ (a * Y)
    q = (a * Y) @ g
    tight = (np.sqrt(R) * mu @ np.sqrt(forms * R)) ** 2 / c
    if ridge is None:
        assert tight <= q * (1 + 1e-12)
    if np.isinf(C) and tau == 0:
        b = -(g[Y > 0].min() + g[Y < 0].max()) / 2
        rho = (Y * (g + b)).min()
        return lower, (q / rho**2 if rho > 0 else np.inf), (tight / rho**2 if rho > 0 else np.inf)

    def loss(b):
        slack = np.maximum(1 - Y * (g + b), 0)
        if tau == 0:
            return 2 * C * slack.sum()
        if np.isinf(C):
            return (slack**2).sum() / tau
        return np.where(slack <= tau * C, slack**2 / tau, 2 * C * slack - tau * C**2).sum()

    if tau == 0:
        h = min(loss(b) for b in Y - g)
    else:
        low, high = -10.0, 10.0
        for _ in range(100):
            b = (low + high) / 2
            rising = Y @ np.minimum(np.maximum(1 - Y * (g + b), 0) / tau, C) < 0  # minus the derivative
            low, high = (low, b) if rising else (b, high)
        h = loss(b)
    return lower, q + h, (tight if ridge is None else q) + h


@with_learned
@every("noise", [0.0, 1e-3, 0.1])
def test_bounds_for_nonnegative_weights_bracket_the_optimum(criterion, noise):
    rng = np.random.default_rng(int(1e4 * noise))
    c, C = TRACE, criterion.get("C", np.inf)
    is_learned = criterion["tau"] == "learned"
    written = lanckriet.qcqp(KS, Y, **criterion, trace=c)
    solution = learned(written)
    programme = written.programmes["qcqp"]().problem
    solved(programme)
    a = np.maximum(programme.var_dict["alpha"].value, 0)  # the solver's own alpha
    for _ in range(1 if noise == 0 else 10):
        noisy_a = a * (1 + noise * rng.normal(size=n)) + 0.1 * noise * rng.normal(size=n)
        noisy_mu = solution.weights * (1 + noise * rng.normal(size=3)) + 0.1 * noise * rng.normal(size=3)
        ridge = solution.tau * (1 + noise * rng.normal()) if is_learned else None
        lower, upper, tight = bracket(noisy_a, noisy_mu, 0.0 if is_learned else criterion["tau"], C, c, ridge)
        assert lower <= solution.upper * (1 + 1e-12) and upper >= solution.lower * (1 - 1e-12)
        assert tight >= solution.lower * (1 - 1e-12) and tight <= upper * (1 + 1e-12) and lower <= tight
        if noise == 0:
            # of first order in the error of alpha: the hard margin's reaches 1.6e-4 with Clarabel's own
            # alpha, and 6e-5 only after the plain SVM at the learned kernel has polished it
            assert (upper - lower) / upper <= 3e-4
            polished = np.abs(written.risks[0].oracle().alpha)
            lower, upper, _ = bracket(
                polished, noisy_mu, 0.0 if is_learned else criterion["tau"], C, c, ridge
            )
            assert (upper - lower) / upper <= 6e-5
        # the language's certificate at the same candidate: true, and its bounds no worse than these
        ours = {"mu": noisy_mu, "tau": ridge}
        candidate = {v: ours[v.name()] for v in written.problem.variables() if v.name() in ours}
        given = ko.certify(written.problem, candidate, alpha=Y * noisy_a)
        assert given.lower <= solution.upper * (1 + 1e-12) and given.upper >= solution.lower * (1 - 1e-12)
        assert given.gap >= 0 and given.route == "closed"
