"""Verified positive semidefiniteness and verified bounds of smallest eigenvalues, in floating point."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kernelopt.numerics.rounding import TINY, UNIT, gamma
from kernelopt.validation import Array


def verified_semidefinite(M: Array, shift: float = 0.0) -> bool:
    """Whether all symmetric matrices within 4u |M|, entry by entry, of M - shift I are verified to be PSD.

    Rump's criterion (BIT 46 (2006)): where the Cholesky factorisation of A succeeds in floating point, the
    smallest eigenvalue of A is at least -gamma_{n+1} / (1 - gamma_{n+1}) tr(A). It is applied to
    A = M - (shift + margin) I with a margin of that size. Only the lower triangle of M is read.
    """
    n = len(M)
    if n == 0:
        return True
    diagonal = np.diag(M)
    trace = float(np.abs(diagonal).sum())
    if not np.isfinite(M).all() or not np.isfinite(trace):
        return False
    # For semidefinite M, |M_ij| is at most the mean of M_ii and M_jj: the norm of |M| is at most its trace.
    margin = shift + (1.02 * gamma(n + 1) + 8 * UNIT) * (trace + n * abs(shift)) + n * TINY
    lowered = M.copy()
    np.fill_diagonal(lowered, diagonal - margin)
    try:
        np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return True


def curvature(P: sp.csc_array) -> Array:
    """Return the diagonal of a D for which S - D is verified to be positive semidefinite, S = (P + P') / 2.

    S is block diagonal over the connected components of its graph. A component of one column has its entry
    of S; the columns of a larger one have a verified lower bound of the smallest eigenvalue of its block,
    which may be negative.
    """
    S = sp.csr_array((P + P.T) / 2)
    S.eliminate_zeros()
    d: Array = S.diagonal()
    count, label = connected_components(S, directed=False)
    order = np.argsort(label, kind="stable")
    for columns in np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1]):
        if columns.size > 1:
            d[columns] = least_eigenvalue(S[columns][:, columns].toarray())
    return d


def least_eigenvalue(S: Array) -> float:
    """Return a verified lower bound of the smallest eigenvalue of a symmetric matrix S.

    It is half of the computed smallest eigenvalue where that is positive and verified, else the computed one
    lowered by its rounding error, which is doubled until the bound is verified. The bound -|S|_1 always
    holds.
    """
    n = len(S)
    size = float(np.abs(S).sum(axis=0).max(initial=0.0))
    if not np.isfinite(size):
        return -math.inf
    try:
        smallest = float(np.linalg.eigvalsh(S)[0])
    except np.linalg.LinAlgError:
        return -size * (1 + 4 * (n + 2) * UNIT)
    if smallest > 0 and verified_semidefinite(S, smallest / 2):
        return smallest / 2
    extra = 4 * n * UNIT * size
    while smallest - extra > -size:
        if verified_semidefinite(S, min(smallest, 0.0) - extra):
            return min(smallest, 0.0) - extra
        extra *= 2
    return -size * (1 + 4 * (n + 2) * UNIT)
