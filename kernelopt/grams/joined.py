"""The matrices of several storages as one storage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from kernelopt.grams.caching import cached_array
from kernelopt.grams.storage import Points, Storage
from kernelopt.validation import Array, Index


def one_by_one(storage: Storage, chosen: Index) -> Storage:
    """Return some matrices of a storage of one, or of one that selects single ones, in any order."""
    parts = [storage.subset(chosen[k : k + 1]) for k in range(chosen.size)]
    return storage._sharing(JoinedStorage(parts), chosen)


class JoinedStorage(Storage):
    """The matrices of several storages on the same points, one storage after the other."""

    def __init__(self, parts: Sequence[Storage]) -> None:
        names = [name for part in parts for name in part.names]
        super().__init__(len(names), parts[0].n_points, names)
        self.parts = tuple(parts)
        self.known_semidefinite = all(part.known_semidefinite for part in parts)
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
    def mean_entries(self) -> Array:
        return np.concatenate([part.mean_entries for part in self.parts])

    @property
    def constant_diagonals(self) -> bool:  # type: ignore[override]
        return all(part.constant_diagonals for part in self.parts)

    @property
    def of_vectors(self) -> bool:
        return all(part.of_vectors for part in self.parts)

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

    def keep_images(self, alphas: Array) -> None:
        for part in self.parts:
            part.keep_images(alphas)

    def image(self, w: Array, a: Array) -> Array:
        return np.asarray(sum(part.image(w[cut], a) for part, cut in self.pieces()))

    def images(self, a: Array, points: Index) -> Array:
        return np.concatenate([part.images(a, points) for part in self.parts])

    def forms(self, a: Array) -> Array:
        return np.concatenate([part.forms(a) for part in self.parts])

    def between(self, rows: Points, columns: Points) -> Array:
        return np.concatenate([part.between(rows, columns) for part in self.parts])

    def inner(self) -> Array:
        found = np.empty((len(self), len(self)))
        for part, cut in self.pieces():
            for other, place in self.pieces():
                if place.start < cut.start:
                    found[cut, place] = part.inner_with(other)
                    found[place, cut] = found[cut, place].T
            found[cut, cut] = part.inner()
        return found

    def inner_with(self, other: Storage) -> Array:
        return np.concatenate([part.inner_with(other) for part in self.parts])

    def entries(self, i: Index, j: Index) -> Array:
        return np.concatenate([part.entries(i, j) for part in self.parts])

    def cross(self, X_new: Any) -> Array:
        return np.concatenate([part.cross(X_new) for part in self.parts])

    def self_similarity(self, X_new: Any) -> Array:
        return np.concatenate([part.self_similarity(X_new) for part in self.parts])
