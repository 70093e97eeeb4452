"""Affine functions below a problem over spectrahedra and simplices, and the bounds they give."""

from __future__ import annotations

from dataclasses import dataclass

from kernelopt.structure.pieces import Piece
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
