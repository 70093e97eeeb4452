"""Decompositions of symmetric matrices, which are started only where the running call has time for them.

LAPACK cannot be interrupted: of order 2,000 one takes seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from kernelopt.running import check
from kernelopt.validation import Array

# Seconds over n^3 on one core, measured: eigenvalues with eigenvectors and alone, Cholesky factors, solutions
# by singular values, and products of two matrices.
PAIRS, VALUES, FACTORS, SINGULAR, PRODUCT = 2.0e-10, 9e-11, 2.1e-11, 3e-10, 3.5e-11


def eigenpairs(M: Array, lowest: int | None = None, **options: Any) -> tuple[Array, Array]:
    """Return the ascending eigenvalues and the eigenvectors, of the `lowest` ones or of all.

    Raises
    ------
    Stopped
        If the running call has less time left than is predicted.
    """
    check(PAIRS * float(len(M)) ** 3)
    if lowest is None and not options:
        values, V = np.linalg.eigh(M)
        return values, V
    some = None if lowest is None else [0, min(lowest, len(M)) - 1]
    found: tuple[Array, Array] = sl.eigh(M, subset_by_index=some, **options)
    return found


def eigenvalues(M: Array) -> Array:
    """Return the ascending eigenvalues, zeros without a decomposition for zero; it raises as `eigenpairs`."""
    if not M.any():
        return np.zeros(len(M))
    check(VALUES * float(len(M)) ** 3)
    return np.asarray(np.linalg.eigvalsh(M), dtype=float)


def lower_factor(M: Array) -> Array:
    """Return the Cholesky factor of a positive definite matrix; it raises as `eigenpairs` does.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite to working precision.
    """
    check(FACTORS * float(len(M)) ** 3)
    return np.asarray(np.linalg.cholesky(M), dtype=float)


def shortest_solution(L: Array, R: Array, b: Array, dependent: float) -> Array:
    """Return the shortest x of the least |L R'x - b|; it raises as `eigenpairs` does.

    Singular values below the share `dependent` of the largest one count as zero.
    """
    check(SINGULAR * float(len(L)) ** 3)
    return np.asarray(np.linalg.lstsq(L @ R.T, b, rcond=dependent)[0], dtype=float)


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
