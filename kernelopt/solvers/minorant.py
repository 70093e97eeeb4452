"""Affine functions below a problem over spectrahedra and simplices, and the bounds they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelopt.solvers.spectrahedra import Piece
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Minorant:
    """constant + sum over pieces of <gradient, X>, nowhere above the objective."""

    constant: float
    gradients: tuple[Array, ...]

    def bound(self, pieces: list[Piece]) -> tuple[float, list[float]]:
        """Return its minimum over the pieces, all of them bounded, and the sigma of each gradient."""
        least = [piece.least(G) for piece, G in zip(pieces, self.gradients, strict=True)]
        paid = (min(s, 0.0) if piece.at_most else s for piece, s in zip(pieces, least, strict=True))
        return self.constant + sum(paid), least


def nearest(piece: Piece, X: Array) -> Array:
    """Return the point of a bounded piece nearest to X."""
    r = 1 / np.broadcast_to(np.asarray(piece.reach, dtype=float), X.shape[:1])
    if not piece.is_matrix:
        return on_simplex(X, r, piece.at_most)
    eigenvalues, V = scipy.linalg.eigh(X, check_finite=False)
    kept = on_simplex(eigenvalues, r, piece.at_most)
    projected: Array = (V * kept) @ V.T
    return (projected + projected.T) / 2


def on_simplex(x: Array, r: Array, at_most: bool) -> Array:
    """Return the point of {x >= 0, r'x = 1 (or <= 1)} nearest to x, for r > 0: (x - theta r)_+."""
    if at_most and float(r @ np.maximum(x, 0.0)) <= 1:
        return np.maximum(x, 0.0)
    order = np.argsort(-x / r)
    thetas = (np.cumsum((r * x)[order]) - 1) / np.cumsum((r * r)[order])
    last = np.flatnonzero((x / r)[order] > thetas)[-1]
    kept: Array = np.maximum(x - thetas[last] * r, 0.0)
    return kept / float(r @ kept)
