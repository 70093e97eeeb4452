"""l_p-norm kernel learning (Kloft et al. 2011): one value for all forms of one problem, and invariances."""

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


@every("kind, p", [("hinge", 1.0), ("squared", 4 / 3), ("hinge", 2.0), ("squared", np.inf)])
def test_copies_count_as_one_scaled_copy(kind, p):
    y, loss, k = y_of(kind), loss_of(kind), 3
    copies = lp_norm.primal(np.concatenate([GRAMS, GRAMS[:1], GRAMS[:1]]), y, p=p, loss=loss)
    scale = np.array([k ** (1 / conjugate(p)), 1.0, 1.0])
    one = lp_norm.primal(scale[:, None, None] * GRAMS, y, p=p, loss=loss)
    assert near(optimum(copies, 1e-6).upper, optimum(one, 1e-6).upper)


@every(("kind", "p"), [("hinge", 1.0), ("squared", 2.0), ("one_class", 4 / 3), ("hinge", np.inf)])
def test_a_zero_kernel_changes_nothing(kind, p):
    y, loss = y_of(kind), loss_of(kind)
    grams = np.concatenate([GRAMS[:1], 0 * GRAMS[:1], GRAMS[1:]])
    found = optimum(lp_norm.primal(grams, y, p=p, loss=loss), TIGHT)
    assert near(found.upper, learned(kind, p).upper)
    if np.isfinite(p):
        assert found.weights[1] <= 1e-3
    block = optimum(lp_norm.block_norm(grams, y, r=block_exponent(p), loss=loss))
    assert near(block.upper, found.upper) and near(
        solved(lp_norm.primal(grams, y, p=p, loss=loss).dual()), found.upper
    )


def test_a_zero_kernel_has_weight_zero_in_the_nu_form():
    grams = np.concatenate([0 * GRAMS[:1], GRAMS])
    found = optimum(lp_norm.one_class(grams, p=50, nu=0.5), 1e-6)
    assert found.weights[0] == 0 and near(found.upper, optimum(lp_norm.one_class(GRAMS, p=50, nu=0.5)).upper)


@every(("kind", "exponent"), alternating(KINDS, (1.5, 1.0, 3.0, np.inf)))
def test_one_kernel_is_the_plain_machine_for_every_norm(kind, exponent):
    y, loss, grams = y_of(kind), loss_of(kind), GRAMS[:1]
    plain = ko.risk(GRAMS[0], y, loss).value
    found = optimum(lp_norm.primal(grams, y, p=exponent, loss=loss), TIGHT)
    assert near(found.upper, plain) and found.weights == pytest.approx([1.0], abs=1e-6)
    assert near(optimum(lp_norm.block_norm(grams, y, r=exponent, loss=loss)).upper, plain)
    assert near(optimum(lp_norm.non_isotropic(grams, y, E=[[1.0]], loss=loss)).upper, plain)


@every("kind, p", [("hinge", 1.0), ("logistic", 3.0), ("epsilon_insensitive", 1.0)])
def test_permuted_kernels_have_permuted_weights(kind, p):
    order = [2, 0, 1]
    found = optimum(lp_norm.primal(GRAMS[order], y_of(kind), p=p, loss=loss_of(kind)), TIGHT)
    assert near(found.upper, learned(kind, p).upper)
    assert found.weights == pytest.approx(learned(kind, p).weights[order], abs=1e-3)


@kinds
@every("c", [4.0])
def test_scaled_kernels_are_a_scaled_loss(kind, c):
    """P(cK; C) = P(K; cC) / c, and a budget tau is P_tau(C) = P_1(C tau) / tau."""
    y, loss, p = y_of(kind), loss_of(kind), 1.5
    scaled = optimum(lp_norm.primal(c * GRAMS, y, p=p, loss=loss), TIGHT)
    other = optimum(lp_norm.primal(GRAMS, y, p=p, loss=loss.scaled(c)), TIGHT)
    assert near(scaled.upper, other.upper / c)
    if kind != "hinge":  # a ball has no loss
        return
    theta = cp.Variable(3, nonneg=True)
    problem = cp.Problem(
        cp.Minimize(ko.risk(ko.combine(theta, GRAMS), y, loss)), ko.lp_ball(theta, p, radius=c)
    )
    assert near(ko.solve(problem, "exact", tol=TIGHT).upper, scaled.upper)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hard_margin"])
