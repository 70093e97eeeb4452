"""Storages of centred and normalised kernels, whose entries follow from entries of another storage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from kernelopt.errors import InputError, NotPSDError
from kernelopt.grams.caching import BoundedCache, all_cached, by_columns, cached_array
from kernelopt.grams.storage import Points, Storage
from kernelopt.numerics.decompositions import RANK_TOLERANCE
from kernelopt.validation import Array, Index, one_of


def normalized(base: Storage, kind: str) -> Storage:
    """Return the normalised storage of a kind; see `Grams.normalize`."""
    hint = (
        "Choose 'multiplicative' for features of variance one, 'spherical' for a diagonal of ones, 'trace' "
        "for a mean diagonal of one."
    )
    one_of(kind, "the kind of Grams.normalize", ("multiplicative", "spherical", "trace"), hint)
    if kind == "spherical" and not base.constant_diagonals:
        return SphericalStorage(base)
    return ScaledStorage(base, kind)


def variances(base: Storage) -> Array:
    """Return the variance tr K_i / N - 1'K_i 1 / N^2 of the features of each kernel, shape (m,)."""
    diagonal = base.diagonals.mean(axis=1)
    variance: Array = diagonal - base.mean_entries
    for i in np.flatnonzero(~((variance > RANK_TOLERANCE * diagonal) & (diagonal > 0)))[:1]:
        raise InputError(
            f"{base.names[i]} must have features that vary beyond round-off, got variance {variance[i]:.3g} "
            f"at mean diagonal {diagonal[i]:.3g} over {base.n_points} points in "
            "normalize('multiplicative'). A constant kernel tells no points apart: leave it out."
        )
    return variance


def mean_diagonals(base: Storage) -> Array:
    """Return tr K_i / N, shape (m,)."""
    mean: Array = base.diagonals.mean(axis=1)
    for i in np.flatnonzero(~(mean > 0))[:1]:
        raise InputError(
            f"{base.names[i]} must have a positive trace, got {base.diagonals[i].sum():.3g} over "
            f"{base.n_points} points in normalize('trace'). A zero kernel has no scale: leave it out."
        )
    return mean


def positive_diagonals(base: Storage) -> Array:
    """Return the diagonal entry of each kernel, of those that are constant, shape (m,)."""
    return checked_squares(base, base.diagonals[:, :1], "point {}")[:, 0]


def checked_squares(base: Storage, squares: Array, where: str) -> Array:
    """Return the squared lengths k(x, x), which must be positive, of points that a message calls `where`."""
    for i, j in np.argwhere(~(squares > 0))[:1]:
        raise InputError(
            f"{base.names[i]} must be positive between a point and itself, got {squares[i, j]:.3g} at "
            f"{where.format(j)} in normalize('spherical'). Drop that point, or add an offset: "
            "polynomial(1, offset=1.0) is linear plus 1. For strings, choose spectrum(k) of smaller k."
        )
    return squares


FORMULAS: dict[str, Callable[[Storage], Array]] = {
    "multiplicative": variances,
    "spherical": positive_diagonals,  # where they are constant
    "trace": mean_diagonals,
}


