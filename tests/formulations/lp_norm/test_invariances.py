"""l_p-norm kernel learning: invariances and identities."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from tests.every import every
from tests.formulations.lp_norm.cases import (
    APART,
    GRAMS,
    KINDS,
    TIGHT,
    N,
    Y,
    alternating,
    block_exponent,
    forms,
    kinds,
    learned,
    loss_of,
    near,
    optimum,
    y_of,
)
from tests.problems import conjugate, solved


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
