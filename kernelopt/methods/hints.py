"""Cures for formulations that cost more than they need."""

from __future__ import annotations

import warnings
from typing import Any

from cvxpy.constraints import Inequality

from kernelopt.errors import ConditionWarning
from kernelopt.language.combination import Combination
from kernelopt.language.terms import terms
from kernelopt.methods.driver import outside
from kernelopt.methods.sizing import size
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes

NOTICED = 2.0  # predicted seconds from which a user would want to know


def hints(structure: Structure) -> list[str]:
    """Return cures for formulations that cost more than they need."""
    return [*unseen_signs(structure), *expanded_traces(structure)]


def warn_of_cost(structure: Structure) -> None:
    """Warn where weights whose sign is not seen make a problem semidefinite that takes long for it."""
    found = unseen_signs(structure) if size(structure).order else []
    if found and size(structure).seconds > NOTICED:
        seconds = size(structure).seconds
        warnings.warn(
            ConditionWarning(f"an exact solve is predicted to take {seconds:.0f} s: {found[0]}."),
            stacklevel=outside(),
        )


def unseen_signs(structure: Structure) -> list[str]:
    """Return a cure for every weight whose sign is a constraint and not an attribute."""
    said: dict[str, None] = {}
    problem = structure.problem
    positive_ids = {
        id(c.args[1]) for c in problem.constraints if isinstance(c, Inequality) and is_zero(c.args[0])
    }
    for term in structure.risks:
        for K in term.learner.kernels:
            for weights, _ in terms(K) or []:
                if not weights.is_nonneg() and id(weights) in positive_ids:
                    said[
                        f"{weights.name()} >= 0 is a constraint, which the sign analysis does not see: "
                        "create the variable with nonneg=True and the risk becomes a second-order cone"
                    ] = None
    return list(said)


def expanded_traces(structure: Structure) -> list[str]:
    """Return a cure for traces that cvxpy takes entry by entry."""
    said: dict[str, None] = {}
    problem = structure.problem
    for root in (problem.objective, *problem.constraints):
        for node in nodes(root):
            if type(node).__name__.lower() == "trace" and isinstance(node.args[0], Combination):
                said[
                    "cp.trace expands all N^2 m entries of a combination: kernelopt.trace(K) costs m numbers"
                ] = None
    return list(said)


def is_zero(expression: Any) -> bool:
    """Whether an expression is the constant zero."""
    return bool(expression.is_constant() and not expression.parameters() and (expression.value == 0).all())
