"""Sizes and distances in the conditions of optimality: gradients, cones, sides of constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.duality.equations import Equation
from kernelopt.duality.symbols import dense
from kernelopt.validation import Array


def coefficients(machine: Any, count: int) -> Array:
    """Return the coefficients of the machine for each of `count` kernels, shape (count, n)."""
    return np.broadcast_to(machine.coefficients, (count, machine.alpha.size))


def gradient(equation: Equation) -> tuple[Array, float]:
    """Return the gradient of the Lagrangian by a variable, and the size of its largest term."""
    scale = max((magnitude(part) for part in equation.parts), default=0.0)
    return dense(equation.gradient.value), scale


def off_cone(equation: Equation, G: Array) -> float:
    """Return how far a gradient is from the cone in which it must be: zero, non-negative, PSD."""
    if equation.special:
        return largest(equation.constraint.violation())
    if equation.kind in ("nonneg", "nonpos"):
        return largest(np.maximum(-G if equation.kind == "nonneg" else G, 0.0))
    if equation.kind == "free":
        return largest(np.abs(G))
    return max(0.0, -float(np.linalg.eigvalsh(G if equation.kind == "PSD" else -G)[0]))


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
    return 0.0 if value is None else largest(np.abs(dense(value)))
