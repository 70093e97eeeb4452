"""The feasible set as a product of spectrahedra {X PSD, tr X = r} and simplices {x >= 0, r'x = 1}."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.numerics.decompositions import eigenpairs, least_eigenvalue
from kernelopt.numerics.rounding import EIGENVALUE, gamma, norm_above
from kernelopt.numerics.simplex import on_simplex
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Piece:
    """One factor of the feasible set: {X PSD: size(X) = 1} or {x >= 0: size(x) = 1}.

    The size of a matrix is tr X / reach, and that of a vector is sum_j x_j / reach_j.

    Attributes
    ----------
    variable : symmetric matrix with PSD=True, or vector with nonneg=True
    reach : array of shape () or (k,), positive, or None
        The largest trace, or the largest value of each entry; None for a cone, with no bound of the size.
    at_most : bool
        Whether the constraint is size <= 1 and not size = 1.
    constraint : int or None
        The position of the constraint on the size among those of the problem.
    slope : float
        The expression of that constraint is slope * (size - 1).
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

    def linear_minimum(self, G: Array) -> float:
        """Return a lower bound sigma of min {<G, X> : X in the cone, size(X) = 1}.

        Hence <G, X> >= sigma * size(X) for all X in the cone. The minimum is reach * lambda_min(G) for a
        matrix and min_j reach_j G_j for a vector. The bound accounts for the rounding of the eigenvalue,
        which is a small multiple of u n |G|_F with the unit roundoff u, and for that of the products.
        """
        if self.is_matrix:
            smallest = least_eigenvalue(G)
            smallest -= EIGENVALUE * gamma(len(G)) * norm_above(G)
            sigma = smallest * (1.0 if self.reach is None else float(self.reach))
        else:
            sigma = float((G if self.reach is None else G * self.reach).min())
        return sigma - gamma(4) * abs(sigma)

    def nearest(self, X: Array) -> Array:
        """Return the Euclidean projection of a symmetric matrix or a vector X on the piece."""
        if not self.is_matrix:
            return self._nearest_vector(X)
        values, V = eigenpairs(X)
        projected: Array = (V * self._nearest_vector(values)) @ V.T
        return (projected + projected.T) / 2

    def _nearest_vector(self, x: Array) -> Array:
        if self.reach is None:
            return on_simplex(x, None)[0]
        r = 1 / np.broadcast_to(self.reach, x.shape)
        inside = self.at_most and float(r @ np.maximum(x, 0.0)) <= 1
        return on_simplex(x, None if inside else 1.0, r)[0]


@kept_in_structure
def read_pieces(structure: Structure) -> list[Piece] | str:
    """Return the feasible set as one `Piece` for each variable, or a sentence why it is no such product."""
    pieces: dict[cp.Variable, Piece] = {}
    for variable in structure.variables:
        square = variable.ndim == 2 and variable.attributes["PSD"]
        if not square and not (variable.ndim == 1 and variable.is_nonneg()):
            return f"{variable.name()} must be a matrix with PSD=True or a vector with nonneg=True"
        if beside_cone(variable):
            return f"{variable.name()} has {beside_cone(variable)} beside its cone"
        pieces[variable] = Piece(variable)
    for i in structure.active:
        budget = structure.budgets[i]
        variable = next(iter(budget.rows)) if budget is not None and len(budget.rows) == 1 else None
        constraint = structure.lifted.constraints[i]
        name = constraint.label or short(constraint)
        if budget is None or variable is None or not (budget.total > 0 and budget.bounds_all):
            return f"the constraint {name} does not fix the trace of one variable"
        if pieces[variable].constraint is not None:
            return f"the constraint {name} is the second that fixes the trace of {variable.name()}"
        reach = budget.reach(variable)
        pieces[variable] = Piece(variable, reach, budget.at_most, i, budget.sign * budget.total)
    return list(pieces.values())


def centre(piece: Piece) -> Array:
    """Return the centre of a bounded piece: reach I / n for a matrix, reach / n for a vector."""
    n = piece.variable.shape[0]
    of_size_one = np.eye(n) / n if piece.is_matrix else np.full(n, 1 / n)
    return np.asarray(piece.reach * of_size_one, dtype=float)


def size_multipliers(structure: Structure, pieces: list[Piece], minima: list[float]) -> list[list[Any]]:
    """Return the multipliers of all constraints from the linear minima sigma of the pieces.

    The Lagrangian of a piece is <G, X> + nu slope (size(X) - 1). It is bounded below over the cone if
    sigma + nu slope >= 0, and its minimum -nu slope is largest at nu = -sigma / slope. For size <= 1 the
    multiplier must not be negative, so sigma is replaced by min(sigma, 0). Constraints that only repeat the
    sign of a variable have the multiplier zero.
    """
    known = {
        piece.constraint: -(min(sigma, 0.0) if piece.at_most else sigma) / piece.slope
        for piece, sigma in zip(pieces, minima, strict=True)
        if piece.constraint is not None
    }
    return [
        [np.asarray(known[i])] if i in known else [np.zeros(d.shape) for d in c.dual_variables]
        for i, c in enumerate(structure.lifted.constraints)
    ]
