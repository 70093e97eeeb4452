"""Sums and products of doubles with a bound of their rounding error, and semidefiniteness verified.

The bounds are those of Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: in any order of
summation, a product of n-vectors is wrong by gamma_n |a|'|b| at most, gamma_n = n u / (1 - n u), where
u = 2^-53 is the unit round-off. They hold for numbers that neither overflow nor underflow: what overflows
is not finite in the end, and `TINY` is added for what underflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelopt.validation import Array

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

UNIT = 2.0**-53
TINY = 1e-300  # far above what underflow can cost in any sum that fits into memory
SPLITTER = 2.0**27 + 1.0


class Enclosure(NamedTuple):
    """Numbers that are within `error` of `value`, entry by entry."""

    value: Array
    error: Array


def gamma(n: int | NDArray[Any]) -> Array:
    """Return an upper bound of gamma_n = n u / (1 - n u), for the n far below 1 / u that occur."""
    return np.asarray(n * UNIT * (1 + 1e-3))


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e with a b = p + e exactly, by Dekker's and Veltkamp's splitting."""
    p = a * b
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def exact_sum(parts: Iterable[Array | float]) -> float:
    """Return the sum of all numbers in all parts, rounded once; NaN where one is not finite."""
    numbers = np.concatenate([np.ravel(part) for part in parts])
    if not np.isfinite(numbers).all():
        return math.nan
    try:
        return math.fsum(numbers.tolist())
    except OverflowError:
        return math.nan


def column_sums(c: Array, A: sp.csc_array, z: Array) -> Enclosure:
    """Return c + A'z."""
    terms = np.diff(A.indptr) + 2
    size = np.abs(c) + abs(A).T @ np.abs(z)
    return Enclosure(c + A.T @ z, 1.01 * gamma(terms + 1) * size + TINY * terms)


def refined(c: Array, A: sp.csc_array, z: Array, columns: Indices, sums: Enclosure) -> Enclosure:
    """Return `sums` = c + A'z with some columns computed as if in twice the precision, and rounded once."""
    value, error = sums.value.copy(), sums.error.copy()
    for j in columns:
        rows = slice(A.indptr[j], A.indptr[j + 1])
        high, low = two_product(A.data[rows], z[A.indices[rows]])
        value[j] = exact_sum([c[j : j + 1], high, low])
        # A product below 2^-969 may have lost its low part.
        lost = (np.abs(high) < 1e-290) & (A.data[rows] != 0) & (z[A.indices[rows]] != 0)
        error[j] = 2 * UNIT * abs(value[j]) + TINY * int(lost.sum())
    return Enclosure(value, error)


def norm_above(v: Array) -> float:
    """Return an upper bound of the Euclidean norm of a vector, near it."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    scaled = v / largest
    return math.nextafter(largest * math.sqrt(float(scaled @ scaled)) * (1 + (v.size + 8) * UNIT), math.inf)


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
    margin = shift + (1.02 * float(gamma(n + 1)) + 8 * UNIT) * (trace + n * abs(shift)) + n * TINY
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
