"""Bounds of variables, read from attributes and simple constraints, and problems without attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.numerics.ball import Ball
from kernelopt.structure.affine import flat
from kernelopt.structure.attributes import stated_bounds
from kernelopt.structure.structure import Structure
from kernelopt.structure.zero_weights import all_zero_weights
from kernelopt.validation import Array, Mask

COMPUTED = Ball(1.0, 1e-14)  # times a computed reach, a quotient or a root: it holds the exact one


class Box(NamedTuple):
    """Lower and upper bounds, entry by entry, of a variable flattened by columns as cvxpy does."""

    lower: Array
    upper: Array

    @property
    def bounded(self) -> Mask:
        """Whether both bounds are finite."""
        return np.asarray(np.isfinite(self.lower) & np.isfinite(self.upper))

    @property
    def max_abs(self) -> Array:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))


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
