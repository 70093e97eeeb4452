"""l_p-norm kernel learning (Kloft et al. 2011): one value for all forms of one problem."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from formulations import lp_norm
from tests.every import every
from tests.formulations.lp_norm.cases import (
    APART,
    EXPONENTS,
    GRAMS,
    KINDS,
    TOGETHER,
    N,
    alternating,
    block_exponent,
    blocked,
    factors,
    learned,
    loss_of,
    near,
    optimum,
    y_of,
)
from tests.problems import crossed, solved


@pytest.mark.parametrize(("kind", "p"), crossed(KINDS, EXPONENTS, ("hinge",), (4 / 3,)))
def test_primal_dual_and_block_norm_have_one_value(kind, p):
    """Kloft 1.1, 1.2 and 3.1: (P), (D) and Proposition 7, for every loss."""
    y, loss = y_of(kind), loss_of(kind)
    found = learned(kind, p)
    block = blocked(kind, p)
    dual = solved(lp_norm.primal(GRAMS, y, p=p, loss=loss).dual())
    block_dual = solved(lp_norm.block_norm(GRAMS, y, r=block_exponent(p), loss=loss).dual())
    assert near(dual, found.upper) and near(block_dual, found.upper)
    assert near(block.upper, found.upper) and near(block.lower, found.lower)


@every(("kind", "p"), alternating([kind for kind in KINDS if kind != "one_class"], (1.0, 4 / 3)))
def test_without_intercept(kind, p):
    y, loss = y_of(kind), loss_of(kind)
    found = optimum(lp_norm.primal(GRAMS, y, p=p, loss=loss, bias=False))
    block = optimum(lp_norm.block_norm(GRAMS, y, r=block_exponent(p), loss=loss, bias=False))
    dual = solved(lp_norm.primal(GRAMS, y, p=p, loss=loss, bias=False).dual())
    # for the hard margin at p = 4/3 found.upper is 1.0e-6 off; the block norm polishes its machine
    assert near(block.upper, dual) and near(found.lower, dual) and near(found.upper, dual, 2e-6)
    assert found.intercept == block.intercept == 0
    assert found.upper >= learned(kind, p).lower - 1e-9  # an intercept can only help


@pytest.mark.parametrize(("kind", "p"), crossed(KINDS, (1.0, 1.01, 4 / 3, 3.0, np.inf), ("hinge",), (4 / 3,)))
def test_the_penalised_form_has_the_value_of_its_dual(kind, p):
    machine = lp_norm.tikhonov(GRAMS, y_of(kind), p=p, penalty=0.3, loss=loss_of(kind))
    assert near(solved(machine.dual()), optimum(machine).upper)


@pytest.mark.parametrize(("kind", "r"), crossed(KINDS, (1.0, 1.1, 4 / 3, 2.0, 4.0), ("hinge",), (4 / 3,)))
def test_the_sum_of_powers_has_the_value_of_its_dual(kind, r):
    """Kloft 3.2: equation (29), below r = 2 in words and above as the explicit programme."""
    machine = lp_norm.block_norm(GRAMS, y_of(kind), r=r, loss=loss_of(kind), squared=False)
    found = optimum(machine)
    assert near(solved(machine.dual()), found.upper)


@every(("kind", "E"), [("hinge", TOGETHER), *alternating(KINDS, (APART, TOGETHER))])
def test_the_ellipsoid_has_the_value_of_its_corrected_dual(kind, E):
    machine = lp_norm.non_isotropic(GRAMS, y_of(kind), E=E, loss=loss_of(kind))
    found = optimum(machine)
    assert near(solved(machine.dual()), found.upper)
    assert found.weights @ E @ found.weights <= 1 + 1e-9 and found.weights.min() >= 0


@every(("kind", "prices"), [("hinge", (0.2, 2.0)), *alternating(KINDS, ((0.5, 0.0), (0.2, 2.0)))])
def test_the_elastic_net_has_three_forms(kind, prices):
    """Over functions, over weights, and the dual; theta_m = |w_m| / (l1 + l2 |w_m|)."""
    (l1, l2), y, loss = prices, y_of(kind), loss_of(kind)
    machine = lp_norm.elastic_net(GRAMS, y, l1=l1, l2=l2, loss=loss)
    found = optimum(machine)
    assert near(solved(machine.dual()), found.upper)
    w = [cp.Variable(L.shape[1]) for L in factors()]
    f = cp.sum([L @ v for L, v in zip(factors(), w, strict=True)])
    f = f + cp.Variable() if loss.default_bias else f
    lengths = cp.hstack([cp.norm2(v) for v in w])
    penalty = l1 * cp.sum(lengths) + l2 / 2 * cp.sum_squares(lengths)
    assert near(
        solved(cp.Problem(cp.Minimize(penalty + loss.expression(f, loss.targets(y, N))))), found.upper
    )
    size = lengths.value
    assert found.weights == pytest.approx(size / (l1 + l2 * size), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize(
    ("p", "nu"),
    [*((p, 0.5) for p in EXPONENTS), *((p, nu) for p in (4 / 3, np.inf) for nu in (0.1, 0.77, 1.0))],
)
def test_the_nu_form_has_the_value_of_its_dual(p, nu):
    machine = lp_norm.one_class(GRAMS, p=p, nu=nu)
    found = optimum(machine, 5e-6)  # of values down to 0.18
    assert near(solved(machine.dual()), found.upper)
    # nu bounds the fraction of points outside, from both sides
    scores = found.decision_function()
    assert (scores < -1e-6).sum() <= nu * N + 1e-9 and (scores <= 1e-6).sum() >= nu * N - 1e-9
    assert (
        found.weights == pytest.approx(machine.weights.value) and np.linalg.norm(found.weights, p) <= 1 + 1e-9
    )
    assert found.alpha.sum() == pytest.approx(1.0, abs=1e-7)
