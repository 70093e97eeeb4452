"""Bounds of rounding errors, and sums of products that have almost none.

u = 2^-53. A sum of k products of doubles, in any order of BLAS, is in error by at most gamma(k) times the
sum of their absolute values (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). A product
of doubles is the sum of two doubles without any error (Dekker), and `math.fsum` rounds a sum of doubles
once: so a dot product that cancels is computed here with an error of u times its own size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kernelopt.validation import Array

UNIT = 2.0**-53
SPLITTER = 2.0**27 + 1
LARGEST = 2.0**990  # what is split must not overflow
EIGENVALUE = 4.0  # times gamma_n |G|_F are more than an eigenvalue of LAPACK is wrong by
UNDERFLOW = 1e-300  # more than the errors of a million products that underflow


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


def total(terms: Iterable[float]) -> float:
    """Return the sum of doubles, rounded once; NaN where it overflows."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):  # inf - inf
        return math.nan


def upwards(x: float) -> float:
    """Return the next double: not below the exact result of the one operation that gave x."""
    return math.nextafter(x, math.inf)


def gamma(k: float) -> float:
    """Return Higham's gamma_k = k u / (1 - k u): the relative error of k roundings in a row."""
    return k * UNIT / (1 - k * UNIT)


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


def dot(a: Array, b: Array) -> Bounded:
    """Return a'b, rounded once."""
    total, rest = split_sums(np.atleast_2d(a), b)
    return Bounded(float(total[0]), abs(float(rest[0])) + UNIT * abs(float(rest[0])) + UNDERFLOW)


def split_sums(A: Array, b: Array) -> tuple[Array, Array]:
    """Return A b as a leading part and the rest, each rounded once: together about 106 bits."""
    products, errors = two_products(A, b)
    heads, tails = np.empty(len(A)), np.empty(len(A))
    for i, row in enumerate(np.hstack([products, errors])):
        terms = row.tolist()
        heads[i] = total(terms)
        tails[i] = total([*terms, -heads[i]])
    return heads, tails


def form(K: Array, a: Array) -> Bounded:
    """Return a'K a, in error by about its own size times u, whatever cancels in it.

    Finite entries far from overflow are taken for granted: elsewhere the error is infinite.
    """
    if not max(np.abs(K).max(initial=0.0), np.abs(a).max(initial=0.0)) < LARGEST**0.3:
        return Bounded(float(a @ K @ a), math.inf)
    heads, tails = split_sums(K, a)
    products, errors = two_products(a, heads)
    value = total([*products.tolist(), *errors.tolist(), *(a * tails).tolist()])
    small = float(np.abs(a) @ np.abs(tails))
    return Bounded(value, UNIT * abs(value) + gamma(4) * small + UNDERFLOW)
