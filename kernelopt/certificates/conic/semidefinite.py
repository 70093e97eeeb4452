"""Semidefinite matrices, verified in floating point."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kernelopt.numerics.rounding import TINY, UNIT, gamma
from kernelopt.validation import Array


def semidefinite(M: Array, shift: float = 0.0) -> bool:
    """Whether all symmetric matrices within 4u |M|, entry by entry, of M - shift I are verified to be PSD.

    Rump's criterion: where Cholesky's method runs to its end in floating point for A, the least eigenvalue
    of A is at least -gamma_{n+1} / (1 - gamma_{n+1}) tr(A). Here A is M less the shift and this margin.
    The entries of M beside the diagonal are read below it.
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
    """Return the diagonal of a D with P - D verified to be positive semidefinite, of P's symmetric part.

    A column that no other is joined to gets its own entry of P, and those that are joined to each other
    a verified lower bound of their block's least eigenvalue, which may be below zero.
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
    """Return a verified lower bound of the least eigenvalue of a symmetric matrix."""
    n = len(S)
    size = float(np.abs(S).sum(axis=0).max(initial=0.0))
    if not np.isfinite(size):
        return -math.inf
    try:
        least = float(np.linalg.eigvalsh(S)[0])
    except np.linalg.LinAlgError:
        return -size * (1 + 4 * (n + 2) * UNIT)
    if least > 0 and semidefinite(S, least / 2):
        return least / 2
    extra = 4 * n * UNIT * size
    while least - extra > -size:
        if semidefinite(S, min(least, 0.0) - extra):
            return min(least, 0.0) - extra
        extra *= 2
    return -size * (1 + 4 * (n + 2) * UNIT)