def test_the_value_grows_with_C_up_to_that_of_no_kernel(kind):
    y, loss = y_of(kind), loss_of(kind)
    low, high = (optimum(lp_norm.primal(GRAMS, y, p=4 / 3, loss=loss.scaled(C))).upper for C in (0.1, 10.0))
    values = [low, learned(kind, 4 / 3).upper, high]
    assert values[0] < values[1] < values[2]
    t = loss.targets(y, N)
    b = loss.intercept(np.zeros(N), t) if loss.default_bias else 0.0
    assert values[1] <= loss.value(np.full(N, b), t) + 1e-7


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
def test_the_C_form_of_one_class_learning_is_the_nu_form(p):
    """alpha / 1'alpha solves the nu form at nu = 1'alpha / (C n), with the threshold 1 / 1'alpha."""
    C = 0.25
    machine = lp_norm.one_class(GRAMS, p=p, C=C)
    assert machine.name == "lp_norm.one_class"
    plain = optimum(machine, TIGHT)
    assert near(plain.upper, optimum(lp_norm.primal(GRAMS, None, p=p, loss=ko.one_class(C)), TIGHT).upper)
    assert near(solved(machine.dual()), plain.upper)
    total = plain.alpha.sum()
    found = optimum(lp_norm.one_class(GRAMS, p=p, nu=total / (C * N)), 1e-6)
    assert found.upper == pytest.approx(
        -np.linalg.norm(forms(plain.alpha), conjugate(p)) / total**2 / 2, abs=1e-6
    )
    assert found.alpha == pytest.approx(plain.alpha / total, abs=2e-3)
    assert -found.intercept == pytest.approx(1 / total, rel=1e-3)
    assert found.weights == pytest.approx(plain.weights, abs=5e-3)
    assert total * found.decision_function() == pytest.approx(plain.decision_function() - 1, abs=2e-3)


def test_the_alpha_of_the_nu_form_proves_its_lower_bound():
    """Not the solver's multiplier, from which the bounds begin: it is less accurate."""
    found = lp_norm.one_class(GRAMS, p=4 / 3, nu=0.1).solve("exact")
    value = -np.linalg.norm(forms(found.alpha), conjugate(4 / 3)) / 2
    assert value <= found.upper and near(value, found.lower, 1e-9)


@pytest.mark.parametrize("build", [
    lambda y: lp_norm.primal(GRAMS, y, p=1.5),
    lambda y: lp_norm.tikhonov(GRAMS, y, p=1.5, penalty=0.5),
    lambda y: lp_norm.block_norm(GRAMS, y, r=1.5),
    lambda y: lp_norm.block_norm(GRAMS, y, r=1.5, squared=False),
    lambda y: lp_norm.block_norm(GRAMS, y, r=3, squared=False),
    lambda y: lp_norm.non_isotropic(GRAMS, y, E=APART),
    lambda y: lp_norm.elastic_net(GRAMS, y, l1=0.5, l2=0.5),
], ids=["primal", "tikhonov", "block norm", "powers", "steep", "ellipsoid", "elastic net"])  # fmt: skip
def test_unlabelled_points_are_predicted_and_change_nothing(build):
    labelled, found = 8, optimum(build(Y[:8]))
    cross = GRAMS[:, labelled:, :]
    assert found.decision_function(cross) == pytest.approx(found.decision_function()[labelled:], abs=1e-9)
    assert found.alpha.shape == (labelled,) and found.kernel.shape == (N, N)
    assert found.weights.shape == (3,) and found.weights.min() >= 0


