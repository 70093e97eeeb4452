"""Bounds on variables, read from attributes and simple constraints, and variables without attributes."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import nonneg_wrap
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.errors import ParameterError
from kernelopt.validation import Array


class Box(NamedTuple):
    """Lower and upper bounds of the entries of a variable, flattened by columns as cvxpy does."""

    lower: Array
    upper: Array


Boxes = dict[int, Box]  # by variable id


class Affine(NamedTuple):
    """constant + sum over variables of matrix @ vec(variable)."""

    constant: Array
    matrices: dict[cp.Variable, sp.csr_array]


def affine(expression: cp.Expression) -> Affine | None:
    """Read an affine expression whose variables have values; None if it is not affine."""
    if not expression.is_affine():
        return None
    value = expression.value
    if value is None:
        return None
    constant = flat(value).astype(float)
    matrices: dict[cp.Variable, sp.csr_array] = {}
    for variable, gradient in expression.grad.items():
        size = expression.size
        matrix = sp.csr_array(gradient).T if sp.issparse(gradient) else np.reshape(gradient, (-1, size)).T
        matrices[variable] = sp.csr_array(matrix)
        constant = constant - matrices[variable] @ flat(variable.value)
    return Affine(constant, matrices)


def flat(value: Any) -> Array:
    """Return an array flattened by columns."""
    dense = value.toarray() if sp.issparse(value) else value
    return np.asarray(dense, dtype=float).ravel(order="F")


def constraint_boxes(
    problem: cp.Problem, variables: list[cp.Variable], extra: dict[Any, Any] | None
) -> Boxes:
    """Return bounds of the variables that follow from attributes, the caller, and one constraint each.

    Read are a'x <= c and a'x == c with a >= 0 on non-negative variables (a trace, a simplex), norm
    balls, and the trace of a PSD variable.
    """
    boxes = {v.id: attribute_box(v) for v in variables}
    for variable, (lower, upper) in (extra or {}).items():
        if variable.id not in boxes:
            raise ParameterError(
                f"bounds must be for variables of the problem, got {variable.name()}. "
                f"Its variables are {', '.join(v.name() for v in variables)}."
            )
        given = Box(*(np.broadcast_to(np.asarray(b, dtype=float), variable.shape) for b in (lower, upper)))
        tighten(boxes, variable, flat(given.lower), flat(given.upper))
    for constraint in problem.constraints:
        if isinstance(constraint, Inequality | Equality):
            from_sum(boxes, constraint)
        if isinstance(constraint, Inequality):
            from_ball(boxes, constraint)
    return boxes


def attribute_box(variable: cp.Variable) -> Box:
    """Return the bounds that the attributes of a variable state."""
    lower, upper = np.full(variable.size, -np.inf), np.full(variable.size, np.inf)
    attributes = variable.attributes
    if attributes["nonneg"] or attributes["pos"]:
        lower = np.zeros(variable.size)
    if attributes["nonpos"] or attributes["neg"]:
        upper = np.zeros(variable.size)
    if attributes.get("bounds") is not None:
        low, high = attributes["bounds"]
        lower = np.maximum(lower, flat(np.broadcast_to(low, variable.shape)))
        upper = np.minimum(upper, flat(np.broadcast_to(high, variable.shape)))
    return Box(lower, upper)


def tighten(boxes: Boxes, variable: cp.Variable, lower: Array, upper: Array) -> None:
    """Intersect the box of a variable with another."""
    known = boxes[variable.id]
    boxes[variable.id] = Box(np.fmax(known.lower, lower), np.fmin(known.upper, upper))


def from_sum(boxes: Boxes, constraint: cp.Constraint) -> None:
    """Bound entries of non-negative variables by a'x <= c with a >= 0, and PSD ones by their trace."""
    if constraint.size != 1:
        return
    read = affine(constraint.expr)
    if read is None or not read.matrices or any(v.id not in boxes for v in read.matrices):
        return
    rows = {v: M.toarray()[0] for v, M in read.matrices.items()}
    sign = 1.0
    if isinstance(constraint, Equality) and sum(float(row.sum()) for row in rows.values()) < 0:
        sign = -1.0
    total = -sign * float(read.constant[0])
    for variable, row in rows.items():
        positive = (boxes[variable.id].lower >= 0).all() and (sign * row >= 0).all()
        if not (positive or traced(variable, sign * row)):
            return
    if total < 0:
        return
    for variable, row in rows.items():
        weights = sign * row
        if traced(variable, weights):
            reach = total / weights[0]
            tighten(boxes, variable, np.full(row.size, -reach), np.full(row.size, reach))
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                tighten(
                    boxes,
                    variable,
                    np.full(row.size, -np.inf),
                    np.where(weights > 0, total / weights, np.inf),
                )


