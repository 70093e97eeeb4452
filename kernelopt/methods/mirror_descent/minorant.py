"""Affine functions below a problem over spectrahedra and simplices, and the bounds they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.numerics.rounding import gamma, upwards
from kernelopt.structure.pieces import Piece
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Minorant:
    """constant + sum over pieces of <gradient, X>, nowhere above the objective, up to errors.

    Attributes
    ----------
    error : float
        Of the constant.
    errors : tuple of float
        Of the gradients, in the Frobenius norm.
    """

    constant: float
    gradients: tuple[Array, ...]
    error: float
    errors: tuple[float, ...]

    def bound(self, pieces: list[Piece]) -> tuple[float, list[float]]:
        """Return its minimum over the pieces, all of them bounded, and the sigma of each gradient.

        All roundings are paid for.
        """
        least = [
            piece.linear_minimum(G) - error * float(np.max(piece.reach))  # type: ignore[arg-type]
            for piece, G, error in zip(pieces, self.gradients, self.errors, strict=True)
        ]
        paid = [min(s, 0.0) if piece.at_most else s for piece, s in zip(pieces, least, strict=True)]
        value, size = self.constant + sum(paid), abs(self.constant) + sum(map(abs, paid))
        return -upwards(-value + self.error + gamma(len(paid) + 4) * size), least
