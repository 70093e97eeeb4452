"""Reading the set of a problem as a product of spectrahedra and simplices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.linalg

from kernelopt.numerics.rounding import EIGENVALUE, gamma
from kernelopt.numerics.simplex import on_simplex
from kernelopt.structure.structure import Structure, once
from kernelopt.structure.trees import short
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Piece:
    """One variable and its size: X PSD with tr X = reach, or x >= 0 with sum_j x_j / reach_j = 1.

    Attributes
    ----------
    variable : symmetric matrix with PSD=True, or vector with nonneg=True
    reach : array of shape () or (k,), positive; None where no constraint bounds the variable
    at_most : whether the size may also be smaller
    constraint : the position of the one that fixes the size
    slope : its derivative along the size
    """

    variable: cp.Variable
    reach: Array | None = None
    at_most: bool = False
    constraint: int | None = None
    slope: float = 1.0

    @property
    def is_matrix(self) -> bool:
        """Whether the variable is a matrix."""
        return bool(self.variable.ndim == 2)

    def least(self, G: Array) -> float:
        """Return sigma with <G, X> >= sigma * size(X) for all X in the cone, about the largest such number.

        An eigenvalue is computed up to a small multiple of u n |G|_F, by which it is moved down.
        """
        if self.is_matrix:
            least = float(scipy.linalg.eigvalsh(G, subset_by_index=[0, 0], check_finite=False)[0])
            least -= EIGENVALUE * gamma(len(G)) * float(np.linalg.norm(G))
            sigma = least * (1.0 if self.reach is None else float(self.reach))
        else:
            sigma = float((G if self.reach is None else G * self.reach).min())
        return sigma - gamma(4) * abs(sigma)

    def nearest(self, X: Array) -> Array:
        """Return the point of the piece nearest to X, a symmetric matrix or a vector."""
        if not self.is_matrix:
            return self._nearest_vector(X)
        values, V = np.linalg.eigh(X)
        projected: Array = (V * self._nearest_vector(values)) @ V.T
        return (projected + projected.T) / 2

    def _nearest_vector(self, x: Array) -> Array:
        if self.reach is None:
            return on_simplex(x, None)[0]
        r = 1 / np.broadcast_to(self.reach, x.shape)
        inside = self.at_most and float(r @ np.maximum(x, 0.0)) <= 1
        return on_simplex(x, None if inside else 1.0, r)[0]


@once
def read_pieces(structure: Structure) -> list[Piece] | str:
    """Read every variable as a `Piece`, or say what stands in the way."""
    pieces: dict[cp.Variable, Piece] = {}
    for variable in structure.variables:
        square = variable.ndim == 2 and variable.attributes["PSD"]
        if not square and not (variable.ndim == 1 and variable.is_nonneg()):
            return f"{variable.name()} must be a matrix with PSD=True or a vector with nonneg=True"
        if variable.attributes["bounds"] is not None:
            return f"{variable.name()} has bounds beside its sign"
        pieces[variable] = Piece(variable)
    for i in structure.active:
        edge = structure.edges[i]
        variable = next(iter(edge.rows)) if edge is not None and len(edge.rows) == 1 else None
        if (
            edge is None
            or variable is None
            or not (edge.total > 0 and edge.bounds_all)
            or (pieces[variable].constraint is not None)
        ):
            constraint = structure.lifted.constraints[i]
            return (
                f"the constraint {constraint.label or short(constraint)} does not fix the trace of one "
                "variable, or is the second that does"
            )
        reach = edge.reach(variable)
        pieces[variable] = Piece(variable, reach, edge.at_most, i, edge.sign * edge.total)
    return list(pieces.values())


def centre(piece: Piece) -> Array:
    """Return the middle of a bounded piece."""
    size = piece.variable.shape[0]
    shares = np.eye(size) / size if piece.is_matrix else np.full(size, 1 / size)
    return np.asarray(piece.reach * shares, dtype=float)


def size_multipliers(structure: Structure, pieces: list[Piece], least: list[float]) -> list[list[Any]]:
    """Return the multipliers of the constraints, where `least` are the sigma of the pieces' gradients.

    The size s of a piece is paid sigma, so that its constraint slope * (s - 1) has the multiplier
    - sigma / slope. What only repeats a sign has the multiplier zero.
    """
    known = {
        piece.constraint: -(min(sigma, 0.0) if piece.at_most else sigma) / piece.slope
        for piece, sigma in zip(pieces, least, strict=True)
        if piece.constraint is not None
    }
    return [
        [np.asarray(known[i])] if i in known else [np.zeros(d.shape) for d in c.dual_variables]
        for i, c in enumerate(structure.lifted.constraints)
    ]
