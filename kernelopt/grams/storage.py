"""`Storage`: the matrices of a stack in one of several forms, and the arithmetic on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from kernelopt.errors import InputError
from kernelopt.grams.caching import BoundedCache, all_cached, cached_array, pieces, read_only
from kernelopt.numerics.decompositions import pivoted_cholesky
from kernelopt.running import check
from kernelopt.validation import Array, Index, row_maxima

Points: TypeAlias = Index | slice  # in a block of entries
Known: TypeAlias = tuple[Index, Array]  # points in order, and the images of an alpha there

EVERY = slice(None)  # all points
KEPT_BYTES = 4_000_000  # of images of the last alphas, where these are of several machines and small
GATHERED = 1 / 3  # share of the points up to which images are computed from the rows of a support: measured
GATHERED_ENTRIES = 1 << 17  # entries of such rows that are copied at a time: 1 MB, which fits a fast cache


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


def remembered(kept: Mapping[bytes, Known], key: bytes, new: Known) -> dict[bytes, Known]:
    """Return the images of the last alphas with new ones at the end, those that fit into little memory."""
    found = {k: known for k, known in kept.items() if k != key} | {key: new}
    sizes = np.cumsum([len(k) + found[k][1].nbytes for k in reversed(found)])
    return dict(list(found.items())[-max(1, int((sizes <= KEPT_BYTES).sum())) :])


class Storage(ABC):
    """m symmetric matrices of order N; all operations follow from the methods `gram` and `block`.

    `Grams` documents the operations and checks their arguments: indices are integers in 0..N-1 (0..m-1),
    weights are a vector of m numbers, and alpha is a vector of at most N numbers. A form that can compute
    single entries overrides `between`, which is used for matrices that are too large to cache. Several
    threads may read one storage. Cached arrays are read-only.
    """

    assumes: tuple[str, ...] = ()
    """What bounds for these matrices assume beside them, as sentences."""

    origin: tuple[Storage, Index] | None = None
    """For a subset: the storage it was taken from, and the positions of its matrices there."""

    known_semidefinite: bool = False
    """Whether the matrices are positive semidefinite by construction."""

    constant_diagonals: bool = False
    """Whether all diagonal entries of a kernel are known to be equal."""

    pointwise: bool = False
    """Whether entries of images are computed one by one where not all are asked for."""

    _last: Mapping[bytes, Known] = MappingProxyType({})  # of the last alphas, the newest at the end

    def __init__(self, m: int, n_points: int, names: Sequence[str] | None = None) -> None:
        self.shape, self.n_points = (m, n_points, n_points), n_points
        self.names: tuple[str, ...] = numbered(names or [f"K[{i}]" for i in range(m)])
        self._factors = BoundedCache()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, without caches and without the storage that a subset was taken from."""
        state = dict(vars(self))  # an atomic copy, since another thread may add to it
        kinds = {name: getattr(type(self), name, None) for name in state}
        left = {name for name, kind in kinds.items() if isinstance(kind, cached_array | cached_property)}
        return {name: state[name] for name in state.keys() - left - {"origin", "_last", "_image"}}

    @abstractmethod
    def gram(self, i: int) -> Array:
        """Return matrix i, shape (N, N)."""

    @abstractmethod
    def block(self, rows: slice | Index) -> Storage:
        """Return the principal blocks of the matrices on the points `rows`."""

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
        """Compute the result of `subset`; see `joined.one_by_one`."""
        raise NotImplementedError

    def _sharing(self, part: Storage, chosen: Index) -> Storage:
        """Let a new storage of the matrices `chosen` share the cache of this one."""
        part.origin = self, chosen
        part._factors = self._factors.part(chosen)
        return part

    def between(self, rows: Points, columns: Points) -> Array:
        """Return the entries at all pairs of rows and columns, shape (m, count of rows, count of columns)."""
        return np.stack([K[rows][:, columns] for K in self])

    @cached_array
    def diagonals(self) -> Array:
        """The diagonals, shape (m, N)."""
        return np.stack([np.diag(K).copy() for K in self])  # a view would keep the whole matrix in memory

    @property
    def magnitudes(self) -> Array:
        """The diagonals of matrices that are PSD by construction, else the largest entries of the rows."""
        if not self.known_semidefinite:
            return self.largest_entries
        d = self.diagonals
        return np.abs(d) if d.min() < 0 else d

    @cached_array
    def largest_entries(self) -> Array:
        """The largest absolute value in each row, shape (m, N)."""
        if all_cached(self.shape):
            return np.stack([row_maxima(K) for K in self])
        found = np.empty(self.shape[:2])
        for part in pieces(self.n_points, found.size):
            found[:, part] = row_maxima(self.between(part, EVERY))
        return found

    @cached_array
    def row_means(self) -> Array:
        """The row means K_i 1 / N, shape (m, N)."""
        return self.apply(np.ones(self.n_points)) / self.n_points

    @property
    def mean_entries(self) -> Array:
        """The means 1'K_i 1 / N^2 of all entries, shape (m,)."""
        return np.asarray(self.row_means.mean(axis=1))

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

    def combine_block(self, w: Array, rows: Index) -> Array:
        """Return the principal block of sum_i w_i K_i on the points `rows`."""
        return self.block(rows).combine(w)

    def apply(self, a: Array) -> Array:
        """Return (K_i a)_i, shape (m, N), from the cache if a is the last vector that was asked for."""
        return self._remembered(a, np.arange(self.n_points))[1]

    def images(self, a: Array, points: Index) -> Array:
        """Return the entries `points` of (K_i a)_i, shape (m, len(points))."""
        wanted = np.unique(points) if self.pointwise else np.arange(self.n_points)
        known, images = self._remembered(a, wanted)
        return np.asarray(images[:, np.searchsorted(known, points)])

    def _remembered(self, a: Array, wanted: Index) -> tuple[Index, Array]:
        """Return points in order, `wanted` among them, and the entries of (K_i a)_i there.

        Entries of the last alphas are not computed again.
        """
        found = self._known_images(a)
        if found is not None and found[0].size == self.n_points:
            return found
        known, images = found or (np.zeros(0, dtype=np.intp), np.zeros((len(self), 0)))
        missing = wanted if found is None else np.setdiff1d(wanted, known, assume_unique=True)
        if missing.size == self.n_points:
            known, images = missing, self._apply(a)
        elif missing.size:
            points = np.concatenate([known, missing])
            order = np.argsort(points)
            images = np.concatenate([images, self._images(a, missing)], axis=1)[:, order]
            known = points[order]
        images = read_only(images)
        self._last = remembered(
            self._last, a.tobytes(), (known, images)
        )  # other threads may read the old one
        return known, images

    def _known_images(self, a: Array) -> Known | None:
        """Return the points at which images of an alpha are known, and these, if it is one of the last."""
        return self._known(a.tobytes())

    def _known(self, key: bytes) -> Known | None:
        """Return what is kept under a key, here or of the stack that this one was taken from."""
        last = self._last.get(key)
        if last is not None or self.origin is None:
            return last
        whole, chosen = self.origin
        found = whole._known(key)
        return found and (found[0], found[1][chosen])

    def keep_images(self, alphas: Array) -> None:  # noqa: B027
        """Compute the images of several alphas, shape (r, n), at once, where that reads the matrices once.

        They are kept as the last ones. A form that has no matrices at hand does nothing.
        """

    def _keep_products(self, alphas: Array) -> None:
        """Do what `keep_images` says, by products of the matrices with all alphas, where there is room."""
        m, n, _ = self.shape
        if len(alphas) < 2 or len(alphas) * (m + 2) * n * alphas.itemsize > KEPT_BYTES:
            return
        support, images = np.flatnonzero(alphas.any(axis=0)), np.zeros((len(alphas), m, n))
        for i, K in enumerate(self):
            for part in pieces(support.size, n, GATHERED_ENTRIES):
                images[:, i] += alphas[:, support[part]] @ K[support[part]]
        every, last = np.arange(n), self._last
        for a, image in zip(alphas, images, strict=True):
            last = remembered(last, a.tobytes(), (every, read_only(image)))
        self._last = last

    def image(self, w: Array, a: Array) -> Array:
        """Return sum_i w_i K_i a, shape (N,)."""
        return np.asarray(w @ self.apply(a))

    def forms(self, a: Array) -> Array:
        """Return (a'K_i a)_i, shape (m,), from the images of a at its support."""
        support, unit = np.flatnonzero(a), power_of_two(a)
        return np.asarray((self.images(a, support) @ (a[support] / unit)) * unit)

    def _images(self, a: Array, points: Index) -> Array:
        """Compute entries of the images, from the entries of the matrices at few points each time."""
        support = np.flatnonzero(a)
        found = np.empty((len(self), points.size))
        for part in pieces(points.size, len(self) * support.size):
            found[:, part] = self.between(points[part], support) @ a[support]
        return found

    def _apply(self, a: Array) -> Array:
        """Compute the result of `apply`, by symmetry from the rows of the support if that is less."""
        support = np.flatnonzero(a)
        at_hand = all(self._at_hand(i) for i in range(len(self)))
        images = np.zeros(self.shape[:2])
        if all_cached(self.shape) and (at_hand or support.size > self.n_points / 2):
            if support.size > GATHERED * self.n_points:
                return np.stack([K[:, : a.size] @ a for K in self])
            for image, K in zip(images, self, strict=True):
                for part in pieces(support.size, self.n_points, GATHERED_ENTRIES):
                    image += a[support[part]] @ K[support[part]]
            return images
        for part in pieces(support.size, images.size):
            chosen = support[part]
            for image, rows in zip(images, self.between(chosen, EVERY), strict=True):
                image += a[chosen] @ rows
        return images

    def _at_hand(self, i: int) -> bool:
        """Whether `gram(i)` takes no evaluation. Forms that evaluate matrices override it."""
        return True

    def inner(self) -> Array:
        """Return the Frobenius inner products <K_i, K_j>, shape (m, m)."""
        return self.inner_with(self)

    @property
    def of_vectors(self) -> bool:
        """Whether `inner_with` needs no product of whole matrices."""
        return False

    def inner_with(self, other: Storage) -> Array:
        """Return the Frobenius inner products of these matrices with others, shape (m, m of the others)."""
        if other.of_vectors:
            return other.inner_with(self).T
        flat = [np.asarray(part).reshape(len(part), -1) for part in (self, other)]
        return np.asarray(flat[0] @ flat[1].T)

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
