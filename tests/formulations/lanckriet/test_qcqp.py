"""Lanckriet et al. (2004): non-negative weights."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

import kernelopt as ko
from formulations import lanckriet
from tests import problems
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
    learned,
    n,
    omega,
    on_data,
    random_kernels,
    root,
    slack_loss,
    vectors,
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


@cache
def at_common_trace(**criterion):
    return learned(lanckriet.margin(KS, Y, **criterion, trace=TRACE))


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


kinds = pytest.mark.parametrize("kind", ["orthonormal", "independent"])


@every(("criterion", "kind"), [*zip(CRITERIA.values(), 2 * ("orthonormal", "independent"), strict=True)])
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
