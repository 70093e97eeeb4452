"""Relative violations of constraints and attributes at the current values of the variables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Zero
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.boxes import attribute_box
from kernelopt.numerics.decompositions import eigenvalues
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.enclosure import FEASIBILITY, enclosure, residual
from kernelopt.validation import Array

ROUND_OFF = FEASIBILITY  # relative to the terms of a constraint: a smaller violation is rounding


def relative_violation(constraint: Any, read: Affine | None, variables: Collection[cp.Variable]) -> float:
    """Return the violation of a constraint at the current values, zero where it is rounding.

    The violation of an inequality, to which the rounding of its own evaluation is added, is rounding where a
    relative change of `variables` by `ROUND_OFF` undoes it. An equation may be off by `ROUND_OFF` times its
    terms. The number is relative to the size of the arguments, and of the terms of a linear constraint.
    """
    if any(variable.value is None for arg in constraint.args for variable in arg.variables()):
        return np.inf
    if isinstance(constraint, cp.constraints.PSD):
        M = np.asarray(constraint.args[0].value)
        return beyond_rounding(negative_part(eigenvalues((M + M.T) / 2)))
    exact = residual(constraint)
    if isinstance(constraint, Equality | Zero):
        return beyond_rounding(relative_to(largest(exact.mid), scale_of(constraint, read)))
    undone = residual(constraint, variables, ROUND_OFF).rad - exact.rad
    if np.all(exact.above <= undone):
        return 0.0
    return max(relative_to(largest(exact.above), scale_of(constraint, read)), 2 * ROUND_OFF)


def scale_of(constraint: Any, read: Affine | None) -> float:
    """Return the largest entry of the arguments of a constraint, and of the terms of a linear one."""
    return max(largest_row(read), *(largest(np.abs(enclosure(arg).mid)) for arg in constraint.args))


def largest(values: Array) -> float:
    """Return the largest of zero and some numbers, infinite where one is no number."""
    return float(np.max(np.nan_to_num(values, nan=np.inf), initial=0.0))


def relative_to(size: float, scale: float) -> float:
    """Return size / scale, zero where the size is zero and infinite where one is not finite."""
    if not (np.isfinite(size) and np.isfinite(scale)):
        return np.inf
    return size / max(scale, SMALLEST_DIVISOR) if size else 0.0


def beyond_rounding(size: float) -> float:
    """Return a relative violation, zero where it is at most `ROUND_OFF`."""
    return 0.0 if size <= ROUND_OFF else size


def relative_nonzero(corner: Affine) -> float:
    """Return the largest entry of an expression that must be zero, relative to its terms; 0 if rounding."""
    value = corner.at({v.id: v.value for v in corner.matrices})
    return beyond_rounding(relative_to(largest(np.abs(value)), largest_row(corner)))


def attribute_violation(variable: cp.Variable) -> float:
    """Return the relative violation of the attributes of a variable, zero where it is rounding."""
    if variable.value is None:
        return np.inf
    value, size = np.asarray(variable.value), largest(np.abs(variable.value))
    box = attribute_box(variable)
    outside = largest(np.maximum(box.lower - flat(value), flat(value) - box.upper))
    outside = relative_to(outside, size) if size else outside
    if variable.attributes["PSD"]:
        outside = max(negative_part(eigenvalues(value)), outside)
    elif not (np.isfinite(box.lower).any() or np.isfinite(box.upper).any()) and any(
        v for v in variable.attributes.values() if v is not None and v is not False
    ):
        outside = largest(np.abs(value - variable.project(value)))
    return beyond_rounding(outside)


def negative_part(eigenvalues: Array) -> float:
    """Return max(0, -lambda_min) / max_i |lambda_i| / 10 for ascending eigenvalues lambda_i.

    The relative rounding error of an eigenvalue decomposition is about 1e-13. Divided by 10 it is ROUND_OFF.
    """
    return max(0.0, -float(eigenvalues[0])) / max(float(np.abs(eigenvalues).max()), SMALLEST_DIVISOR) / 10


def largest_row(read: Affine | None) -> float:
    """Return the largest entry of |constant| + |A| |x|, a bound of the terms of constant + A x."""
    if read is None or not read.matrices:
        return 0.0
    total = np.abs(read.constant) + sum(abs(M) @ np.abs(flat(v.value)) for v, M in read.matrices.items())
    return float(np.max(total, initial=0.0))
