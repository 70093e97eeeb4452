"""Families of kernels for the free-sign programme, and its optimum by a semidefinite programme."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from tests.problems import solved

N, n = 14, 10


def points(seed=0, size=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=size))
    y[:2] = 1.0, -1.0
    return X, y, rng


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(2)


def gaussians(X, widths):
    return np.array([np.exp(-squared_distances(X) / w) for w in widths])


def families(seed=0):
    """Kernels by name: of full and low rank, equal, collinear, zero, and of any signature."""
    X, _, rng = points(seed)
    wide = gaussians(X, [1.0, 4.0])
    linear, noise = X @ X.T, rng.normal(size=(N, N))
    H = np.eye(N) - 1 / N
    vectors = rng.normal(size=(3, N))
    return {
        "full rank": np.array([*wide, linear]),
        "equal": np.array([wide[0], linear, wide[0], linear]),
        "scaled copies": np.array([wide[0], linear, 3 * wide[0]]),
        "a zero kernel": np.array([wide[0], np.zeros((N, N)), linear]),
        "one kernel": wide[:1],
        "rank one": np.array([np.outer(v, v) for v in vectors]),
        "centred": np.array([H @ K @ H for K in (*wide, linear)]),
        "collinear": gaussians(X, [8.0, 16.0, 32.0]),
        "indefinite": np.array([wide[0], noise + noise.T, linear]),
        "all indefinite": np.array(
            [wide[0] - 2 * noise @ noise.T / N, noise @ noise.T / N, np.fliplr(np.eye(N))]
        ),
        "a difference": np.array([wide[0] - 0.9 * wide[1], wide[1]]),
        "unequal scales": np.array([1e3 * wide[0], 1e-3 * wide[1], linear]),
    }


def learning(kernels, y, loss, trace=None, bias=True):
    """The problem min risk(K(mu)) over K(mu) >> 0 of a given trace, mu of any sign."""
    mu = cp.Variable(len(kernels), name="mu")
    K = ko.combine(mu, kernels)
    risk = ko.risk(K, y, loss, bias)
    return cp.Problem(
        cp.Minimize(risk), [K >> 0, ko.trace(K) == (len(kernels[0]) if trace is None else trace)]
    )


def optimum(kernels, y, loss, trace=None, bias=True):
    """The value of the same problem: the dual of the risk by the Schur complement, written out.

    max over alpha of l(alpha) - 1/2 alpha'K alpha, with the minimum over mu taken inside by duality:
    max l(alpha) - trace eta / 2 with <U, K_i> = eta tr K_i and [[U, a], [a', 1]] >> 0, a = (alpha, 0).
    """
    size = len(kernels[0])
    trace = size if trace is None else trace
    alpha, eta = cp.Variable(y.size), cp.Variable()
    lifted = cp.Variable((size + 1, size + 1), PSD=True)
    gain, domain = loss.dual_expression(alpha, y)
    padded = np.eye(size, y.size) @ alpha
    constraints = [*domain, lifted[:-1, -1] == padded, lifted[-1, -1] == 1]
    U = lifted[:-1, :-1]
    used = [K for K in kernels if K.any()]
    scales = [np.abs(K).max() for K in used]
    constraints += [
        cp.sum(cp.multiply(K / s, U)) == eta * np.trace(K) / s for K, s in zip(used, scales, strict=True)
    ]
    if bias:
        constraints.append(cp.sum(alpha) == 0)
    return solved(cp.Problem(cp.Maximize(gain - trace * eta / 2), constraints))
