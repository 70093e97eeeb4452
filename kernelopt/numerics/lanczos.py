"""Estimates of the extreme eigenvalues of a symmetric matrix by the method of Lanczos."""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array

STEPS = 60  # products with the matrix: outer eigenvalues are found first
SEED = 0  # of the start: every call has the same result
INVARIANT = 1e-12  # of the size of the matrix: a smaller remainder means that the subspace is invariant


def extreme_eigenvalues(K: Array, steps: int = STEPS) -> tuple[float, float]:
    """Return estimates of the smallest and the largest eigenvalue of a symmetric matrix, shape (N, N).

    They are the extreme eigenvalues of K on the Krylov space of a random vector. So the first is never below
    the smallest eigenvalue of K, and the second never above the largest one, but for rounding. Each vector of
    the basis is orthogonalised against all before it, twice.
    """
    n = len(K)
    Q = np.zeros((min(steps, n), n))
    T = np.zeros((len(Q), len(Q)))
    size, v = 0.0, np.random.default_rng(SEED).normal(size=n)
    for j in range(len(Q)):
        Q[j] = v / np.linalg.norm(v)
        v = K @ Q[j]
        size = max(size, float(np.linalg.norm(v)))
        for _ in range(2):
            along = Q[: j + 1] @ v
            v -= along @ Q[: j + 1]
            T[j, : j + 1] += along
        T[: j + 1, j] = T[j, : j + 1]
        if np.linalg.norm(v) <= INVARIANT * size:
            T = T[: j + 1, : j + 1]
            break
    values = np.linalg.eigvalsh(T)
    return float(values[0]), float(values[-1])
