"""Bounds of variables, read from attributes and simple constraints, and problems without attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import nonneg_wrap

from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import flat
from kernelopt.structure.attributes import stated_bounds
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_problem
from kernelopt.structure.zero_weights import all_zero_weights
from kernelopt.validation import Array

COMPUTED = Ball(1.0, 1e-14)  # times a computed reach, a quotient or a root: it holds the exact one


class Box(NamedTuple):
    """Lower and upper bounds of the entries of a variable, flattened by columns as cvxpy does."""

    lower: Array
    upper: Array


Boxes = Mapping[int, Box]  # by variable id
NO_BOXES: Boxes = MappingProxyType({})


def known_boxes(structure: Structure, extra: Boxes = NO_BOXES) -> Boxes:
    """Return the bounds of the variables that their attributes, the caller and single constraints imply.

    The constraints are a'x <= c and a'x == c with a >= 0 for non-negative x (a trace, a simplex), norm balls,
    and the trace of a PSD variable. Entries that a constraint forces to zero have the bound zero. `extra`
    holds the caller's bounds.
    """
    boxes = {v.id: attribute_box(v) for v in structure.variables}

    def tighten(variable: cp.Variable, lower: Array, upper: Array) -> None:
        known = boxes[variable.id]
        boxes[variable.id] = Box(np.fmax(known.lower, lower), np.fmin(known.upper, upper))

    for variable in structure.variables:
        if variable.id in extra:
            tighten(variable, *extra[variable.id])
    for part in (found for found in structure.sets if found is not None):
        for variable in part.variables:
            if variable.id in boxes:
                bound = (Ball(np.broadcast_to(part.reach(variable), variable.size)) * COMPUTED).above
                tighten(variable, -bound, bound)
    for variable, zero in all_zero_weights(structure).items():
        tighten(variable, np.zeros(variable.size), np.where(zero, 0.0, np.inf))
    return boxes


def attribute_box(variable: cp.Variable) -> Box:
    """Return the bounds that the attributes of a variable state."""
    lower, upper = np.full(variable.size, -np.inf), np.full(variable.size, np.inf)
    attributes = variable.attributes
    if attributes["nonneg"] or attributes["pos"]:
        lower = np.zeros(variable.size)
    if attributes["nonpos"] or attributes["neg"]:
        upper = np.zeros(variable.size)
    stated = stated_bounds(variable)
    if stated is not None:
        lower, upper = np.maximum(lower, flat(stated[0])), np.minimum(upper, flat(stated[1]))
    return Box(lower, upper)


def entry_bounds(variable: cp.Variable, box: Box) -> list[cp.Constraint]:
    """Return the finite bounds of a box as constraints on the entries of a variable."""
    constraints: list[cp.Constraint] = []
    for bound, side in ((box.lower, 1), (box.upper, -1)):
        chosen = np.flatnonzero(np.isfinite(bound))
        if chosen.size:
            entries = cp.reshape(variable, (variable.size,), order="F")[chosen]
            constraints.append(side * (entries - bound[chosen]) >= 0)
    return constraints


class WithoutAttributes(NamedTuple):
    """A problem whose variables have no attributes, equivalent to a user's problem."""

    problem: cp.Problem
    variables: dict[int, cp.Variable]  # by the user's variable id; of a symmetric variable its upper triangle
    boxes: Boxes  # of the new variables


def is_triangular(variable: cp.Variable) -> bool:
    """Whether `without_attributes` represents a matrix variable by its upper triangle."""
    return any(variable.attributes[name] for name in ("PSD", "NSD", "symmetric"))


def entries(variable: cp.Variable, value: Array) -> Array:
    """Return the entries of a value in the representation of `without_attributes`."""
    found: Array = value[np.triu_indices(len(value))] if is_triangular(variable) else flat(value)
    return found


def whole(variable: cp.Variable, entries: Array) -> Array:
    """Return the value of a variable from its entries, the inverse of `entries`."""
    values = duplication(variable.shape[0]) @ entries if is_triangular(variable) else entries
    return np.reshape(values, variable.shape, order="F")


def duplication(order: int) -> sp.csc_array:
    """Return the duplication matrix: from an upper triangle to the symmetric matrix, flattened by columns."""
    rows, columns = np.triu_indices(order)
    index = np.zeros((order, order), dtype=int)
    index[rows, columns] = index[columns, rows] = np.arange(rows.size)
    return sp.csc_array((np.ones(order**2), (np.arange(order**2), index.ravel(order="F"))))


def without_attributes(problem: cp.Problem, variables: list[cp.Variable], boxes: Boxes) -> WithoutAttributes:
    """Return the problem on variables without attributes, with constraints that state the attributes."""
    substitutes: dict[int, Any] = {}
    stand_ins: dict[int, cp.Variable] = {}
    new_boxes = dict[int, Box]()
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
            entries = rows + columns * order
        else:
            stand_in = cp.Variable(variable.shape, name=variable.name())
            # cvxpy needs the sign for its convexity rules: cp.square(cp.max(theta)) needs theta >= 0.
            whole = nonneg_wrap(stand_in) if variable.is_nonneg() else stand_in
            entries = np.arange(variable.size)
        box = Box(box.lower[entries], box.upper[entries])
        declared = attribute_box(variable)
        constraints += entry_bounds(stand_in, Box(declared.lower[entries], declared.upper[entries]))
        substitutes[id(variable)] = whole
        stand_ins[variable.id] = stand_in
        new_boxes[stand_in.id] = box
    copy = copied_problem(problem, substitutes)
    stripped = cp.Problem(copy.objective, [*copy.constraints, *constraints])
    return WithoutAttributes(stripped, stand_ins, new_boxes)
