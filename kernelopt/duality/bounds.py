"""Lower bounds in the place of multipliers: y >= g becomes y = g where the dual does not gain by a larger y.

The rules of cvxpy decide: if the dual with a convex g in the place of y follows them, every part of it is
monotone in y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.duality.assembly import assembled
from kernelopt.duality.forms import Form, Multiplier
from kernelopt.duality.model import Model, Piece
from kernelopt.validation import Array


class Floor(NamedTuple):
    """The inequality factors * y[at] >= g for entries of a multiplier y, where g is the floor of a piece."""

    piece: Piece
    at: Array
    factors: Array


def replace_by_bound(
    model: Model, multiplier: Multiplier, bound: Callable[[], cp.Expression], own: Sequence[Any]
) -> bool:
    """Put a lower bound in the place of a multiplier, if the dual then follows the rules of cvxpy.

    `own` has the pieces and rows that state the bound.
    """
    expression = bound()
    if any(variable is multiplier.variable for variable in expression.variables()):
        return False
    for trial in (lambda: stand_in_for(expression, multiplier.variable.shape), bound):
        multiplier.definition = trial
        if not assembled(model, leave_out=own).is_dcp(dpp=model.dpp):
            multiplier.definition = None
            return False
    return True


def stand_in_for(expression: cp.Expression, shape: tuple[int, ...]) -> cp.Expression:
    """Return a convex expression of the sign of another that is not affine."""
    free, other = cp.Variable(shape), cp.Variable(shape)
    return cp.abs(free) if expression.is_nonneg() else cp.maximum(free, other)


def gather_floors(model: Model) -> bool:
    """Replace a multiplier by the vector of its entries' lower bounds, and say whether it was done.

    So |(|w_1|_2, ..., |w_M|_2)|_r has the multiplier of the outer norm equal to the vector of the inner ones.
    """
    for multiplier in model.multipliers:
        if multiplier.definition is not None or not multiplier.auxiliary or multiplier.variable.ndim != 1:
            continue
        floors = [found for piece in model.pieces if (found := floor_of(piece, multiplier)) is not None]
        covered = np.concatenate([floor.at for floor in floors]) if floors else np.zeros(0)
        if not np.array_equal(np.sort(covered), np.arange(multiplier.size)):
            continue
        if replace_by_bound(model, multiplier, stacked(floors), [floor.piece for floor in floors]):
            for floor in floors:
                floor.piece.floor = None
            return True
    return False


def floor_of(piece: Piece, multiplier: Multiplier) -> Floor | None:
    """Return what a floor says of the entries of a multiplier, None where it is about others."""
    form = piece.floor[0].definition if piece.floor is not None else None
    if not isinstance(form, Form) or len(form.audible) != 1 or any(one.matrix.nnz for one in form.given):
        return None
    term = form.audible[0]
    matrix = term.matrix.tocoo()
    if term.multiplier is not multiplier or term.scale is not None or (matrix.data <= 0).any():
        return None
    if not np.array_equal(np.sort(matrix.row), np.arange(form.size)):  # one entry in each row
        return None
    order = np.argsort(matrix.row)
    return Floor(piece, matrix.col[order], matrix.data[order])


def stacked(floors: Sequence[Floor]) -> Callable[[], cp.Expression]:
    """Return a function that returns the vector of the lower bounds of all entries, in their order."""
    order = np.argsort(np.concatenate([floor.at for floor in floors]))
    bounds: list[Any] = [floor.piece.floor[1] for floor in floors if floor.piece.floor is not None]

    def bound() -> cp.Expression:
        parts = []
        for floor, least in zip(floors, bounds, strict=True):
            part = least()
            flat = cp.vec(part, order="F") if part.ndim == 2 else part
            parts.append(flat if (floor.factors == 1).all() else cp.multiply(1 / floor.factors, flat))
        whole = cp.hstack(parts)
        return whole if (np.diff(order) > 0).all() else whole[order]

    return bound
