"""Advice on formulations that cost more than necessary."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.certificates.impossible import kernel_variables, unbounded_text, weights_that_grow
from kernelopt.errors import ConditionWarning
from kernelopt.language.combination import Combination
from kernelopt.language.terms import terms
from kernelopt.methods.driver import caller_stack_level
from kernelopt.methods.sizing import size
from kernelopt.structure.affine import flat
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes, short
from kernelopt.structure.zero_weights import all_zero_weights, zero_weights


def hints(structure: Structure) -> list[str]:
    """Return advice on formulations that cost more than necessary."""
    unbounded = unbounded_text(structure, weights_that_grow(structure)).rstrip(".")
    found = [without_kernel(structure).rstrip("."), unbounded]
    return [*undeclared_signs(structure), *expanded_traces(structure), *filter(None, found)]


def warn_of_formulation(structure: Structure) -> None:
    """Warn of weights whose sign is a constraint, that are forced to zero, or that nothing bounds.

    The first warning does not depend on the size of the problem. The sign decides the cone, the methods that
    apply, and whether the learned machine predicts at new points.
    """
    found = undeclared_signs(structure)
    if found and size(structure).order:
        order, seconds = size(structure).order, size(structure).seconds
        warn(f"the problem is semidefinite of order {order} (about {seconds:.2g} s by 'exact'): {found[0]}.")
    nothing_left = without_kernel(structure)
    if nothing_left:
        warn(nothing_left)
    loose = weights_that_grow(structure)
    if loose:
        warn(
            f"{unbounded_text(structure, loose)} The risk falls as they grow, towards a value that is not "
            "attained, unless the machine is constant at the optimum."
        )


def without_kernel(structure: Structure) -> str:
    """Return a sentence that names the constraints that force all weights to zero, empty if none do.

    The weights are the variables of the kernels of a risk.
    """
    in_kernels = kernel_variables(structure)
    weights = [v for v in structure.variables if v.id in in_kernels]
    if not weights:  # before all constraints are read
        return ""
    zero = all_zero_weights(structure)
    if not all(v in zero and zero[v].all() for v in weights):
        return ""
    pairs = enumerate(zip(structure.lifted.constraints, zero_weights(structure), strict=True))
    forcing = [(i, c) for i, (c, found) in pairs if any(v in found for v in weights)]
    named = [repr(c.label) if c.label else f"{i} ({short(c)})" for i, c in forcing]
    subject, it = ("constraint", "it") if len(named) == 1 else ("constraints", "them")
    return (
        f"The {subject} {', '.join(named)} {'leaves' if it == 'it' else 'leave'} no kernel with a positive "
        f"weight: {weights[0].name()} = 0 is the only feasible value. Leave {it} out, allow {it} to be "
        f"violated at a price, or add kernels that satisfy {it}."
    )


def warn(text: str) -> None:
    """Warn at the user's line."""
    warnings.warn(ConditionWarning(text), stacklevel=caller_stack_level())


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
    if not expression.is_constant() or expression.parameters():
        return False
    value = expression.value  # a number for a risk of constant kernels, and none where it cannot be trained
    return value is not None and not np.any(flat(value))
