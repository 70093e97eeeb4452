"""The conditions of optimality at a pair of points of a problem and its dual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.structure.affine import Affine, flat
from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import Structure
from kernelopt.structure.zero_weights import ROUNDING_SHARE, senses, sizes_of_terms, zero_equations
from kernelopt.threads import quietly
from kernelopt.validation import Array

FAR = 1e-2  # of the largest entry, or of one: a point is no solution where a constraint is further away


class Check(NamedTuple):
    """How well a pair of points satisfies the conditions of Karush, Kuhn and Tucker.

    Attributes
    ----------
    primal, dual : float
        The values of the two problems at the recovered point and at the dual one.
    gap : float
        |primal - dual| / max(1, |primal|, |dual|).
    feasibility : float
        The largest violation of a constraint of the primal at the recovered point, or the largest weight
        that signs force to zero. It is at least 0.01 where a linear constraint, however small its
        coefficients, holds only if an entry moves by more than 0.01, or by a hundredth of the largest one.
    stationarity : float
        The largest violation of a constraint of the dual: that the gradient of the Lagrangian is zero or in a
        cone, and that multipliers are in theirs.
    complementarity : float
        The largest |<multiplier, slack>| over the constraints of the primal.
    """

    primal: float
    dual: float
    gap: float
    feasibility: float
    stationarity: float
    complementarity: float


def checked(
    structure: Structure,
    point: dict[cp.Variable, Array],
    multipliers: dict[Constraint, Any],
    dual: float,
    constraints: Sequence[Constraint],
) -> Check:
    """Return the conditions of optimality at a primal point and at the dual one.

    Parameters
    ----------
    structure : Structure
        The primal; its variables get the values of the point.
    point : dict from the user's variables to their values
    multipliers : dict from the user's constraints to the values of their multipliers
    dual : float
        The value of the dual.
    constraints : sequence of cvxpy constraints
        Those of the dual, at the values that its variables have.
    """
    lifted = structure.lifted
    with quietly(), np.errstate(all="ignore"):  # cvxpy warns about the values of sparse variables
        for variable, copy in zip(structure.user_variables, structure.variables, strict=True):
            set_value(copy, point[variable])
        for term in structure.risks:
            kernels = term.values()
            value = np.inf if kernels is None else term.learner.train(kernels).value
            term.stand_in.save_value(np.asarray(value))
        primal = float(lifted.objective.value)
        slacks = [
            abs(inner(given, copied, multipliers[given]))
            for given, copied in zip(structure.problem.constraints, lifted.constraints, strict=True)
            if given in multipliers
        ]
        return Check(
            primal,
            dual,
            abs(primal - dual) / max(1.0, abs(primal), abs(dual)),
            max(largest_violation([*lifted.constraints, *zero_equations(structure)]), far_off(structure)),
            largest_violation(constraints),
            max(slacks, default=0.0),
        )


def far_off(structure: Structure) -> float:
    """Return a distance within which no point meets some linear constraint and the signs, or zero.

    The violation of 1e-9 x <= 1e-9 at x = 2 is 1e-9, and the point is far from feasible.
    """
    size = max((float(np.abs(flat(v.value)).max(initial=0.0)) for v in structure.variables), default=0.0)
    distance = FAR * max(1.0, size)
    for constraint, read in zip(structure.lifted.constraints, structure.affines, strict=True):
        if read is not None and any(is_above(constraint, read, s, distance) for s in senses(constraint)):
            return distance
    return 0.0


def is_above(constraint: Any, read: Affine, sign: float, distance: float) -> bool:
    """Whether an entry of sign * read is positive wherever the variables move by at most a distance.

    Variables keep their signs. Coefficients that are rounding errors of a difference do not count.
    """
    least, sides = sign * read.constant, []
    for variable, matrix in read.matrices.items():
        x, A = flat(variable.value), sign * matrix
        low, high = x - distance, x + distance
        low = np.maximum(low, 0.0) if variable.is_nonneg() else low
        high = np.minimum(high, 0.0) if variable.is_nonpos() else high
        least = least + A.maximum(0) @ low + A.minimum(0) @ high
        sides.append((variable, A > 0, np.abs(low)))
        sides.append((variable, A < 0, np.abs(high)))
    if not (sides and np.any(least > 0)):
        return False
    sizes, terms = sizes_of_terms(constraint.expr), np.abs(read.constant)
    for variable, part, side in sides:
        terms = terms + sizes.get(variable.id, part).multiply(part) @ side
    return bool(np.any(least > ROUNDING_SHARE * terms))


def error_of(check: Check) -> float:
    """Return the larger of the gap and of the violation of the primal, infinite where one is no number."""
    error = max(check.gap, check.feasibility)
    return error if np.isfinite(error) else np.inf


def set_value(variable: cp.Variable, value: Array) -> None:
    """Set the value of a variable; cvxpy wants a sparse one as its entries."""
    if variable.attributes["sparsity"]:
        rows, columns = variable.sparse_idx
        variable.value_sparse = sp.coo_array((value[rows, columns], (rows, columns)), variable.shape)
    else:
        variable.save_value(value)


def inner(given: Constraint, copied: Constraint, multiplier: Any) -> float:
    """Return <multiplier, slack> of a constraint."""
    if isinstance(given, Equality | Inequality):
        return float(np.sum(np.asarray(copied.expr.value) * np.reshape(multiplier, copied.expr.shape)))
    parts_of = multiplier if isinstance(multiplier, list) else [multiplier]
    return float(
        sum(
            np.vdot(np.ravel(arg.value), np.ravel(part))
            for arg, part in zip(copied.args, parts_of, strict=True)
        )
    )


def largest_violation(constraints: Sequence[Constraint]) -> float:
    """Return the largest violation of some constraints, zero where there are none."""
    found = [float(np.max(violation(c))) for c in constraints if c.size]
    return max(found, default=0.0)
