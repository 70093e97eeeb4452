"""Groups of linear inequalities in the weights and in variables of their own, as an iteration sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.primal_dual.entries import Entries, Vectors
from kernelopt.extend import Array

# Gondzio's centrality corrections: products y lam outside these multiples of their target are moved to them,
# upwards without limit, and downwards by at most LARGEST times the target.
SMALL, LARGE = 0.1, 10.0
START = 0.5  # of the multipliers: the middle of the domain of u


def longest(v: Array, dv: Array) -> float:
    """Return the longest step for which v + step dv >= 0."""
    falls = dv < 0
    return float(np.min(-v[falls] / dv[falls])) if falls.any() else np.inf


class Inequalities(ABC):
    """Constraints G(alpha, x) >= h with slacks y > 0 and multipliers lam > 0, and the cost c'x.

    The variables x occur in no other constraints. Each Newton step eliminates them: with W = lam / y, the
    normal equations G'WG of (alpha, x) are reduced to alpha.

    Attributes
    ----------
    x, y, lam, h, cost : arrays
    """

    x: Array
    y: Array
    lam: Array
    h: Array
    cost: Array
    fields = ("dx", "dy", "dlam", "target", "eliminated")  # those that a step consists of

    @abstractmethod
    def rows(self, entries: Vectors, x: Array) -> Array:
        """Return G(alpha, x), from the entries of K at alpha."""

    @abstractmethod
    def adjoint(self, lam: Array, out: Vectors) -> Array:
        """Add the part of G' lam that belongs to alpha to `out`, and return the part that belongs to x."""

    @abstractmethod
    def factor(self, W: Array, H: Array) -> Any:
        """Factor the block of x of G'WG, and add what its elimination leaves for alpha to H.

        Return what belongs to the entries off the diagonal as a sparse matrix, or None.
        """

    @abstractmethod
    def couple(self, b: Array, out: Vectors) -> None:
        """Subtract from `out` the effect of the right-hand side b of x on that of alpha."""

    @abstractmethod
    def back(self, step: Vectors, b: Array) -> Array:
        """Return the step of x for a step of the entries and the right-hand side b of x."""

    @property
    def count(self) -> int:
        """The number of products of slacks and multipliers."""
        return int(self.y.size)

    def gap(self) -> float:
        """Return the sum of the products of slacks and multipliers."""
        return float(self.y @ self.lam)

    def gap_after(self, primal: float, dual: float) -> float:
        """Return `gap` after the step."""
        return float((self.y + primal * self.dy) @ (self.lam + dual * self.dlam))

    def residual(self, entries: Vectors) -> Array:
        """Return G(alpha, x) - h - y."""
        return self.rows(entries, self.x) - self.h - self.y

    def dual_residual(self, out: Vectors) -> float:
        """Add G' lam for alpha to `out`; return the largest violation of G' lam = cost for x."""
        return float(np.abs(self.adjoint(self.lam, out) - self.cost).max(initial=0.0))

    def normal_matrix(self, H: Array) -> Any:
        """Compute the matrix of the Newton steps from this point; see `factor`."""
        self.W = self.lam / self.y
        return self.factor(self.W, H)

    def centred(self, target: float, second_order: bool) -> Array:
        """Return the right-hand side of y dlam + lam dy for products equal to `target`."""
        products = target - self.y * self.lam
        return products - self.dy * self.dlam if second_order else products

    def corrected(self, target: float, primal: float, dual: float) -> Array:
        """Return the right-hand side for products near the target after a step of these lengths."""
        products = (self.y + primal * self.dy) * (self.lam + dual * self.dlam)
        moved = np.clip(products, SMALL * target, LARGE * target) - products
        return np.asarray(self.target + np.maximum(moved, -LARGE * target))

    def right_side(self, entries: Vectors, target: Array, out: Vectors) -> None:
        """Add the right-hand side of the reduced Newton equations to `out`."""
        self.target, self.shortfall = target, self.residual(entries)
        lam = target / self.y - self.W * self.shortfall + self.lam
        self.eliminated = self.adjoint(lam, out) - self.cost
        self.couple(self.eliminated, out)

    def step(self, step: Vectors) -> None:
        """Compute the step of x, y and lam from that of the entries."""
        self.dx = self.back(step, self.eliminated)
        self.dy = self.rows(step, self.dx) + self.shortfall
        self.dlam = self.target / self.y - self.W * self.dy

    def lengths(self) -> tuple[float, float]:
        """Return the longest steps of the slacks and of the multipliers."""
        return longest(self.y, self.dy), longest(self.lam, self.dlam)

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        self.x, self.y = self.x + primal * self.dx, self.y + primal * self.dy
        self.lam = self.lam + dual * self.dlam


