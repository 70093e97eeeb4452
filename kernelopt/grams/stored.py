"""Storages of numbers: an array, the vectors of rank-one matrices, or the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.errors import ShapeError
from kernelopt.grams.caching import cached_array, read_only
from kernelopt.grams.joined import one_by_one
from kernelopt.grams.storage import Points, Storage, power_of_two
from kernelopt.numerics.compiling import compiled, compiled_as, is_loaded
from kernelopt.numerics.decompositions import SECONDS
from kernelopt.running import check
from kernelopt.validation import Array, Floats, Index, Mask, plain, shown

COMPILED_ENTRIES = 4_000_000
"""From this size on loops over an array are compiled. Numpy takes 30 ms there, numba a second to import."""

BLOCK_ENTRIES = 32_768
"""Entries of all matrices that are combined at a time, where they are copied: 256 kB, for a fast cache."""


class ArrayStorage(Storage):
    """Matrices that are stored as one array, of dtype float64 or float32.

    Numbers in single precision are exact as doubles. They are converted where they are used, and all products
    and sums are doubles. Bounds of rounding errors are therefore the same for both types.

    Attributes
    ----------
    array : array of shape (m, N, N)
    """

    def __init__(
        self,
        array: Floats,
        names: Sequence[str] | None = None,
        largest: Array | None = None,
        assumes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(array.shape[0], array.shape[1], names)
        self.assumes = assumes
        self.array = read_only(array)
        if largest is not None:
            self.largest_entries = read_only(largest)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=np.float64 if dtype is None else dtype, copy=copy)

    def gram(self, i: int) -> Array:
        return np.asarray(self.array[i], dtype=np.float64)

    def between(self, rows: Points, columns: Points) -> Array:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.asarray(self.array[:, rows][:, :, columns], dtype=np.float64)
        if self.array.size < COMPILED_ENTRIES and not is_loaded():
            return np.asarray(self.array.take(rows, 1).take(columns, 2), dtype=np.float64)
        found = np.empty((len(self), rows.size, columns.size))
        compiled(gather)(self.array, rows, columns, found)
        return found

    def _subset(self, chosen: Index) -> Storage:
        steps = np.unique(np.diff(chosen))
        if steps.size > 1 or not (steps > 0).all():
            return one_by_one(self, chosen)  # a slice of the array needs no copy, other indices would
        part = slice(chosen[0], chosen[-1] + 1, int(steps[0]) if steps.size else 1)
        return self._sharing(self._of(self.array[part], self.names[part]), chosen)

    @cached_array
    def diagonals(self) -> Array:
        return np.array(np.diagonal(self.array, axis1=1, axis2=2), dtype=np.float64, order="C")

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray(self.array[:, i, j], dtype=np.float64)

    @cached_array
    def _nonzero(self) -> Mask:
        """Whether each matrix has an entry other than zero, shape (m,)."""
        pairs = zip(self.diagonals, self.array, strict=True)  # the diagonal is faster to read
        return np.array([diagonal.any() or K.any() for diagonal, K in pairs])

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(np.where(self._nonzero, self.n_points, 0).tolist())

    def block(self, rows: slice | Index) -> Storage:
        if isinstance(rows, slice):
            return self._of(self.array[:, rows, rows], self.names)
        return self._of(self.array[:, rows[:, None], rows], self.names)

    def _of(self, part: Floats, names: Sequence[str]) -> ArrayStorage:
        """Return the storage of a part of the array."""
        return ArrayStorage(part, names, assumes=self.assumes)

    def combine(self, w: Array) -> Array:
        if not self.array[0].flags.c_contiguous:
            return super().combine(w)
        chosen = np.flatnonzero(w)
        flat = self.array.reshape(len(self), -1)  # a view, since only the first axis may have a step
        if chosen.size == len(self) and flat.dtype == np.float64:
            return np.asarray(w @ flat).reshape(self.shape[1:])
        total, step = np.zeros(flat.shape[1]), max(1, BLOCK_ENTRIES // max(1, chosen.size))
        for start in range(0, total.size if chosen.size else 0, step):
            part = slice(start, start + step)
            total[part] = w[chosen] @ np.asarray(flat[chosen, part], dtype=np.float64)
        return total.reshape(self.shape[1:])

    def keep_images(self, alphas: Array) -> None:
        self._keep_products(alphas)

    def _apply(self, a: Array) -> Array:
        if self.array.size < COMPILED_ENTRIES:
            return np.stack([K[:, : a.size] @ a for K in self])
        # The matrices are symmetric: only the rows of the support are read.
        images, support = np.zeros(self.shape[:2]), np.flatnonzero(a)
        compiled(add_rows)(self.array, support, a[support], images)
        return images


class RankOneStorage(Storage):
    """The matrices v_i v_i' of the columns of V."""

    known_semidefinite = of_vectors = True

    def __init__(self, V: Array, names: Sequence[str] | None = None) -> None:
        super().__init__(V.shape[1], V.shape[0], names or [f"v{i} v{i}'" for i in range(V.shape[1])])
        self.V = read_only(V)

    def gram(self, i: int) -> Array:
        return np.outer(self.V[:, i], self.V[:, i])

    def between(self, rows: Points, columns: Points) -> Array:
        return np.asarray(self.V[rows].T[:, :, None] * self.V[columns].T[:, None, :])

    def block(self, rows: slice | Index) -> Storage:
        return RankOneStorage(self.V[rows], self.names)

    def _subset(self, chosen: Index) -> Storage:
        return self._sharing(RankOneStorage(self.V[:, chosen], [self.names[i] for i in chosen]), chosen)

    @cached_array
    def diagonals(self) -> Array:
        return (self.V**2).T

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return (1,) * len(self)

    def combine(self, w: Array) -> Array:
        check(SECONDS.product * float(self.V.size) * self.n_points)
        return np.asarray((self.V * w) @ self.V.T)

    def _apply(self, a: Array) -> Array:
        return (self.V * (a @ self.V[: a.size])).T

    def image(self, w: Array, a: Array) -> Array:
        return np.asarray(self.V @ (w * (a @ self.V[: a.size])))

    def forms(self, a: Array) -> Array:
        unit = power_of_two(a)
        products = ((a / unit) @ self.V[: a.size]) * unit
        return np.asarray(products * products)

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray((self.V[i] * self.V[j]).T)

    def inner_with(self, other: Storage) -> Array:
        if isinstance(other, RankOneStorage):
            return np.asarray((self.V.T @ other.V) ** 2)
        return np.stack([(self.V * (K @ self.V)).sum(axis=0) for K in other], axis=1)  # <vv', K> = v'Kv

    def factor(self, i: int) -> Array:
        return self.V[:, i : i + 1]


