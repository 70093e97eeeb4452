"""The second stage in numbers: its value, its lower bound, and its solution by QR or SVD."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

import kernelopt as ko
from formulations.linear_functional.filters import Array
from formulations.linear_functional.rounding import (
    UNDERFLOW,
    Range,
    dots,
    gamma,
    inflated,
    interval,
    length,
    outward,
    rounded_down,
    rounded_up,
    square,
)
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
    errors : array of shape (M,), default zero
        Bounds of the distances of the exact columns from X, which was computed. The bounds of the optimum
        are for the exact ones.
    keys : tuple of M bytes
        Equal where the exact columns are, for errors that are not zero.
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
            used = c != 0  # an error without a bound costs nothing at weight zero
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
            return on_simplex(c)
        c = np.where(self.X.any(axis=0), c, 0.0)
        return np.maximum(c, 0.0) if self.weights == "nonnegative" else c

    def lower(self, c: Array) -> float:
        """Return a lower bound of the optimum: the dual objective at the residual of c, rounded down.

        The value is never negative, so that zero bounds it where the residual proves less.
        """
        with np.errstate(all="ignore"):  # numbers that overflow give no bound
            try:
                if self.ridge > 0 or self.weights == "simplex":
                    found = self.by_residual(c)
                else:
                    found = self.by_range(c) if self.weights == "free" else self.by_cone()
                return max(rounded_down(found), 0.0)
            except (OverflowError, ValueError):
                return 0.0

    def by_residual(self, c: Array) -> Fraction:
        r"""Return a lower bound of the dual objective at r = v - X c, where every r is feasible.

        Notes
        -----
        With s = X'r and t = 2 s / n - mu the dual objective is

        .. math::

            \tfrac1n \|r\|^2 + \lambda \|c\|^2 + \mu (1'c - 1) - \lambda \|c - t_+ / (2 \lambda)\|^2
            - c't_-.

        On the simplex any mu will do; elsewhere mu = 0. For free weights t stands for both t_+ and t, and
        t_- is zero. Without a ridge t_+ = 0 takes the place of its term. The terms that are taken off
        vanish at the optimum, so that little is lost by rounding; each is bounded with its errors.
        """
        r, error = self.residual(c)
        s, s_error = self.products(r, error)
        g = 2 * s / self.n
        mu = self.multiplier(g)
        t = g - mu
        t_error = inflated(2 * s_error / self.n + gamma(4) * (np.abs(g) + abs(mu)), 6) + UNDERFLOW
        found = square(r, error)[0] / self.n
        if self.weights == "simplex":
            found -= abs(Fraction(mu)) * excess(c)
        if self.ridge > 0:
            best = (t if self.weights == "free" else np.maximum(t, 0.0)) / (2 * self.ridge)
            off = c - best
            off_error = inflated(t_error / (2 * self.ridge) + gamma(2) * (np.abs(best) + np.abs(off)), 6)
            found += Fraction(self.ridge) * (square(c)[0] - square(off, off_error + UNDERFLOW)[1])
        else:
            found -= Fraction(float(np.nextafter(t + t_error, np.inf).max(initial=0.0)))
        if self.weights != "free":
            found -= interval(c, np.maximum(np.nextafter(t_error - t, np.inf), 0.0))[1]
        return found

    def multiplier(self, g: Array) -> float:
        """Return the mu of 1'c = 1, zero where there is no such constraint."""
        if self.weights != "simplex":
            return 0.0
        if self.ridge == 0:
            return float(g.max())
        return float((g - 2 * self.ridge * on_simplex(g / (2 * self.ridge))).max())

    def by_range(self, c: Array) -> Fraction:
        r"""Return a lower bound of the minimum over free c without a ridge.

        Notes
        -----
        With P the projection on the range of X, the minimum is :math:`(\|r\|^2 - \|P r\|^2) / n` for the
        residual r = v - X c of any c. So X'r need not be zero: what is left of it is paid.
        """
        if self.range_of_X is None:
            return Fraction(0)
        r, error = self.residual(c)
        return (square(r, error)[0] - Fraction(self.range_of_X.reach(r, error)) ** 2) / self.n

    def by_cone(self) -> Fraction:
        r"""Return a lower bound of the minimum over c >= 0 without a ridge, from weights by `nnls`.

        Notes
        -----
        Take P as in `by_range`, but for the columns A that the weights use or that are nearly orthogonal to
        their residual r. Then r - P r is orthogonal to A. It proves :math:`(\|r\|^2 - \|P r\|^2) / n` if
        :math:`x_j'r + \|x_j\| \|P r\| \le 0` for all other columns. Where this fails, r - tau v with
        :math:`X'(r - \tau v) \le 0` is tried, which exists where X'v > 0.
        """
        lengths = np.linalg.norm(self.X, axis=0)
        seen = lengths > 0
        c = np.zeros(lengths.size)
        if seen.any():  # scipy's nnls frees memory twice where there are no columns
            with suppress(RuntimeError):  # no convergence: any weights give a bound
                c[seen] = scipy.optimize.nnls(self.X[:, seen] / lengths[seen], self.v)[0] / lengths[seen]
        r, error = self.residual(c)
        size = square(r, error)[0]
        s, s_error = self.products(r, error)
        above = outward(s, s_error)
        active = (c > 0) | (above >= -ROUND_OFF * lengths * float(np.linalg.norm(self.v)))
        kept = np.flatnonzero(active)
        keys = tuple(self.keys[j] for j in kept) if self.keys else ()
        basis = Range.of(self.X[:, active], self.doubts[active], keys)
        if basis is not None:
            paid = basis.reach(r, error)
            sizes = np.abs(self.X[:, ~active]).sum(axis=0) + self.doubts[~active]  # 1-norms are larger
            most = inflated(paid * sizes, self.n + 3)
            if (above[~active] <= -most).all():
                return (size - Fraction(paid) ** 2) / self.n
        along, along_error = self.products(self.v)
        along = -outward(-along, along_error)
        up = (above > 0) & (along > 0)
        tau = float(np.max(above[up] / along[up], initial=0.0)) * (1 + gamma(16))
        moved = tau * along
        if (above > moved - gamma(4) * np.abs(moved)).any():
            return Fraction(0)
        t, gain = Fraction(tau), interval(r, self.v)[0]  # r in doubles is as good as the exact residual
        return (2 * (1 + t) * gain - square(r)[1] - (2 * t + t * t) * square(self.v)[1]) / self.n

    def least(self, size: float) -> float:
        """Return what a singular value must exceed to be kept: `size`, and the error of the columns."""
        finite = self.doubts[np.isfinite(self.doubts)]
        return max(size, float(np.linalg.norm(finite)))

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
            rank = int((s > self.least(rcond * s.max(initial=0.0))).sum())
            kept = s[:rank]
            shrunk = kept / (np.square(kept) + self.n * self.ridge)
            return Direct(Vt[:rank].T @ (shrunk * (U[:, :rank].T @ v)), rank, ratio(kept))
        M = X.shape[1]
        if self.ridge > 0:  # as more rows of the same least squares
            X = np.vstack([X, np.sqrt(self.n * self.ridge) * np.eye(M)])
            v = np.concatenate([v, np.zeros(M)])
        Q, R, pivots = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diag(R))
        rank = int((sizes > self.least(rcond * sizes.max(initial=0.0))).sum())
        c = np.zeros(M)
        c[pivots[:rank]] = scipy.linalg.solve_triangular(R[:rank, :rank], Q[:, :rank].T @ v)
        return Direct(c, rank, ratio(sizes[:rank]))


