"""The start of a method: the point and the dual variables of an earlier solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.methods.method import Outcome
from kernelopt.methods.solution import Solution
from kernelopt.structure.structure import Structure
from kernelopt.validation import shown


def start_of(structure: Structure, start: Any) -> Outcome:
    """Return the point and the dual variables of a solution as the outcome that a method starts from.

    The problem of the solution may be another one, with the same variables and samples. Its variables are
    taken in their order. Its dual variables are projected on the domains of the losses of this problem.

    Raises
    ------
    ParameterError
        If `start` is no solution, or one of a problem of another shape.
    """
    if not isinstance(start, Solution):
        raise ParameterError(
            f"start must be a Solution, got {shown(start)} ({type(start).__name__}). Pass what solve has "
            "returned for a similar problem."
        )
    values = list(start.certificate.point.values())
    variables, alphas = structure.variables, start.certificate.alphas
    got, wanted = [np.shape(v) for v in values], [v.shape for v in variables]
    if got != wanted:
        raise ParameterError(
            f"start must have the variables of the problem, of shapes {wanted}, got shapes {got}. Start from "
            "a solution with the same number of kernels, or leave start out."
        )
    sizes = [term.learner.n for term in structure.risks]
    if [alpha.size for alpha in alphas] != sizes:
        raise ParameterError(
            f"start must be a solution on the samples of the problem, {sizes} of each risk, got "
            f"{[alpha.size for alpha in alphas]}. Start from a solution with the same samples, or leave "
            "start out."
        )
    learners = [term.learner for term in structure.risks]
    projected = [
        learner.loss.project(alpha, learner.y, learner.bias is not None)
        for learner, alpha in zip(learners, alphas, strict=True)
    ]
    point = {v.id: np.asarray(value) for v, value in zip(variables, values, strict=True)}
    return Outcome(point, projected)
