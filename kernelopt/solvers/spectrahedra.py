"""Reading the set of a problem as a product of spectrahedra and simplices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.linalg
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.boxes import affine, traced
from kernelopt.certificates.closed import trivially_true
from kernelopt.reading import short, visible_variables
from kernelopt.spectra import on_simplex
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Piece:
    """One variable and its size: X PSD with tr X = reach, or x >= 0 with sum_j x_j / reach_j = 1.

    Attributes
    ----------
    variable : symmetric matrix with PSD=True, or vector with nonneg=True
    reach : array of shape () or (k,), positive; None where no constraint bounds the variable
    at_most : whether the size may also be smaller
    constraint : the one that fixes the size
    slope : its derivative along the size
    """

    variable: cp.Variable
    reach: Array | None = None
    at_most: bool = False
    constraint: cp.Constraint | None = None
    slope: float = 1.0

    @property
    def is_matrix(self) -> bool:
        """Whether the variable is a matrix."""
        return bool(self.variable.ndim == 2)

    def least(self, G: Array) -> float:
        """Return sigma, the largest number with <G, X> >= sigma * size(X) for all X in the cone."""
        if self.is_matrix:
            least = scipy.linalg.eigvalsh(G, subset_by_index=[0, 0], check_finite=False)[0]
            return float(least * (1.0 if self.reach is None else self.reach))
        return float((G if self.reach is None else G * self.reach).min())

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


def read_pieces(problem: cp.Problem) -> list[Piece] | str:
    """Read every variable as a `Piece`, or say what stands in the way."""
    pieces: dict[int, Piece] = {}
    for variable in visible_variables(problem):
        square = variable.ndim == 2 and variable.attributes["PSD"]
        if not square and not (variable.ndim == 1 and variable.is_nonneg()):
            return f"{variable.name()} must be a matrix with PSD=True or a vector with nonneg=True"
        if variable.attributes["bounds"] is not None:
            return f"{variable.name()} has bounds beside its sign"
        pieces[variable.id] = Piece(variable)
    for constraint in problem.constraints:
        if trivially_true(constraint):
            continue
        read = read_size(constraint)
        known = None if read is None else pieces.get(read.variable.id)
        if read is None or known is None or known.constraint is not None:
            which = constraint.label or short(constraint)
            return (
                f"the constraint {which} does not fix the trace of one variable, or is the second that does"
            )
        pieces[read.variable.id] = read
    return list(pieces.values())


def read_size(constraint: cp.Constraint) -> Piece | None:
    """Read tr X == c, tr X <= c, r'x == c or r'x <= c with r > 0 and c > 0, of one variable."""
    if not isinstance(constraint, Inequality | Equality) or constraint.size != 1:
        return None
    if len(constraint.variables()) != 1:
        return None
    variable = constraint.variables()[0]
    had = variable.value
    variable.save_value(np.zeros(variable.shape))
    edge = affine(constraint.expr)
    variable.save_value(had)
    if edge is None:
        return None
    row, total = edge.matrices[variable].toarray()[0], -float(edge.constant[0])
    equality = isinstance(constraint, Equality)
    sign = -1.0 if equality and total < 0 else 1.0
    row, total = sign * row, sign * total
    if not total > 0:
        return None
    if traced(variable, row):
        return Piece(variable, np.asarray(total / row[0]), not equality, constraint, sign * total)
    if variable.ndim == 1 and (row > 0).all():
        return Piece(variable, total / row, not equality, constraint, sign * total)
    return None


def size_multipliers(problem: cp.Problem, pieces: list[Piece], least: list[float]) -> list[list[Any]]:
    """Return the multipliers of the constraints, where `least` are the sigma of the pieces' gradients.

    The size s of a piece is paid sigma, so that its constraint slope * (s - 1) has the multiplier
    - sigma / slope. What only repeats a sign has the multiplier zero.
    """
    known = {
        id(piece.constraint): -(min(sigma, 0.0) if piece.at_most else sigma) / piece.slope
        for piece, sigma in zip(pieces, least, strict=True)
        if piece.constraint is not None
    }
    return [
        [np.asarray(known[id(c)])] if id(c) in known else [np.zeros(d.shape) for d in c.dual_variables]
        for c in problem.constraints
    ]
