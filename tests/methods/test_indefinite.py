"""Indefinite kernels are refused by every method, and kernels that are singular are not."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.problems import labels, points

METHODS = ["auto", "exact", "interleaved", "block-descent", "cutting-plane"]


def learning(kernels, y):
    mu = cp.Variable(len(kernels), nonneg=True)
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, kernels), y, ko.hinge())), ko.lp_ball(mu, 2))


def linear_and(other):
    X = points(len(other), 2)
    return np.array([X @ X.T, other]), labels(len(other))


@pytest.mark.parametrize("n", [12, 130])
@pytest.mark.parametrize("method", METHODS)
def test_an_indefinite_kernel_is_refused_whatever_its_weight(method, n):
    noise = np.random.default_rng(0).normal(size=(n, n))
    with pytest.raises(ko.errors.NotPSDError, match=r"K\[1\] must be positive semidefinite"):
        ko.solve(learning(*linear_and(noise + noise.T)), method)


@pytest.mark.parametrize("method", METHODS)
def test_kernels_that_are_singular_or_zero_are_not(method):
    solution = ko.solve(learning(*linear_and(np.zeros((12, 12)))), method)
    assert solution.gap <= 1e-5


def test_weights_of_free_sign_may_weigh_indefinite_kernels():
    kernels, y = linear_and(np.fliplr(np.eye(12)))
    mu = cp.Variable(2)
    K = ko.combine(mu, kernels)
    problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), [K >> 0, ko.trace(K) == 12])
    assert ko.solve(problem, "exact").gap <= 1e-5


def test_entries_beside_a_diagonal_that_vanishes_are_zero():
    """The corner forces x = 0, and the value 0; eigenvalues alone accept x = -1e-7 beside z = 10."""
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    problem = cp.Problem(cp.Minimize(x), [matrix >> 0])
    assert ko.certify(problem, {x: -1e-7, z: 10.0}).upper == 0
    assert ko.certify(problem, {x: 0.0, z: 1.0}).upper == 0
