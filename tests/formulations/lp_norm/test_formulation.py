"""l_p-norm kernel learning: what a formulation gives."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from tests.formulations.lp_norm.cases import APART, GRAMS, TIGHT, N, Y, block_exponent, near, optimum
from tests.problems import solved


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
