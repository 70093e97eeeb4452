"""The violation of a constraint at the current values of its variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from cvxpy.constraints import ExpCone, PowCone3D, PowConeND

from kernelopt.numerics.cones import exponential_projection, power_projection
from kernelopt.validation import Array


def violation(constraint: Any) -> Array:
    """Return the violation of a constraint: for each entry, or each cone, zero or the distance from it.

    cvxpy finds the distances from exponential and power cones by SCS, to about 1e-6. Here they are those of
    projections, exact up to rounding.
    """
    if isinstance(constraint, ExpCone):
        x, y, z = (flat(arg) for arg in constraint.args)
        return np.array([from_exponential(np.array(v)) for v in zip(x, y, z, strict=True)])
    if isinstance(constraint, PowCone3D):
        x, y, z = (flat(arg) for arg in constraint.args)
        a = flat(constraint.alpha)
        rows = np.column_stack([x, y]), np.column_stack([a, 1 - a])
        return np.array([from_power(*v) for v in zip(rows[0], z, rows[1], strict=True)])
    if isinstance(constraint, PowConeND):
        W, a = (np.asarray(part.value, dtype=float) for part in (constraint.args[0], constraint.alpha))
        if W.ndim == 2 and constraint.axis == 0:
            W, a = W.T, a.T
        W, a = np.atleast_2d(W), np.atleast_2d(a)
        return np.array([from_power(*v) for v in zip(W, flat(constraint.args[1]), a, strict=True)])
    return np.asarray(constraint.violation(), dtype=float)


def flat(expression: Any) -> Array:
    """Return the entries of the value of an expression, by columns."""
    return np.ravel(np.asarray(expression.value, dtype=float), order="F")


def from_exponential(v: Array) -> float:
    """Return the distance of a point from the exponential cone, infinite where it is not finite."""
    return float(np.linalg.norm(v - exponential_projection(v))) if np.isfinite(v).all() else np.inf


def from_power(w: Array, z: float, exponents: Array) -> float:
    """Return the distance of a point from a power cone, infinite where it is not finite."""
    if not (np.isfinite(w).all() and np.isfinite(z)):
        return np.inf
    nearest, r = power_projection(w, z, exponents)
    return float(np.hypot(np.linalg.norm(w - nearest), z - r))
