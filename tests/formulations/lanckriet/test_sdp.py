"""Lanckriet et al. (2004): the linear matrix inequality, and weights of any sign."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import (
    CRITERIA,
    KS,
    TRACE,
    N,
    R,
    Y,
    alternating,
    close,
    criteria,
    dual_of_omega,
    learned,
    n,
    omega,
    on_data,
    random_kernels,
    root,
)
from tests.problems import labels, points, solved


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


@every(("criterion", "grams"), alternating(("data", "random")))
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


@every(("criterion", "seed"), [*zip(CRITERIA.values(), (0, 5, 6, 0), strict=True)])
def test_the_multiplier_of_K_is_orthogonal_to_it(criterion, seed):
    Ks, y = small_case(seed)
    written = lanckriet.sdp(Ks, y, **criterion, trace=SMALL)
    solution = learned(written)
    Z = next(c for c in written.problem.constraints if c.label == "K >> 0").dual_value
    assert np.linalg.eigvalsh(Z)[0] >= -1e-6
    assert Z @ solution.kernel == pytest.approx(np.zeros_like(Z), abs=1e-3)
    assert np.linalg.norm(Z) > 1e-2 or seed == 6  # at the border of the cone, but for the last


def balanced(a, y, C):
    """Lanckriet 8.1: clip, then shrink the heavier class; exactly in A_C."""
    a = np.clip(a, 0, C)
    plus, minus = a[y > 0].sum(), a[y < 0].sum()
    a[y > 0] *= min(plus, minus) / plus
    a[y < 0] *= min(plus, minus) / minus
    return a


def similar_kernels(n, m, seed):
    """Gaussian kernels of close widths: combinations with large weights of both signs nearly cancel."""
    X, y = points(n, d=4, seed=seed), labels(n, seed)
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    return np.array([np.exp(-squares / width) for width in np.geomspace(0.1, 10, m)]), y


@pytest.mark.parametrize(
    ("n", "programme"),
    [(12, "sdp"), pytest.param(30, "words", marks=pytest.mark.slow)],
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
    solution = on_data(weights, tau="learned")[1]
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
    solution = on_data(weights, tau="learned")[1]
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
    best = on_data(weights, tau="learned")[1].value  # budget sum r + N
    for tau in (0.2, 1.0, 1.8):
        fixed = learned(
            lanckriet.soft_margin_squared(KS, Y, C=1 / tau, trace=2 * TRACE - N * tau, weights=weights)
        )
        assert best <= fixed.value * (1 + 1e-6)
