"""l_p-norm kernel learning (Kloft et al. 2011): one value for all forms of one problem."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from tests.every import every
from tests.formulations.lp_norm.cases import (
    APART,
    EXPONENTS,
    GRAMS,
    KINDS,
    SMOOTH,
    TIGHT,
    TOGETHER,
    N,
    Y,
    alternating,
    block_exponent,
    blocked,
    factors,
    forms,
    kinds,
    learned,
    loss_of,
    near,
    optimum,
    y_of,
)
from tests.problems import conjugate, crossed, solved


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


@pytest.mark.parametrize(("kind", "p"), crossed(KINDS, (1.0, 4 / 3, 2.0, np.inf), ("hinge",), (4 / 3,)))
def test_theorem_1_from_the_penalised_form(kind, p):
    y, loss, mu = y_of(kind), loss_of(kind), 0.3
    penalised = optimum(lp_norm.tikhonov(GRAMS, y, p=p, penalty=mu, loss=loss))
    ivanov = lp_norm.ivanov_from_tikhonov(penalised, p=p, loss=loss)
    constrained = optimum(lp_norm.primal(GRAMS, y, p=p, loss=ivanov.loss))
    assert near(constrained.upper / ivanov.tau + mu * ivanov.tau**2, penalised.upper)
    assert ivanov.tau == pytest.approx(np.linalg.norm(penalised.weights, p))
    # tau = |s|_q / (4 mu) = (B^2 / 4 mu)^(1/3), with B^2 that of the constrained form
    assert ivanov.tau == pytest.approx(
        np.linalg.norm(forms(penalised.alpha), conjugate(p)) / (4 * mu), rel=2e-3
    )
    B2 = constrained.weights @ forms(constrained.alpha)
    assert ivanov.tau == pytest.approx((B2 / (4 * mu)) ** (1 / 3), rel=2e-3)
    if kind in SMOOTH:
        assert ivanov.tau * penalised.alpha == pytest.approx(constrained.alpha, abs=2e-3)
        assert penalised.decision_function() == pytest.approx(constrained.decision_function(), abs=1e-3)


RADII = {1.0: 1.0, 4 / 3: 0.4, 2.0: 3.0, np.inf: 1.0}


@pytest.mark.parametrize(("kind", "p"), crossed(KINDS, RADII, ("hinge",), (4 / 3,)))
def test_theorem_1_from_the_constrained_form(kind, p):
    y, loss, tau, constrained = y_of(kind), loss_of(kind), RADII[p], learned(kind, p)
    tikhonov = lp_norm.tikhonov_from_ivanov(constrained, loss=loss, tau=tau)
    penalised = optimum(lp_norm.tikhonov(GRAMS, y, p=p, penalty=tikhonov.penalty, loss=tikhonov.loss))
    assert tikhonov.tau == tau
    assert near(constrained.upper / tau + tikhonov.penalty * tau**2, penalised.upper)
    assert np.linalg.norm(penalised.weights, p) == pytest.approx(tau, rel=2e-3)
    if 1 < p < np.inf:
        assert penalised.weights / tau == pytest.approx(constrained.weights, abs=3e-3)


def test_the_two_maps_of_theorem_1_are_inverse():
    loss = ko.huberized_hinge(np.linspace(0.5, 2, N), 0.4)
    constrained = optimum(lp_norm.primal(GRAMS, Y, p=1.5, loss=loss), TIGHT)
    there = lp_norm.tikhonov_from_ivanov(constrained, loss=loss, tau=0.7)
    penalised = optimum(lp_norm.tikhonov(GRAMS, Y, p=1.5, penalty=there.penalty, loss=there.loss))
    back = lp_norm.ivanov_from_tikhonov(penalised, p=1.5, loss=there.loss)
    assert back.tau == pytest.approx(0.7, rel=1e-3)
    assert back.loss.C == pytest.approx(loss.C, rel=1e-3) and back.loss.tau == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize(("kind", "r"), crossed(KINDS, (1.0, 4 / 3, 1.5, 2.0, 3.0), ("hinge",), (4 / 3,)))
def test_the_sum_of_powers_is_the_squared_norm_at_another_C(kind, r):
    """Form (29) at C (r/2) B^(r-2), with B the r-norm of the lengths = the dual norm of the sqrt(s_m)."""
    y, loss = y_of(kind), loss_of(kind)
    dual = lp_norm.block_norm(GRAMS, y, r=r, loss=loss).dual()
    value = solved(dual)
    alpha = next(v.value for v in dual.variables() if v.name() == "alpha")
    B = np.linalg.norm(np.sqrt(forms(alpha)), conjugate(r))
    factor = r / 2 * B ** (r - 2)
    powers = solved(lp_norm.block_norm(GRAMS, y, r=r, loss=loss.scaled(factor), squared=False).dual())
    assert near(factor * (value - B**2 / 2) + B**r / 2, powers, 2e-6)


def test_the_sum_of_powers_at_r_1_is_the_group_lasso():
    lasso = optimum(lp_norm.elastic_net(GRAMS, Y, l1=0.5, l2=0.0), 1e-6)
    assert near(optimum(lp_norm.block_norm(GRAMS, Y, r=1, squared=False), 1e-6).upper, lasso.upper)


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0, 6.0])
def test_the_machine_of_the_sum_of_powers_attains_its_value(r):
    """|w_m| = omega_m sqrt(s_m), and the regulariser and the loss of f add up."""
    machine = lp_norm.block_norm(GRAMS, Y, r=r, loss=ko.squared_hinge(1.0), squared=False)
    found = optimum(machine)
    lengths = found.weights * np.sqrt(forms(found.alpha))
    loss = ko.squared_hinge(1.0).value(found.decision_function(), Y)
    assert near((lengths**r).sum() / 2 + loss, found.upper, 1e-5)
    assert machine.weights.value == pytest.approx(found.weights)


@every(("kind", "p"), crossed(KINDS, (4 / 3, 2.0, 3.0, 10.0), ("hinge",)))
def test_the_weights_follow_from_alpha_and_from_w(kind, p):
    """Kloft 5.1 at a dual solution, and 5.2 at |w_m| = theta_m sqrt(s_m)."""
    found, q = learned(kind, p), conjugate(p)
    dual = lp_norm.primal(GRAMS, y_of(kind), p=p, loss=loss_of(kind)).dual()
    solved(dual)
    s = forms(next(v.value for v in dual.variables() if v.name() == "alpha"))
    assert (s / np.linalg.norm(s, q)) ** (q - 1) == pytest.approx(found.weights, abs=2e-3)
    w = found.weights * np.sqrt(forms(found.alpha))
    update = w ** (2 / (p + 1)) / (w ** (2 * p / (p + 1))).sum() ** (1 / p)
    assert update == pytest.approx(found.weights, abs=5e-3)
    assert np.linalg.norm(found.weights, p) == pytest.approx(1.0, abs=1e-6)


@kinds
def test_sparse_weights_are_on_the_largest_forms(kind):
    """p = 1: theta is a multiplier of 1/2 s_m <= xi."""
    found = learned(kind, 1.0)
    s = forms(found.alpha)
    assert found.weights @ (s.max() - s) <= 1e-3 * s.max()


@every(("kind", "p"), alternating(KINDS, (3.0, 4 / 3)))
def test_the_certificate_is_the_duality_gap(kind, p):
    """lower = l - 1/2 |s|_q and upper = C sum V + 1/2 theta's, at the alpha and theta returned."""
    found, loss = learned(kind, p), loss_of(kind)
    y = loss.targets(y_of(kind), N)
    s, alpha = forms(found.alpha), found.certificate.alphas[0]
    assert found.lower <= found.upper + 1e-12
    lower = loss.dual_value(alpha, y) - np.linalg.norm(forms(alpha), conjugate(p)) / 2
    assert near(lower, found.lower, 1e-7)
    upper = loss.value(found.decision_function(), y) if kind != "hard_margin" else 0.0
    assert near(upper + found.weights @ s / 2, found.upper, 1e-6)