def certificate(stage: Combination, c: Array) -> ko.Certificate:
    """Bound the optimum at weights: by them, and by the dual at their residual.

    Both bounds hold in exact arithmetic for lambda, v and all columns within the errors of X.
    """
    c = stage.feasible(c)
    return ko.Certificate(
        stage.lower(c),
        stage.value(c),
        "closed",
        reason=unknown(stage),
        feasible=True,
        floor=ko.FLOOR_SHARE * length(stage.v) * length(stage.v) / stage.n,
    )


def unknown(stage: Combination) -> str:
    """Return what is said of columns that are nothing but rounding, where their weights have no price."""
    lost = np.flatnonzero(~stage.X.any(axis=0) & (stage.doubts > 0))
    if not lost.size or stage.ridge > 0 or stage.weights == "simplex":
        return ""
    return (
        f"the function of kernel {lost[0]} is zero up to rounding, so that its weight is zero, and no bound "
        "is known for larger ones: leave that kernel out, or take a ridge"
    )


def excess(c: Array) -> Fraction:
    """Return an upper bound of |1'c - 1|."""
    (value,), (error,) = dots(np.ones((1, c.size)), c, plus=np.array([-1.0]))
    return Fraction(abs(float(value))) + Fraction(float(error))


def on_simplex(c: Array) -> Array:
    """Return the point of {c >= 0, 1'c = 1} nearest to `c`."""
    c = c - c.max()  # the same point; in large numbers the sum of one would be lost
    ordered = np.sort(c)[::-1]
    shifts = (np.cumsum(ordered) - 1) / np.arange(1, c.size + 1)
    inside = np.maximum(c - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0)
    return np.asarray(inside / inside.sum())


def ratio(sizes: Array) -> float:
    """Return the largest over the smallest, 1 where there is none."""
    return float(sizes[0] / sizes[-1]) if sizes.size else 1.0
