"""The arguments of `certify`: candidate, bounds and dual variables, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from kernelopt.certificates.boxes import Box, Boxes
from kernelopt.conic.compiled import flat_dual
from kernelopt.errors import ParameterError, ShapeError
from kernelopt.structure.affine import flat
from kernelopt.structure.structure import Point, Structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array, numeric, shown


def starting_point(
    structure: Structure, candidate: Any, weights: ArrayLike | None
) -> tuple[Point | None, str]:
    """Return the candidate as a point, None where a value is missing or not finite.

    The text says which value is not finite, and is empty where all are.
    """
    variables = structure.user_variables
    if weights is not None:
        if candidate is not None or len(variables) != 1:
            raise ParameterError(
                "weights are for problems with one variable outside the risks and no candidate, got "
                f"{len(variables)} ({names(variables)}). Pass candidate={{variable: value, ...}}."
            )
        candidate = {variables[0]: weights}
    given = {} if candidate is None else candidate
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"candidate must be a dict from cvxpy variables to values, got {type(candidate).__name__}. "
            "Pass weights=... for the weights of a problem with one variable."
        )
    unknown = [v for v in given if not any(v is w for w in structure.problem.variables())]
    if unknown:
        raise ParameterError(
            f"the candidate must be for variables of the problem ({names(variables)}), got "
            f"{shown(unknown[0])}. Pass the variables that the problem was built from."
        )
    kind = "the candidate of" if weights is None else "weights, the candidate of"
    point: Point = {}
    for variable in variables:
        value, what = given.get(variable, variable.value), f"{kind} {variable.name()}"
        if value is None:
            return None, ""
        dense = value.toarray() if hasattr(value, "toarray") else value
        array = numeric(dense, what, ParameterError).copy()
        if array.shape != variable.shape:
            raise ShapeError(
                f"{what} must have shape {variable.shape}, got {array.shape}. Reshape it as the variable."
            )
        if not np.isfinite(flat(array)).all():
            return None, f"{what} holds {not_finite(array)} and was not used"
        point[variable.id] = array
    return point, ""


def names(variables: Sequence[cp.Variable]) -> str:
    """Return the names of some variables for a message."""
    return ", ".join(v.name() for v in variables)


def not_finite(array: Array) -> str:
    """Return in words what an array holds that is not finite."""
    return "NaN" if np.isnan(flat(array)).any() else "infinite entries"


def as_bounds(structure: Structure, bounds: Any) -> Boxes:
    """Return the bounds of the caller by the ids of the variables; infinite entries are no bounds."""
    variables, given = structure.user_variables, {} if bounds is None else bounds
    if not isinstance(given, Mapping) or not all(any(v is w for w in variables) for v in given):
        raise ParameterError(
            f"bounds must be for variables of the problem ({names(variables)}), a dict of pairs (lower, "
            f"upper), got {shown(bounds)}. Pass the variables that the problem was built from."
        )
    checked = dict[int, Box]()
    for variable, sides in given.items():
        what, shape = f"the bounds of {variable.name()}", variable.shape
        if not isinstance(sides, list | tuple | np.ndarray) or len(sides) != 2:
            raise ShapeError(
                f"{what} must be a pair (lower, upper), got {shown(sides)}. "
                "Pass -numpy.inf or numpy.inf for a side without a bound."
            )
        lower, upper = (numeric(side, what) for side in sides)
        for side in (lower, upper):
            if side.shape not in ((), shape) or np.isnan(side).any():
                raise ShapeError(
                    f"{what} must be numbers or arrays of shape {shape}, got {shown(side)} of shape "
                    f"{side.shape}. Pass numpy.inf for no bound, never NaN."
                )
        if (lower > upper).any():
            raise ParameterError(
                f"{what} must have lower <= upper, got {shown(lower)} and {shown(upper)}. Swap them."
            )
        checked[variable.id] = Box(*(flat(np.broadcast_to(side, shape)) for side in (lower, upper)))
    return checked


def dual_values(problem: cp.Problem, multipliers: Any) -> list[Array | None]:
    """Return the entries of every constraint's multiplier, None where there is none.

    A multiplier is given, or is the dual value that the last solve has left.
    """
    given = {} if multipliers is None else multipliers
    own = {c.id: c for c in problem.constraints}
    if not isinstance(given, Mapping) or not all(getattr(c, "id", None) in own for c in given):
        raise ParameterError(
            "multipliers must be a dict from constraints of the problem to values such as `dual_value`, got "
            f"{shown(multipliers)}. Pass the constraints in problem.constraints."
        )
    values = {c.id: c.dual_value for c in problem.constraints} | {c.id: value for c, value in given.items()}
    found = list[Array | None]()
    for key, value in values.items():
        parts = value if isinstance(value, list | tuple) else [value]
        shapes = [v.shape for v in own[key].dual_variables]
        if any(part is None for part in parts):
            found.append(None)
            continue
        arrays = [numeric(part, "a multiplier", ParameterError) for part in parts]
        if [a.size for a in arrays] != [int(np.prod(shape)) for shape in shapes]:
            raise ShapeError(
                f"the multiplier of a constraint must have the shapes of its dual value, {shapes}, got "
                f"{[a.shape for a in arrays]} for {short(own[key])}. Compare it with constraint.dual_value."
            )
        found.append(flat_dual(arrays))
    return found


def as_alphas(structure: Structure, alpha: Any) -> tuple[list[Array] | None, str]:
    """Return one finite dual variable per risk, None where none is given.

    Entries that are not finite become zero. The text says so, and is empty where all entries are finite.
    """
    if alpha is None or not structure.risks:
        return None, ""
    several = isinstance(alpha, list | tuple) and len(alpha) > 0 and hasattr(alpha[0], "__len__")
    arrays = [numeric(a, "alpha") for a in (alpha if several else [alpha])]
    sizes = [term.learner.n for term in structure.risks]
    if [a.shape for a in arrays] != [(n,) for n in sizes]:
        raise ShapeError(
            f"alpha must have one entry per labelled point of each of {len(sizes)} risk(s), sizes {sizes}, "
            f"got shapes {[a.shape for a in arrays]}. It is the signed dual variable, y times the SVM's."
        )
    wrong = [not_finite(a) for a in arrays if not np.isfinite(a).all()]
    note = f"alpha holds {wrong[0]}, which zeros replaced" if wrong else ""
    return [np.nan_to_num(a, nan=0.0, posinf=0.0, neginf=0.0) for a in arrays], note


def required_alphas(alphas: list[Array] | None, structure: Structure) -> list[Array]:
    """Return the alphas, or raise ParameterError where there are risks and none were given."""
    if alphas is None and structure.risks:
        raise ParameterError("retrain=False needs alpha, got None. Pass one per risk, or let it train.")
    return alphas or []
