"""Relative violations of constraints and attributes at the current values of the variables."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality, Zero
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.boxes import attribute_box
from kernelopt.numerics.decompositions import eigenvalues
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.residuals import violation
from kernelopt.validation import Array

ROUND_OFF = 1e-14  # relative to the terms of a constraint: a smaller violation is rounding


class Violation(NamedTuple):
    """The relative violation of a constraint, and its name."""

    size: float
    name: str


def relative_violation(constraint: Any, read: Affine | None) -> float:
    """Return the violation of a constraint at the current values, relative to the size of its arguments.

    For a linear constraint the size is also that of the terms of its sums, which `largest_row` returns.
    """
    if any(arg.value is None for arg in constraint.args):
        return np.inf
    if isinstance(constraint, cp.constraints.PSD):
        M = np.asarray(constraint.args[0].value)
        return negative_part(eigenvalues((M + M.T) / 2))
    scale = float(np.max([np.abs(flat(arg.value)).max(initial=0.0) for arg in constraint.args]))  # NaN stays
    if isinstance(constraint, Equality | Zero | Inequality):
        scale = max(scale, largest_row(read))
    if not np.isfinite(scale):
        return np.inf
    worst = float(np.max(np.nan_to_num(violation(constraint), nan=np.inf), initial=0.0))
    return worst / scale if worst else 0.0


def relative_nonzero(corner: Affine) -> float:
    """Return the largest entry of an expression that must be zero, relative to its terms."""
    value = corner.at({v.id: v.value for v in corner.matrices})
    return float(np.abs(value).max()) / largest_row(corner) if value.any() else 0.0


def attribute_violation(variable: cp.Variable) -> float:
    """Return the relative violation of the attributes of a variable by its value."""
    if variable.value is None:
        return np.inf
    value = np.asarray(variable.value)
    box = attribute_box(variable)
    outside = float(np.maximum(box.lower - flat(value), flat(value) - box.upper).max(initial=0.0))
    outside = outside / float(np.abs(value).max(initial=0.0)) if outside > 0 and value.any() else outside
    if variable.attributes["PSD"]:
        return max(negative_part(eigenvalues(value)), outside)
    if np.isfinite(box.lower).any() or np.isfinite(box.upper).any():
        return outside
    if any(v for v in variable.attributes.values() if v is not None and v is not False):
        return float(np.abs(value - variable.project(value)).max(initial=0.0))
    return 0.0


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
