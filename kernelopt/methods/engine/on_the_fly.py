"""`OnTheFly`: the provider of kernels that are evaluated when they are needed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from kernelopt.grams import Grams
from kernelopt.grams.storage import Storage
from kernelopt.methods.engine.evaluating import Evaluating, kept_positions, mirror
from kernelopt.methods.engine.panels import combine_panels, keep_panels, panel_images
from kernelopt.methods.engine.provider import Block
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array, Index

BLOCK_BYTES = 16_000_000  # of entries of all kernels in float64 that are evaluated at a time
BLOCK_SHARE = 8  # they take at most one part in so many of the memory


class OnTheFly(Evaluating):
    """Any kernels, within a budget of memory. No matrix of order n is ever evaluated as a whole.

    The first rows of the working set, of all kernels, are kept as the panels of `panels`, in numbers of type
    `dtype`, as many as the budget allows beside the combined matrix. All other entries are evaluated anew for
    every combination.

    Parameters
    ----------
    grams : Grams
        On N >= n points; the first n points are labelled.
    reach : array of shape (m,)
    n : int
    memory : float
        Bytes for panels and combined matrix. The combined matrix is kept even where it is larger.
    """

    name = "on the fly"
    dtype: ClassVar[type[np.float32] | type[np.float64]] = np.float32

    def __init__(self, grams: Grams, reach: Array, n: int, memory: float) -> None:
        super().__init__(grams, reach, n)
        self.memory = memory
        self.diagonals = reach[:, None] * grams.diagonals[:, :n]
        self._scales = np.divide(reach, self.sizes, out=np.zeros(self.m), where=self.sizes > 0)
        self._points: Index = np.empty(0, dtype=np.intp)
        self._panels, self._block = (np.empty(0, dtype=self.dtype) for _ in range(2))
        self._held = 0  # the number of points whose panels are kept

    def activate(self, points: Index) -> None:
        size, kept = points.size, kept_positions(self._points, points)
        kept = kept[kept < self._held]
        held = self._panelled(size)
        kept = kept[:held]
        entries = self.m * held * (held + 1) // 2
        compiled(keep_panels)(self.m, kept, self._panels)
        if self._panels.size < entries or self._block.size < size * size:
            old, known = self._panels, self.m * kept.size * (kept.size + 1) // 2
            self._block = np.empty(0, self.dtype)
            self._panels = np.empty(entries, self.dtype)
            self._panels[:known] = old[:known]
            del old
            self._block = np.empty(size * size, self.dtype)
        self._points, self._held = points, held
        for part, K in self._rows(self.grams.storage, self._scales, kept.size, held, held):
            for i in part:
                start = self.m * (i * (i + 1) // 2)
                row = K[:, i - part[0], : i + 1]
                self._panels[start : start + row.size] = row.ravel()

    def _panelled(self, size: int) -> int:
        """Return how many panels fit into the memory beside the combined matrix of order `size`."""
        entries = (self.memory * (1 - 1 / BLOCK_SHARE) / self._panels.itemsize - size**2) / self.m
        return min(size, int(math.sqrt(2 * entries + 0.25) - 0.5)) if entries > 0 else 0

    def _rows(
        self, storage: Storage, scales: Array, first: int, last: int, width: int
    ) -> Iterator[tuple[Index, Array]]:
        """Return the entries of positions first..last - 1 with 0..width - 1, some rows at a time."""
        size = min(BLOCK_BYTES, self.memory / BLOCK_SHARE)
        step = max(1, int(size / (16 * max(1, len(storage)) * max(1, width))))
        for start in range(first, last, step):
            part = np.arange(start, min(start + step, last))
            K = storage.between(self._points[part], self._points[:width])
            K *= scales[:, None, None]
            self.passes += K.size / self.m / self.n**2
            yield part, K

    def combined(self, w: Array) -> Block:
        size, held = self._points.size, self._held
        weights = w * self.sizes / self.unit(w)
        active = np.flatnonzero(weights)
        block = self._block[: size * size].reshape(size, size)
        # The panels give the first `held` rows, as a contiguous matrix at the end, then moved to their place.
        part = self._block[size * size - held * held : size * size].reshape(held, held)
        compiled(any_order=True)(combine_panels)(self._panels, self.m, active, weights[active], part)
        for i in range(held):
            block[i, :held] = part[i].copy()
        chosen = self.grams.storage.subset(active) if active.size else self.grams.storage.subset(np.arange(1))
        scales = (self._scales * weights)[active] if active.size else np.zeros(1)
        for rows, K in self._rows(chosen, scales, held, size, size):
            block[rows] = K.sum(axis=0)
        compiled(mirror)(block, held)
        return block

    def images(self, c: Array, chosen: Index) -> Array:
        size, held = self._points.size, self._held
        wanted, found = np.zeros(size, dtype=bool), np.zeros((self.m, size))
        wanted[chosen] = True
        first = np.zeros((self.m, held))
        compiled(any_order=True)(panel_images)(self._panels, self.m, c[:held], wanted[:held], first)
        found[:, :held] = self.sizes[:, None] * first
        for rows, K in self._rows(self.grams.storage, self.reach, held, size, size):
            found[:, rows] = K @ c
            found[:, :held] += c[rows] @ K[:, :, :held]
        return found[:, chosen]


class Double(OnTheFly):
    """Any kernels in double precision, for problems whose accuracy single precision limits.

    Those are learned with a large C and kernels of low numerical rank, stored or not: alpha is large, and its
    images are small differences of large terms.
    """

    name = "float64"
    dtype = np.float64
