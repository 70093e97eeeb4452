"""The conditions of optimality at a pair of points of a problem and its dual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality
from cvxpy.constraints.constraint import Constraint

from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import Structure
from kernelopt.structure.zero_weights import zero_equations
from kernelopt.threads import quietly
from kernelopt.validation import Array


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
        that signs force to zero.
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
            largest_violation([*lifted.constraints, *zero_equations(structure)]),
            largest_violation(constraints),
            max(slacks, default=0.0),
        )


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
