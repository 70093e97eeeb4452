"""Centred storages: the kernels of the features minus their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.grams.caching import cached_array
from kernelopt.grams.storage import Storage
from kernelopt.numerics.factors import RANK_TOLERANCE
from kernelopt.validation import Array, Index


class CenteredStorage(Storage):
    """The matrices K_ij - s_i - s_j of a base, with s_i = (mean of row i) - (mean of all entries) / 2.

    The means run over the storage that was centred, which is called `whole`. A block of the centred storage
    has a block of it as its base, and the same `whole`. No matrix is cached: sums and rows of the
    base are shifted. Diagonal entries below 1e-11 of the terms of their difference are rounding errors, and
    set to zero.
    """

    def __init__(
        self, base: Storage, whole: Storage | None = None, indices_in_whole: Index | None = None
    ) -> None:
        super().__init__(len(base), base.n_points, base.names)
        self._base = base
        self._whole = base if whole is None else whole
        self._indices_in_whole = np.arange(base.n_points) if indices_in_whole is None else indices_in_whole

    def parts(self) -> tuple[Storage, Storage, Index]:
        """Return the base, the storage whose mean is subtracted, and the base's points in that one."""
        return self._base, self._whole, self._indices_in_whole

    @cached_array
    def _shift(self) -> Array:
        return np.asarray((self._whole.row_means - self._half_mean)[:, self._indices_in_whole])

    @property
    def _half_mean(self) -> Array:
        half: Array = self._whole.row_means.mean(axis=1, keepdims=True) / 2
        return half

    def block(self, rows: slice | Index) -> Storage:
        return CenteredStorage(self._base.block(rows), self._whole, self._indices_in_whole[rows])

    def _subset(self, chosen: Index) -> Storage:
        base = self._base.subset(chosen)
        whole = base if self._whole is self._base else self._whole.subset(chosen)
        return self._sharing(CenteredStorage(base, whole, self._indices_in_whole), chosen)

    def gram(self, i: int) -> Array:
        shifts: Array = np.add.outer(self._shift[i], self._shift[i])
        return np.subtract(self._base.gram(i), shifts, out=shifts)

    def rows(self, chosen: Index) -> Array:
        rows = self._base.rows(chosen)
        return np.asarray(rows - (self._shift[:, chosen, None] + self._shift[:, None, :]))

    @cached_array
    def diagonals(self) -> Array:
        return centred_squares(self._base.diagonals, self._shift)

    @property
    def magnitudes(self) -> Array:
        # |K_jk| + |s_j| + |s_k| <= sqrt(d_j d_k) with d = 4 (K_jj + |s_j| + max |s|)
        shift = np.abs(self._shift)
        base = self._base.magnitudes + shift + shift.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(4 * base)

    @property
    def known_semidefinite(self) -> bool:
        return self._base.known_semidefinite

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(min(self.n_points, bound) for bound in self._whole.rank_bounds)

    def combine(self, w: Array) -> Array:
        shift = w @ self._shift
        return np.asarray(self._base.combine(w) - (shift[:, None] + shift))

    def _apply(self, a: Array) -> Array:
        along = self._shift[:, : a.size] @ a
        return np.asarray(self._base.apply(a) - (self._shift * a.sum() + along[:, None]))

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray(self._base.entries(i, j) - (self._shift[:, i] + self._shift[:, j]))

    def factor(self, i: int) -> Array:
        if self._whole.rank_bounds[i] < self.n_points:  # a centred factor has no more columns than L
            L = self._whole.factor(i)
            return np.asarray((L - L.mean(axis=0))[self._indices_in_whole])
        constant = not self.diagonals[i].any() and bool(
            np.abs(self.gram(i)).max() <= RANK_TOLERANCE * np.abs(self._base.diagonals[i]).max()
        )  # a centred constant kernel is only rounding errors, which may be indefinite
        return np.zeros((self.n_points, 0)) if constant else super().factor(i)

    def cross(self, X_new: Any) -> Array:
        cross = self._whole.cross(X_new)
        shift = cross.mean(axis=2) - self._half_mean
        return np.asarray(cross[:, :, self._indices_in_whole] - (shift[:, :, None] + self._shift[:, None, :]))

    def self_similarity(self, X_new: Any) -> Array:
        shift = self._whole.cross(X_new).mean(axis=2) - self._half_mean
        return centred_squares(self._whole.self_similarity(X_new), shift)


def centred_squares(squares: Array, shift: Array) -> Array:
    """Return k(x, x) - 2 s(x), set to zero where it is below 1e-11 of its terms."""
    centred = squares - 2 * shift
    zero = np.abs(centred) <= RANK_TOLERANCE * (np.abs(squares) + 2 * np.abs(shift))
    return np.where(zero, 0.0, centred)
