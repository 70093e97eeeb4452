"""Affine minorants of the objective over spectrahedra and simplices, and their minima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.numerics.rounding import gamma, upwards
from kernelopt.structure.pieces import Piece
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class CompositeMinorant:
    """An affine function constant + sum_i <G_i, X_i> that is nowhere above the objective, up to its errors.

    Attributes
    ----------
    constant : float
    gradients : tuple of arrays
        The G_i, one per piece.
    error : float
        Bound of the error of the constant.
    errors : tuple of float
        Bounds of the errors of the gradients, in the Frobenius norm.
    """

    constant: float
    gradients: tuple[Array, ...]
    error: float
    errors: tuple[float, ...]

    def bound(self, pieces: list[Piece]) -> tuple[float, list[float]]:
        """Return a lower bound of the minimum over bounded pieces, and the linear minimum of each piece.

        The errors and all roundings are subtracted.
        """
        minima = [
            piece.linear_minimum(G) - error * float(np.max(piece.reach))  # type: ignore[arg-type]
            for piece, G, error in zip(pieces, self.gradients, self.errors, strict=True)
        ]
        values = [min(s, 0.0) if piece.at_most else s for piece, s in zip(pieces, minima, strict=True)]
        value, size = self.constant + sum(values), abs(self.constant) + sum(map(abs, values))
        return -upwards(-value + self.error + gamma(len(values) + 4) * size), minima
