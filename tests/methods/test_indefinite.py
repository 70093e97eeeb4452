"""Indefinite kernels are refused by every method, and kernels that are singular are not."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates import check
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


def margin(kernels, y):
    mu = cp.Variable(len(kernels), name="mu")
    K = ko.combine(mu, kernels)
    constraints = [K >> 0, ko.trace(K) == len(y)]
    return mu, cp.Problem(cp.Minimize(ko.risk(K, y, ko.hard_margin())), constraints)


@pytest.mark.parametrize("method", ["exact", "cutting-plane"])
def test_a_hard_margin_over_weights_of_any_sign_takes_indefinite_and_opposite_kernels(method):
    """Their sum is indefinite, or zero: it says nothing of their combinations."""
    X, y = points(8, 2), labels(8)
    G = np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 2)
    noise = np.random.default_rng(0).normal(size=(8, 8))
    value = ko.solve(margin([G], y)[1]).value
    for kernels in ([G, noise + noise.T], [G, -G]):
        mu, problem = margin(kernels, y)
        solution = ko.solve(problem, method)
        assert solution.gap <= 1e-5 and solution.lower <= value * (1 + 1e-6)
        combined = np.tensordot(mu.value, kernels, 1)
        assert np.linalg.eigvalsh(combined)[0] > -1e-7 and np.trace(combined) == pytest.approx(8)
    assert solution.value == pytest.approx(value, rel=1e-5)  # of G and -G


def test_samples_that_no_kernel_of_any_sign_separates_are_proved(tmp_path):
    kernels = np.random.default_rng(0).integers(-3, 4, size=(3, 6, 6)).astype(float)
    kernels += kernels.transpose(0, 2, 1)
    kernels = kernels[:, [0, 0, 2, 3, 4, 5]][:, :, [0, 0, 2, 3, 4, 5]]
    _, problem = margin([*kernels, kernels[0] @ kernels[0]], [1, -1, 1, -1, 1, -1])
    with pytest.raises(ko.InfeasibleError, match=r"the samples 0 \(\+1\) from 1 \(-1\)") as caught:
        ko.solve(problem)
    path = caught.value.proof["certificate"].save(tmp_path / "proof.npz")
    assert check.verdict(path)[0]


def test_entries_beside_a_diagonal_that_vanishes_are_zero():
    """The corner forces x = 0, and the value 0; eigenvalues alone accept x = -1e-7 beside z = 10."""
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    matrix = cp.bmat([[0, x, 0], [x, z, 0], [0, 0, x + 1]])
    problem = cp.Problem(cp.Minimize(x), [matrix >> 0])
    assert ko.certify(problem, {x: -1e-7, z: 10.0}).upper == 0
    assert ko.certify(problem, {x: 0.0, z: 1.0}).upper == 0
