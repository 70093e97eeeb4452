"""Enclosures of cvxpy expressions: their values at the current point with bounds of the rounding errors.

The error of an atom is taken from its arguments: exp(-x) - 1 at x = 1e-10 is known to 1e-16 only. Norms and
sums of squares are computed with their scale taken out, since x^p alone may underflow.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.binary_operators import MulExpression
from cvxpy.atoms.atom import Atom
from cvxpy.constraints import SOC, ExpCone, Inequality, NonNeg, NonPos, PowCone3D, PowConeND, Zero
from cvxpy.constraints.zero import Equality
from cvxpy.expressions.leaf import Leaf
from cvxpy.transforms.indicator import indicator

from kernelopt.numerics.ball import Ball, raised
from kernelopt.structure.affine import flat
from kernelopt.structure.rules import EVALUATION, dense, of_other, of_product, rule_of
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes
from kernelopt.validation import Array

FEASIBILITY = 1e-14  # relative change of the weights that makes a point, feasible up to rounding, feasible
ASSUMED = "{} computed as accurately as if arguments and values had relative errors of {:g}"


def enclosure(expression: Any, moved: Collection[cp.Variable] = (), by: float = 0.0) -> Ball:
    """Return a ball around the value of an expression.

    Parameters
    ----------
    expression : cp.Expression
        Where a variable has no value, the radius is infinite.
    moved : collection of variables, optional
        Variables whose values are only known up to the relative change `by` of each entry.
    by : float >= 0, default 0
    """
    if isinstance(expression, Leaf):
        value = expression.value
        if value is None:
            return Ball(np.zeros(expression.shape), np.full(expression.shape, np.inf))
        if sp.issparse(value):
            return Ball(value)
        value = np.asarray(value, dtype=float)
        changes = by > 0 and any(expression is variable for variable in moved)
        return Ball(value, raised(by * np.abs(value)) if changes else 0.0)
    if isinstance(expression, indicator):
        return Ball(np.asarray(0.0 if all(map(holds_up_to_rounding, expression.args)) else np.inf))
    balls, rule = [enclosure(arg, moved, by) for arg in expression.args], rule_of(expression)
    sparse = rule is of_product and isinstance(expression, MulExpression)
    with np.errstate(all="ignore"):  # cvxpy evaluates infinite entries too
        found = rule(expression, *(balls if sparse else map(dense, balls)))
    shape = expression.shape
    return Ball(
        np.reshape(found.mid, shape), np.reshape(np.broadcast_to(found.rad, np.shape(found.mid)), shape)
    )


def holds_up_to_rounding(constraint: Any) -> bool:
    """Whether a constraint inside an indicator holds; cvxpy itself tolerates 1e-3."""
    size = max(np.abs(flat(arg.value)).max(initial=0.0) for arg in constraint.args)
    return bool(np.all(constraint.violation() <= FEASIBILITY * size))


def assumption(structure: Structure) -> str:
    """Return what the enclosures of a problem assume, as a sentence; empty where all atoms have a rule."""
    names = {
        type(e).__name__ for e in nodes(structure.lifted) if isinstance(e, Atom) and rule_of(e) is of_other
    }
    return ASSUMED.format(", ".join(sorted(names)), EVALUATION) if names else ""


def violation(constraint: Any) -> Array:
    """Return the violation of a constraint: for each entry, or each cone, zero or the distance from it."""
    found: Array = np.maximum(np.asarray(residual(constraint).mid, dtype=float), 0.0)
    return found


def residual(constraint: Any, moved: Collection[cp.Variable] = (), by: float = 0.0) -> Ball:
    """Return a ball around the violation of a constraint, negative where an inequality has slack.

    Variables in `moved` are only known up to the relative change `by`. For a second-order cone it is the
    excess of the norm. cvxpy finds the distances from exponential and power cones by SCS, to about 1e-6. Here
    they are bounded by explicit changes of single entries; a distance changes by no more than the point.
    """
    if isinstance(constraint, Equality | Zero):
        return enclosure(constraint.expr, moved, by).absolute()
    if isinstance(constraint, Inequality | NonPos):
        return enclosure(constraint.expr, moved, by)
    if isinstance(constraint, NonNeg):
        return -enclosure(constraint.expr, moved, by)
    if not isinstance(constraint, SOC | ExpCone | PowCone3D | PowConeND):
        return Ball(np.asarray(constraint.violation(), dtype=float))
    args = [enclosure(arg, moved, by) for arg in constraint.args]
    if isinstance(constraint, SOC):
        t, X = args
        return X.norm(2, constraint.axis if np.ndim(X.mid) > 1 else None) - Ball(
            np.ravel(t.mid), np.ravel(t.rad)
        )
    change = sum(float(Ball(np.broadcast_to(arg.rad, np.shape(arg.mid))).norm(2).above) for arg in args)
    distances = from_cones(constraint, [np.asarray(arg.mid) for arg in args])
    return Ball(distances, np.full(distances.shape, change))


def from_cones(constraint: Any, args: list[Array]) -> Array:
    """Return bounds of the distances of the given arguments from exponential or power cones."""
    if isinstance(constraint, PowConeND):
        W, a = args[0], np.asarray(constraint.alpha.value, dtype=float)
        W, a = (W.T, a.T) if W.ndim == 2 and constraint.axis == 0 else (np.atleast_2d(W), np.atleast_2d(a))
        points = np.column_stack([W, np.ravel(args[1], order="F")])
    else:
        points = np.column_stack([np.ravel(arg, order="F") for arg in args])
        if isinstance(constraint, ExpCone):
            return np.array([from_exponential(v) for v in points])
        a = np.ravel(np.asarray(constraint.alpha.value, dtype=float), order="F")
        a = np.column_stack([a, 1 - a])
    return np.array([from_power(v[:-1], v[-1], each) for v, each in zip(points, a, strict=True)])


def from_exponential(v: Array) -> float:
    """Return how far a point is from the exponential cone: the least change of x, of z, or to its face y = 0.

    It is at least the distance, and of its order near the cone, where one of its entries may change alone.
    """
    x, y, z = v
    if not np.isfinite(v).all():
        return np.inf
    changes = [math.hypot(max(x, 0.0), y, min(z, 0.0))]
    if y > 0:
        with np.errstate(over="ignore"):
            changes.append(max(y * np.exp(x / y) - z, 0.0))
        if z > 0:
            changes.append(max(x - y * math.log(z / y), 0.0))
    return float(min(changes))


def from_power(w: Array, z: float, exponents: Array) -> float:
    """Return how far a point is from a power cone: the least change of z or of one w_i, after w >= 0."""
    if not (np.isfinite(w).all() and np.isfinite(z)):
        return np.inf
    positive = np.maximum(w, 0.0)
    reach = float(np.prod(positive**exponents))
    changes = [max(abs(z) - reach, 0.0)]
    if abs(z) > reach > 0:
        with np.errstate(over="ignore"):
            changes.extend(positive * np.expm1(np.log(abs(z) / reach) / exponents))
    return math.hypot(float(np.linalg.norm(w - positive)), min(changes))
