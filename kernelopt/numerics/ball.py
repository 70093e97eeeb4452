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

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernelopt.numerics.rounding import (
    SMALL,
    UNDERFLOW,
    UNIT,
    exact_sum,
    gamma,
    norm_above,
    split_sums,
    two_products,
)
from kernelopt.validation import Array

ETA = 2.0**-1074  # the smallest positive double
LIBRARY = 8 * UNIT  # relative error of a power, an exponential or a logarithm: 4 units in the last place
QUIET = np.errstate(all="ignore")  # what is not finite gets an infinite radius
EXACTLY_SUMMED = 100_000  # entries of a sum that is rounded once


@dataclass(frozen=True, eq=False)
class Ball:
    """An exact array that differs from `mid` by at most `rad`, entry by entry.

    Parameters
    ----------
    mid : array, or sparse matrix that is known exactly
        The centre.
    rad : array of the same shape, or 0
        The largest possible distance of each entry from the centre.
    """

    mid: Any
    rad: Any = 0.0
    __array_ufunc__ = None  # NumPy leaves the operations to this class

    @staticmethod
    def of(mid: Any, rad: Any) -> Ball:
        """Return the ball of a computed midpoint and radius: infinite where either is not finite.

        Parameters
        ----------
        mid : array or float
            The centre.
        rad : array of the same shape, or float
            The radius.
        """
        known = np.isfinite(mid + rad)
        all_known = known if isinstance(known, np.bool_) else np.count_nonzero(known) == known.size
        return Ball(mid, rad if all_known else np.where(known, rad, np.inf))

    @staticmethod
    @QUIET
    def computed(mid: Any, sizes: Any, terms: Any, rad: Any = 0.0) -> Ball:
        """Return the ball of computed sums of products, or of terms of few roundings.

        Parameters
        ----------
        mid : array or float
            The sums.
        sizes : array or float
            The sums of the absolute values of the terms.
        terms : array or int
            How many terms each sum has; roundings of a term count as terms too.
        rad : array or float, default 0.0
            The sums of the errors of the terms.
        """
        underflow = 4 * ETA * terms * np.not_equal(sizes, 0)
        return Ball.of(mid, raised(rad + gamma(terms) * sizes + underflow, terms))

    @staticmethod
    @QUIET
    def between(low: Any, high: Any) -> Ball:
        """Return a ball around the intervals [low, high].

        Parameters
        ----------
        low, high : arrays
            The ends, low <= high.
        """
        mid = np.asarray(low, dtype=float) / 2 + np.asarray(high, dtype=float) / 2
        return Ball.of(mid, raised(np.maximum(high - mid, mid - low)))

    @property
    def size(self) -> Any:
        """An upper bound of the absolute values."""
        return abs(self.mid) if self.is_exact else raised(np.abs(self.mid) + self.rad)

    @property
    def length(self) -> float:
        """An upper bound of the Euclidean norm of all entries."""
        return norm_above(self.size)

    @property
    def is_exact(self) -> bool:
        """Whether every radius is zero."""
        return not np.count_nonzero(self.rad)

    @property
    def is_zero(self) -> Any:
        """Which entries are exactly zero."""
        return (self.mid == 0) & (self.rad == 0)

    @property
    def above(self) -> Array:
        """Upper bounds, infinite where none is known."""
        return self._end(np.inf)

    @property
    def below(self) -> Array:
        """Lower bounds, minus infinity where none is known."""
        return self._end(-np.inf)

    @QUIET
    def _end(self, side: float) -> Array:
        mid = np.asarray(self.mid, dtype=float)
        if self.is_exact:
            return mid[()]
        end = np.nextafter(mid + math.copysign(1.0, side) * self.rad, side)
        return np.where(self.rad == 0, mid, np.where(np.isnan(end), side, end))[()]

    def __getitem__(self, at: Any) -> Ball:
        return Ball(self.mid[at], np.broadcast_to(self.rad, np.shape(self.mid))[at])

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    @QUIET
    def __add__(self, other: Any) -> Ball:
        """A + b, with the error u |fl(a + b)| unless one of the midpoints is zero."""
        other = as_ball(other)
        mid = self.mid + other.mid
        rounding = UNIT * abs(mid) * ((self.mid != 0) & (other.mid != 0))
        return Ball.of(mid, raised(self.rad + other.rad + rounding))

    def __sub__(self, other: Any) -> Ball:
        return self + -as_ball(other)

    @QUIET
    def __rmatmul__(self, A: Any) -> Ball:
        """A b for an exact A of k entries in a row, with the error |A| r_b + gamma_k |A||b| + k eta."""
        k, size = int(np.max(np.diff(A.tocsr().indptr), initial=1)) if issparse(A) else A.shape[-1], abs(A)
        sums = size @ np.abs(self.mid)
        counts = np.not_equal(sums, 0)
        if not counts.all():  # their products are zero, or underflow
            counts = np.not_equal(size @ np.not_equal(self.size, 0).astype(float), 0)
        rad = gamma(k) * sums + 4 * ETA * k * counts
        if not self.is_exact:
            rad = rad + size @ np.broadcast_to(self.rad, np.shape(self.mid))
        return Ball.of(A @ self.mid, raised(rad, k))

    @QUIET
    def dots(self, A: Array, plus: Array | None = None) -> Ball:
        """Return plus + A b for an exact A and this ball b, every entry with one rounding.

        The error is |A| r_b. Where b is a matrix, each row of A is multiplied by the row of b.

        Parameters
        ----------
        A : array of shape (k, n)
            Known exactly.
        plus : array of shape (k,), optional
            What is added.

        Examples
        --------
        The products are 1e16, 1 and -1e16; a sum in doubles is 0.

        >>> Ball(np.array([1e8, 1.0, 1e8])).dots(np.array([[1e8, 1.0, -1e8]])).mid
        array([1.])
        """
        product, rest = two_products(A, self.mid)
        terms = [product, rest] if plus is None else [product, rest, plus[:, None]]
        sums = np.array([exact_sum(row) for row in np.hstack(terms).tolist()])
        underflows = ((np.abs(product) < SMALL) & (A != 0) & (self.mid != 0)).sum(axis=1)
        underflows = underflows + ((np.abs(sums) < SMALL) & (sums != 0))  # UNIT * sums may underflow
        rad = UNIT * np.abs(sums) * (1 + 2 * UNIT) + UNDERFLOW * underflows
        if not self.is_exact:
            k = self.mid.size
            rad = rad + (np.abs(A) * self.rad).sum(axis=1)
            rad = rad * (1 + 2 * gamma(k + 4)) + UNDERFLOW * k
        return Ball.of(sums, rad)

    @QUIET
    def __mul__(self, other: Any) -> Ball:
        """A b, with the error |a| r_b + r_a (|b| + r_b) + u |fl(a b)| + eta unless a factor is zero."""
        other = as_ball(other)
        mid, zero = self.mid * other.mid, self.is_zero | other.is_zero
        rad = self.rad * (abs(other.mid) + other.rad) + UNIT * abs(mid) + 4 * ETA
        rad = raised(rad + abs(self.mid) * other.rad)
        if np.count_nonzero(zero):
            mid, rad = np.where(zero, 0.0, mid), np.where(zero, 0.0, rad)
        return Ball.of(mid, rad)

    @QUIET
    def __truediv__(self, other: Any) -> Ball:
        """Q = a / b, with the error (r_a + |q| r_b) / (|b| - r_b) + u |q| + eta."""
        other = as_ball(other)
        mid, least = np.divide(self.mid, other.mid), abs(other.mid)
        if other.is_exact:
            rad = np.divide(self.rad, least)
        else:
            least = (least - other.rad) * (1 - 4 * UNIT) - 2 * ETA * (other.rad > 0)
            rad = raised(np.divide(self.rad, least)) + raised(abs(mid)) * raised(np.divide(other.rad, least))
        rad = raised(rad + UNIT * abs(mid) + 4 * ETA) * (1 - self.is_zero)
        return Ball.of(mid, np.where(least > 0, rad, np.inf)[()])

    def absolute(self) -> Ball:
        """|a|: of Lipschitz constant one, and exact."""
        return Ball(np.abs(self.mid), self.rad)

    @QUIET
    def sum(self, axis: Any = None, keepdims: bool = False) -> Ball:
        """Return the sum of k entries; one of all entries is rounded once where they are not too many.

        Parameters
        ----------
        axis : int, optional
            As for `numpy.sum`; None means all.
        keepdims : bool, default False
            As for `numpy.sum`.
        """
        mid = np.asarray(self.mid, dtype=float)
        if axis is None and mid.size <= EXACTLY_SUMMED:
            count, found = mid.size, np.full((1,) * mid.ndim if keepdims else (), exact_sum(np.ravel(mid)))
            rad = UNIT * np.abs(found) * (count > 1)
        else:
            found = np.sum(mid, axis=axis, keepdims=keepdims)
            count = mid.size // max(1, found.size)
            rad = gamma(count) * np.sum(np.abs(mid), axis=axis, keepdims=keepdims) * (count > 1)
        if not self.is_exact:
            rad = rad + np.sum(np.broadcast_to(self.rad, mid.shape), axis=axis, keepdims=keepdims)
        return Ball.of(found[()], raised(rad, count))

    @QUIET
    def monotone(self, f: Callable[[Array], Array], relative: float = LIBRARY, falling: bool = False) -> Ball:
        """Return f of the entries, for a monotone f that is exact at zero.

        Parameters
        ----------
        f : function of an array
            Increasing, or decreasing where `falling`.
        relative : float >= 0, default 8 times the unit roundoff
            The relative error to which f is computed.
        falling : bool, default False
            Whether f decreases.
        """
        arguments = (self.above, self.below) if falling else (self.below, self.above)
        ends = []
        for side, argument in zip((-1, 1), arguments, strict=True):
            value = np.asarray(f(argument), dtype=float)
            error = relative * np.abs(value) + ETA * (argument != 0) * (relative > 0)
            end = value + side * error
            ends.append(np.where(np.isnan(end), side * np.inf, end))
        return Ball.between(*ends)

    def power(self, p: float) -> Ball:
        """Return :math:`a^p` for a >= 0, where smaller entries count as zero.

        Parameters
        ----------
        p : float
            The exponent.
        """
        found = self.monotone(lambda a: np.maximum(a, 0.0) ** p, falling=p < 0)
        return found if p < 0 else Ball.between(np.maximum(found.below, 0.0), found.above)

    def root(self, r: float) -> Ball:
        """Return :math:`a^{1/r}` for a >= 0.

        The roundings of r and 1/r change its logarithm by less than 2 u 745 / r.

        Parameters
        ----------
        r : float > 0
            The inverse of the exponent.
        """
        error = LIBRARY + 2 * 745 * UNIT / r
        return self if r == 1 else self.monotone(lambda a: np.maximum(a, 0.0) ** (1 / r), error)

    @QUIET
    def norm(self, p: float, axis: Any = None, keepdims: bool = False) -> Ball:
        r"""Return the norm :math:`\|a\|_p`.

        It is :math:`s\, (\sum_i t_i^p)^{1/p}` with :math:`t = |a| / s` and the largest absolute entry s. The
        largest t is one. These errors are relative to the norm: u of t, in which the norm is homogeneous;
        (gamma_k + LIBRARY) / p of the powers and their sum; LIBRARY + u of the root and the product; u log k
        of 1/p, the exponent of a sum in [1, k]. The norm of the radii is added.

        Parameters
        ----------
        p : float in [1, inf]
            The exponent.
        axis : int, optional
            As for `numpy.sum`; None means all entries.
        keepdims : bool, default False
            As for `numpy.sum`.
        """
        sizes = np.abs(np.asarray(self.mid, dtype=float))
        largest = np.max(sizes, axis=axis, keepdims=True, initial=0.0)
        flat = largest if keepdims else np.squeeze(largest, axis=axis)[()]
        rad: Any = 0.0
        if not self.is_exact:
            rad = Ball(np.broadcast_to(self.rad, sizes.shape)).norm(p, axis, keepdims).above
        if np.isinf(p):
            return Ball.of(flat, rad)
        powers = Ball(np.where(largest > 0, (sizes / largest) ** p, 0.0)).sum(axis, keepdims)
        value = flat * powers.mid ** (1 / p)
        share = np.where(flat > 0, powers.rad / powers.mid, 0.0)
        relative = (share + LIBRARY) / p + LIBRARY + UNIT * (4 + math.log(max(1, sizes.size)))
        return Ball.of(value, raised(rad + relative * value + 4 * ETA * (value > 0)))


