"""Storages of numbers: an array, the vectors of rank-one matrices, or the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.errors import ShapeError
from kernelopt.grams.caching import cached_array, read_only
from kernelopt.grams.storage import Storage
from kernelopt.validation import Array, Index, plain, shown


class ArrayStorage(Storage):
    """Matrices that are stored as one array."""

    def __init__(
        self, array: Array, names: Sequence[str] | None = None, largest: Array | None = None
    ) -> None:
        super().__init__(array.shape[0], array.shape[1], names)
        self._array = read_only(array)
        if largest is not None:
            self.largest_entries = read_only(largest)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype, copy=copy)

    def gram(self, i: int) -> Array:
        return np.asarray(self._array[i])

    def rows(self, chosen: Index) -> Array:
        return np.asarray(self._array[:, chosen])

    def _subset(self, chosen: Index) -> Storage:
        steps = np.unique(np.diff(chosen))
        if steps.size > 1 or not (steps > 0).all():
            return super()._subset(chosen)  # a slice of the array needs no copy, other indices would
        part = slice(chosen[0], chosen[-1] + 1, int(steps[0]) if steps.size else 1)
        return self._sharing(ArrayStorage(self._array[part], self.names[part]), chosen)

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        nonzero = (np.diagonal(K).any() or K.any() for K in self._array)  # the diagonal is faster to read
        return tuple(self.n_points if each else 0 for each in nonzero)

    def block(self, rows: slice | Index) -> Storage:
        return ArrayStorage(self._array[:, rows][:, :, rows], self.names)

    def combine(self, w: Array) -> Array:
        total: Array = np.tensordot(w, self._array, 1)
        return total

    def _apply(self, a: Array) -> Array:
        padded = np.zeros(self.n_points)
        padded[: a.size] = a
        images = self._array.reshape(-1, self.n_points) @ padded  # faster than numpy's product of stacks
        return np.asarray(images.reshape(len(self), -1))


class RankOneStorage(Storage):
    """The matrices v_i v_i' of the columns of V."""

    def __init__(self, V: Array, names: Sequence[str] | None = None) -> None:
        super().__init__(V.shape[1], V.shape[0], names or [f"v{i} v{i}'" for i in range(V.shape[1])])
        self.V = read_only(V)

    def gram(self, i: int) -> Array:
        return np.outer(self.V[:, i], self.V[:, i])

    def rows(self, chosen: Index) -> Array:
        return np.asarray(self.V[chosen].T[:, :, None] * self.V.T[:, None, :])

    def block(self, rows: slice | Index) -> Storage:
        return RankOneStorage(self.V[rows], self.names)

    def _subset(self, chosen: Index) -> Storage:
        return self._sharing(RankOneStorage(self.V[:, chosen], [self.names[i] for i in chosen]), chosen)

    @cached_array
    def diagonals(self) -> Array:
        return (self.V**2).T

    @property
    def known_semidefinite(self) -> bool:
        return True

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return (1,) * len(self)

    def combine(self, w: Array) -> Array:
        return np.asarray((self.V * w) @ self.V.T)

    def _apply(self, a: Array) -> Array:
        return (self.V * (a @ self.V[: a.size])).T

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray((self.V[i] * self.V[j]).T)

    def inner(self) -> Array:
        products: Array = (self.V.T @ self.V) ** 2
        return products

    def factor(self, i: int) -> Array:
        return self.V[:, i : i + 1]


class IdentityStorage(Storage):
    """The single matrix I. Its kernel is k(x, z) = 1 if x and z are the same point, else 0."""

    def __init__(self, n_points: int) -> None:
        super().__init__(1, n_points, ["I"])

    def gram(self, i: int) -> Array:
        return np.eye(self.n_points)

    def rows(self, chosen: Index) -> Array:
        unit = np.zeros((1, chosen.size, self.n_points))
        unit[0, np.arange(chosen.size), chosen] = 1.0
        return unit

    def block(self, rows: slice | Index) -> Storage:
        return IdentityStorage(len(np.arange(self.n_points)[rows]))

    @cached_array
    def diagonals(self) -> Array:
        return np.ones((1, self.n_points))

    def _apply(self, a: Array) -> Array:
        return np.pad(a, (0, self.n_points - a.size))[None]

    def inner(self) -> Array:
        return np.full((1, 1), float(self.n_points))

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray(i == j, dtype=float)[None]

    @property
    def known_semidefinite(self) -> bool:
        return True

    def factor(self, i: int) -> Array:
        return np.eye(self.n_points)

    def cross(self, X_new: Any) -> Array:
        return np.zeros((1, self._count(X_new), self.n_points))

    def self_similarity(self, X_new: Any) -> Array:
        return np.ones((1, self._count(X_new)))

    def _count(self, X_new: Any) -> int:
        """Return the number of new points."""
        points = X_new if isinstance(X_new, list | tuple) else plain(X_new, "X_new")
        if not (points if isinstance(points, list | tuple) else points.ndim and len(points)):
            raise ShapeError(
                f"X_new must be a sequence of at least one point, got {shown(X_new)} "
                f"({type(X_new).__name__}). "
                "Pass an array of shape (n_new, d), or a list of nodes."
            )
        return len(points)