class ChangedStorage(Storage):
    """The matrices of a base, whose entry of two points is changed by one number of each of them.

    The numbers come from the storage that was changed, which is called `whole`. A block of the changed
    storage has a block of it as its base, and the same `whole`, whose points have the numbers `points` there.
    """

    def __init__(self, base: Storage, whole: Storage | None = None, points: Index | None = None) -> None:
        super().__init__(len(base), base.n_points, base.names)
        self.base, self.whole = base, base if whole is None else whole
        self.known_semidefinite = base.known_semidefinite
        self.points = np.arange(base.n_points) if points is None else points

    @property
    @abstractmethod
    def numbers(self) -> Array:
        """The numbers of the points, shape (m, N)."""

    @abstractmethod
    def numbers_of(self, X_new: Any) -> Array:
        """Return the numbers of new points, shape (m, n_new) or (m, 1)."""

    @abstractmethod
    def changed(self, values: Array, left: Array, right: Array) -> Array:
        """Return changed entries, whose points have the numbers `left` and `right`."""

    def changed_own(self, values: Array, numbers: Array) -> Array:
        """Return changed diagonal entries, whose points have these numbers."""
        return self.changed(values, numbers, numbers)

    def with_base(self, base: Storage, whole: Storage, points: Index, chosen: Index | None) -> Storage:
        """Return the same change of another base, of the kernels `chosen`."""
        return type(self)(base, whole, points)

    def block(self, rows: slice | Index) -> Storage:
        return self.with_base(self.base.block(rows), self.whole, self.points[rows], None)

    def _subset(self, chosen: Index) -> Storage:
        base = self.base.subset(chosen)
        whole = base if self.whole is self.base else self.whole.subset(chosen)
        return self._sharing(self.with_base(base, whole, self.points, chosen), chosen)

    def gram(self, i: int) -> Array:
        numbers = self.numbers[i]
        return self.changed(self.base.gram(i), numbers[:, None], numbers)

    def between(self, rows: Points, columns: Points) -> Array:
        left, right = self.numbers[:, rows][:, :, None], self.numbers[:, columns][:, None, :]
        return self.changed(self.base.between(rows, columns), left, right)

    def entries(self, i: Index, j: Index) -> Array:
        return self.changed(self.base.entries(i, j), self.numbers[:, i], self.numbers[:, j])

    @cached_array
    def diagonals(self) -> Array:
        return by_columns(self.changed_own, self.base.diagonals, self.numbers)

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(min(self.n_points, bound) for bound in self.whole.rank_bounds)

    def cross(self, X_new: Any) -> Array:
        values = self.base.cross(X_new)
        return self.changed(values, self.numbers_of(X_new)[:, :, None], self.numbers[:, None, :])

    def self_similarity(self, X_new: Any) -> Array:
        return self.changed_own(self.base.self_similarity(X_new), self.numbers_of(X_new))


class ScaledStorage(ChangedStorage):
    """The matrices K_i / c_i of a base, with positive constants c.

    `scale` is the name of the formula that gives the constants of `whole`, or the constants, shape (m,).
    """

    def __init__(self, base: Storage, scale: str | Array, whole: Storage | None = None) -> None:
        super().__init__(base, whole)
        self._scale = scale

    @cached_array
    def constants(self) -> Array:
        """The constants c, shape (m,)."""
        return FORMULAS[self._scale](self.whole) if isinstance(self._scale, str) else self._scale

    @property
    def numbers(self) -> Array:
        return np.broadcast_to(self.constants[:, None], self.shape[:2])

    def numbers_of(self, X_new: Any) -> Array:
        return self.constants[:, None]

    def changed(self, values: Array, left: Array, right: Array) -> Array:
        return values / left

    def with_base(self, base: Storage, whole: Storage, points: Index, chosen: Index | None) -> Storage:
        scale = self._scale
        known = isinstance(scale, str) or chosen is None
        return ScaledStorage(base, scale if known else np.asarray(scale)[chosen], whole)

    @property
    def magnitudes(self) -> Array:
        return by_columns(np.divide, self.base.magnitudes, self.numbers)

    @property
    def constant_diagonals(self) -> bool:  # type: ignore[override]
        return self.base.constant_diagonals

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return self.base.rank_bounds

    @property
    def mean_entries(self) -> Array:
        return np.asarray(self.base.mean_entries / self.constants)

    def combine(self, w: Array) -> Array:
        return self.base.combine(w / self.constants)

    def combine_block(self, w: Array, rows: Index) -> Array:
        return self.base.combine_block(w / self.constants, rows)

    def keep_images(self, alphas: Array) -> None:
        self.base.keep_images(alphas)

    def apply(self, a: Array) -> Array:
        return self.base.apply(a) / self.constants[:, None]

    def image(self, w: Array, a: Array) -> Array:
        return self.base.image(w / self.constants, a)

    def images(self, a: Array, points: Index) -> Array:
        return self.base.images(a, points) / self.constants[:, None]

    def forms(self, a: Array) -> Array:
        return np.asarray(self.base.forms(a) / self.constants)

    def inner(self) -> Array:
        return self.base.inner() / np.outer(self.constants, self.constants)

    def factor(self, i: int) -> Array:
        return np.asarray(self.base.factor(i) / np.sqrt(self.constants[i]))


