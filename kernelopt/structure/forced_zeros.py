"""Entries that M >> 0 forces to zero: the row and the column of every diagonal entry that vanishes."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.language.terms import terms
from kernelopt.structure.affine import Affine, affine
from kernelopt.validation import Array, Mask


def read_forced_zeros(constraint: Any) -> Affine | None:
    """Return the entries that a constraint M >> 0 forces to zero, as an affine expression, or None.

    A PSD matrix with M_ii = 0 has M_ij = 0 for all j. These equations are stated on their own because the
    smallest eigenvalue hides their violation: for M = [[0, x], [x, z]] it is about -x^2 / z, which is far
    smaller than the violation |x|.
    """
    if not isinstance(constraint, cp.constraints.PSD):
        return None
    M = constraint.args[0]
    vanishing = vanishing_diagonal(M)
    read = affine(M) if vanishing.any() else None
    if read is None:
        return None
    in_row_or_column = np.ravel(vanishing[:, None] | vanishing, order="F")
    rows = np.flatnonzero(in_row_or_column & not_identically_zero(read))
    if not rows.size:
        return None
    return Affine(read.constant[rows], {v: sp.csr_array(A[rows]) for v, A in read.matrices.items()})


def vanishing_diagonal(M: cp.Expression) -> Mask:
    """Return which diagonal entries of M are identically zero.

    For a combination of kernels these are the entries that are zero in each of its kernels.
    """
    parts = terms(M)
    if parts is not None:
        return np.asarray(sum(grams.magnitudes.sum(axis=0) for _, grams in parts) == 0)
    diagonal = affine(cp.diag(M))
    return np.zeros(M.shape[0], dtype=bool) if diagonal is None else ~not_identically_zero(diagonal)


def not_identically_zero(read: Affine) -> Mask:
    """Return which entries of an affine map have a constant or a coefficient that is not zero."""
    found: Array = np.abs(read.constant)
    for matrix in read.matrices.values():
        found = found + np.ravel(abs(matrix).sum(axis=1))
    return found > 0
