"""`Evaluating`: the part that is common to providers of kernels that are not stored."""

from __future__ import annotations

import numpy as np

from kernelopt.grams import Grams
from kernelopt.methods.engine.provider import Provider
from kernelopt.validation import Array, Index

TILE = 64  # rows and columns of a tile that is transposed at a time: 16 KB, which fit into the first cache


class Evaluating(Provider):
    """A provider whose exact images come from the kernels themselves, evaluated in float64.

    Images of the last coefficients are kept by the storage of the kernels, where the certificate finds them.
    """

    def __init__(self, grams: Grams, reach: Array, n: int) -> None:
        self.grams, self.reach, self.m, self.n = grams, reach, reach.size, n
        self.passes = 0.0

    def predict(self, w: Array, support: Index, c: Array, points: Index) -> Array:
        active = np.flatnonzero(w)
        if not active.size:
            return np.zeros(points.size)
        self.passes += active.size / self.m * support.size * points.size / self.n**2
        storage, alpha = self.grams.storage, self._alpha(support, c)
        if np.array_equal(points, np.arange(self.grams.n_points)):
            return storage.image(self.reach * w, alpha)
        return np.asarray((self.reach * w)[active] @ storage.subset(active).images(alpha, points))

    def exact_images(self, support: Index, c: Array, points: Index) -> Array:
        self.passes += support.size * points.size / self.n**2
        return self.reach[:, None] * self.grams.storage.images(self._alpha(support, c), points)

    def _alpha(self, support: Index, c: Array) -> Array:
        """Return the vector of the n labelled points with these coefficients."""
        alpha = np.zeros(self.n)
        alpha[support] = c
        return alpha


def kept_positions(before: Index, points: Index) -> Index:
    """Return the positions of `before` that come first in `points`, none where the order has changed."""
    kept = np.flatnonzero(np.isin(before, points))
    return kept if np.array_equal(before[kept], points[: kept.size]) else kept[:0]


def mirror(M: Array, first: int) -> None:
    """Copy the entries of the rows from `first` on, left of the diagonal, to those above the diagonal."""
    size = M.shape[0]
    for top in range(first - first % TILE, size, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(max(top, first), min(size, top + TILE)):
                for j in range(left, min(i, left + TILE)):
                    M[j, i] = M[i, j]
