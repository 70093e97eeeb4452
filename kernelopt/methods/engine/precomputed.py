"""`Precomputed`: the provider of kernels that are stored as matrices."""

from __future__ import annotations

import mmap

import numpy as np

from kernelopt.grams import ArrayStorage, Grams
from kernelopt.methods.engine.panels import (
    combine_panels,
    fill_panels,
    keep_panels,
    panel_images,
    sweep_rows,
)
from kernelopt.methods.engine.provider import Provider, Single
from kernelopt.numerics.compiling import compiled
from kernelopt.running import check
from kernelopt.validation import Array, Index

# Memory of this process alone: by default a process that is forked from it would write to the same panels.
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
ALL_KERNELS = 0.5  # share of kernels with a weight from which a prediction reads all, for the exact images


class Precomputed(Provider):
    """Kernels that are stored as float64 matrices, which are read in place.

    The entries between points of the working set are copied once, to the float32 panels of `panels`. So a
    new weight vector reads m |A|^2 / 2 numbers of four bytes, and a new point reads one row of each matrix.
    Images on all points come from `Grams.apply`, which keeps its last result for the certificate.

    Parameters
    ----------
    grams : Grams
        The matrices on N >= n points; the first n points are labelled.
    reach : array of shape (m,)
    n : int
    """

    name = "precomputed"

    def __init__(self, grams: Grams, reach: Array, n: int) -> None:
        self.grams, self.reach = grams, reach
        self.m, self.n = len(grams), n
        stored = isinstance(grams.storage, ArrayStorage)
        self.stack = np.asarray(grams) if stored else np.empty(grams.shape)
        for i, K in enumerate([] if stored else grams):
            check()
            self.stack[i] = K
        self.diagonals = reach[:, None] * grams.diagonals[:, :n]
        self.passes = 0.0
        self._points: Index = np.empty(0, dtype=np.intp)
        # Address space for all points, a quarter of that of the stack: memory is taken as panels are written.
        # It is mapped in small pages, where numpy's arrays of this size have large ones. Measured for 90 MB:
        # the first writes take 50 ms with small pages. With large ones they take 20 ms, but up to 0.7 s where
        # memory is fragmented and the system must first make large pages free.
        size = 4 * self.m * self.n * (self.n + 1) // 2
        self._panels = np.frombuffer(mmap.mmap(-1, size, **PRIVATE), dtype=np.float32)
        self._block = np.empty((0, 0), dtype=np.float32)
        self._swept: Array | None = None  # the last alpha whose images were computed

    def activate(self, points: Index) -> None:
        kept = np.flatnonzero(np.isin(self._points, points))
        if not np.array_equal(self._points[kept], points[: kept.size]):
            kept = kept[:0]
        size = points.size
        if kept.size < self._points.size:
            compiled(keep_panels)(self.m, kept, self._panels)
        scales = np.divide(self.reach, self.sizes, out=np.zeros(self.m), where=self.sizes > 0)
        compiled(fill_panels)(self.stack, points, kept.size, scales, self._panels)
        self.passes += (size - kept.size) / self.n
        self._points = points
        if self._block.shape[0] != size:
            self._block = np.empty((size, size), dtype=np.float32)

    def combined(self, w: Array) -> Single:
        weights = w * self.sizes / self.unit(w)
        active = np.flatnonzero(weights)
        compiled(any_order=True)(combine_panels)(self._panels, self.m, active, weights[active], self._block)
        return self._block

    def images(self, c: Array, chosen: Index) -> Array:
        size = self._points.size
        wanted, found = np.zeros(size, dtype=bool), np.zeros((self.m, size))
        wanted[chosen] = True
        compiled(any_order=True)(panel_images)(self._panels, self.m, c, wanted, found)
        return np.asarray(self.sizes[:, None] * found[:, chosen])

    def predict(self, w: Array, support: Index, c: Array, points: Index) -> Array:
        active = np.flatnonzero(w)
        if active.size >= ALL_KERNELS * self.m or self._known(support, c):
            return np.asarray(w @ self.exact_images(support, c, points))
        f = np.zeros(self.n)
        weights = (self.reach * w)[active]
        compiled(any_order=True)(sweep_rows)(self.stack, support, c, active, weights, f)
        self.passes += support.size / self.n * active.size / self.m
        return f[points]

    def exact_images(self, support: Index, c: Array, points: Index) -> Array:
        alpha = np.zeros(self.n)
        alpha[support] = c
        if not self._known(support, c):
            self.passes += support.size / self.n
            self._swept = alpha
        return self.reach[:, None] * self.grams.apply(alpha)[:, points]

    def _known(self, support: Index, c: Array) -> bool:
        """Whether the images of these coefficients were the last ones computed."""
        if self._swept is None:
            return False
        alpha = np.zeros(self.n)
        alpha[support] = c
        return np.array_equal(self._swept, alpha)