def as_ball(number: Any) -> Ball:
    """Return a number that is known exactly as a ball, and a ball as it is."""
    return number if isinstance(number, Ball) else Ball(number)


def stacked(numbers: Iterable[Ball]) -> Ball:
    """Return balls of shape () as one vector."""
    mid, rad = np.array([[number.mid, number.rad] for number in numbers], dtype=float).reshape(-1, 2).T
    return Ball(mid, rad)


def raised(rad: Any, terms: Any = 0) -> Any:
    """Return more than the exact value of a computed sum of non-negative terms, zero where all are zero."""
    return rad * (1 + gamma(terms + 32)) + 8 * ETA * (rad > 0)


def form(K: Array, a: Array) -> Ball:
    """Return a'K a with an error of about u |a'K a| + (2 n u)^2 |a|'|K||a|, even where large terms cancel.

    Where entries are not finite or near overflow, the error is infinite.
    """
    # a'Ka has products of three numbers: each below the cube root of the limit, less the growth of the sums.
    if not max(np.abs(K).max(initial=0.0), np.abs(a).max(initial=0.0)) < 2.0**297:
        return Ball(float(a @ K @ a), math.inf)
    heads, tails, errors = split_sums(K, a)
    value = exact_sum(np.concatenate([*two_products(a, heads), a * tails]))
    small, missed = (float(np.abs(a) @ part) for part in (np.abs(tails), errors))
    return Ball.computed(value, abs(value), 1, gamma(4) * small + 1.01 * missed + 1e-300)
