"""Similarities, prices and duals by hand."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from formulations import similarity
from tests.every import every
from tests.problems import labels, points, solved

N = 8
Y = labels(N)
FIDELITIES = ("l1", "frobenius", "squared_frobenius")
RHO = {"l1": 0.05, "frobenius": 0.5, "squared_frobenius": 0.2}
BUILDERS = {
    "ESKL": similarity.single_kernel,
    "EMKL": similarity.kernel_per_similarity,
    "REKL": similarity.restricted_spectral,
}
# Every pair of a programme, a fidelity, and a trace that is given or free.
PAIRWISE = [
    (name, fidelity, (k + j) % 2 == 0)
    for k, name in enumerate(BUILDERS)
    for j, fidelity in enumerate(FIDELITIES)
]
builders = pytest.mark.parametrize("name", BUILDERS)


def in_turn(first):
    """Every programme with one fidelity, every fidelity with one programme; the first fidelity is given."""
    start = FIDELITIES.index(first)
    return [(name, FIDELITIES[(start + k) % len(FIDELITIES)]) for k, name in enumerate(BUILDERS)]


fidelities = pytest.mark.parametrize("fidelity", FIDELITIES)
traces = every("traced", [True, False], ids=["traced", "free"])


def similarities(m=2, n=N, seed=0):
    """m indefinite similarities: a linear kernel, a Gaussian one, and noise on both."""
    X, noise = points(n, seed=seed), np.random.default_rng(seed + 300).normal(size=(2, n, n))
    clean = np.array([X @ X.T / 2, np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 2)])
    return (clean + 0.3 * (noise + noise.transpose(0, 2, 1)))[:m]


S = similarities()
TAU = similarity.default_trace(S)


def setting(fidelity, traced=True, rho=None):
    return {
        "rho": RHO[fidelity] if rho is None else rho,
        "trace": TAU if traced else None,
        "fidelity": fidelity,
    }


def optimum(formulation, tol=1e-6):
    solution = formulation.solve(tol=tol)
    assert solution.status == "optimal" and solution.gap <= tol
    return solution


@cache
def learned(name, fidelity, m=2, traced=True):
    """One of the three programmes on the common data, certified."""
    formulation = BUILDERS[name](S[:m], Y, **setting(fidelity, traced))
    return formulation, optimum(formulation, 1e-5)


def near(value, other, tolerance=1e-6):
    return abs(value - other) <= tolerance * max(1.0, abs(other))


def within(value, solution, tolerance=1e-6):
    """Whether a value is in the certified bracket, to a tolerance."""
    slack = tolerance * max(1.0, abs(solution.upper))
    return solution.lower - slack <= value <= solution.upper + slack


def omega_10(kernels, y=Y, C=1.0):
    """The max-max of (10), in alpha and gamma jointly; and its gamma and signed alpha."""
    a, gamma = cp.Variable(y.size), cp.Variable(len(kernels), nonneg=True)
    forms = []
    for i, K in enumerate(kernels):
        lam, V = np.linalg.eigh(K)
        L = V * np.sqrt(np.maximum(lam, 0.0))
        forms.append(cp.quad_over_lin(L.T @ cp.multiply(y, a), gamma[i]))
    domain = [a >= 0, a <= C, y @ a == 0, cp.sum(gamma) <= 1]
    value = solved(cp.Problem(cp.Maximize(cp.sum(a) - cp.sum(forms) / 2), domain))
    return value, gamma.value, y * a.value


def psd(seed, n=N, rank=None):
    F = np.random.default_rng(seed).normal(size=(n, rank or n))
    K = F @ F.T
    return K * (n / np.trace(K))
