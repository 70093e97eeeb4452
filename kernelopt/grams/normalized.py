"""Normalised storages: each kernel divided by a constant, or each entry by the lengths of its features."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.errors import InputError, NotPSDError, ParameterError
from kernelopt.grams.caching import BoundedCache, all_cached, cached_array
from kernelopt.grams.storage import Storage
from kernelopt.numerics.factors import RANK_TOLERANCE
from kernelopt.validation import Array, Index, shown


def normalized(base: Storage, kind: str) -> Storage:
    """Return the normalised storage of a kind; see `Grams.normalize`."""
    name = kind if isinstance(kind, str) else ""
    if name == "spherical":
        return SphericalStorage(base)
    if name in ("multiplicative", "trace"):
        return ScaledStorage(base, variances if kind == "multiplicative" else mean_diagonals)
    raise ParameterError(
        f"kind must be 'multiplicative', 'spherical' or 'trace', got {shown(kind)} in Grams.normalize. "
        "Choose 'multiplicative' for features of variance one, 'spherical' for a diagonal of ones, "
        "'trace' for a mean diagonal of one."
    )


def variances(base: Storage) -> Array:
    """Return the variance tr K_i / N - 1'K_i 1 / N^2 of the features of each kernel, shape (m,)."""
    diagonal = base.diagonals.mean(axis=1)
    variance: Array = diagonal - base.row_means.mean(axis=1)
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


@dataclass(frozen=True, eq=False)
class KnownConstants:
    """Constants of shape (m,) in the form of a function of the storage, as `ScaledStorage` takes it."""

    constants: Array

    def __call__(self, base: Storage) -> Array:
        """Return the constants."""
        return self.constants

    def of(self, chosen: Index) -> KnownConstants:
        """Return the constants of some of the matrices."""
        return KnownConstants(self.constants[chosen])


class ScaledStorage(Storage):
    """The matrices K_i / c_i of a base, with positive constants c = formula(whole).

    `whole` is the storage that was normalised. A block of the normalised storage has a block of it as its
    base, and the same `whole`.
    """

    def __init__(
        self, base: Storage, formula: Callable[[Storage], Array], whole: Storage | None = None
    ) -> None:
        super().__init__(len(base), base.n_points, base.names)
        self._base, self._formula = base, formula
        self._whole = base if whole is None else whole

    @cached_array
    def constants(self) -> Array:
        """The constants c, shape (m,)."""
        return self._formula(self._whole)

    def unscaled(self) -> tuple[Storage, Array]:
        """Return the base and the constants c."""
        return self._base, self.constants

    def block(self, rows: slice | Index) -> Storage:
        return ScaledStorage(self._base.block(rows), self._formula, self._whole)

    def _subset(self, chosen: Index) -> Storage:
        base = self._base.subset(chosen)
        whole = base if self._whole is self._base else self._whole.subset(chosen)
        formula = self._formula.of(chosen) if isinstance(self._formula, KnownConstants) else self._formula
        return self._sharing(ScaledStorage(base, formula, whole), chosen)

    def gram(self, i: int) -> Array:
        return np.asarray(self._base.gram(i) / self.constants[i])

    def rows(self, chosen: Index) -> Array:
        return self._base.rows(chosen) / self.constants[:, None, None]

    @property
    def diagonals(self) -> Array:
        return self._base.diagonals / self.constants[:, None]

    @property
    def magnitudes(self) -> Array:
        return self._base.magnitudes / self.constants[:, None]

    @property
    def known_semidefinite(self) -> bool:
        return self._base.known_semidefinite

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return self._base.rank_bounds

    def combine(self, w: Array) -> Array:
        return self._base.combine(w / self.constants)

    def _apply(self, a: Array) -> Array:
        return self._base.apply(a) / self.constants[:, None]

    def image(self, w: Array, a: Array) -> Array:
        return self._base.image(w / self.constants, a)

    def images(self, a: Array, points: Index) -> Array:
        return self._base.images(a, points) / self.constants[:, None]

    def between(self, rows: Index, columns: Index) -> Array:
        return self._base.between(rows, columns) / self.constants[:, None, None]

    def inner(self) -> Array:
        return self._base.inner() / np.outer(self.constants, self.constants)

    def entries(self, i: Index, j: Index) -> Array:
        return self._base.entries(i, j) / self.constants[:, None]

    def factor(self, i: int) -> Array:
        return np.asarray(self._base.factor(i) / np.sqrt(self.constants[i]))

    def cross(self, X_new: Any) -> Array:
        return self._base.cross(X_new) / self.constants[:, None, None]

    def self_similarity(self, X_new: Any) -> Array:
        return self._base.self_similarity(X_new) / self.constants[:, None]


