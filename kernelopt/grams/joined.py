"""The matrices of several storages as one storage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from kernelopt.grams.caching import cached_array
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.storage import Storage
from kernelopt.grams.stored import IdentityStorage, RankOneStorage
from kernelopt.validation import Array, Index


def joined(parts: Sequence[tuple[Array, Storage]]) -> Storage:
    """Return the matrices of all parts, each times its positive factor; see `join`."""
    scaled = [multiplied(part, c) for c, part in parts]
    if len(scaled) == 1:
        return scaled[0]
    return JoinedStorage(
        [p for part in scaled for p in (part.parts if isinstance(part, JoinedStorage) else [part])]
    )


def multiplied(part: Storage, c: Array) -> Storage:
    """Return the matrices times their positive factors c, shape (m,); by ones, the storage itself."""
    if (c == 1).all():
        return part
    if isinstance(part, JoinedStorage):
        return JoinedStorage([multiplied(each, c[cut]) for each, cut in part.pieces()])
    return ScaledStorage(part, 1 / c)


class JoinedStorage(Storage):
    """The matrices of several storages on the same points, one storage after the other."""

    def __init__(self, parts: Sequence[Storage]) -> None:
        names = [name for part in parts for name in part.names]
        super().__init__(len(names), parts[0].n_points, names)
        self.parts = tuple(parts)
        self._cuts = np.cumsum([0, *map(len, parts)])

    def pieces(self) -> list[tuple[Storage, slice]]:
        """Return each part with the slice of its kernels."""
        cuts = self._cuts.tolist()
        return [(part, slice(*cuts[p : p + 2])) for p, part in enumerate(self.parts)]

    def _at(self, i: int) -> tuple[Storage, int]:
        p = int(np.searchsorted(self._cuts, i, side="right")) - 1
        return self.parts[p], i - int(self._cuts[p])

    def gram(self, i: int) -> Array:
        part, j = self._at(i)
        return part.gram(j)

    def factor(self, i: int) -> Array:
        part, j = self._at(i)
        return part.factor(j)

    def rows(self, chosen: Index) -> Array:
        return np.concatenate([part.rows(chosen) for part in self.parts])

    def block(self, rows: slice | Index) -> Storage:
        return JoinedStorage([part.block(rows) for part in self.parts])

    def _subset(self, chosen: Index) -> Storage:
        owners = np.searchsorted(self._cuts, chosen, side="right") - 1
        runs = [list(run) for _, run in groupby(range(chosen.size), key=lambda t: int(owners[t]))]
        found = [self.parts[p := int(owners[run[0]])].subset(chosen[run] - self._cuts[p]) for run in runs]
        return found[0] if len(found) == 1 else JoinedStorage(found)

    @cached_array
    def diagonals(self) -> Array:
        return np.concatenate([part.diagonals for part in self.parts])

    @property
    def magnitudes(self) -> Array:
        return np.concatenate([part.magnitudes for part in self.parts])

    @cached_array
    def row_means(self) -> Array:
        return np.concatenate([part.row_means for part in self.parts])

    @property
    def known_semidefinite(self) -> bool:
        return all(part.known_semidefinite for part in self.parts)

    @property
    def rank_bounds(self) -> tuple[int, ...]:
        return tuple(bound for part in self.parts for bound in part.rank_bounds)

    def combine(self, w: Array) -> Array:
        sums = (part.combine(w[cut]) for part, cut in self.pieces() if w[cut].any())
        total = np.zeros(self.shape[1:])
        for each in sums:
            total += each
        return total

    def _apply(self, a: Array) -> Array:
        return np.concatenate([part.apply(a) for part in self.parts])

    def image(self, w: Array, a: Array) -> Array:
        return np.asarray(sum(part.image(w[cut], a) for part, cut in self.pieces()))

    def images(self, a: Array, points: Index) -> Array:
        return np.concatenate([part.images(a, points) for part in self.parts])

    def between(self, rows: Index, columns: Index) -> Array:
        return np.concatenate([part.between(rows, columns) for part in self.parts])

    def inner(self) -> Array:
        found = np.empty((len(self), len(self)))
        pieces = self.pieces()
        for p, (part, cut) in enumerate(pieces):
            found[cut, cut] = part.inner()
            for other, place in pieces[:p]:
                found[cut, place] = inner_between(part, other)
                found[place, cut] = found[cut, place].T
        return found

    def entries(self, i: Index, j: Index) -> Array:
        return np.concatenate([part.entries(i, j) for part in self.parts])

    def cross(self, X_new: Any) -> Array:
        return np.concatenate([part.cross(X_new) for part in self.parts])

    def self_similarity(self, X_new: Any) -> Array:
        return np.concatenate([part.self_similarity(X_new) for part in self.parts])


def inner_between(left: Storage, right: Storage) -> Array:
    """Return the Frobenius inner products of the matrices of two storages, shape (m_left, m_right)."""
    if isinstance(left, IdentityStorage):
        return np.asarray(right.diagonals.sum(axis=1)[None])  # <I, K> = tr K
    if isinstance(left, RankOneStorage):
        return np.stack([(left.V * (K @ left.V)).sum(axis=0) for K in right], axis=1)  # <vv', K> = v'Kv
    if isinstance(right, IdentityStorage | RankOneStorage):
        return inner_between(right, left).T
    flat = [np.asarray(part).reshape(len(part), -1) for part in (left, right)]
    return np.asarray(flat[0] @ flat[1].T)
