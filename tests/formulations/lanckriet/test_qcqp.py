"""Lanckriet et al. (2004): non-negative weights."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from formulations import lanckriet
from tests import problems
from tests.every import every
from tests.formulations.lanckriet.cases import (
    ALL_CRITERIA,
    CRITERIA,
    KS,
    TRACE,
    N,
    R,
    Y,
    alternating,
    close,
    criteria,
    learned,
    n,
    omega,
    on_data,
    random_kernels,
    root,
    slack_loss,
    with_learned,
)
from tests.problems import solved


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


@every(("criterion", "grams"), alternating(("data", "random")))
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


@every(("criterion", "weights"), [(CRITERIA["general"], "free"), (ALL_CRITERIA[-1], "nonnegative")])
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
    one = at_common_trace(**criterion)
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


@cache
def at_common_trace(**criterion):
    return learned(lanckriet.margin(KS, Y, **criterion, trace=TRACE))


@every(("change", "criterion"), [*zip(CHANGES, [*ALL_CRITERIA, CRITERIA["1-norm"]], strict=True)])
def test_invariances_of_learned_weights(criterion, change):
    """Every change at one criterion; at random ones in test_properties.py."""
    plain = at_common_trace(**criterion)
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


@every(("criterion", "kappa"), alternating((0.3, 5.0)))
def test_budget_scaling(criterion, kappa):
    left = learned(lanckriet.margin(KS, Y, **criterion, trace=kappa * TRACE))
    other = dict(criterion)
    if criterion["tau"] != "learned":
        other = {"C": kappa * criterion["C"], "tau": criterion["tau"] / kappa}
    right = learned(lanckriet.margin(KS, Y, **other, trace=TRACE))
    assert left.value == close(right.value / kappa)


@every(("criterion", "weights"), [*zip(CRITERIA.values(), 2 * ("free", "nonnegative"), strict=True)])
def test_one_kernel_gets_the_whole_budget(criterion, weights):
    c = 7.0
    solution = learned(lanckriet.margin(KS[:1], Y, **criterion, weights=weights, trace=c))
    assert solution.weights == pytest.approx([c / R[0]], rel=1e-9)
    assert solution.value == close(omega(c / R[0] * KS[0], Y, **criterion))


@cache
def least_of_single_kernels(**criterion):
    singles = [omega(TRACE / R[0] * KS[0], Y, **criterion)]
    if criterion["tau"] or np.isfinite(criterion["C"]):  # the others do not separate
        singles += [omega(TRACE / r * K, Y, **criterion) for r, K in zip(R[1:], KS[1:], strict=True)]
    return min(singles)


@criteria
@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_learning_is_never_worse_than_a_single_scaled_kernel(criterion, weights):
    # Lanckriet 4.6
    _, solution = on_data(weights, **criterion)
    assert solution.value <= least_of_single_kernels(**criterion) * (1 + 1e-7)