class CenteredStorage(ChangedStorage):
    """The matrices K_ij - s_i - s_j of a base, with s_i = (mean of row i) - (mean of all entries) / 2.

    The means run over `whole`. No matrix is cached: sums and rows of the base are shifted. Diagonal entries
    below 1e-11 of the terms of their difference are rounding errors, and set to zero.
    """

    @cached_array
    def numbers(self) -> Array:
        return np.asarray((self.whole.row_means - self._half_mean)[:, self.points])

    @property
    def _half_mean(self) -> Array:
        half: Array = self.whole.row_means.mean(axis=1, keepdims=True) / 2
        return half

    def numbers_of(self, X_new: Any) -> Array:
        return np.asarray(self.whole.cross(X_new).mean(axis=2) - self._half_mean)

    def changed(self, values: Array, left: Array, right: Array) -> Array:
        shifts: Array = left + right
        return np.subtract(values, shifts, out=shifts)

    def changed_own(self, values: Array, numbers: Array) -> Array:
        centred = values - 2 * numbers
        zero = np.abs(centred) <= RANK_TOLERANCE * (np.abs(values) + 2 * np.abs(numbers))
        return np.where(zero, 0.0, centred)

    @property
    def magnitudes(self) -> Array:
        # |K_jk| + |s_j| + |s_k| <= sqrt(d_j d_k) with d = 4 (K_jj + |s_j| + max |s|)
        shifts = np.abs(self.numbers)
        return np.asarray(4 * (self.base.magnitudes + shifts + shifts.max(axis=1, keepdims=True)))

    def combine(self, w: Array) -> Array:
        shift = w @ self.numbers
        return np.asarray(self.base.combine(w) - (shift[:, None] + shift))

    def keep_images(self, alphas: Array) -> None:
        self.base.keep_images(alphas)

    def _apply(self, a: Array) -> Array:
        along = self.numbers[:, : a.size] @ a
        return np.asarray(self.base.apply(a) - (self.numbers * a.sum() + along[:, None]))

    def factor(self, i: int) -> Array:
        if self.whole.rank_bounds[i] < self.n_points:  # a centred factor has no more columns than L
            L = self.whole.factor(i)
            return np.asarray((L - L.mean(axis=0))[self.points])
        constant = not self.diagonals[i].any() and bool(
            np.abs(self.gram(i)).max() <= RANK_TOLERANCE * np.abs(self.base.diagonals[i]).max()
        )  # a centred constant kernel is only rounding errors, which may be indefinite
        return np.zeros((self.n_points, 0)) if constant else super().factor(i)

    def cross(self, X_new: Any) -> Array:
        cross = self.whole.cross(X_new)
        shifts = cross.mean(axis=2) - self._half_mean
        return self.changed(cross[:, :, self.points], shifts[:, :, None], self.numbers[:, None, :])


class SphericalStorage(ChangedStorage):
    """The matrices K_ij / sqrt(K_ii K_jj): the kernels of features of length one."""

    def __init__(self, base: Storage) -> None:
        super().__init__(base)
        self._cache = BoundedCache()

    @cached_array
    def numbers(self) -> Array:
        """The lengths sqrt(K_ii) of the features, shape (m, N)."""
        return np.sqrt(checked_squares(self.base, self.base.diagonals, "point {}"))

    def numbers_of(self, X_new: Any) -> Array:
        return np.sqrt(checked_squares(self.base, self.base.self_similarity(X_new), "X_new[{}]"))

    def changed(self, values: Array, left: Array, right: Array) -> Array:
        lengths: Array = left * right
        return np.divide(values, lengths, out=lengths)

    def changed_own(self, values: Array, numbers: Array) -> Array:
        return np.ones_like(numbers)

    def with_base(self, base: Storage, whole: Storage, points: Index, chosen: Index | None) -> Storage:
        part = SphericalStorage(base)  # the lengths of its points alone
        if chosen is not None:
            part._cache = self._cache.part(chosen)
        return part

    def gram(self, i: int) -> Array:
        return self._cache.get(i, self._scaled)

    def _scaled(self, i: int) -> Array:
        K = super().gram(i)
        np.fill_diagonal(K, 1.0)
        return K

    def _at_hand(self, i: int) -> bool:
        return i in self._cache

    @property
    def pointwise(self) -> bool:  # type: ignore[override]
        return not all_cached(self.shape)

    @property
    def magnitudes(self) -> Array:
        return by_columns(lambda d, lengths: d / lengths**2, self.base.magnitudes, self.numbers)

    def factor(self, i: int) -> Array:
        with suppress(NotPSDError):
            L = super().factor(i)
            if L.shape[1] <= self.rank_bounds[i]:
                return L
        # Normalisation magnifies the rounding errors of centring at points close to the mean. They can look
        # like additional rank or like negative eigenvalues, from which the factor of the base is free.
        return self.base.factor(i) / self.numbers[i, :, None]
