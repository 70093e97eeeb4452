"""`Panels`: the provider of any kernels, whose entries on the working set are kept within a budget of memory.

The rows of the lower triangles lie one after the other. Row i of all kernels is a panel of m (i + 1) entries,
kernel by kernel, which starts at m i (i + 1) / 2. A new point appends a panel, and the panels of the points
that remain move towards the start when others are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelopt.grams import Grams
from kernelopt.methods.engine.provider import Block, Provider, kept_positions
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.numerics.compiling import any_order, compiled, compiled_as
from kernelopt.validation import Array, Index

GATHERED = 4  # an entry that is read by its position takes so many times as long: measured
TILE = 32  # rows and columns of a tile that is transposed at a time: 8 KB, which fit into the first cache


class Panels(Provider):
    """Any kernels, from their storage. No matrix of order n is ever evaluated as a whole.

    The first rows of the working set, of all kernels, are kept in numbers of type `dtype`, as many as the
    memory allows beside the combined matrix. All other entries are read anew for every combination. The
    search alone uses the panels: predictions and exact images come from the storage.

    Parameters
    ----------
    grams, reach, n
        As for `Provider`.
    name : str
    memory : float
        Bytes for panels and combined matrix. The combined matrix is kept even where it is larger.
    dtype : type
        Double precision serves problems whose accuracy single precision limits. They are learned with a
        large C and kernels of low numerical rank: alpha is large, and its images are small differences of
        large terms.
    U : array of shape (m, r), with orthonormal columns, or None
        With K_m ~ sum_r U_mr B_r the panels hold the matrices B_r = sum_m U_mr K_m in place of the K_m, in
        units in which these have diagonals of at most one. All panels must fit into the memory.
    """

    def __init__(
        self,
        grams: Grams,
        reach: Array,
        n: int,
        name: str = "precomputed",
        memory: float = np.inf,
        dtype: Any = np.float32,
        U: Array | None = None,
    ) -> None:
        super().__init__(grams, reach, n)
        self.name, self.U = name, U
        self.width = self.m if U is None else U.shape[1]  # matrices in the panels
        self._rows_at_once = min(SETTINGS.block_entries, memory / SETTINGS.block_share / 16)
        self._scales = np.divide(reach, self.sizes, out=np.zeros(self.m), where=self.sizes > 0)
        self._points: Index = np.empty(0, dtype=np.intp)
        self._held = 0  # the number of points whose panels are kept
        # Address space for panels and, at its end, the combined matrix. Memory is taken as they are written.
        budget, itemsize = memory * (1 - 1 / SETTINGS.block_share), np.dtype(dtype).itemsize
        entries = min(budget / itemsize, self.width * n * (n + 1) / 2 + n**2)
        self._entries = np.empty(max(int(entries), n**2), dtype)

    def activate(self, points: Index) -> None:
        left = (self._entries.size - points.size**2) / self.width
        held = min(points.size, int(math.sqrt(2 * left + 0.25) - 0.5)) if left > 0 else 0
        kept = kept_positions(self._points, points)
        kept = kept[kept < self._held][:held]
        compiled(keep_panels, self.width * kept.size**2)(self.width, kept, self._entries)
        self._points, self._held, self._last = points, held, None
        scales = self._scales if self.U is None else np.ones(self.width)
        mixing = None if self.U is None else self.U.T * self._scales
        for start, K in self._rows(np.arange(self.m), kept.size, held):
            if mixing is not None:
                K = (mixing @ K.reshape(self.m, -1)).reshape(-1, *K.shape[1:])
            compiled(put_panels, passes_of_rows(K.shape[1], K.size))(K, scales, start, self._entries)

    def _rows(self, chosen: Index, first: int, last: int) -> Iterator[tuple[int, Array]]:
        """Yield the first of some positions in first..last - 1, and the stored matrices in their rows.

        The columns are all positions up to the last of them.
        """
        if not chosen.size or first == last:
            return
        storage = self.grams.storage.subset(chosen)
        step = max(1, int(self._rows_at_once / (chosen.size * last)))
        for start in range(first, last, step):
            stop = min(start + step, last)
            K = storage.between(self._points[start:stop], self._points[:stop])
            self.passes += K.size / self.m / self.n**2
            yield start, K

    def combined(self, w: Array) -> Block:
        size, held = self._points.size, self._held
        block: Block = self._entries[self._entries.size - size**2 :].reshape(size, size)
        scaled = w * self.sizes / self.unit(w)
        weights = scaled if self.U is None else scaled @ self.U
        active, chosen = np.flatnonzero(weights), np.flatnonzero(scaled)
        combine = compiled(combine_panels, passes_of_rows(held, active.size * held**2 / 2))
        combine(self._entries, self.width, active, weights[active], block[:held])
        block[held:] = 0.0
        for start, K in self._rows(chosen, held, size):
            rows = (self._scales * scaled)[chosen] @ K.reshape(chosen.size, -1)
            block[start : start + K.shape[1], : K.shape[2]] = rows.reshape(K.shape[1:])
        compiled(mirror, passes_of_rows(size, block.size))(block, 0)
        return block

    def images(self, c: Array, chosen: Index) -> Array:
        size, held = self._points.size, self._held
        wanted, found = np.zeros(size, dtype=bool), np.zeros((self.width, size))
        wanted[chosen] = True
        add = compiled(panel_images, passes_of_rows(held, self.width * held**2 / 2))
        add(self._entries, self.width, c[:held], wanted, found)
        found = self.sizes[:, None] * (found if self.U is None else self.U @ found)
        for start, K in self._rows(np.arange(self.m), held, size):
            stop = K.shape[2]
            found[:, start:stop] += self.reach[:, None] * (K @ c[:stop])
            found[:, :start] += self.reach[:, None] * (c[start:stop] @ K[:, :, :start])
        return np.asarray(found[:, chosen])


def passes_of_rows(rows: int, entries: float) -> float:
    """Return about the passes of a loop that take as long as numpy, a row of the panels at a time."""
    return 20 * rows + entries / 50


def put_panels_loop(K: Array, scales: Array, first: int, panels: Array) -> None:
    """Do what `put_panels` does."""
    m = K.shape[0]
    for i in range(K.shape[1]):
        width = first + i + 1
        for k in range(m):
            row, scale, at = K[k, i], scales[k], m * (width * (width - 1) // 2) + k * width
            for j in range(width):
                panels[at + j] = scale * row[j]


@compiled_as(put_panels_loop)
def put_panels(K: Array, scales: Array, first: int, panels: Array) -> None:
    """Write the panels of scales_k K_k, shape (rows, columns): row i is the row of the position first + i."""
    for i in range(K.shape[1]):
        rows_of(panels, K.shape[0], first + i)[:] = scales[:, None] * K[:, i, : first + i + 1]


def rows_of(panels: Array, m: int, i: int) -> Array:
    """Return the panel of a position as a view, shape (m, i + 1)."""
    start = m * (i * (i + 1) // 2)
    return panels[start : start + m * (i + 1)].reshape(m, i + 1)


def keep_panels(m: int, kept: Index, panels: Array) -> None:
    """Move the entries of the positions `kept`, in increasing order, to the first panels."""
    for i in range(kept.size):
        old = kept[i]
        start, source = m * (i * (i + 1) // 2), m * (old * (old + 1) // 2)
        for k in range(m if old > i else 0):
            at, taken = start + k * (i + 1), source + k * (old + 1)
            for j in range(i + 1):
                panels[at + j] = panels[taken + kept[j]]


@any_order
def combine_panels_loop(panels: Array, m: int, active: Index, weights: Array, rows: Array) -> None:
    """Do what `combine_panels` does."""
    total = np.empty(rows.shape[0])
    for i in range(total.size):
        start, width, row = m * (i * (i + 1) // 2), i + 1, total[: i + 1]
        row[:] = 0.0
        for k in range(active.size):  # one after the other: the panel is read from its start to its end
            at, weight = start + active[k] * width, weights[k]
            entries = panels[at : at + width]
            for j in range(width):
                row[j] += weight * entries[j]
        to = rows[i, :width]
        for j in range(width):
            to[j] = row[j]


@compiled_as(combine_panels_loop)
def combine_panels(panels: Array, m: int, active: Index, weights: Array, rows: Array) -> None:
    """Write the lower triangle of sum_k weights_k K_active_k to `rows`, rounded once from float64."""
    for i in range(rows.shape[0]):
        rows[i, : i + 1] = weights @ rows_of(panels, m, i)[active].astype(np.float64)


def mirror_loop(M: Array, first: int) -> None:
    """Do what `mirror` does, tile by tile."""
    size = M.shape[0]
    for top in range(first - first % TILE, size, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(max(top, first), min(size, top + TILE)):
                for j in range(left, min(i, left + TILE)):
                    M[j, i] = M[i, j]


@compiled_as(mirror_loop)
def mirror(M: Array, first: int) -> None:
    """Copy the rows from `first` on, left of the diagonal, to the columns above the diagonal."""
    for i in range(first, M.shape[0]):
        M[:i, i] = M[i, :i]


@any_order
def panel_images_loop(panels: Array, m: int, c: Array, wanted: Array, images: Array) -> None:
    """Do what `panel_images` does.

    Of a panel with c = 0 the entries where c is not zero are read, if they are few.
    """
    support = np.flatnonzero(c)
    few, below = GATHERED * support.size < c.size, 0
    for i in range(c.size):
        ci = c[i]
        if ci == 0 and not wanted[i]:
            continue
        while below < support.size and support[below] < i:
            below += 1
        start = m * (i * (i + 1) // 2)
        for k in range(m):
            at, total, image = start + k * (i + 1), 0.0, images[k]
            if ci == 0 and few:
                for p in range(below):
                    j = support[p]
                    total += np.float64(panels[at + j]) * c[j]
            else:
                for j in range(i):
                    entry = np.float64(panels[at + j])
                    total += entry * c[j]
                    image[j] += entry * ci
            image[i] += total + np.float64(panels[at + i]) * ci


@compiled_as(panel_images_loop)
def panel_images(panels: Array, m: int, c: Array, wanted: Array, images: Array) -> None:
    """Add the images of c under all kernels to `images`, shape (m, size), at the positions `wanted`.

    The panel of a position that is not wanted and has c = 0 is not read.
    """
    for i in np.flatnonzero((c != 0) | wanted[: c.size]).tolist():
        rows = rows_of(panels, m, i).astype(np.float64)
        images[:, :i] += c[i] * rows[:, :i]
        images[:, i] += rows @ c[: i + 1]