class Comparisons(Inequalities):
    """d_t'alpha + eps_t >= rho with multipliers u, and eps >= 0 with multipliers 1 - u."""

    def __init__(self, data: ComparisonData, entries: Entries) -> None:
        self.entries, self.T = entries, data.T
        margin, ones = data.margin, np.ones(data.T)
        self.h, self.cost = np.concatenate([margin * ones, 0 * ones]), ones
        self.x = 2 * margin * ones
        self.y, self.lam = np.concatenate([margin * ones, self.x]), np.full(2 * data.T, START)

    @property
    def u(self) -> Array:
        """The multipliers of the triplets."""
        return self.lam[: self.T]

    def rows(self, entries: Vectors, x: Array) -> Array:
        return np.concatenate([self.entries.differences @ entries.off + x, x])

    def adjoint(self, lam: Array, out: Vectors) -> Array:
        out.off += self.entries.transposed @ lam[: self.T]
        return lam[: self.T] + lam[self.T :]

    def factor(self, W: Array, H: Array) -> Any:
        self.first, second = W[: self.T], W[self.T :]
        self.both = self.first + second
        weights = self.first * second / self.both
        return self.entries.transposed @ (self.entries.differences * weights[:, None])

    def couple(self, b: Array, out: Vectors) -> None:
        out.off -= self.entries.transposed @ (self.first / self.both * b)

    def back(self, step: Vectors, b: Array) -> Array:
        return np.asarray((b - self.first * (self.entries.differences @ step.off)) / self.both)


class Sizes(Inequalities):
    """s_f >= alpha_p and s_f >= -alpha_p; for "nonnegative" the second is alpha_p >= 0."""

    def __init__(self, data: ComparisonData, gamma1: float, size: float) -> None:
        m, self.groups = data.m, data.groups
        self.m, self.F = m, data.F
        self.below = 0.0 if data.cone == "nonnegative" else 1.0  # the coefficient of s in the second
        self.h, self.cost = np.zeros(2 * m), np.full(self.F, gamma1)
        self.x, self.y = np.full(self.F, size), np.full(2 * m, size)
        members = self.sums(np.ones(m))[self.groups]
        self.lam = np.tile(gamma1 / ((1 + self.below) * members), 2)

    def sums(self, values: Array) -> Array:
        """Return the sums over the groups."""
        return np.asarray(np.bincount(self.groups, values, self.F), dtype=float)

    def rows(self, entries: Vectors, x: Array) -> Array:
        s = x[self.groups]
        return np.concatenate([s - entries.alpha, self.below * s + entries.alpha])

    def adjoint(self, lam: Array, out: Vectors) -> Array:
        above, below = lam[: self.m], lam[self.m :]
        out.alpha += below - above
        return self.sums(above + self.below * below)

    def factor(self, W: Array, H: Array) -> Any:
        above, below = W[: self.m], W[self.m :]
        self.both, self.mixed = self.sums(above + self.below * below), self.below * below - above
        H[np.diag_indices(self.m)] += above + below
        reduced = np.zeros((self.m, self.F))
        reduced[np.arange(self.m), self.groups] = self.mixed / np.sqrt(self.both)[self.groups]
        H -= reduced @ reduced.T
        return None

    def couple(self, b: Array, out: Vectors) -> None:
        out.alpha -= self.mixed * (b / self.both)[self.groups]

    def back(self, step: Vectors, b: Array) -> Array:
        return np.asarray((b - self.sums(self.mixed * step.alpha)) / self.both)
