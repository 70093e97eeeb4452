"""Lanckriet et al. (2004): non-negative weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

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
    learned,
    n,
    omega,
    random_kernels,
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
def test_the_block_norm_has_the_same_value_and_weights(criterion):
    written = lanckriet.block_norm(KS, Y, **criterion, trace=TRACE)
    one, two = learned(lanckriet.margin(KS, Y, **criterion, trace=TRACE)), learned(written)
    assert two.value == close(one.value) and two.weights == pytest.approx(one.weights, abs=1e-3)
    by_programme = written.solve("exact", programme="block norm", tol=1e-6)
    assert by_programme.value == close(one.value)
    assert by_programme.weights == pytest.approx(one.weights, abs=1e-3)
    if criterion["tau"] == "learned":
        assert two.tau == pytest.approx(one.tau, abs=1e-4)


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
