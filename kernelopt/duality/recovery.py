"""Primal points from dual ones: the values of the variables are multipliers of the gradients.

A row of the dual states that the gradient of the Lagrangian by x is zero, or in a cone, and x is its
multiplier. Rows that the presolve has eliminated have no multiplier in a solver's answer. By the envelope
theorem x is the derivative of the Lagrangian of the dual by a shift of the row, which the presolve carries
along as it substitutes. That derivative is computed here for all rows alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.assembly import parts, value_of
from kernelopt.duality.model import Model
from kernelopt.validation import Array


@contextmanager
def at_solution(model: Model) -> Iterator[None]:
    """Replace all multipliers by their values, and make the shifts variables with the value zero."""
    active = [m for m in model.multipliers if m.definition is None]
    for multiplier in active:
        multiplier.definition = constant(multiplier.variable)
    for shift in model.shifts.values():
        shift.silent = False
        shift.variable.save_value(np.zeros(shift.variable.shape))
    try:
        yield
    finally:
        for multiplier in active:
            multiplier.definition = None
        for shift in model.shifts.values():
            shift.silent = True


def constant(variable: cp.Variable) -> Any:
    """Return a function that returns the value of a variable as a constant."""
    value = cp.Constant(variable.value)
    return lambda: value


def primal_point(model: Model, multipliers: dict[tuple[int, int], list[Any]]) -> dict[int, Array]:
    """Return the values of the user's variables by id, from the values of the dual and its multipliers.

    `multipliers` holds the values of the multipliers of every constraint of `parts`.
    """
    point = {id_: np.zeros(shift.variable.shape) for id_, shift in model.shifts.items()}
    ids = {shift.variable.id: id_ for id_, shift in model.shifts.items()}
    with at_solution(model), np.errstate(all="ignore"):
        add_gradients(point, ids, value_of(model), np.ones(1))
        for key, constraint in parts(model).items():
            if key in multipliers:
                for expression, values in lagrangian_terms(constraint, multipliers[key]):
                    add_gradients(point, ids, expression, values)
    return {id_: projected(model, id_, value) for id_, value in point.items()}


def lagrangian_terms(constraint: Constraint, values: list[Any]) -> Iterator[tuple[cp.Expression, Array]]:
    """Yield (e, v) with the contribution <v, e> of a constraint to the Lagrangian of a maximisation."""
    if isinstance(constraint, Equality | Inequality):
        yield constraint.expr, -np.ravel(values[0], order="F")
        return
    for arg, value in zip(constraint.args, values, strict=True):
        yield arg, np.ravel(value, order="F")


def add_gradients(
    point: dict[int, Array], ids: dict[int, int], expression: cp.Expression, weights: Array
) -> None:
    """Add the derivative of <weights, expression> by every shift."""
    if not expression.variables():
        return
    for variable, jacobian in expression.grad.items():
        if jacobian is None:  # a norm at zero, where zero is a subgradient
            continue
        slope: Any = jacobian @ weights if np.ndim(jacobian) or sp.issparse(jacobian) else jacobian * weights
        point[ids[variable.id]] += np.reshape(slope, variable.shape, order="F")


def projected(model: Model, id_: int, value: Array) -> Array:
    """Return a value on the set that the attributes of its variable describe."""
    row = model.rows[id_]
    if row.symmetric:
        value = (value + value.T) / 2
    value = np.where(np.isfinite(value), value, 0.0)
    if row.variable.attributes["diag"] or row.variable.attributes["sparsity"]:
        return value
    return np.asarray(row.variable.project(value))
