"""`Compressed`: the provider of stored matrices of which few linear combinations are needed."""

from __future__ import annotations

import numpy as np

from kernelopt.grams import Grams
from kernelopt.methods.engine.evaluating import kept_positions
from kernelopt.methods.engine.panels import (
    combine_panels,
    gather_rows,
    keep_panels,
    panel_images,
    put_panels,
)
from kernelopt.methods.engine.precomputed import Precomputed
from kernelopt.methods.engine.provider import Single
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array, Index

SAMPLE = 3000  # entries from which the rank is found
ACCURACY = 1e-7  # singular values below this share of the largest are zero: the accuracy of float32
BLOCK_ENTRIES = 1 << 17  # of all matrices that are combined at a time: 1 MB, for a fast cache


def numerical_basis(grams: Grams, n: int, seed: int = 0) -> Array:
    """Return U, shape (m, r), with orthonormal columns and K_m ~ sum_r U_mr B_r for matrices B_r.

    The kernels have diagonals of at most one here. A singular value decomposition of a sample of entries
    gives U, so that nothing is proved of the other entries.
    """
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, n, (2, SAMPLE))
    sizes = grams.diagonals[:, :n].max(axis=1, initial=0.0)
    scales = np.divide(1.0, sizes, out=np.zeros(sizes.size), where=sizes > 0)
    sampled = scales[:, None] * grams.entries(rows, columns)
    # R' of a QR decomposition of the long transpose has the same U and values, at a quarter of the time.
    R = np.asarray(np.linalg.qr(sampled.T, mode="r"))
    U, values, _ = np.linalg.svd(R.T, full_matrices=False)
    return np.ascontiguousarray(U[:, values > ACCURACY * values[0]])


class Compressed(Precomputed):
    """Stored kernels whose combinations on the working set are made of fewer matrices B_r = sum_m U_mr K_m.

    The panels hold the B_r in place of the kernels. Only entries of the working set are ever combined. The
    search alone uses them. Predictions and exact images, and so all bounds, come from the stored kernels.

    Parameters
    ----------
    grams, reach, n
        As for `Precomputed`.
    U : array of shape (m, r), with orthonormal columns
    """

    name = "compressed"

    def __init__(self, grams: Grams, reach: Array, n: int, U: Array) -> None:
        super().__init__(grams, reach, n)
        self.U = U
        self._members: Index = np.empty(0, dtype=np.intp)
        self._combinations, self._matrix = (np.empty(0, dtype=np.float32) for _ in range(2))

    def activate(self, points: Index) -> None:
        kept, size, r = kept_positions(self._members, points), points.size, self.U.shape[1]
        compiled(keep_panels)(r, kept, self._combinations)
        held, needed = r * kept.size * (kept.size + 1) // 2, r * size * (size + 1) // 2
        if needed > self._combinations.size:
            larger = np.empty(needed, np.float32)
            larger[:held] = self._combinations[:held]
            self._combinations = larger
        scales = np.divide(self.reach, self.sizes, out=np.zeros(self.m), where=self.sizes > 0)
        step = max(1, BLOCK_ENTRIES // (self.m * size))
        entries = np.empty(self.m * step * size)
        for start in range(kept.size, size, step):
            rows = points[start : start + step]
            width = start + rows.size
            K = entries[: self.m * rows.size * width].reshape(self.m, rows.size, width)
            compiled(gather_rows)(self.stack, rows, points[:width], scales, K)
            B = self.U.T @ K.reshape(self.m, -1)
            compiled(put_panels)(B.reshape(r, rows.size, width), start, self._combinations)
        self.passes += (size - kept.size) / self.n
        self._members = points
        if self._matrix.size < size * size:
            self._matrix = np.empty(size * size, np.float32)

    def combined(self, w: Array) -> Single:
        size, r = self._members.size, self.U.shape[1]
        block = self._matrix[: size * size].reshape(size, size)
        weights = (w * self.sizes / self.unit(w)) @ self.U
        compiled(any_order=True)(combine_panels)(self._combinations, r, np.arange(r), weights, block)
        return block

    def images(self, c: Array, chosen: Index) -> Array:
        size, r = self._members.size, self.U.shape[1]
        wanted, found = np.zeros(size, dtype=bool), np.zeros((r, size))
        wanted[chosen] = True
        compiled(any_order=True)(panel_images)(self._combinations, r, c, wanted, found)
        return np.asarray(self.sizes[:, None] * (self.U @ found[:, chosen]))
