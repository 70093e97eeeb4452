"""Advice on formulations that cost more than necessary."""

from __future__ import annotations

import warnings
from typing import Any

from cvxpy.constraints import Inequality

from kernelopt.errors import ConditionWarning
from kernelopt.language.combination import Combination
from kernelopt.language.terms import terms
from kernelopt.methods.driver import caller_stack_level
from kernelopt.methods.sizing import size
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes

NOTICEABLE = 2.0  # predicted seconds above which a warning is worth its interruption


def hints(structure: Structure) -> list[str]:
    """Return advice on formulations that cost more than necessary."""
    return [*undeclared_signs(structure), *expanded_traces(structure)]


def warn_of_cost(structure: Structure) -> None:
    """Warn if a problem is semidefinite, and slow, only because the sign of weights is not declared."""
    found = undeclared_signs(structure) if size(structure).order else []
    if found and size(structure).seconds > NOTICEABLE:
        seconds = size(structure).seconds
        warnings.warn(
            ConditionWarning(f"an exact solve is predicted to take {seconds:.0f} s: {found[0]}."),
            stacklevel=caller_stack_level(),
        )


def undeclared_signs(structure: Structure) -> list[str]:
    """Return advice for every weight whose sign is stated by a constraint and not by an attribute."""
    found: dict[str, None] = {}
    problem = structure.problem
    positive_ids = {
        id(c.args[1])
        for c in problem.constraints
        if isinstance(c, Inequality) and is_constant_zero(c.args[0])
    }
    for term in structure.risks:
        for K in term.learner.kernels:
            for weights, _ in terms(K) or []:
                if not weights.is_nonneg() and id(weights) in positive_ids:
                    found[
                        f"{weights.name()} >= 0 is a constraint, which the sign analysis does not see: "
                        "create the variable with nonneg=True and the risk becomes a second-order cone"
                    ] = None
    return list(found)


def expanded_traces(structure: Structure) -> list[str]:
    """Return advice for every trace of a combination that is written with cvxpy's own `trace`."""
    found: dict[str, None] = {}
    problem = structure.problem
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
            if type(node).__name__.lower() == "trace" and isinstance(node.args[0], Combination):
                found[
                    "cp.trace expands all N^2 m entries of a combination: kernelopt.trace(K) costs m numbers"
                ] = None
    return list(found)


def is_constant_zero(expression: Any) -> bool:
    """Whether an expression is the constant zero."""
    return bool(expression.is_constant() and not expression.parameters() and (expression.value == 0).all())