class IdentityStorage(Storage):
    """The single matrix I. Its kernel is k(x, z) = 1 if x and z are the same point, else 0."""

    known_semidefinite = of_vectors = constant_diagonals = True

    def __init__(self, n_points: int) -> None:
        super().__init__(1, n_points, ["I"])

    def gram(self, i: int) -> Array:
        return np.eye(self.n_points)

    def between(self, rows: Points, columns: Points) -> Array:
        every = np.arange(self.n_points)
        return np.asarray(every[rows][:, None] == every[columns], dtype=float)[None]

    def block(self, rows: slice | Index) -> Storage:
        return IdentityStorage(len(np.arange(self.n_points)[rows]))

    def _subset(self, chosen: Index) -> Storage:
        return one_by_one(self, chosen)

    @cached_array
    def diagonals(self) -> Array:
        return np.ones((1, self.n_points))

    def _apply(self, a: Array) -> Array:
        return np.pad(a, (0, self.n_points - a.size))[None]

    def inner_with(self, other: Storage) -> Array:
        return np.asarray(other.diagonals.sum(axis=1)[None])  # <I, K> = tr K

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray(i == j, dtype=float)[None]

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


def add_rows_loop(rows: Array, slots: Index, steps: Array, images: Array) -> None:
    """Do what `add_rows` does, four rows at a time.

    Rows in single precision are converted entry by entry, so that products and sums are doubles.
    """
    n = rows.shape[2]
    for m in range(rows.shape[0]):
        i = 0
        while i + 3 < slots.size:
            p, q, r, s = slots[i], slots[i + 1], slots[i + 2], slots[i + 3]
            u, v, w, x = steps[i], steps[i + 1], steps[i + 2], steps[i + 3]
            for j in range(n):
                images[m, j] += u * rows[m, p, j] + v * rows[m, q, j] + w * rows[m, r, j] + x * rows[m, s, j]
            i += 4
        while i < slots.size:
            for j in range(n):
                images[m, j] += steps[i] * rows[m, slots[i], j]
            i += 1


@compiled_as(add_rows_loop)
def add_rows(rows: Array, slots: Index, steps: Array, images: Array) -> None:
    """Add sum_i steps_i rows[m, slots_i] to images[m] for every m, in doubles. It is to be `compiled`."""
    images += np.tensordot(steps, rows[:, slots], (0, 1))


def gather(matrices: Array, rows: Index, columns: Index, found: Array) -> None:
    """Write the entries matrices[m, rows_i, columns_j] to `found`. The loop is to be `compiled`."""
    for m in range(matrices.shape[0]):
        for i in range(rows.size):
            row, to = matrices[m, rows[i]], found[m, i]
            for j in range(columns.size):
                to[j] = row[np.uint64(columns[j])]  # numba looks for a sign of other indices
