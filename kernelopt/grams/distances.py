"""Distances of points, from which all kernels of a stack that are functions of a distance are computed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kernelopt.grams.caching import BoundedCache
from kernelopt.kernels import gaussian
from kernelopt.kernels.elementary import squared_distances
from kernelopt.kernels.profile import Metric
from kernelopt.validation import Array, Index
from kernelopt.validation.matrices import symmetrised

LARGEST_ROOT = 1e154
"""Numbers below it have finite squares."""


class SquaredDistances:
    """The squared distances of the points X, as multiples of unit^2.

    The unit is a power of two above the coordinates of the centred points. The division by it is exact, and
    the squares do not overflow.
    """

    def __init__(self, X: Array) -> None:
        self._X = X
        self._cache = BoundedCache()

    def __reduce__(self) -> tuple[Any, ...]:
        return SquaredDistances, (self._X,)

    @cached_property
    @np.errstate(all="ignore")  # values that are not finite are found in the kernels
    def _scaled(self) -> tuple[Array, float]:
        """The points and the unit: a copy of the points, made where distances are needed."""
        centred = self._X - self._X.mean(axis=0)
        unit = float(np.exp2(np.frexp(np.abs(centred).max())[1]))
        return centred / unit, unit

    @property
    def points(self) -> Array:
        """The centred points as multiples of the unit."""
        return self._scaled[0]

    @property
    def unit(self) -> float:
        """The power of two."""
        return self._scaled[1]

    @cached_property
    def _finite(self) -> bool:
        return bool(np.isfinite(self.points).all())

    def forget(self) -> None:
        """Free the cached distances."""
        self._cache.clear()

    def kernel(self, k: gaussian, squares: Array, out: Array | None = None) -> Array:
        """Return a Gaussian kernel at squared distances, written to `out` if that is given.

        Raises
        ------
        NotFiniteError
            If a value is not finite: the points or their distances in units of the width are too large.
        """
        with np.errstate(all="ignore"):
            values = k.at_squares(squares, self.unit, out)
        safe = self._finite and self.unit / k.width < LARGEST_ROOT  # then no product is 0 * inf
        return values if safe else k._finite(values)

    def rows(self, chosen: Index) -> Array:
        """Return the squared distances of the points `chosen` from all points, shape (len(chosen), N)."""
        with np.errstate(all="ignore"):
            squares = squared_distances(self.points[chosen], self.points)
        squares[np.arange(chosen.size), chosen] = 0.0
        return squares

    def whole(self, keep: bool) -> Array:
        """Return the squared distances of all points, exactly symmetric; with `keep` they are cached."""
        return self._cache.get(0, self._computed) if keep else self._computed()

    def _computed(self, _: int = 0) -> Array:
        with np.errstate(all="ignore"):
            return symmetrised(squared_distances(self.points), "squared distances")


def distances(X: Array, Z: Array, metric: Metric | None) -> Array:
    """Return the distances between the rows of X and Z, shape (len(X), len(Z)); zeros if metric is None.

    For squared Euclidean distances the points should have mean zero.
    """
    if metric is None:
        return np.zeros((len(X), len(Z)))
    if metric == "cityblock":
        from scipy.spatial.distance import cdist  # here, since importing kernelopt should be quick

        return np.asarray(cdist(X, Z, metric))
    return squared_distances(X, Z)