class SphericalStorage(Storage):
    """The matrices K_ij / sqrt(K_ii K_jj): the kernels of features of length one."""

    def __init__(self, base: Storage) -> None:
        super().__init__(len(base), base.n_points, base.names)
        self._base = base
        self._cache = BoundedCache()

    @property
    def base(self) -> Storage:
        """The storage that was normalised."""
        return self._base

    @cached_array
    def _lengths(self) -> Array:
        """The lengths sqrt(K_ii) of the features, shape (m, N)."""
        return self._roots(self._base.diagonals, "point {}")

    def _roots(self, squares: Array, where: str) -> Array:
        for i, j in np.argwhere(~(squares > 0))[:1]:
            raise InputError(
                f"{self.names[i]} must be positive between a point and itself, got {squares[i, j]:.3g} at "
                f"{where.format(j)} in normalize('spherical'). Drop that point, or add an offset: "
                "polynomial(1, offset=1.0) is linear plus 1. For strings, choose spectrum(k) of smaller k."
            )
        return np.asarray(np.sqrt(squares))

    def block(self, rows: slice | Index) -> Storage:
        return SphericalStorage(self._base.block(rows))

    def _subset(self, chosen: Index) -> Storage:
        part = SphericalStorage(self._base.subset(chosen))
        part._cache = self._cache.part(chosen)
        return self._sharing(part, chosen)

    def gram(self, i: int) -> Array:
        return self._cache.get(i, self._scaled)

    def _at_hand(self, i: int) -> bool:
        return i in self._cache

    def _scaled(self, i: int) -> Array:
        K: Array = self._base.gram(i) / np.outer(self._lengths[i], self._lengths[i])
        np.fill_diagonal(K, 1.0)
        return K

    def rows(self, chosen: Index) -> Array:
        lengths: Array = self._lengths[:, chosen, None] * self._lengths[:, None, :]
        return self._base.rows(chosen) / lengths

    def between(self, rows: Index, columns: Index) -> Array:
        lengths: Array = self._lengths[:, rows, None] * self._lengths[:, None, columns]
        return self._base.between(rows, columns) / lengths

    def images(self, a: Array, points: Index) -> Array:
        return super().images(a, points) if all_cached(self.shape) else self._partial_images(a, points)

    @property
    def diagonals(self) -> Array:
        return np.ones_like(self._lengths)

    @property
    def magnitudes(self) -> Array:
        return np.asarray(self._base.magnitudes / self._lengths**2)

    @property
    def known_semidefinite(self) -> bool:
        return self._base.known_semidefinite

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return self._base.rank_bounds

    def entries(self, i: Index, j: Index) -> Array:
        lengths: Array = self._lengths[:, i] * self._lengths[:, j]
        return self._base.entries(i, j) / lengths

    def factor(self, i: int) -> Array:
        with suppress(NotPSDError):
            L = super().factor(i)
            if L.shape[1] <= self.rank_bounds[i]:
                return L
        # Normalisation magnifies the rounding errors of centring at points close to the mean. They can look
        # like additional rank or like negative eigenvalues, from which the factor of the base is free.
        return self._base.factor(i) / self._lengths[i, :, None]

    def cross(self, X_new: Any) -> Array:
        cross = self._base.cross(X_new)
        lengths = self._roots(self._base.self_similarity(X_new), "X_new[{}]")
        products: Array = lengths[:, :, None] * self._lengths[:, None, :]
        return cross / products

    def self_similarity(self, X_new: Any) -> Array:
        return np.ones_like(self._roots(self._base.self_similarity(X_new), "X_new[{}]"))