def test_unlabelled_points_have_no_influence():
    found = optimum(lp_norm.primal(GRAMS, Y[:8], p=1.5), TIGHT)
    alone = optimum(lp_norm.primal(GRAMS[:, :8, :8], Y[:8], p=1.5), TIGHT)
    assert near(found.upper, alone.upper) and found.weights == pytest.approx(alone.weights, abs=1e-3)


def test_an_identity_among_the_kernels_is_a_kernel():
    """Not Lanckriet's ridge, which prediction leaves out."""
    grams = np.array([np.eye(N), GRAMS[1]])
    for machine in (lp_norm.primal(grams, Y, p=4 / 3), lp_norm.block_norm(grams, Y, r=8 / 7)):
        found = optimum(machine)
        assert found.weights.shape == (2,) and found.weights[0] > 0.1
        f = found.weights[0] * found.alpha + found.weights[1] * GRAMS[1] @ found.alpha + found.intercept
        assert found.decision_function() == pytest.approx(f)


def test_lazy_kernels_and_sample_weights():
    X = np.random.default_rng(5).normal(size=(N, 2))
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear(), ko.polynomial(2, 1.0)], X)
    loss = ko.hinge(np.linspace(0.5, 2.0, N))
    found = optimum(lp_norm.primal(grams, Y, p=4 / 3, loss=loss), TIGHT)
    assert near(solved(lp_norm.primal(grams, Y, p=4 / 3, loss=loss).dual()), found.upper)
    assert near(optimum(lp_norm.block_norm(grams, Y, r=8 / 7, loss=loss)).upper, found.upper)
    assert found.decision_function(grams.cross(X)) == pytest.approx(found.decision_function(), abs=1e-9)


def test_a_parameter_for_C_drives_the_constrained_form():
    C = cp.Parameter(pos=True, value=1.0)
    machine = lp_norm.primal(GRAMS, Y, p=4 / 3, loss=ko.hinge(C))
    for C.value in (1.0, 3.0):
        plain = optimum(lp_norm.primal(GRAMS, Y, p=4 / 3, loss=ko.hinge(C.value)), TIGHT)
        assert near(optimum(machine).upper, plain.upper) and near(solved(machine.dual()), plain.upper)


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
def test_where_no_kernel_helps_the_value_is_that_of_the_intercept(p):
    """Constant targets: w = 0 is optimal and any weights are."""
    flat = np.full(N, 2.5)
    for machine in (
        lp_norm.primal(GRAMS, flat, p=p, loss=ko.squared()),
        lp_norm.block_norm(GRAMS, flat, r=block_exponent(p), loss=ko.squared()),
        lp_norm.primal(0 * GRAMS, flat, p=p, loss=ko.squared()),
        lp_norm.tikhonov(GRAMS, flat, p=p, penalty=1.0, loss=ko.squared()),
    ):
        found = optimum(machine)
        assert abs(found.upper) <= 1e-6 and found.intercept == pytest.approx(2.5)
        assert np.isfinite(found.weights).all() and found.weights.min() >= 0
    nothing = optimum(lp_norm.one_class(0 * GRAMS, p=p, nu=0.5))
    assert nothing.upper == pytest.approx(0.0, abs=1e-9)
    assert nothing.weights == pytest.approx(np.full(3, 3.0 ** (-1 / p)))


def test_a_large_price_of_the_lengths_leaves_no_kernel():
    """l1 >= max_m sqrt(s_m) over the whole dual domain: theta = 0 and the value is that of the intercept."""
    found = optimum(lp_norm.elastic_net(GRAMS[:2], Y, l1=8.0, l2=1.0))
    assert found.weights == pytest.approx(np.zeros(2), abs=1e-6)
    assert found.upper == pytest.approx(2 * min((Y > 0).sum(), (Y < 0).sum()), rel=1e-5)
