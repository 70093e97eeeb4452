"""The checked data of relative comparisons, as matrices that are multiplied by the weights."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.numbers import numbers
from kernelopt.extend import Array, as_classes, as_grams, as_indices, one_of, positive

Index = NDArray[np.intp]
Cone = Literal["dominant", "psd", "nonnegative"]


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Checked data of one problem.

    Attributes
    ----------
    grams : Grams, the m kernels on N points
    triplets : integer array of shape (T, 3)
    points : S, the points on which the kernel is to be positive semidefinite
    groups : number of the group of each kernel, shape (m,), in 0..F-1
    gamma2 : price of the trace over S
    margin : rho
    cone : "dominant", "psd" or "nonnegative"
    """

    grams: ko.Grams
    triplets: Index
    points: Index
    groups: Index
    gamma2: float
    margin: float
    cone: Cone

    @property
    def m(self) -> int:
        """The number of kernels."""
        return len(self.grams)

    @property
    def T(self) -> int:
        """The number of triplets."""
        return len(self.triplets)

    @property
    def F(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @cached_property
    def pairs(self) -> tuple[Index, Index]:
        """The two places in S of each entry above the diagonal, for "dominant"; else there are no pairs."""
        first, second = np.triu_indices(self.points.size if self.cone == "dominant" else 0, 1)
        return first, second

    @cached_property
    def diagonal(self) -> Array:
        """The entries K_p(i, i) for i in S, shape (n_S, m)."""
        return np.asarray(self.grams.entries(self.points, self.points).T)

    @cached_property
    def rows(self) -> Array:
        """The linear functions of the weights that the programme prices or constrains, shape (T + ., m).

        First K_p(i, j) - K_p(i, k) for each triplet, then the entries of the kernels on S that the cone
        constrains: the diagonal and what is above it for "dominant", all of vec K_p for "psd", none for
        "nonnegative".
        """
        i, j, k = self.triplets.T
        gains = (self.grams.entries(i, j) - self.grams.entries(i, k)).T
        if self.cone == "nonnegative":
            return np.asarray(gains)
        if self.cone == "psd":
            return np.concatenate([gains, self.grams.block(self.points).vectorized()])
        first, second = self.pairs
        off = self.grams.entries(self.points[first], self.points[second]).T
        return np.concatenate([gains, self.diagonal, off])

    @property
    def D(self) -> Array:
        """The gains K_p(i, j) - K_p(i, k) of the triplets, shape (T, m)."""
        return self.rows[: self.T]

    @property
    def cone_entries(self) -> Array:
        """The entries of the kernels that the cone constrains, shape (., m)."""
        return self.rows[self.T :]

    @property
    def off(self) -> Array:
        """The entries above the diagonal, shape (n_S (n_S - 1) / 2, m), for "dominant"."""
        return self.rows[self.T + self.points.size :]

    @cached_property
    def incidence(self) -> sp.csc_array:
        """The pairs of every point of S, shape (n_S, n_S (n_S - 1) / 2)."""
        return self.of_pairs(np.ones(self.pairs[0].size))

    def of_pairs(self, values: Array) -> sp.csc_array:
        """Return `incidence` with one value for each pair in the place of ones."""
        ends = np.column_stack(self.pairs).ravel()
        shape = (self.points.size, values.size)
        return sp.csc_array((np.repeat(values, 2), ends, 2 * np.arange(values.size + 1)), shape=shape)

    @cached_property
    def members(self) -> sp.csr_array:
        """The kernels of every group, shape (F, m)."""
        return sp.csr_array((np.ones(self.m), (self.groups, np.arange(self.m))), shape=(self.F, self.m))

    @cached_property
    def q(self) -> Array:
        """The traces over S, shape (m,)."""
        return np.asarray(self.diagonal.sum(axis=0))

    def z(self, y: Array) -> Array:
        """Return z = rows'y - gamma2 q for the multipliers y of the rows, shape (m,)."""
        return np.asarray(self.rows.T @ y - self.gamma2 * self.q)

    def sizes(self, z: Array) -> Array:
        """Return |z|, or for non-negative weights its positive part."""
        return np.maximum(z, 0.0) if self.cone == "nonnegative" else np.abs(z)

    def group_sizes(self, z: Array) -> Array:
        """Return the sum of the `sizes` of z over every group, shape (F,): at most gamma1 in the dual."""
        return np.asarray(self.members @ self.sizes(z))

    def dominance(self, alpha: Array) -> Array:
        """Return K_ii - sum_j |K_ij| over S, shape (n_S,): non-negative where K is dominant."""
        return np.asarray(self.diagonal @ alpha - self.incidence @ np.abs(self.off @ alpha))

    def depth(self, alpha: Array) -> Array:
        """Return numbers that are all non-negative exactly where the weights are in the cone.

        They are the dominance, the smallest eigenvalue on S, or the weights. Each is a concave function of
        the weights, and homogeneous: at t alpha with t > 0 it is t times its value at alpha.
        """
        if self.cone == "dominant":
            return self.dominance(alpha)
        if self.cone == "nonnegative":
            return alpha
        K = (self.cone_entries @ alpha).reshape(self.points.size, -1)
        return np.asarray(np.linalg.eigvalsh((K + K.T) / 2)[:1])

    @cached_property
    def deepest(self) -> tuple[Array, float]:
        """The weights of the kernel that alone has the largest depth, and that depth: it may be negative."""
        if self.cone == "dominant":
            depths = np.asarray((self.diagonal - self.incidence @ np.abs(self.off)).min(axis=0))
        else:
            depths = np.array([self.depth(e).min() for e in np.eye(self.m)])
        return np.eye(self.m)[int(depths.argmax())], float(depths.max())

    def interior_weights(self) -> Array:
        """Return weights in the interior: one kernel alone, or weights of largest depth with |alpha| <= 1.

        Where the cone has no interior the depth of what is returned is not positive.
        """
        alone, depth = self.deepest
        if depth > 0:
            return alone
        alpha, margin = cp.Variable(self.m), cp.Variable()
        K = ko.combine(alpha, self.grams.block(self.points)) - margin * np.eye(self.points.size)
        inside = ko.diagonally_dominant(K) if self.cone == "dominant" else [K >> 0]
        with warnings.catch_warnings(), suppress(ko.KerneloptError):  # the caller computes the depth
            warnings.simplefilter("ignore")
            ko.solve(cp.Problem(cp.Maximize(margin), [cp.abs(alpha) <= 1, margin <= 1, *inside]))
        return numbers(alpha.value, self.m)

    def moved_inside(self, alpha: Array, e: Array) -> Array:
        """Return alpha + t e in the cone, with the smallest t >= 0 that is known to be enough.

        Depths are concave and homogeneous, so that depth(alpha + t e) >= depth(alpha) + t depth(e). The
        depths of e must be positive.
        """
        return alpha + max(0.0, float(np.max(-self.depth(alpha) / self.depth(e)))) * e

    def scale(self, alpha: Array) -> float:
        """Return the largest sum_p |alpha_p K_p(i, i)|, to which the round-off in K_ii is proportional."""
        return float((np.abs(self.diagonal) @ np.abs(alpha)).max())

    def point(self, alpha: Array) -> dict[str, Array]:
        """Return the best values of all variables of the programme at the weights, by name."""
        s = np.zeros(self.F)
        np.maximum.at(s, self.groups, np.abs(alpha))
        return {
            "alpha": alpha,
            "eps": np.maximum(self.margin - self.D @ alpha, 0.0),
            "s": s,
            "r": np.abs(self.off @ alpha) if self.cone == "dominant" else np.zeros(0),
        }

    def value(self, alpha: Array, gamma1: float) -> float:
        """Return the objective at the weights, with all other variables at their best."""
        best = self.point(alpha)
        return float(best["eps"].sum() + gamma1 * best["s"].sum() + self.gamma2 * (self.q @ alpha))


def comparison_data(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    groups: ArrayLike | None,
    gamma2: float,
    cone: Cone,
    points: ArrayLike | None,
    margin: float,
) -> ComparisonData:
    """Return the data of a problem after checking them."""
    stack = as_grams(grams)
    rows = ko.as_triplets(triplets, stack.n_points)
    one_of(cone, "cone", get_args(Cone), "Without one of them the trace may run to minus infinity.")
    S = np.unique(rows) if points is None else with_triplets(points, rows, stack.n_points)
    if cone == "nonnegative":
        block = stack.block(S)
        for p in range(len(stack)):
            block.factor(p)  # says which kernel is not positive semidefinite
    return ComparisonData(
        stack,
        rows,
        S,
        as_groups(groups, len(stack)),
        positive(gamma2, "gamma2", allow_zero=True),
        positive(margin, "margin"),
        cone,
    )


def with_triplets(points: ArrayLike, triplets: Index, n_points: int) -> Index:
    """Return the points S as given, which must hold the points of the triplets."""
    S = np.unique(as_indices(points, n_points, "points"))
    missing = np.setdiff1d(triplets, S)
    if missing.size:
        raise ko.errors.ParameterError(
            f"points must hold those of the triplets, got a set without {missing[:5].tolist()}. Leave points "
            "out to take exactly those, or add them."
        )
    return S


def as_groups(groups: ArrayLike | None, m: int) -> Index:
    """Return the number of the group of each kernel, numbered without gaps; each its own by default."""
    if groups is None:
        return np.arange(m)
    labels = as_classes(groups, "groups", f"one entry per kernel ({m})")
    if labels.shape != (m,):
        raise ko.errors.ShapeError(
            f"groups must have one entry per kernel ({m}), got shape {labels.shape}. For per-feature kernels "
            "pass their .groups, with a number of its own for every kernel added to them."
        )
    _, numbers = np.unique(labels, return_inverse=True)
    return np.asarray(numbers, dtype=np.intp).ravel()
