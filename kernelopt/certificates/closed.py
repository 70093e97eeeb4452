"""Lower bounds in closed form, where the kernel set has a support function."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.boxes import Affine, affine, ball, traced
from kernelopt.norms import conjugate_exponent, lp_length
from kernelopt.validation import Array


def closed_bound(problem: cp.Problem) -> float | None:
    """Return the minimum of an affine objective over a set with a support function, else None.

    * no variables: the value;
    * simplex: x >= 0 and r'x = c (or <= c) with r > 0: c min_i g_i / r_i;
    * ball: x >= 0 and |x|_p <= R: -R |(-g)_+|_q;
    * spectrahedron: K PSD and tr K = c (or <= c): c lambda_min(G).
    """
    objective = problem.objective.args[0]
    if not problem.variables() and not problem.constraints:
        return float(np.ravel(objective.value)[0])
    constraints = [c for c in problem.constraints if not trivially_true(c)]
    read = affine(objective)
    if read is None or len(constraints) != 1:
        return None
    constraint = constraints[0]
    if isinstance(constraint, Inequality):
        sphere = ball(constraint)
        if sphere is not None and set(read.matrices) <= {sphere[0]} and sphere[0].is_nonneg():
            g = gradient(read, sphere[0])
            return float(read.constant[0]) - sphere[2] * lp_length(
                np.maximum(-g, 0.0), conjugate_exponent(sphere[1])
            )
    if isinstance(constraint, Inequality | Equality) and constraint.size == 1:
        edge = affine(constraint.expr)
        return None if edge is None else over_trace(read, edge, isinstance(constraint, Inequality))
    return None


def trivially_true(constraint: cp.Constraint) -> bool:
    """Whether a constraint only repeats that an expression is non-negative or PSD."""
    if isinstance(constraint, Inequality):
        left, right = constraint.args
        return bool(left.is_constant() and np.all(left.value <= 0) and right.is_nonneg())
    if isinstance(constraint, cp.constraints.PSD):
        return bool(constraint.args[0].is_psd())
    return False


def over_trace(objective: Affine, edge: Affine, at_most: bool) -> float | None:
    """Return the minimum over {x >= 0 or PSD: edge(x) = 0, or <= 0}, None if that is no such set."""
    sign = 1.0 if at_most or sum(float(M.sum()) for M in edge.matrices.values()) > 0 else -1.0
    total = -sign * float(edge.constant[0])
    if not set(objective.matrices) <= set(edge.matrices) or total < 0:
        return None
    slopes = []
    for variable, M in edge.matrices.items():
        row, g = sign * M.toarray()[0], gradient(objective, variable)
        if traced(variable, row):
            G = g.reshape(variable.shape, order="F")
            slopes.append(float(np.linalg.eigvalsh((G + G.T) / 2)[0]) / row[0])
        elif variable.is_nonneg() and (row > 0).all():
            slopes.append(float((g / row).min()))
        else:
            return None
    least = min(slopes)
    return float(objective.constant[0]) + total * float(min(least, 0.0) if at_most else least)


def gradient(read: Affine, variable: cp.Variable) -> Array:
    """Return the coefficients of one variable, zero where it does not appear."""
    matrix: Any = read.matrices.get(variable)
    return np.zeros(variable.size) if matrix is None else matrix.toarray()[0]
