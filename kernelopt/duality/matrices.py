"""Sparse matrices up to rounding: multiples of the identity, symmetric parts."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.validation import Array

ROUNDING = 1e-14  # coefficients below this share of the largest are rounding of cvxpy's scaling by sqrt(2)


def without_rounding(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix without entries that are zero up to rounding."""
    matrix.sum_duplicates()
    if matrix.nnz:
        matrix.data[np.abs(matrix.data) <= ROUNDING * np.abs(matrix.data).max()] = 0.0
        matrix.eliminate_zeros()
    return matrix


def transposition(n: int) -> sp.csr_array:
    """Return the permutation with vec(X') = permutation @ vec(X) for n x n matrices."""
    order = np.arange(n * n).reshape(n, n).ravel(order="F")
    return sp.csr_array(sp.eye_array(n * n, format="csr")[order])


def symmetrized(matrix: sp.csr_array, n: int) -> sp.csr_array:
    """Return the map to the symmetric part: 1/2 (M + PM) with the transposition P."""
    return without_rounding(sp.csr_array((matrix + transposition(n) @ matrix) / 2))


def multiple_of_identity(matrix: sp.csr_array) -> float | None:
    """Return c where the matrix is c I, else None."""
    if matrix.shape[0] != matrix.shape[1] or matrix.nnz != matrix.shape[0]:
        return None
    entries = matrix.tocoo()
    if not (entries.row == entries.col).all() or np.ptp(entries.data) > ROUNDING * abs(entries.data[0]):
        return None
    return float(entries.data[0])


def coefficient_of(matrix: sp.csr_array, variable: cp.Variable, symmetric: bool) -> float | None:
    """Return c where matrix @ vec(X) is c vec(X), for symmetric X up to the symmetric part; else None."""
    factor = multiple_of_identity(matrix)
    if factor is not None or not symmetric:
        return factor
    if variable.ndim != 2 or not variable.is_symmetric() or matrix.shape[0] != variable.size:
        return None
    n = variable.shape[0]
    both = symmetrized(symmetrized(matrix, n).T.tocsr(), n)
    same = symmetrized(sp.csr_array(sp.eye_array(n * n, format="csr")), n)
    factor = float(both[0, 0])
    gap = abs(both - factor * same)
    return factor if factor and (not gap.nnz or gap.max() <= ROUNDING * abs(factor)) else None


def diagonal_of(matrix: sp.csr_array) -> Array | None:
    """Return the diagonal of a diagonal matrix, None for any other."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    entries = matrix.tocoo()
    return np.asarray(matrix.diagonal()) if (entries.row == entries.col).all() else None
