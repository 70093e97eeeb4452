"""`Storage`: the matrices of a stack in one of several forms, and the arithmetic on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import InputError
from kernelopt.grams.caching import BoundedCache, all_cached, cached_array, chunks, pieces, read_only
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.running import check
from kernelopt.validation import Array, Index, row_maxima

Mask: TypeAlias = NDArray[np.bool_]


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return different names: of equal ones, all but the first have a number, as in "linear() (2)"."""
    found: list[str] = []
    taken, seen = set(names), dict.fromkeys(names, 0)
    for name in names:
        seen[name] += 1
        each = name
        while seen[name] > 1 and each in taken:
            each = f"{name} ({seen[name]})"
            seen[name] += each in taken
        taken.add(each)
        found.append(each)
    return tuple(found)


def power_of_two(a: Array) -> float:
    """Return the power of two next to the largest size of the entries: a product with it is not rounded."""
    return float(np.ldexp(1.0, np.frexp(np.abs(a).max(initial=0.0))[1]))


class Storage(ABC):
    """m symmetric matrices of order N; all operations follow from the methods `gram` and `block`.

    `Grams` documents the operations and checks their arguments: indices are integers in 0..N-1 (0..m-1),
    weights are a vector of m numbers, and alpha is a vector of at most N numbers. A form that can compute
    single rows overrides `rows`, which is used for matrices that are too large to cache. Several threads may
    read one storage. Cached arrays are read-only.
    """

    assumes: tuple[str, ...] = ()
    """What bounds for these matrices assume beside them, as sentences."""

    origin: tuple[Storage, Index] | None = None
    """For a subset: the storage it was taken from, and the positions of its matrices there."""

    _applied: tuple[Array, Array] | None = None  # the last alpha, and its images
    _partial: tuple[Array, Array, Mask] | None = None  # the last alpha, images, and where they are known

    def __init__(self, m: int, n_points: int, names: Sequence[str] | None = None) -> None:
        self.shape: tuple[int, int, int] = (m, n_points, n_points)
        self.names: tuple[str, ...] = numbered(names or [f"K[{i}]" for i in range(m)])
        self._factors = BoundedCache()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, without caches and without the storage that a subset was taken from."""
        state = dict(vars(self))  # an atomic copy, since another thread may add to it
        return {
            k: v
            for k, v in state.items()
            if k not in ("origin", "_applied", "_partial")
            and not isinstance(getattr(type(self), k, None), cached_array)
        }

    @abstractmethod
    def gram(self, i: int) -> Array:
        """Return matrix i, shape (N, N)."""

    @abstractmethod
    def block(self, rows: slice | Index) -> Storage:
        """Return the principal blocks of the matrices on the points `rows`."""

    @property
    def n_points(self) -> int:
        """N, the number of points."""
        return self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self.gram(i) for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(
                f"an array of all matrices is a copy, got copy=False for {self.described()}. Leave it out."
            )
        return np.asarray(np.stack(list(self)), dtype=dtype)

    def described(self) -> str:
        """Return the text by which messages name the stack, which is also its `repr`."""
        return f"Grams({len(self)} kernels on {self.n_points} points: {', '.join(self.names[:4])}" + (
            ", ...)" if len(self) > 4 else ")"
        )

    def renamed(self, names: Sequence[str]) -> Storage:
        """Return the same matrices with other names, one for each; they share the caches."""
        part = copy(self)
        part.names = tuple(names)
        return part

    def subset(self, chosen: Index) -> Storage:
        """Return some of the matrices, which share the caches; all in order are the storage itself."""
        if np.array_equal(chosen, np.arange(len(self))):
            return self
        if self.origin is not None:
            whole, positions = self.origin
            part = whole.subset(positions[chosen])
        else:
            part = self._subset(chosen)
        names = numbered([self.names[i] for i in chosen])
        return part if part.names == names else part.renamed(names)

    def _subset(self, chosen: Index) -> Storage:
        """Compute the result of `subset`. Forms override it where they can select many matrices at once."""
        return self._sharing(ChosenStorage(self, chosen), chosen)

    def _sharing(self, part: Storage, chosen: Index) -> Storage:
        """Let a new storage of the matrices `chosen` share the cache of this one."""
        part.origin = self, chosen
        part._factors = self._factors.part(chosen)
        return part

    def rows(self, chosen: Index) -> Array:
        """Return the rows `chosen` of all matrices, shape (m, len(chosen), N)."""
        return np.stack([K[chosen] for K in self])

    @cached_array
    def diagonals(self) -> Array:
        """The diagonals, shape (m, N)."""
        return np.stack([np.diag(K).copy() for K in self])  # a view would keep the whole matrix in memory

    @property
    def known_semidefinite(self) -> bool:
        """Whether the matrices are positive semidefinite by construction."""
        return False

    @property
    def magnitudes(self) -> Array:
        """The diagonals of matrices that are PSD by construction, else the largest entries of the rows."""
        if not self.known_semidefinite:
            return self.largest_entries
        d = self.diagonals
        return d if (d >= 0).all() else np.abs(d)

    @cached_array
    def largest_entries(self) -> Array:
        """The largest absolute value in each row, shape (m, N)."""
        if all_cached(self.shape):
            return np.stack([row_maxima(K) for K in self])
        return np.concatenate([row_maxima(rows) for rows in self._all_rows()], axis=1)

    @cached_array
    def row_means(self) -> Array:
        """The row means K_i 1 / N, shape (m, N)."""
        return self.apply(np.ones(self.n_points)) / self.n_points

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        """An upper bound of the rank of each matrix, known without evaluating it."""
        return (self.n_points,) * len(self)

    def combine(self, w: Array) -> Array:
        """Return sum_i w_i K_i, shape (N, N)."""
        total = np.zeros(self.shape[1:])
        for i in np.flatnonzero(w):
            check()
            total += w[i] * self.gram(int(i))
        return total

    def apply(self, a: Array) -> Array:
        """Return (K_i a)_i, shape (m, N), from the cache if a is the last one that was asked for."""
        last, known = self._applied, self._known_images(a)
        if last is not None and np.array_equal(a, last[0]):
            return last[1]
        images = read_only(self._apply(a) if known is None else self._completed(a, *known, ~known[1]))
        self._applied, self._partial = (a.copy(), images), None
        return images

    def images(self, a: Array, points: Index) -> Array:
        """Return the entries `points` of (K_i a)_i, shape (m, len(points))."""
        return np.asarray(self.apply(a)[:, points])

    def image(self, w: Array, a: Array) -> Array:
        """Return sum_i w_i K_i a, shape (N,)."""
        return np.asarray(w @ self.apply(a))

    def forms(self, a: Array) -> Array:
        """Return (a'K_i a)_i, shape (m,)."""
        support, unit = np.flatnonzero(a), power_of_two(a)
        return np.asarray((self.images(a, support) @ (a[support] / unit)) * unit)

    def _partial_images(self, a: Array, points: Index) -> Array:
        """Compute the result of `images` where single entries cost less than all.

        What was computed for the last alpha is kept, for `images` and `apply` of the same alpha.
        """
        nothing: tuple[Array, Mask] = np.zeros(self.shape[:2]), np.zeros(self.n_points, dtype=bool)
        known = self._known_images(a) or nothing
        wanted = np.zeros(self.n_points, dtype=bool)
        wanted[points] = True
        images = self._completed(a, *known, wanted)
        self._partial = a.copy(), images, known[1] | wanted
        return np.asarray(images[:, points])

    def _known_images(self, a: Array) -> tuple[Array, Mask] | None:
        """Return the images of the last alpha and the mask of their known entries, if a is the last one."""
        applied, partial = self._applied, self._partial
        if applied is not None and np.array_equal(a, applied[0]):
            return applied[1], np.ones(self.n_points, dtype=bool)
        if partial is not None and np.array_equal(a, partial[0]):
            return partial[1], partial[2]
        if self.origin is None:
            return None
        whole, chosen = self.origin
        known = whole._known_images(a)
        return None if known is None else (known[0][chosen], known[1])

    def _completed(self, a: Array, images: Array, known: Mask, wanted: Mask) -> Array:
        """Return the images with the entries that are wanted and not known."""
        missing = np.flatnonzero(wanted & ~known)
        if not missing.size:
            return images
        images = images.copy()  # another thread may read the old ones
        images[:, missing] = self._images(a, missing)
        return images

    def _images(self, a: Array, points: Index) -> Array:
        """Compute entries of the images, from the entries of the matrices at few points each time."""
        support = np.flatnonzero(a)
        found = np.empty((len(self), points.size))
        for part in pieces(points.size, len(self) * support.size):
            found[:, part] = self.between(points[part], support) @ a[support]
        return found

    def between(self, rows: Index, columns: Index) -> Array:
        """Return the entries at all pairs of rows and columns, shape (m, len(rows), len(columns))."""
        return self.rows(rows)[:, :, columns]

    def _apply(self, a: Array) -> Array:
        """Compute the result of `apply`, by symmetry from the rows of the support if that is less."""
        support = np.flatnonzero(a)
        at_hand = all(self._at_hand(i) for i in range(len(self)))
        if all_cached(self.shape) and (at_hand or support.size > self.n_points / 2):
            return np.stack([K[:, : a.size] @ a for K in self])
        images = np.zeros(self.shape[:2])
        for part in chunks(self.shape, support.size):
            chosen = support[part]
            for image, rows in zip(images, self.rows(chosen), strict=True):
                image += a[chosen] @ rows
        return images

    def _at_hand(self, i: int) -> bool:
        """Whether `gram(i)` takes no evaluation. Forms that evaluate matrices override it."""
        return True

    def _all_rows(self) -> Iterator[Array]:
        """Return the rows of all matrices, as many at a time as memory allows."""
        points = np.arange(self.n_points)
        return (self.rows(points[chunk]) for chunk in chunks(self.shape))

    def inner(self) -> Array:
        """Return the Frobenius inner products <K_i, K_j>, shape (m, m)."""
        flat = np.asarray(self).reshape(len(self), -1)
        return flat @ flat.T

    def entries(self, i: Index, j: Index) -> Array:
        """Return the entries at rows i and columns j of all matrices, shape (m, len(i))."""
        chosen = np.empty((len(self), len(i)))
        for row, K in zip(chosen, self, strict=True):
            row[:] = K[i, j]
        return chosen

    def factor(self, i: int) -> Array:
        """Return L with K_i = L L', by Cholesky factorisation with complete pivoting."""
        return self._factors.get(i, lambda i: pivoted_cholesky(self.gram(i), self.names[i]))

    def cross(self, X_new: Any) -> Array:
        """Return the kernels between new points and the N points, shape (m, n_new, N)."""
        raise InputError(
            f"cross kernels need kernel functions, got {self.described()}. Evaluate the kernels between the "
            f"new points and the {self.n_points} points yourself and pass the (m, n_new, N) array."
        )

    def self_similarity(self, X_new: Any) -> Array:
        """Return the kernels k_i(x, x) of each new point with itself, shape (m, n_new)."""
        raise InputError(
            f"similarities of new points need kernel functions, got {self.described()}. Evaluate the kernels "
            "between each new point and itself yourself, or make the stack with Grams.from_kernels."
        )


class ChosenStorage(Storage):
    """Some matrices of a storage that cannot select several of its matrices at once."""

    def __init__(self, whole: Storage, chosen: NDArray[np.intp]) -> None:
        super().__init__(len(chosen), whole.n_points, [whole.names[i] for i in chosen])
        self.whole, self.chosen = whole, chosen

    def gram(self, i: int) -> Array:
        return self.whole.gram(int(self.chosen[i]))

    def factor(self, i: int) -> Array:
        return self.whole.factor(int(self.chosen[i]))

    def _at_hand(self, i: int) -> bool:
        return self.whole._at_hand(int(self.chosen[i]))

    @property
    def known_semidefinite(self) -> bool:
        return self.whole.known_semidefinite

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        bounds = self.whole.rank_bounds
        return tuple(bounds[i] for i in self.chosen)

    def block(self, rows: slice | Index) -> Storage:
        return self.whole.block(rows).subset(self.chosen)

    def between(self, rows: Index, columns: Index) -> Array:
        return np.asarray(self.whole.between(rows, columns)[self.chosen])

    def cross(self, X_new: Any) -> Array:
        return np.asarray(self.whole.cross(X_new)[self.chosen])

    def self_similarity(self, X_new: Any) -> Array:
        return np.asarray(self.whole.self_similarity(X_new)[self.chosen])
