"""Residuals of the optimality conditions of a conic problem, at the values that a solver left in it.

The values may be missing, infinite or NaN. Each residual is then nan, unless its docstring states otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import KerneloptError
from kernelopt.structure.enclosure import violation as violated
from kernelopt.validation import Array

FAILURES = (KerneloptError, ArithmeticError, ValueError, RuntimeError, IndexError)
"""What cvxpy, numpy and kernelopt raise on the values that a solver leaves; LinAlgError is a ValueError."""


def measured(measure: Callable[[cp.Problem], tuple[float, str]], problem: cp.Problem) -> tuple[float, str]:
    """Return a residual and the constraint it belongs to, or (nan, "") where there is no finite point."""
    if finite([v.value for v in problem.variables()]):
        with suppress(*FAILURES):
            return measure(problem)
    return np.nan, ""


def primal_violation(problem: cp.Problem) -> tuple[float, str]:
    """Return the largest relative violation of a constraint, and the label of that constraint.

    A violation is divided by max(1, the largest entry of the two sides). The attributes of variables, such as
    nonneg=True, count as constraints.
    """
    found = [(0.0, "")]
    for variable in problem.variables():
        value = np.asarray(variable.value, dtype=float)
        moved = variable.project(value) - value if variable.attributes else 0.0 * value
        found.append((largest(moved) / max(1.0, largest(value)), f"the domain of {variable.name()}"))
    for constraint in problem.constraints:
        size = max((largest(arg.value) for arg in constraint.args), default=0.0)
        missed = float(np.max(violated(constraint), initial=0.0)) / max(1.0, size)
        found.append((missed, str(constraint.label or constraint)))
    return worst(found)


def complementarity_violation(problem: cp.Problem) -> tuple[float, str]:
    """Return the largest violation of complementarity or dual feasibility, and its constraint.

    It is taken over inequalities and cones, and for each of them is the larger of

        |<multiplier, slack>| / max(1, |optimal value|)   and   `dual_cone_violation`.

    It is infinite for a multiplier that is not finite, and nan where there is none.
    """
    found = [(0.0, "")]
    size = max(1.0, abs(number(problem.solution.opt_val)))
    for constraint in problem.constraints:
        if isinstance(constraint, cp.constraints.Zero | cp.constraints.Equality):
            continue
        label, duals = str(constraint.label or constraint), [dual.value for dual in constraint.dual_variables]
        if any(dual is None for dual in duals):
            return np.nan, ""
        if not finite(duals):
            return np.inf, label
        slacks = [constraint.expr] if isinstance(constraint, cp.constraints.Inequality) else constraint.args
        pairs = zip(duals, slacks, strict=True)
        product = abs(sum(float(np.vdot(np.asarray(d), np.asarray(s.value))) for d, s in pairs)) / size
        outside = dual_cone_violation(constraint, [np.asarray(d, dtype=float) for d in duals])
        found.append((max(product, outside), label))
    return worst(found)


def worst(found: list[tuple[float, str]]) -> tuple[float, str]:
    """Return the largest violation with its constraint; nan counts as the largest."""
    return max(found, key=lambda pair: np.inf if np.isnan(pair[0]) else pair[0])


def largest(value: Any) -> float:
    """Return the largest absolute entry."""
    return float(np.abs(value).max(initial=0.0))


def dual_cone_violation(constraint: cp.Constraint, duals: list[Array]) -> float:
    """Return by how much a multiplier is outside of its cone, relative to max(1, its largest entry).

    That is minus the smallest entry of the multiplier of an inequality, and minus the smallest eigenvalue of
    that of a semidefinite constraint. Other cones are not tested, and have 0.
    """
    size = max(1.0, *map(largest, duals))
    if isinstance(constraint, cp.constraints.Inequality | cp.constraints.NonNeg):
        return max(0.0, -float(duals[0].min(initial=0.0))) / size
    if isinstance(constraint, cp.constraints.PSD):
        return max(0.0, -float(np.linalg.eigvalsh((duals[0] + duals[0].T) / 2)[0])) / size
    return 0.0


def finite(values: Any) -> bool:
    """Whether no value is missing, and all are finite."""
    return all(v is not None and np.isfinite(np.asarray(v, dtype=float)).all() for v in values)


def number(value: Any) -> float:
    """Return a value as a float, nan where it is no number."""
    try:
        return float(np.asarray(value, dtype=float).reshape(()))
    except (TypeError, ValueError):
        return np.nan
