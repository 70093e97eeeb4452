"""Lanckriet et al. (2004): kernels of rank one."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import CRITERIA, TRACE, Y, close, criteria, learned, n, omega, vectors
from tests.problems import solved

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


def test_a_rank_one_ridge_is_a_number():
    with pytest.raises(ValueError, match="must be a number for rank-one kernels.*Use learned_tau"):
        lanckriet.rank_one(vectors("orthonormal"), Y, tau="learned")
