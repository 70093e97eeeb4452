"""Storages of kernel functions, evaluated when needed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Protocol

import numpy as np

from kernelopt.errors import InputError, NotFiniteError, ShapeError
from kernelopt.grams.caching import BoundedCache, cached_array
from kernelopt.grams.storage import Storage
from kernelopt.kernels import Kernel, as_points
from kernelopt.validation import Array, Index, as_float_array, as_symmetric, numeric, shown


class KernelFunction(Protocol):
    """A positive semidefinite function of two points, such as `gaussian(1.0)`."""

    def __call__(self, X: Any, Z: Any = None, /) -> Array:
        """Return k(x_i, z_j), shape (len(X), len(Z)); Z = None means Z = X."""

    def diagonal(self, X: Any, /) -> Array:
        """Return k(x_i, x_i), shape (len(X),)."""

    def rank(self, X: Any, /) -> int:
        """Return an upper bound of the rank of the matrix on X."""


class KernelStorage(Storage):
    """The Gram matrices of kernel functions on a copy of the points X, evaluated when needed."""

    def __init__(self, kernels: Sequence[KernelFunction], X: Any) -> None:
        self.kernels = tuple(kernels)
        self.X = copied_points(X, self.kernels)
        super().__init__(len(self.kernels), len(self.X), [repr(k) for k in self.kernels])
        self._cache = BoundedCache()

    def gram(self, i: int) -> Array:
        return self._cache.get(i, self._evaluated)

    def _evaluated(self, i: int) -> Array:
        K = as_symmetric(self.kernels[i](self.X), self.names[i])
        if len(K) != self.n_points:
            raise ShapeError(
                f"{self.names[i]} must give a matrix on {self.n_points} points, got shape {K.shape}."
                " A kernel is called as k(X) and returns an array of shape (len(X), len(X))."
            )
        # A `Kernel` computes a new matrix. Any other kernel may return an array that it changes later.
        return K if isinstance(self.kernels[i], Kernel) else K.copy()

    def rows(self, chosen: Index) -> Array:
        found = np.empty((len(self), chosen.size, self.n_points))
        if chosen.size:
            points = self._points(chosen)
            for i in range(len(self)):
                found[i] = self.gram(i)[chosen] if i in self._cache else self._rows_of(i, points)
            # k(X, Z) treats Z as other points, for which `identity()` is zero; here x_i and z_i are the same.
            found[:, np.arange(chosen.size), chosen] = self.diagonals[:, chosen]
        return found

    def _rows_of(self, i: int, points: Any) -> Array:
        part = as_float_array(self.kernels[i](points, self.X), self.names[i])
        if part.shape != (len(points), self.n_points):
            raise ShapeError(
                f"{self.names[i]} must give rows of shape {(len(points), self.n_points)}, got {part.shape}. "
                "A kernel is called as k(X, Z) and returns an array of shape (len(X), len(Z))."
            )
        return part

    @cached_array
    def diagonals(self) -> Array:
        return np.stack([np.asarray(k.diagonal(self.X)) for k in self.kernels])

    @property
    def known_semidefinite(self) -> bool:
        return True

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(min(self.n_points, k.rank(self.X)) for k in self.kernels)

    def _points(self, rows: Any) -> Any:
        if isinstance(self.X, np.ndarray):
            return self.X[rows]
        return [self.X[i] for i in np.arange(self.n_points)[rows]]

    def _subset(self, chosen: Index) -> Storage:
        part = copy(self)  # the points are not checked and copied again
        part.kernels = tuple(self.kernels[i] for i in chosen)
        part.names = tuple(self.names[i] for i in chosen)
        part.shape = (len(chosen), *self.shape[1:])
        part._cache = self._cache.part(chosen)
        return self._sharing(part, chosen)

    def block(self, rows: slice | Index) -> Storage:
        return KernelStorage(self.kernels, self._points(rows))

    def cross(self, X_new: Any) -> Array:
        new = self._new(X_new)
        cross = np.stack(
            [numeric(k(new, self.X), name) for k, name in zip(self.kernels, self.names, strict=True)]
        )
        if not np.isfinite(cross).all():
            raise NotFiniteError("cross kernels must be finite, got NaN or infinity. Check the new points.")
        return cross

    def self_similarity(self, X_new: Any) -> Array:
        new = self._new(X_new)
        pairs = zip(self.kernels, self.names, strict=True)
        return np.stack([as_float_array(k.diagonal(new), name, ndim=1) for k, name in pairs])

    def _new(self, X_new: Any) -> Any:
        """Return new points after checking them: rows of numbers if the points of the stack are."""
        if not isinstance(self.X, np.ndarray):
            return X_new
        new = as_points(X_new, "X_new")
        if new.shape[1] != self.X.shape[1]:
            raise ShapeError(
                f"X_new must have {self.X.shape[1]} columns, as the points of the kernels, got shape "
                f"{new.shape}. Apply the same preprocessing to the new points."
            )
        return new


def as_kernels(kernels: Any) -> tuple[KernelFunction, ...]:
    """Return a list of kernel functions as a tuple, after checking them."""
    if callable(kernels):
        raise InputError(f"kernels must be a list of kernels, got {kernels!r}. Wrap it: [{kernels!r}].")
    if isinstance(kernels, str) or not isinstance(kernels, Sequence):
        raise InputError(
            f"kernels must be a list of kernels, got {shown(kernels)} ({type(kernels).__name__}). "
            "Pass kernels before the points: from_kernels([...], X)."
        )
    if not len(kernels):
        raise ShapeError("kernels must hold at least one kernel, got none. Add one, such as linear().")
    for kernel in kernels:
        if isinstance(kernel, type) or not (callable(kernel) and hasattr(kernel, "rank")):
            raise InputError(
                f"kernels must be kernel objects such as gaussian(1.0), got {kernel!r}. "
                "Create it first, and pass kernels before the points: from_kernels([...], X)."
            )
    return tuple(kernels)


def copied_points(X: Any, kernels: Sequence[KernelFunction]) -> Any:
    """Return a copy of the points: an array of shape (N, d), or the nodes of a graph kernel."""
    if (isinstance(X, list | tuple) and not X) or (isinstance(X, np.ndarray) and not X.size):
        raise ShapeError("X must hold at least one point, got none. Pass the data, shape (N, d).")
    if isinstance(X, list | tuple) and not all(isinstance(kernel, Kernel) for kernel in kernels):
        return deepcopy(list(X))
    points = as_points(X, "X").copy()
    points.flags.writeable = False  # kernels are evaluated later, on the same numbers
    return points
