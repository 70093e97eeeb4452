"""Bounds of rounding errors, and sums of products that have almost none.

u = 2^-53. A sum of k products of doubles, in any order of BLAS, is in error by at most gamma(k) times the
sum of their absolute values (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). A product
of doubles is the sum of two doubles without any error (Dekker), and `math.fsum` rounds a sum of doubles
once: so a dot product that cancels is computed here with an error of u times its own size.

All that is here holds for numbers that do not overflow; what overflows is not finite in the end. Where a
product may underflow, `LOST` or `TINY` is added.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.sparse as sp

from kernelopt.validation import Array, Index

UNIT = 2.0**-53
SPLITTER = 2.0**27 + 1
LARGEST = 2.0**990  # what is split must not overflow
EIGENVALUE = 4.0  # times gamma_n |G|_F are more than an eigenvalue of LAPACK is wrong by
SMALL = 1e-280  # the error of a smaller product may underflow
LOST = 1e-320  # and is then at most this
TINY = 1e-300  # more than the errors of a million products that underflow


class Bounded(NamedTuple):
    """A number, and a bound of the absolute error with which it was computed."""

    value: float
    error: float

    @property
    def above(self) -> float:
        """A double that is not below the exact number."""
        return upwards(self.value + self.error)

    @property
    def below(self) -> float:
        """A double that is not above the exact number."""
        return -upwards(-self.value + self.error)


class Enclosure(NamedTuple):
    """Numbers that are within `error` of `value`, entry by entry."""

    value: Array
    error: Array


def upwards(x: float) -> float:
    """Return the next double: not below the exact result of the one operation that gave x."""
    return math.nextafter(x, math.inf)


def rounded_down(value: Fraction) -> float:
    """Return the largest double up to a value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def rounded_up(value: Fraction) -> float:
    """Return the smallest double from a value on."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


@overload
def gamma(k: float) -> float: ...


@overload
def gamma(k: Index) -> Array: ...


def gamma(k: Any) -> Any:
    """Return an upper bound of Higham's gamma_k = k u / (1 - k u), the relative error of k roundings."""
    return k * UNIT / (1 - k * UNIT) * (1 + 4 * UNIT)


def exact_sum(terms: Array | list[float]) -> float:
    """Return the sum of doubles, rounded once; NaN where one of them or the sum is not finite."""
    try:
        found = math.fsum(terms.tolist() if isinstance(terms, np.ndarray) else terms)
    except (OverflowError, ValueError):  # ValueError: inf - inf
        return math.nan
    return found if math.isfinite(found) else math.nan


def two_products(a: Array, b: Array) -> tuple[Array, Array]:
    """Return fl(a b) and a b - fl(a b), which is a double where nothing under- or overflows."""
    a_high, b_high = leading(a), leading(b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def leading(a: Array) -> Array:
    """Return the leading 26 bits of a."""
    scaled = SPLITTER * a
    return np.asarray(scaled - (scaled - a))


def dots(A: Array, b: Array, plus: Array | None = None, error: Array | None = None) -> Enclosure:
    r"""Return plus + A b, each entry rounded once, and a bound of its absolute error.

    Parameters
    ----------
    A : array of shape (m, k)
    b : array of shape (k,)
    plus : array of shape (m,), default zero
    error : array of shape (k,), default zero
        A bound e of the error of b itself, which adds :math:`|A| e`.

    Examples
    --------
    The products are 1e16, 1 and -1e16.

    >>> dots(np.array([[1e8, 1.0, -1e8]]), np.array([1e8, 1.0, 1e8])).value
    array([1.])
    """
    product, rest = two_products(A, b)
    terms = [product, rest] if plus is None else [product, rest, plus[:, None]]
    sums = np.array([exact_sum(row) for row in np.hstack(terms).tolist()])
    underflows = ((np.abs(product) < SMALL) & (A != 0) & (b != 0)).sum(axis=1)
    underflows = underflows + ((np.abs(sums) < SMALL) & (sums != 0))  # the next line may underflow
    bound = UNIT * np.abs(sums) * (1 + 2 * UNIT) + LOST * underflows
    if error is not None and error.any():
        bound = (bound + np.abs(A) @ error) * (1 + 2 * gamma(b.size + 4)) + LOST * b.size
    return Enclosure(sums, bound)


def dot(a: Array, b: Array) -> Bounded:
    """Return a'b, rounded once."""
    (value,), (error,) = dots(np.atleast_2d(a), b)
    return Bounded(float(value), float(error))


def split_sums(A: Array, b: Array) -> tuple[Array, Array]:
    """Return A b as a leading part and the rest, each rounded once: together about 106 bits."""
    products, errors = two_products(A, b)
    heads, tails = np.empty(len(A)), np.empty(len(A))
    for i, row in enumerate(np.hstack([products, errors])):
        terms = row.tolist()
        heads[i] = exact_sum(terms)
        tails[i] = exact_sum([*terms, -heads[i]])
    return heads, tails


def form(K: Array, a: Array) -> Bounded:
    """Return a'K a, in error by about its own size times u, whatever cancels in it.

    Finite entries far from overflow are taken for granted: elsewhere the error is infinite.
    """
    if not max(np.abs(K).max(initial=0.0), np.abs(a).max(initial=0.0)) < LARGEST**0.3:
        return Bounded(float(a @ K @ a), math.inf)
    heads, tails = split_sums(K, a)
    products, errors = two_products(a, heads)
    value = exact_sum(np.concatenate([products, errors, a * tails]))
    small = float(np.abs(a) @ np.abs(tails))
    return Bounded(value, UNIT * abs(value) + gamma(4) * small + TINY)


def column_sums(c: Array, A: sp.csc_array, z: Array) -> Enclosure:
    """Return c + A'z as BLAS computes it."""
    terms = np.diff(A.indptr) + 2
    size = np.abs(c) + abs(A).T @ np.abs(z)
    return Enclosure(c + A.T @ z, 1.01 * gamma(terms + 1) * size + TINY * terms)


def refined(c: Array, A: sp.csc_array, z: Array, columns: Index, sums: Enclosure) -> Enclosure:
    """Return `sums` = c + A'z with some columns rounded once."""
    value, error = sums.value.copy(), sums.error.copy()
    for j in columns:
        rows = slice(A.indptr[j], A.indptr[j + 1])
        (value[j],), (error[j],) = dots(A.data[rows][None], z[A.indices[rows]], c[j : j + 1])
    return Enclosure(value, error)


def norm_above(a: Array) -> float:
    """Return an upper bound of the root of the sum of all squares, near it."""
    v = np.ravel(a)
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    scaled = v / largest
    return upwards(largest * math.sqrt(float(scaled @ scaled)) * (1 + (v.size + 8) * UNIT))
