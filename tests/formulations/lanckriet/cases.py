"""Kernels, criteria and reference values for the tests of Lanckriet et al. (2004)."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from formulations import lanckriet
from tests.problems import solved

n, N = 14, 18


def case(seed=3):
    """Three kernels of unequal traces, N in sum, and noisy labels; all three are in use at a hard margin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y = np.sign(X[:n, 0] + X[:n, 2] + 0.5 * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    left, right = (np.exp(-((Z[:, None] - Z[None]) ** 2).sum(2) / 2) for Z in (X[:, :2], X[:, 2:]))
    kernels = np.array([left, 3 * right, X[:, ::2] @ X[:, ::2].T])
    return N / np.trace(kernels.sum(axis=0)) * kernels, y


KS, Y = case()
R = np.trace(KS, axis1=1, axis2=2)
TRACE = float(N)
CRITERIA = {
    "hard margin": {"C": np.inf, "tau": 0.0},
    "1-norm": {"C": 0.6, "tau": 0.0},
    "2-norm": {"C": np.inf, "tau": 0.5},
    "general": {"C": 0.6, "tau": 0.5},
}
criteria = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
ALL_CRITERIA = [*CRITERIA.values(), {"tau": "learned"}]
with_learned = pytest.mark.parametrize("criterion", ALL_CRITERIA, ids=[*CRITERIA, "learned tau"])


def close(value, rel=1e-6):
    return pytest.approx(value, rel=rel, abs=0.0)


def learned(formulation):
    """The solution of a formulation, certified to 1e-6."""
    solution = formulation.solve(tol=1e-6)
    assert solution.status == "optimal" and solution.gap <= 1e-6
    return solution


@cache
def on_data(weights="nonnegative", **criterion):
    """A criterion on the common data: the formulation and its solution, which tests only read."""
    formulation = lanckriet.margin(KS, Y, **criterion, weights=weights)
    return formulation, learned(formulation)


def alternating(values):
    """The criteria, with a learned tau, each with one of the values in turn."""
    return [(criterion, values[k % len(values)]) for k, criterion in enumerate(ALL_CRITERIA)]


def root(K):
    """F with K = F F', by eigenvectors; those of eigenvalues below 1e-11 of the largest are dropped."""
    eigenvalues, vectors = np.linalg.eigh(K)
    kept = eigenvalues > 1e-11 * eigenvalues[-1]
    return vectors[:, kept] * np.sqrt(eigenvalues[kept])


def dual_of_omega(K, y, C=np.inf, tau=0.0):
    """Lanckriet 1.1 written out: omega, alpha >= 0, and the multiplier of y'alpha = 0."""
    a = cp.Variable(y.size)
    balance = y @ a == 0
    domain = [a >= 0, balance] + ([] if np.isinf(C) else [a <= C])
    form = cp.sum_squares(root(K[: y.size, : y.size]).T @ cp.multiply(y, a)) + tau * cp.sum_squares(a)
    value = solved(cp.Problem(cp.Maximize(2 * cp.sum(a) - form), domain))
    return value, a.value, float(balance.dual_value)


def omega(K, y, C=np.inf, tau=0.0):
    return dual_of_omega(K, y, C, tau)[0]


def slack_loss(slack, C, tau):
    """h_{C,tau}(slack) for cvxpy: min over a split of the slack into a linear and a quadratic part."""
    cost = rest = cp.Constant(np.zeros(slack.size))
    if np.isfinite(C):
        linear = cp.Variable(slack.size, nonneg=True)
        cost, rest = cost + 2 * C * linear, rest + linear
    if tau:
        square = cp.Variable(slack.size, nonneg=True)
        cost, rest = cost + cp.square(square) / tau, rest + square
    return cp.sum(cost), [slack <= rest]


def random_kernels(size, m, rank, seed):
    """m kernels of a given rank and of very unequal traces."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, size, rank)) * rng.uniform(0.3, 2.0, (m, 1, 1))
    return V @ V.transpose(0, 2, 1)


def vectors(kind, seed=0, m=5):
    """m columns on N points of which the first two separate half of the labels each; unit length or not."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(N, m))
    half = np.arange(n) % 2 == 0
    V[:n, 0] = Y * np.where(half, 1.5, 0.1) * rng.uniform(0.7, 1.3, n)
    V[:n, 1] = Y * np.where(half, 0.1, 1.5) * rng.uniform(0.7, 1.3, n)
    return np.linalg.qr(V)[0] if kind == "orthonormal" else V * np.linspace(0.8, 1.2, m)


both_signs = pytest.mark.parametrize("weights", ["nonnegative", "free"])
