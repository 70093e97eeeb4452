"""The second stage in numbers: its objective, and its solution by SVD or QR."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from formulations.linear_functional.method.ranges import Range, square
from formulations.linear_functional.regularization_data import Weights
from kernelopt.extend import Array, Ball, on_simplex

RCOND = 1e-10  # singular values below this share of the largest are mostly rounding of the columns


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
        return Range.of(self.X, self.doubts, self.keys)

    @cached_property
    def doubts(self) -> Array:
        """The errors of the columns as an array."""
        return np.zeros(self.X.shape[1]) if self.errors is None else self.errors

    def residual(self, c: Array) -> Ball:
        """Return v - X c for the exact columns."""
        used = c != 0  # an infinite error does not matter at weight zero
        lost = Ball(np.abs(c[used])).dots(self.doubts[None, used])
        return Ball(-c).dots(self.X, self.v) + Ball(0.0, lost.above)

    def products(self, r: Ball) -> Ball:
        """Return X'r for the exact columns."""
        return r.dots(self.X.T) + Ball(0.0, (Ball(r.length) * self.doubts).above)

    def value(self, c: Array) -> float:
        r"""Return an upper bound of the optimum: the objective at weights of the set, rounded up.

        Notes
        -----
        Doubles rarely sum to one, so on the simplex the objective is taken at c / S, S = 1'c. Its residual
        is r + theta (v - r) for r = v - X c and theta = 1 - 1 / S.
        """
        r, off = self.residual(c), excess(c) if self.weights == "simplex" else Ball(0.0)
        total = off + 1.0
        r = r + (Ball(self.v) - r) * (off / total)
        return float((square(r) / self.n + square(Ball(c) / total) * self.ridge).above)

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

    def directly(self, by: str, rcond: float) -> tuple[Array, int, float]:
        """Return the solution for free weights, never by the normal equations, with rank and condition.

        They are the numerical rank, and the condition of the columns that were kept, by QR of R.

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
            return Vt[:rank].T @ (shrunk * (U[:, :rank].T @ v)), rank, ratio(kept)
        M = X.shape[1]
        if self.ridge > 0:  # M more rows of the same least squares
            X = np.vstack([X, np.sqrt(self.n * self.ridge) * np.eye(M)])
            v = np.concatenate([v, np.zeros(M)])
        Q, R, pivots = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diag(R))
        rank = int((sizes > self.threshold(rcond * sizes.max(initial=0.0))).sum())
        c = np.zeros(M)
        c[pivots[:rank]] = scipy.linalg.solve_triangular(R[:rank, :rank], Q[:, :rank].T @ v)
        return c, rank, ratio(sizes[:rank])


def excess(c: Array) -> Ball:
    """Return 1'c - 1."""
    return Ball(c).dots(np.ones((1, c.size)), np.array([-1.0])).sum()


def ratio(sizes: Array) -> float:
    """Return the largest over the smallest, 1 where there is none."""
    return float(sizes[0] / sizes[-1]) if sizes.size else 1.0
