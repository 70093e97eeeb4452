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
    D : array of shape (T, m), K_p(i, j) - K_p(i, k)
    diagonal : array of shape (n_S, m)
    cone_entries : array of shape (., m)
        The entries of the kernels that the cone constrains: on S, the diagonal and what is above it for
        "dominant", all of vec K_p for "psd", none for "nonnegative".
    first, second : for each of the entries above the diagonal, the two places in S
    """

    grams: ko.Grams
    triplets: Index
    points: Index
    groups: Index
    gamma2: float
    margin: float
    cone: Cone
    D: Array
    diagonal: Array
    cone_entries: Array
    first: Index
    second: Index

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

    @property
    def off(self) -> Array:
        """The entries above the diagonal, shape (n_S (n_S - 1) / 2, m), for "dominant"."""
        return self.cone_entries[self.points.size :]

    @cached_property
    def incidence(self) -> sp.csc_array:
        """The pairs of every point of S, shape (n_S, n_S (n_S - 1) / 2)."""
        return self.of_pairs(np.ones(self.first.size))

    def of_pairs(self, values: Array) -> sp.csc_array:
        """Return `incidence` with one value for each pair in the place of ones."""
        ends = np.column_stack([self.first, self.second]).ravel()
        shape = (self.points.size, values.size)
        return sp.csc_array((np.repeat(values, 2), ends, 2 * np.arange(values.size + 1)), shape=shape)

    @property
    def q(self) -> Array:
        """The traces over S, shape (m,)."""
        return np.asarray(self.diagonal.sum(axis=0))

    def by_group(self, values: Array, how: np.ufunc) -> Array:
        """Return values of the kernels summed (or maximised) over their groups, shape (F,)."""
        total = np.zeros(self.F)
        how.at(total, self.groups, values)
        return total

    def sizes(self, z: Array) -> Array:
        """Return |z|, or for non-negative weights its positive part."""
        return np.maximum(z, 0.0) if self.cone == "nonnegative" else np.abs(z)

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
    def depths(self) -> Array:
        """Return the smallest entry of `depth` for each kernel alone, shape (m,)."""
        if self.cone == "dominant":
            return np.asarray((self.diagonal - self.incidence @ np.abs(self.off)).min(axis=0))
        return np.array([self.depth(e).min() for e in np.eye(self.m)])

    @property
    def deepest(self) -> Array:
        """The weights of the kernel that alone has the largest depth, which may be negative."""
        return np.asarray(np.eye(self.m)[int(self.depths.argmax())])

    def interior_weights(self) -> Array:
        """Return weights in the interior: one kernel alone, or weights of largest depth with |alpha| <= 1.

        Where the cone has no interior the depth of what is returned is not positive.
        """
        if self.depths.max() > 0:
            return self.deepest
        alpha, depth = cp.Variable(self.m), cp.Variable()
        constraints = [alpha <= 1, alpha >= -1, depth <= 1]
        K = ko.combine(alpha, self.grams.block(self.points)) - depth * np.eye(self.points.size)
        constraints += ko.diagonally_dominant(K) if self.cone == "dominant" else [K >> 0]
        with warnings.catch_warnings(), suppress(ko.KerneloptError):  # the caller computes the depth
            warnings.simplefilter("ignore")
            ko.solve(cp.Problem(cp.Maximize(depth), constraints))
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
        values = {"alpha": alpha, "eps": np.maximum(self.margin - self.D @ alpha, 0.0)}
        values["s"] = self.by_group(np.abs(alpha), np.maximum)
        if self.cone == "dominant":
            values["r"] = np.abs(self.off @ alpha)
        return values

    def value(self, alpha: Array, gamma1: float) -> float:
        """Return the objective at the weights, with all other variables at their best."""
        hinges = np.maximum(self.margin - self.D @ alpha, 0.0).sum()
        sizes = self.by_group(np.abs(alpha), np.maximum).sum()
        return float(hinges + gamma1 * sizes + self.gamma2 * (self.q @ alpha))


def comparison_data(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    groups: ArrayLike | None,
    gamma2: float,
    cone: Cone,
    points: ArrayLike | None,
    margin: float,
) -> ComparisonData:
    """Return the data of a problem after checking them, with the entries of the kernels that it needs."""
    stack = as_grams(grams)
    rows = ko.as_triplets(triplets, stack.n_points)
    one_of(cone, "cone", get_args(Cone), "Without one of them the trace may run to minus infinity.")
    S = np.unique(rows) if points is None else with_triplets(points, rows, stack.n_points)
    i, j, k = rows.T
    D = (stack.entries(i, j) - stack.entries(i, k)).T
    first, second = np.triu_indices(S.size if cone == "dominant" else 0, 1)
    if cone == "dominant":
        ends = (np.concatenate([S, S[places]]) for places in (first, second))
        seen = stack.entries(*ends).T
    else:
        block = stack.block(S)
        seen = block.vectorized() if cone == "psd" else np.zeros((0, len(stack)))
        for p in range(len(stack) if cone == "nonnegative" else 0):
            block.factor(p)  # says which kernel is not positive semidefinite
    diagonal = stack.entries(S, S).T
    return ComparisonData(
        stack,
        rows,
        S,
        as_groups(groups, len(stack)),
        positive(gamma2, "gamma2", allow_zero=True),
        positive(margin, "margin"),
        cone,
        np.asarray(D),
        np.asarray(diagonal),
        np.asarray(seen),
        first,
        second,
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
