"""The entries of K in the programme, as linear functions of the weights, and their normal matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData
from kernelopt.extend import Array

NEGLIGIBLE = 1e-11  # share of the largest weight: smaller ones do not matter to a Newton step
FEW = 0.8  # share of the rows above which it is faster to keep all than to copy some
STRIPS = 4  # of columns: only those on and left of the diagonal block are computed, 5/8 of the products


class Vectors:
    """One number for each entry above the diagonal, each of the diagonal, and each weight.

    Attributes
    ----------
    off, diagonal, alpha : arrays
    """

    def __init__(self, off: Array, diagonal: Array, alpha: Array) -> None:
        self.off, self.diagonal, self.alpha = off, diagonal, alpha


class Entries:
    """The linear map from the weights to the entries K_ij of the triplets and of the cone, and the diagonal.

    A triplet is the difference of two entries. There are at most n_S (n_S - 1) / 2 of them, however many
    triplets there are, so that the work of an iteration does not grow with T.

    Attributes
    ----------
    off : array of shape (P, m)
        K_p(i, j) for the pairs i < j; for "dominant" all pairs of points of S, in the order of `data.off`.
    diagonal : array of shape (n_S, m)
    differences : sparse array of shape (T, P)
        Its product with `off` is D.
    """

    def __init__(self, data: ComparisonData) -> None:
        n, T = data.points.size, data.T
        i, j, k = np.searchsorted(data.points, data.triplets).T
        pair = [np.minimum(i, other) * n + np.maximum(i, other) for other in (j, k)]
        pairs = np.concatenate(pair)
        if data.cone == "dominant":
            self.off, known = np.ascontiguousarray(data.off), data.first * n + data.second
        else:
            known = np.unique(pairs)
            first, second = data.points[known // n], data.points[known % n]
            self.off = np.ascontiguousarray(data.grams.entries(first, second).T)
        self.diagonal = data.diagonal
        self.columns = np.searchsorted(known, pairs)
        rows, signs = np.tile(np.arange(T), 2), np.repeat([1.0, -1.0], T)
        self.differences = sp.csr_array((signs, (rows, self.columns)), shape=(T, known.size))
        self.transposed = self.differences.T.tocsr()

    def at(self, alpha: Array) -> Vectors:
        """Return the entries of K at the weights."""
        return Vectors(self.off @ alpha, self.diagonal @ alpha, alpha)

    def zeros(self) -> Vectors:
        """Return the multipliers zero, to which the constraints add theirs."""
        return Vectors(np.zeros(len(self.off)), np.zeros(len(self.diagonal)), np.zeros(self.off.shape[1]))

    def adjoint(self, y: Vectors) -> Array:
        """Return the product of the transposed map with multipliers, shape (m,)."""
        return np.asarray(y.off @ self.off + y.diagonal @ self.diagonal + y.alpha)

    def normal_matrix(self, M: Any) -> Array:
        """Return off' M off for a sparse positive semidefinite M; rows of negligible weight are left out."""
        weights = M.diagonal()
        kept = np.flatnonzero(weights > NEGLIGIBLE * weights.max(initial=0.0))
        off = self.off
        if kept.size < FEW * weights.size:
            M, off = M[kept][:, kept], off[kept]
        product, m = M @ off, off.shape[1]
        H = np.empty((m, m))
        width = -(-m // STRIPS)
        for start in range(0, m, width):
            end = min(start + width, m)
            H[start:end, :end] = off[:, start:end].T @ product[:, :end]
            H[:start, start:end] = H[start:end, :start].T
        return H
