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
