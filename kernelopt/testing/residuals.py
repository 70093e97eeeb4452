"""Residuals of the optimality conditions of a conic problem, at the values that a solver left in it.

The values may be missing, infinite or NaN. Each residual is then nan, unless its docstring states otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np
from cvxpy.constraints import PSD, Equality, Inequality, NonNeg, Zero

from kernelopt.errors import KerneloptError
from kernelopt.structure.enclosure import violation as violated

FAILURES = (KerneloptError, ArithmeticError, ValueError, RuntimeError, IndexError)
"""What cvxpy, numpy and kernelopt raise on the values that a solver leaves; LinAlgError is a ValueError."""


Residual = TypeVar("Residual", float, tuple[float, str])


def measured(measure: Callable[[cp.Problem], Residual], problem: cp.Problem, unknown: Residual) -> Residual:
    """Return a residual, or `unknown` where there is no finite point or nothing can be computed at it."""
    if finite([v.value for v in problem.variables()]):
        with suppress(*FAILURES):
            return measure(problem)
    return unknown


def attained_value(problem: cp.Problem) -> float:
    """Return the objective at the point."""
    return number(problem.objective.value)


def primal_violation(problem: cp.Problem) -> tuple[float, str]:
    """Return the largest relative violation of a constraint, and the label of that constraint.

    A violation is divided by max(1, the largest entry of the two sides). The attributes of variables, such as
    nonneg=True, count as constraints.
    """
    found = [(0.0, "")]
    for v in problem.variables():
        moved = v.project(v.value) - v.value if v.attributes else 0.0
        found.append((largest(moved) / max(1.0, largest(v.value)), f"the domain of {v.name()}"))
    for c in problem.constraints:
        size = max(1.0, *(largest(arg.value) for arg in c.args))
        found.append((largest(violated(c)) / size, str(c.label or c)))
    return max(found, key=lambda pair: np.inf if np.isnan(pair[0]) else pair[0])


def complementarity_violation(problem: cp.Problem) -> float:
    """Return the largest violation of complementarity or dual feasibility.

    It is taken over inequalities and cones. For each of them it is the larger of

        |<multiplier, slack>| / max(1, |optimal value|)

    and of the distance of the multiplier from its cone, relative to max(1, its largest entry): minus the
    smallest entry of the multiplier of an inequality, minus the smallest eigenvalue of the multiplier of a
    semidefinite constraint. The multipliers of other cones are not tested for their cone. The result is
    infinite for a multiplier that is not finite, and nan where there is none.
    """
    found, value = [0.0], max(1.0, abs(number(problem.solution.opt_val)))
    for c in problem.constraints:
        if isinstance(c, Zero | Equality):
            continue
        duals = [dual.value for dual in c.dual_variables]
        if any(dual is None for dual in duals):
            return np.nan
        if not finite(duals):
            return np.inf
        pairs = zip(duals, [c.expr] if isinstance(c, Inequality) else c.args, strict=True)
        product = abs(sum(float(np.vdot(dual, slack.value)) for dual, slack in pairs)) / value
        outside, first = 0.0, np.asarray(duals[0], dtype=float)
        if isinstance(c, Inequality | NonNeg):
            outside = -float(first.min(initial=0.0))
        elif isinstance(c, PSD):
            outside = -float(np.linalg.eigvalsh((first + first.T) / 2)[0])
        found += [product, outside / max(1.0, *map(largest, duals))]
    return float(np.max(found))


def largest(value: Any) -> float:
    """Return the largest absolute entry."""
    return float(np.abs(value).max(initial=0.0))


def finite(values: Any) -> bool:
    """Whether no value is missing, and all are finite."""
    return all(v is not None and np.isfinite(np.asarray(v, dtype=float)).all() for v in values)


def number(value: Any) -> float:
    """Return a value as a float, nan where there is none."""
    return np.nan if value is None else float(np.squeeze(value))
