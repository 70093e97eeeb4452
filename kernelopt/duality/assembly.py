"""The dual problem of a Lagrangian: its dual function, the domains, and the gradients as constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.constraints import PSD
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.forms import Form
from kernelopt.duality.model import Model, Row
from kernelopt.duality.products import labelled, signed


def assembled(model: Model, leave_out: Sequence[Any] = ()) -> cp.Problem:
    """Return the maximisation over the multipliers, without the rows and the floors in `leave_out`."""
    constraints = [c for c in parts(model, leave_out).values() if not is_trivial(c)]
    return cp.Problem(cp.Maximize(value_of(model)), constraints)


def parts(model: Model, leave_out: Sequence[Any] = ()) -> dict[tuple[int, int], Constraint]:
    """Return the constraints by where they come from: (number of the piece or the row, position in it)."""
    sources: list[tuple[Any, Any]] = [(piece, of_piece) for piece in model.pieces] + [
        (row, of_row) for row in model.rows.values()
    ]
    return {
        (i, k): constraint
        for i, (source, constraints_of) in enumerate(sources)
        for k, constraint in enumerate(constraints_of(source, leave_out))
    }


def value_of(model: Model, side: float = 1.0) -> cp.Expression:
    """Return the dual function as a concave expression, or with `side` -1 its negative, term by term."""
    parts = [piece.value() for piece in model.pieces if piece.value is not None]
    if not model.linear.is_zero:
        parts.append(model.linear.expression(()))
    total: cp.Expression | None = None
    for part in parts:
        for summand in part.args if isinstance(part, AddExpression) else [part]:
            sign, inner = signed(summand)
            if total is None:
                total = inner if side * sign > 0 else -inner
            else:
                total = total + inner if side * sign > 0 else total - inner
    return cp.Constant(0.0) if total is None else total


def of_piece(piece: Any, leave_out: Sequence[Any]) -> list[Constraint]:
    """Return the constraints of a piece: its domain and its floor."""
    found = [] if piece.domain is None else list(piece.domain())
    if piece.floor is not None and not any(piece is one for one in leave_out):
        multiplier, bound = piece.floor
        expression = bound()
        if expression.shape != multiplier.variable.shape:
            expression = cp.reshape(expression, multiplier.variable.shape, order="F")
        found.append(labelled(expression <= multiplier.expression, piece.label))
    return found


def is_trivial(constraint: Constraint) -> bool:
    """Whether a constraint has no variables and holds."""
    return not constraint.variables() and not constraint.parameters() and bool(constraint.value(1e-9))


def of_row(row: Row, leave_out: Sequence[Any]) -> list[Constraint]:
    """Return the constraint that the gradient by a variable is zero, or in the dual cone of the variable."""
    if any(row is one for one in leave_out) or row.solved is not None or row.curvature is not None:
        return []
    constraint = stated(row)
    return [] if constraint is None else [labelled(constraint, f"d/d {row.name}")]


def stated(row: Row) -> Constraint | None:
    """Return the constraint of a row, None where it holds identically."""
    shape, symmetric = row.variable.shape, row.symmetric
    form = restricted(row)
    if form.is_zero:
        return None
    if form.size != row.variable.size:
        shape, symmetric = (form.size,), False
    if row.kind in ("psd", "nsd"):
        return PSD((form if row.kind == "psd" else form.times(-1.0)).expression(shape, symmetric))
    plus, minus = (part.expression(shape, symmetric) for part in form.split())
    if row.kind == "free":
        return equation(plus, minus, form)
    return minus <= plus if row.kind == "nonneg" else plus <= minus


def equation(plus: cp.Expression, minus: cp.Expression, form: Form) -> Constraint:
    """Return plus == minus, with the constants on the right side."""
    return minus == plus if form.negative else plus == minus


def restricted(row: Row) -> Form:
    """Return the gradient by the free entries of a variable: all, the diagonal, or the sparsity pattern."""
    entries = free_entries(row.variable)
    if entries is None:
        return row.form
    form = Form(entries.size)
    size = row.variable.size
    select = np.eye(size)[entries]
    form.add_form(row.form, select)
    return form


def free_entries(variable: cp.Variable) -> Any:
    """Return the positions in vec(X) of the entries that are not fixed to zero, None for all."""
    if variable.attributes["diag"]:
        return np.arange(variable.shape[0]) * (variable.shape[0] + 1)
    if variable.attributes["sparsity"]:
        return np.ravel_multi_index(variable.sparse_idx, variable.shape, order="F")
    return None
