"""`Profile`: a kernel as a function of one distance of two points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kernelopt.validation import Array

Metric = Literal["sqeuclidean", "cityblock"]


@dataclass(frozen=True)
class Profile:
    r"""A kernel :math:`k(x, z) = f(d(x, z))` for two points, and :math:`k(x, x) = own` for a point itself.

    Parameters
    ----------
    metric : "sqeuclidean", "cityblock" or None
        The distance d: :math:`\|x - z\|^2` or :math:`\|x - z\|_1`. None stands for a constant f, which fits
        any distance.
    function : function of an array of distances
        It returns f for each entry as a new array. f is non-negative, decreasing and convex on d >= 0.
    own : float
        At least f(0). It is larger where the identity kernel is a part.
    columns : tuple of int or None
        The columns of the points that enter the distance. None means all.
    completely_monotone : bool, default False
        Whether the derivatives of f of every order k have the sign (-1)^k on d > 0.
        Every kernel :math:`f(\|x - z\|^2)` that is positive semidefinite in all dimensions has such an f
        (Schoenberg).
        Sums of many such kernels take less time. It is tested on the distances of the sums, and certificates
        name it in `Certificate.assumes`, except for the kernels of kernelopt, where it is a theorem.
    """

    metric: Metric | None
    function: Callable[[Array], Array]
    own: float
    columns: tuple[int, ...] | None = None
    completely_monotone: bool = False

    @staticmethod
    def constant(value: float, own: float) -> Profile:
        """Return the profile of the kernel with k(x, z) = value and k(x, x) = own.

        Parameters
        ----------
        value : float >= 0
            For two points.
        own : float >= value
            For a point and itself.
        """
        return Profile(None, lambda d: np.full(d.shape, value), own, completely_monotone=True)

    def times(self, factor: float) -> Profile:
        """Return the profile of a multiple.

        Parameters
        ----------
        factor : float > 0
            The number.
        """
        return replace(self, function=lambda d: factor * self.function(d), own=factor * self.own)

    def joined(self, other: Profile, operation: Callable[[Any, Any], Any]) -> Profile | None:
        """Return the profile of the sum or the product of two kernels; None if the distances differ.

        Parameters
        ----------
        other : Profile
            Of the other kernel.
        operation : function of two arrays or numbers
            `operator.add` or `operator.mul`.
        """
        if None not in (self.metric, other.metric) and self.distance != other.distance:
            return None
        metric, columns = self.distance if self.metric is not None else other.distance
        monotone = self.completely_monotone and other.completely_monotone  # then sums and products are, too
        function = lambda d: operation(self.function(d), other.function(d))  # noqa: E731
        return Profile(metric, function, operation(self.own, other.own), columns, monotone)

    def on(self, columns: tuple[int, ...]) -> Profile:
        """Return the profile of the kernel on these columns of the points.

        Parameters
        ----------
        columns : tuple of int, or None
            The columns, counted from 0; None means all.
        """
        if self.metric is None:
            return self
        inner = range(len(columns)) if self.columns is None else self.columns
        return replace(self, columns=tuple(columns[j] for j in inner))

    @property
    def distance(self) -> tuple[Metric | None, tuple[int, ...] | None]:
        """The distance: kernels of equal `distance` are functions of the same numbers."""
        return self.metric, self.columns


def distances(X: Array, Z: Array | None, metric: Metric | None) -> Array:
    """Return the distances between the rows of X and Z, shape (len(X), len(Z)); zeros if metric is None.

    Z = None means X. For squared Euclidean distances the points should have mean zero.
    """
    if metric == "sqeuclidean":
        return squared_distances(X, Z)
    others = X if Z is None else Z
    if metric is None:
        return np.zeros((len(X), len(others)))
    from scipy.spatial.distance import cdist  # here, since importing kernelopt should be quick

    return np.asarray(cdist(X, others, metric))


IN_CACHE = 1 << 17  # entries of rows that are changed at a time: 1 MB, which fits a fast cache


def row_blocks(matrix: Array) -> Iterator[slice]:
    """Return slices of rows of a matrix that stay in a fast cache while they are changed in several steps."""
    step = max(1, IN_CACHE // max(1, matrix.shape[1]))
    return (slice(start, start + step) for start in range(0, len(matrix), step))


def squared_distances(X: Array, Z: Array | None = None) -> Array:
    """Return |x_i - z_j|^2 for the rows of X and Z, where Z = None means X; the points should be centred.

    The products |x|^2 - 2 x'z + |z|^2 lose digits where the points are far from the origin.
    """
    squares = np.einsum("ij,ij->i", X, X)
    others = squares if Z is None else np.einsum("ij,ij->i", Z, Z)
    found: Array = X @ (X if Z is None else Z).T
    to_squared_distances(found, squares, others)
    if Z is None:
        np.fill_diagonal(found, 0.0)
    return found


def to_squared_distances(products: Array, squares: Array, others: Array) -> None:
    """Replace inner products x_i'z_j by |x_i|^2 - 2 x_i'z_j + |z_j|^2, at least 0, given the squares."""
    for part in row_blocks(products):
        rows = products[part]
        rows *= -2
        rows += squares[part, None] + others  # this sum first: then the result is symmetric where Z is X
        np.maximum(rows, 0, out=rows)
