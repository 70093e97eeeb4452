"""The second stage in numbers: its objective, and its solution by SVD or QR."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg

from formulations.linear_functional.method.rounding import (
    Range,
    dots,
    inflated,
    length,
    rounded_up,
    square,
)
from formulations.linear_functional.regularization_data import Weights
from kernelopt.extend import Array, on_simplex

RCOND = 1e-10  # singular values below this share of the largest are mostly rounding of the columns


class Direct(NamedTuple):
    """Weights by a factorisation, with the numerical rank and the condition of the columns."""

    c: Array
    rank: int
    condition: float  # of the columns that were kept, by QR of R


@dataclass(frozen=True, eq=False)
class Combination:
    r"""The problem :math:`\min_{c \in \mathcal C} \tfrac1n \|v - X c\|^2 + \lambda \|c\|^2`.

    Attributes
    ----------
    X : array of shape (n, M)
    v : array of shape (n,)
    ridge : lambda >= 0
    weights : "free", "nonnegative" or "simplex"
    errors : array of shape (M,), default zero
        Bounds of the distances between the computed columns X and the exact ones. The bounds of the optimum
        hold for the exact ones.
    keys : tuple of M bytes
        Equal keys mean equal exact columns; used where some error is not zero.
    """

    X: Array
    v: Array
    ridge: float
    weights: Weights
    errors: Array | None = None
    keys: tuple[bytes, ...] = ()

    @property
    def n(self) -> int:
        """The number of points of the second stage."""
        return self.v.size

    @cached_property
    def svd(self) -> tuple[Array, Array, Array]:
        """The singular value decomposition of X."""
        return scipy.linalg.svd(self.X, full_matrices=False, check_finite=False)  # type: ignore[no-any-return]

    @cached_property
    def range_of_X(self) -> Range | None:
        """The range of X, where it is known."""
        return Range.of(self.X, self.errors, self.keys)

    @cached_property
    def doubts(self) -> Array:
        """The errors of the columns as an array."""
        return np.zeros(self.X.shape[1]) if self.errors is None else self.errors

    def residual(self, c: Array) -> tuple[Array, Array]:
        """Return v - X c and a bound of the error of each entry, that of the columns included."""
        r, error = dots(self.X, -c, self.v)
        if self.doubts.any():
            used = c != 0  # an infinite error does not matter at weight zero
            error = inflated(error + float(np.abs(c[used]) @ self.doubts[used]), c.size + 2)
        return r, error

    def products(self, r: Array, error: Array | None = None) -> tuple[Array, Array]:
        """Return X'r and a bound of the error of each entry, that of the columns included."""
        s, s_error = dots(self.X.T, r, error=error)
        if self.doubts.any():
            size = length(r) + (0.0 if error is None else length(error))
            s_error = inflated(s_error + self.doubts * size, 4)
        return s, s_error

    def value(self, c: Array) -> float:
        r"""Return an upper bound of the optimum: the objective at weights of the set, rounded up.

        Notes
        -----
        Sums of products are those of `rounding.dots`, whose errors are bounded. Doubles rarely sum to one,
        so on the simplex the objective is that of c / S with S = 1'c. Its residual is r + theta (v - r) for
        r = v - X c and theta = 1 - 1 / S, and theta (v - r) is counted as an error of r.
        """
        with np.errstate(all="ignore"):  # numbers that overflow give no bound
            try:
                r, error = self.residual(c)
                off = excess(c) if self.weights == "simplex" else Fraction(0)
                if off:
                    theta = rounded_up(off / (1 - off))
                    error = inflated(error + theta * (np.abs(r) + error + np.abs(self.v)), 6)
                price = Fraction(self.ridge) * square(c)[1] / (1 - off) ** 2
                return rounded_up(square(r, error)[1] / self.n + price)
            except (OverflowError, ValueError):
                return np.inf

    def feasible(self, c: Array) -> Array:
        """Return the weights of the set nearest to `c`, with zeros where the columns are zero."""
        if self.weights == "simplex":
            return on_simplex(c, 1.0)[0]
        c = np.where(self.X.any(axis=0), c, 0.0)
        return np.maximum(c, 0.0) if self.weights == "nonnegative" else c

    def threshold(self, size: float) -> float:
        """Return the threshold of singular values: the larger of `size` and the error of the columns."""
        finite = self.doubts[np.isfinite(self.doubts)]
        return max(size, float(np.linalg.norm(finite)))

    def directly(self, by: str, rcond: float) -> Direct:
        """Return the solution for free weights, never by the normal equations.

        Notes
        -----
        By SVD it is the solution of minimum norm, without the singular values up to rcond times the largest.
        By QR with pivoting it is zero on the columns that depend on others up to rcond, as R shows.
        """
        X, v = self.X, self.v
        if by == "svd":
            U, s, Vt = self.svd
            rank = int((s > self.threshold(rcond * s.max(initial=0.0))).sum())
            kept = s[:rank]
            shrunk = kept / (np.square(kept) + self.n * self.ridge)
            return Direct(Vt[:rank].T @ (shrunk * (U[:, :rank].T @ v)), rank, ratio(kept))
        M = X.shape[1]
        if self.ridge > 0:  # M more rows of the same least squares
            X = np.vstack([X, np.sqrt(self.n * self.ridge) * np.eye(M)])
            v = np.concatenate([v, np.zeros(M)])
        Q, R, pivots = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diag(R))
        rank = int((sizes > self.threshold(rcond * sizes.max(initial=0.0))).sum())
        c = np.zeros(M)
        c[pivots[:rank]] = scipy.linalg.solve_triangular(R[:rank, :rank], Q[:, :rank].T @ v)
        return Direct(c, rank, ratio(sizes[:rank]))


def excess(c: Array) -> Fraction:
    """Return an upper bound of |1'c - 1|."""
    (value,), (error,) = dots(np.ones((1, c.size)), c, plus=np.array([-1.0]))
    return Fraction(abs(float(value))) + Fraction(float(error))


def ratio(sizes: Array) -> float:
    """Return the largest over the smallest, 1 where there is none."""
    return float(sizes[0] / sizes[-1]) if sizes.size else 1.0
