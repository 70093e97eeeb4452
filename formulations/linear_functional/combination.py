"""The second stage in numbers: its value, its lower bound, and its solution by QR or SVD."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

import kernelopt as ko
from formulations.linear_functional.filters import Array
from formulations.linear_functional.setting import Weights

RCOND = 1e-10
ROUND_OFF = 1e-14


class Direct(NamedTuple):
    """Weights without an iterative solver, and the numbers that say how far to trust them."""

    c: Array
    rank: int
    condition: float  # of the columns (by QR: of R) that were kept


@dataclass(frozen=True, eq=False)
class Combination:
    r"""The problem :math:`\min_{c \in \mathcal C} \tfrac1n \|v - X c\|^2 + \lambda \|c\|^2`.

    Attributes
    ----------
    X : array of shape (n, M)
    v : array of shape (n,)
    ridge : lambda >= 0
    weights : "free", "nonnegative" or "simplex"
    """

    X: Array
    v: Array
    ridge: float
    weights: Weights

    @property
    def n(self) -> int:
        """The number of points of the second stage."""
        return self.v.size

    @cached_property
    def svd(self) -> tuple[Array, Array, Array]:
        """The singular value decomposition of X."""
        return scipy.linalg.svd(self.X, full_matrices=False, check_finite=False)  # type: ignore[no-any-return]

    def value(self, c: Array) -> float:
        """Return the objective."""
        r = self.v - self.X @ c
        return float(r @ r) / self.n + self.ridge * float(c @ c)

    def feasible(self, c: Array) -> Array:
        """Return the weights of the set nearest to `c`."""
        if self.weights == "simplex":
            return on_simplex(c)
        return np.maximum(c, 0.0) if self.weights == "nonnegative" else c

    def lower(self, r: Array) -> float:
        """Return the dual objective at r, after making it feasible where there are constraints.

        The value is never negative, so that zero bounds it where r proves less.
        """
        if self.ridge == 0 and self.weights != "simplex":
            r = self.without_range(r) if self.weights == "free" else self.below_cone(r)
        linear = 2 * float(r @ self.v) / self.n - float(r @ r) / self.n
        g = 2 * (self.X.T @ r) / self.n
        return max(linear - self.support(g), 0.0)

    def support(self, g: Array) -> float:
        """Return (an upper bound of) max over C of g'c - lambda |c|^2; zero for cones, where it is met."""
        if self.weights == "simplex" and self.ridge == 0:
            return float(g.max())
        mu = 0.0
        if self.weights == "simplex":
            mu = float((g - 2 * self.ridge * on_simplex(g / (2 * self.ridge))).max())
        if self.ridge == 0:
            return 0.0
        excess = g if self.weights == "free" else np.maximum(g - mu, 0.0)
        return float(excess @ excess) / (4 * self.ridge) + mu

    def without_range(self, r: Array) -> Array:
        """Return r projected on the null space of X', twice for round-off."""
        U, s, _ = self.svd
        U = U[:, s > ROUND_OFF * s.max(initial=0.0)]
        for _ in range(2):
            r = r - U @ (U.T @ r)
        return r

    def below_cone(self, r: Array) -> Array:
        """Return an r with X'r <= 0 near the one given; zero where none is found.

        First what the cone of the columns can take of it is taken off, twice for round-off; then as much
        of v as is missing, which helps where X'v > 0. What is left is met to 1e-14 of the size of its
        terms, or r is given up.
        """
        lengths = np.linalg.norm(self.X, axis=0)
        X = self.X[:, lengths > 0] / lengths[lengths > 0]  # each column counts the same
        with suppress(RuntimeError):  # no convergence: what follows looks at r as it is
            for _ in range(2):
                r = r - X @ scipy.optimize.nnls(X, r)[0]
        slack, along = X.T @ r, X.T @ self.v
        up = (slack > 0) & (along > 0)
        r = r - float(np.max(slack[up] / along[up], initial=0.0)) * self.v
        met = (X.T @ r).max(initial=0.0) <= ROUND_OFF * float(np.linalg.norm(self.v))
        return r if met else np.zeros(self.n)

    def directly(self, by: str, rcond: float) -> Direct:
        """Return the solution for free weights, never by the normal equations.

        Notes
        -----
        By SVD the one of minimum norm, without singular values up to rcond times the largest; by QR with
        pivoting one that is zero on the columns that depend on others, so far as R shows it.
        """
        X, v = self.X, self.v
        if by == "svd":
            U, s, Vt = self.svd
            rank = int((s > rcond * s.max(initial=0.0)).sum())
            kept = s[:rank]
            shrunk = kept / (np.square(kept) + self.n * self.ridge)
            return Direct(Vt[:rank].T @ (shrunk * (U[:, :rank].T @ v)), rank, ratio(kept))
        M = X.shape[1]
        if self.ridge > 0:  # as more rows of the same least squares
            X = np.vstack([X, np.sqrt(self.n * self.ridge) * np.eye(M)])
            v = np.concatenate([v, np.zeros(M)])
        Q, R, pivots = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diag(R))
        rank = int((sizes > rcond * sizes.max(initial=0.0)).sum())
        c = np.zeros(M)
        c[pivots[:rank]] = scipy.linalg.solve_triangular(R[:rank, :rank], Q[:, :rank].T @ v)
        return Direct(c, rank, ratio(sizes[:rank]))


def certificate(stage: Combination, c: Array) -> ko.Certificate:
    """Bound the optimum at weights: by them, and by the dual at their residual."""
    c = stage.feasible(c)
    upper, lower = stage.value(c), stage.lower(stage.v - stage.X @ c)
    return ko.Certificate(min(lower, upper), upper, "closed", feasible=True)


def on_simplex(c: Array) -> Array:
    """Return the point of {c >= 0, 1'c = 1} nearest to `c`."""
    ordered = np.sort(c)[::-1]
    shifts = (np.cumsum(ordered) - 1) / np.arange(1, c.size + 1)
    inside = np.maximum(c - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0)
    return np.asarray(inside / inside.sum())


def ratio(sizes: Array) -> float:
    """Return the largest over the smallest, 1 where there is none."""
    return float(sizes[0] / sizes[-1]) if sizes.size else 1.0
