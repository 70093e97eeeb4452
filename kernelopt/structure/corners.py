"""Entries that a matrix inequality makes zero: those beside a diagonal entry that is zero at all points."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.language.terms import terms
from kernelopt.structure.affine import Affine, affine
from kernelopt.validation import Array, Mask


def read_corner(constraint: Any) -> Affine | None:
    """Return the entries that M >> 0 makes zero, as an affine expression; None if there are none.

    A PSD matrix with M_ii = 0 has M_ij = 0 for all j. Eigenvalues do not show how far M is from that: those
    of [[0, x], [x, z]] are as small as -x^2 / z.
    """
    if not isinstance(constraint, cp.constraints.PSD):
        return None
    M = constraint.args[0]
    empty = vanishing_diagonal(M)
    read = affine(M) if empty.any() else None
    if read is None:
        return None
    beside = np.ravel(empty[:, None] | empty, order="F")
    rows = np.flatnonzero(beside & varying(read))
    if not rows.size:
        return None
    return Affine(read.constant[rows], {v: sp.csr_array(A[rows]) for v, A in read.matrices.items()})


def vanishing_diagonal(M: cp.Expression) -> Mask:
    """Return which diagonal entries are zero at all points: of a combination those of all its kernels."""
    parts = terms(M)
    if parts is not None:
        return np.asarray(sum(grams.magnitudes.sum(axis=0) for _, grams in parts) == 0)
    diagonal = affine(cp.diag(M))
    return np.zeros(M.shape[0], dtype=bool) if diagonal is None else ~varying(diagonal)


def varying(read: Affine) -> Mask:
    """Return which entries of an affine expression are not zero at all points."""
    found: Array = np.abs(read.constant)
    for matrix in read.matrices.values():
        found = found + np.ravel(abs(matrix).sum(axis=1))
    return found > 0
