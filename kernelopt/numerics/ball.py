"""`Ball`: arrays of midpoint and radius, whose operations hold the analysis of rounding errors.

With u = 2^-53 and eta = 2^-1074, a rounded operation is fl(x) = x (1 + d) + e with |d| <= u and |e| <= eta,
where e = 0 for + and -. A sum of k terms, in any order, has an error of at most gamma_k times the sum of the
absolute values (Higham, Accuracy and Stability of Numerical Algorithms, sections 3.1 and 4.2). A radius is a
sum of non-negative numbers that are computed in a few operations: `raised` is above its exact value. What is
exactly known has the radius zero and keeps it where an operation is exact. An overflow makes the radius
infinite. Powers, exponentials and logarithms are assumed to have errors of 4 units in the last place at most,
as the functions of the C library and of NumPy have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.numerics.rounding import UNIT, exact_sum, gamma
from kernelopt.validation import Array

ETA = 2.0**-1074  # the smallest positive double
LIBRARY = 8 * UNIT  # relative error of a power, an exponential or a logarithm: 4 units in the last place
EXACTLY_SUMMED = 100_000  # entries of a sum that is rounded once


@dataclass(frozen=True, eq=False)
class Ball:
    """An exact array that differs from `mid` by at most `rad`, entry by entry.

    `mid` is an array, or a sparse matrix that is known exactly; `rad` is an array of the same shape, or 0.
    """

    mid: Any
    rad: Any = 0.0
    __array_ufunc__ = None  # NumPy leaves the operations to this class

    @staticmethod
    def of(mid: Any, rad: Any) -> Ball:
        """Return the ball of a computed midpoint and radius: infinite where either is not finite."""
        return Ball(mid, np.where(np.isfinite(mid) & np.isfinite(rad), rad, np.inf))

    @staticmethod
    def between(low: Any, high: Any) -> Ball:
        """Return a ball around the intervals [low, high], for low <= high."""
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        with np.errstate(all="ignore"):
            mid = np.where(low == high, low, low / 2 + high / 2)
            return Ball.of(mid, np.where(low == high, 0.0, raised(np.maximum(high - mid, mid - low))))

    @property
    def size(self) -> Any:
        """An upper bound of the absolute values."""
        return abs(self.mid) if self.is_exact else raised(np.abs(self.mid) + self.rad)

    @property
    def is_exact(self) -> bool:
        """Whether every radius is zero."""
        return not np.any(self.rad)

    @property
    def is_zero(self) -> Any:
        """Which entries are exactly zero."""
        return np.equal(self.mid, 0) & np.equal(self.rad, 0)

    @property
    def above(self) -> Array:
        """Upper bounds, infinite where none is known."""
        return self._end(np.inf)

    @property
    def below(self) -> Array:
        """Lower bounds, minus infinity where none is known."""
        return self._end(-np.inf)

    def _end(self, side: float) -> Array:
        mid = np.asarray(self.mid, dtype=float)
        with np.errstate(all="ignore"):
            end = np.nextafter(mid + np.sign(side) * self.rad, side)
        return np.where(np.equal(self.rad, 0), mid, np.where(np.isnan(end), side, end))

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Ball | float | Array) -> Ball:
        """A + b, with the error u |fl(a + b)| unless one of the midpoints is zero."""
        other = as_ball(other)
        with np.errstate(all="ignore"):
            mid = self.mid + other.mid
            rounding = np.where(np.equal(self.mid, 0) | np.equal(other.mid, 0), 0.0, UNIT * np.abs(mid))
            return Ball.of(mid, raised(self.rad + other.rad + rounding))

    def __sub__(self, other: Ball | float | Array) -> Ball:
        return self + (-other)

    def __rmatmul__(self, A: Any) -> Ball:
        """A b for an exact A of k columns, with the error |A| r_b + gamma_k |A||b| + k eta."""
        k, size = A.shape[-1], abs(A)
        with np.errstate(all="ignore"):
            counts = np.not_equal(size @ np.not_equal(self.size, 0).astype(float), 0)
            rad = size @ np.broadcast_to(self.rad, np.shape(self.mid)) + gamma(k) * (size @ np.abs(self.mid))
            return Ball.of(A @ self.mid, raised(rad + 4 * ETA * k * counts, k))

    def __mul__(self, other: Ball | float | Array) -> Ball:
        """A b, with the error |a| r_b + r_a (|b| + r_b) + u |fl(a b)| + eta unless a factor is zero."""
        other = as_ball(other)
        with np.errstate(all="ignore"):
            mid, zero = self.mid * other.mid, self.is_zero | other.is_zero
            rad = self.rad * (np.abs(other.mid) + other.rad) + UNIT * np.abs(mid) + 4 * ETA
            rad = rad + np.abs(self.mid) * other.rad
            return Ball.of(np.where(zero, 0.0, mid), np.where(zero, 0.0, raised(rad)))

    def __truediv__(self, other: Ball | float | Array) -> Ball:
        """Q = a / b, with the error (r_a + |q| r_b) / (|b| - r_b) + u |q| + eta."""
        other = as_ball(other)
        with np.errstate(all="ignore"):
            mid = self.mid / other.mid
            least = (np.abs(other.mid) - other.rad) * (1 - 4 * UNIT) - 2 * ETA * np.not_equal(other.rad, 0)
            rad = raised(self.rad / least) + raised(np.abs(mid)) * raised(other.rad / least)
            rad = np.where(self.size == 0, 0.0, raised(rad + UNIT * np.abs(mid) + 4 * ETA))
            return Ball.of(mid, np.where(least > 0, rad, np.inf))

    def absolute(self) -> Ball:
        """|a|: of Lipschitz constant one, and exact."""
        return Ball(np.abs(self.mid), self.rad)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Ball:
        """The sum of k entries; one of all entries is rounded once where they are not too many."""
        mid = np.asarray(self.mid, dtype=float)
        rad = np.broadcast_to(self.rad, mid.shape)
        count = mid.size if axis is None else mid.size // max(1, np.sum(mid, axis=axis).size)
        with np.errstate(all="ignore"):
            if axis is None and mid.size <= EXACTLY_SUMMED:
                found = np.full((1,) * mid.ndim if keepdims else (), exact_sum(np.ravel(mid)))
                rounding = UNIT * np.abs(found)
            else:
                found = np.sum(mid, axis=axis, keepdims=keepdims)
                rounding = gamma(count) * np.sum(np.abs(mid), axis=axis, keepdims=keepdims)
            rounding = rounding if count > 1 else 0.0
            return Ball.of(found, raised(np.sum(rad, axis=axis, keepdims=keepdims) + rounding, count))

    def monotone(self, f: Callable[[Array], Array], relative: float = LIBRARY, falling: bool = False) -> Ball:
        """F of the entries, for a monotone f that is computed to a relative error and exactly at zero."""
        arguments = (self.above, self.below) if falling else (self.below, self.above)
        ends = []
        for side, argument in zip((-np.inf, np.inf), arguments, strict=True):
            with np.errstate(all="ignore"):
                value = np.asarray(f(argument), dtype=float)
                error = relative * np.abs(value) + ETA * (argument != 0) * (relative > 0)
                end = value + np.sign(side) * error
            ends.append(np.where(np.isnan(end), side, end))
        return Ball.between(*ends)

    def power(self, p: float) -> Ball:
        """a^p for a >= 0, where smaller entries count as zero."""
        found = self.monotone(lambda a: np.maximum(a, 0.0) ** p, falling=p < 0)
        return found if p < 0 else Ball.between(np.maximum(found.below, 0.0), found.above)

    def root(self, r: float) -> Ball:
        """a^(1/r) for a >= 0: the roundings of r and 1/r change its logarithm by less than 2 u 745 / r."""
        error = LIBRARY + 2 * 745 * UNIT / r
        return self if r == 1 else self.monotone(lambda a: np.maximum(a, 0.0) ** (1 / r), error)

    def norm(self, p: float, axis: Any = None, keepdims: bool = False) -> Ball:
        """|a|_p = s (sum_i t_i^p)^(1/p) with t = |a| / s and the largest |a_i| = s, for p >= 1.

        The largest t is one. These errors are relative to the norm: u of t, in which the norm is homogeneous;
        (gamma_k + LIBRARY) / p of the powers and their sum; LIBRARY + u of the root and the product; u log k
        of 1/p, the exponent of a sum in [1, k]. The norm of the radii is added.
        """
        sizes = np.abs(np.asarray(self.mid, dtype=float))
        largest = np.max(sizes, axis=axis, keepdims=True, initial=0.0)
        flat = largest if keepdims else np.squeeze(largest, axis=axis)
        rad = (
            0.0
            if self.is_exact
            else Ball(np.broadcast_to(self.rad, sizes.shape)).norm(p, axis, keepdims).above
        )
        if np.isinf(p):
            return Ball.of(flat, rad)
        with np.errstate(all="ignore"):
            powers = Ball(np.where(largest > 0, (sizes / largest) ** p, 0.0)).sum(axis, keepdims)
            value = flat * powers.mid ** (1 / p)
            share = np.where(flat > 0, powers.rad / powers.mid, 0.0)
            relative = (share + LIBRARY) / p + LIBRARY + UNIT * (4 + np.log(max(1, sizes.size)))
            return Ball.of(value, raised(rad + relative * value + 4 * ETA * (value > 0)))


def as_ball(number: Ball | float | Array) -> Ball:
    """Return a number that is known exactly as a ball, and a ball as it is."""
    return number if isinstance(number, Ball) else Ball(number)


def raised(rad: Any, terms: Any = 0) -> Any:
    """Return more than the exact value of a computed sum of non-negative terms, zero where all are zero."""
    return np.where(np.equal(rad, 0), 0.0, rad * (1 + gamma(terms + 32)) + 8 * ETA)


def accumulated(mid: Any, size: Any, terms: Any, rad: Any = 0.0) -> Ball:
    """Return the ball of a computed sum of so many products, or of terms of few roundings, which count too.

    `size` is the sum of the absolute values of the terms, and `rad` the sum of their errors.
    """
    with np.errstate(all="ignore"):
        return Ball.of(mid, raised(rad + gamma(terms) * size, terms))