def traced(variable: cp.Variable, row: Array) -> bool:
    """Whether row'vec(variable) is a positive multiple of the trace of a PSD variable."""
    if not variable.attributes["PSD"]:
        return False
    diagonal = np.eye(variable.shape[0]).ravel()
    return bool(row[0] > 0 and np.array_equal(row, row[0] * diagonal))


def ball(constraint: cp.Constraint) -> tuple[cp.Variable, float, float] | None:
    """Read |x|_p <= R with a variable x and a constant R as (x, p, R); max(x) <= R counts for x >= 0."""
    if not isinstance(constraint, Inequality) or not constraint.args[1].is_constant():
        return None
    norm, radius = constraint.args
    if radius.size != 1 or norm.size != 1 or not norm.args or not isinstance(norm.args[0], cp.Variable):
        return None
    if getattr(norm, "axis", None) is not None:
        return None
    variable = norm.args[0]
    if isinstance(norm, Pnorm):
        p = float(norm.p)
    elif isinstance(norm, norm1):
        p = 1.0
    elif isinstance(norm, norm_inf) or (isinstance(norm, max_atom) and variable.is_nonneg()):
        p = np.inf
    else:
        return None
    return variable, p, float(np.ravel(radius.value)[0])


def from_ball(boxes: Boxes, constraint: cp.Constraint) -> None:
    """Bound the entries of a variable by a norm ball around zero."""
    read = ball(constraint)
    if read is not None and read[0].id in boxes:
        variable, _, radius = read
        tighten(boxes, variable, np.full(variable.size, -radius), np.full(variable.size, radius))


def entry_bounds(variable: cp.Variable, box: Box) -> list[cp.Constraint]:
    """Return the finite bounds of a box as constraints on the entries of a variable."""
    constraints: list[cp.Constraint] = []
    for bound, side in ((box.lower, 1), (box.upper, -1)):
        chosen = np.flatnonzero(np.isfinite(bound))
        if chosen.size:
            entries = cp.reshape(variable, (variable.size,), order="F")[chosen]
            constraints.append(side * (entries - bound[chosen]) >= 0)
    return constraints


class Plain(NamedTuple):
    """A problem whose variables have no attributes, and what its variables stand for."""

    problem: cp.Problem
    variables: dict[
        int, cp.Variable
    ]  # the user's variable id -> the plain variable (symmetric: its triangle)
    boxes: Boxes  # of the plain variables


def is_triangular(variable: cp.Variable) -> bool:
    """Whether `plain` replaces a matrix variable by its upper triangle."""
    return any(variable.attributes[name] for name in ("PSD", "NSD", "symmetric"))


def duplication(order: int) -> sp.csc_array:
    """Return the matrix that maps an upper triangle to the whole symmetric matrix, flattened by columns."""
    rows, columns = np.triu_indices(order)
    index = np.zeros((order, order), dtype=int)
    index[rows, columns] = index[columns, rows] = np.arange(rows.size)
    return sp.csc_array((np.ones(order**2), (np.arange(order**2), index.ravel(order="F"))))


def plain(problem: cp.Problem, variables: list[cp.Variable], boxes: Boxes) -> Plain:
    """Replace variables by plain ones with explicit constraints."""
    substitutes: dict[int, Any] = {}
    stand_ins: dict[int, cp.Variable] = {}
    new_boxes: Boxes = {}
    constraints: list[cp.Constraint] = []
    for variable in variables:
        attributes = variable.attributes
        box = boxes[variable.id]
        if is_triangular(variable):
            order = variable.shape[0]
            rows, columns = np.triu_indices(order)
            stand_in = cp.Variable(rows.size, name=variable.name())
            whole = cp.reshape(duplication(order) @ stand_in, (order, order), order="F")
            if attributes["PSD"]:
                constraints.append((whole >> 0).set_label(f"{variable.name()} >> 0"))
            if attributes["NSD"]:
                constraints.append((whole << 0).set_label(f"{variable.name()} << 0"))
            pick = rows + columns * order
        else:
            stand_in = cp.Variable(variable.shape, name=variable.name())
            # Signs take part in the rules of convexity: cp.square(cp.max(theta)) needs theta >= 0.
            whole = nonneg_wrap(stand_in) if variable.is_nonneg() else stand_in
            pick = np.arange(variable.size)
        box = Box(box.lower[pick], box.upper[pick])
        declared = attribute_box(variable)
        constraints += entry_bounds(stand_in, Box(declared.lower[pick], declared.upper[pick]))
        substitutes[id(variable)] = whole
        stand_ins[variable.id] = stand_in
        new_boxes[stand_in.id] = box
    objective = problem.objective.tree_copy(substitutes)
    copies = [c.tree_copy(substitutes) for c in problem.constraints]
    return Plain(cp.Problem(objective, copies + constraints), stand_ins, new_boxes)
