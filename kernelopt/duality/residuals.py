"""Sizes and distances in the conditions of optimality: gradients, cones, sides of constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.duality.model import Row
from kernelopt.validation import Array


def coefficients(machine: Any, count: int) -> Array:
    """Return the coefficients of the machine for each of `count` kernels, shape (count, n)."""
    return np.broadcast_to(machine.coefficients, (count, machine.alpha.size))


def gradient(row: Row) -> tuple[Array, float]:
    """Return the gradient of the Lagrangian by a variable, and the size of its largest term.

    The size of A'y is the largest entry of |A|'|y|, which stays where the products cancel.
    """
    total = np.zeros(row.form.size)
    for one in row.form.given:
        value = np.ones(1) if one.parameter is None else np.ravel(one.parameter.value, order="F")
        total = total + one.matrix @ value
    scale = largest(np.abs(total))
    for term in row.form.audible:
        value = np.ravel(np.asarray(term.multiplier.expression.value, dtype=float), order="F")
        factor = 1.0 if term.scale is None else float(np.ravel(term.scale.value)[0])
        total = total + factor * (term.matrix @ value)
        scale = max(scale, abs(factor) * largest(abs(term.matrix) @ np.abs(value)))
    if row.curvature is not None:
        part = row.curvature * np.ravel(row.variable.value, order="F")
        total, scale = total + part, max(scale, largest(np.abs(part)))
    return total, scale


def off_cone(row: Row, g: Array) -> float:
    """Return how far a gradient is from the cone in which it must be: zero, non-negative, PSD."""
    if row.kind in ("nonneg", "nonpos"):
        return largest(np.maximum(-g if row.kind == "nonneg" else g, 0.0))
    if row.variable.ndim == 2 and (row.symmetric or row.kind in ("psd", "nsd")):
        G = g.reshape(row.variable.shape, order="F")
        G = (G + G.T) / 2
        if row.kind == "free":
            return largest(np.abs(G))
        least = float(np.linalg.eigvalsh(G if row.kind == "psd" else -G)[0])
        return max(0.0, -least)
    return largest(np.abs(g))


def largest(value: Any) -> float:
    """Return the largest entry, zero of no entries."""
    return float(np.max(np.asarray(value, dtype=float), initial=0.0))


def sides(constraint: Any) -> float:
    """Return the size of the largest term on a side of a constraint."""
    return max((magnitude(arg) for arg in constraint.args), default=0.0)


def magnitude(expression: Any) -> float:
    """Return the largest entry of an expression, of a sum the largest of its terms."""
    if isinstance(expression, AddExpression | NegExpression | Sum | Promote):
        return max(magnitude(arg) for arg in expression.args)
    value = expression.value
    if value is None:
        return 0.0
    return largest(np.abs(value.toarray() if hasattr(value, "toarray") else value))
