"""From certified results to solutions: values for the user's problem, the learned machines, and advice.

`start_of` goes the other way: from a solution to the point and the dual variables that a method starts from.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solution import Solution as CvxpySolution

from kernelopt.certificates import Certificate
from kernelopt.certificates.impossible import unbounded_text, unbounded_variables
from kernelopt.certificates.multiplier import constraint_multipliers
from kernelopt.errors import (
    ConvergenceWarning,
    ParameterError,
)
from kernelopt.grams import Grams
from kernelopt.language.adapter import set_value
from kernelopt.language.terms import terms
from kernelopt.learner import Machine
from kernelopt.methods.control import Control
from kernelopt.methods.learned import Learned, Part, is_ridge, weights_of
from kernelopt.methods.method import Outcome
from kernelopt.methods.results import Result, attained
from kernelopt.methods.solution import Solution
from kernelopt.methods.uniqueness import weights_are_unique
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.validation import Array, shown

LIBRARIES = {"kernelopt", "formulations", "cvxpy"}
SHOWN = 3  # number of other methods that a warning names


def solution_at(structure: Structure, best: Result, control: Control, tried: Sequence[str]) -> Solution:
    """Write the best point into the variables of the user's problem, and return the `Solution`."""
    certificate, outcome = best.certificate, best.outcome
    optimal = certificate.gap <= control.tol
    duals = outcome.multipliers
    if duals is None:
        # If the caller has ended the call, only multipliers without a solver are computed, in a short time.
        if control.ended_by_caller and not control.hurried:
            control.exceed_limit()
        with control:
            duals = constraint_multipliers(
                structure, list(certificate.alphas), conic=not control.ended_by_caller
            )
    control.delay_interrupts()
    point = {variable.id: value for variable, value in certificate.point.items()}
    if point:
        Evaluator(structure).write(point)
    unique: bool | None = None
    terms = zip(structure.risks, certificate.machines, strict=True) if certificate.feasible else ()
    learned = tuple(learned_machine(term, machine) for term, machine in terms)
    with control:  # kernels may be evaluated
        unique = weights_are_unique(structure, certificate, learned)
    write_back(structure, certificate, outcome, duals, optimal)
    if not optimal:
        text = f"the certified gap {certificate.gap:.1e} is above tol = {control.tol:g} ({certificate})."
        warn_caller(ConvergenceWarning(f"{text} {advice(structure, best, control, tried)}"))
    return Solution(
        status="optimal" if optimal else "inaccurate",
        method=best.method,
        solver=outcome.solver,
        value=attained(structure, certificate),
        certificate=certificate,
        weights=weights_of(learned, [term.node for term in structure.risks])
        if learned
        else only_vector(structure),
        weights_unique=unique,
        learned=learned,
        iterations=outcome.iterations,
        details=outcome.details,
        history=tuple(control.history),
        build_time=outcome.build_time,
        solve_time=max(0.0, control.seconds - control.certify_seconds - outcome.build_time),
        certify_time=control.certify_seconds,
        tol=control.tol,
        ended_by_caller=control.ended_by_caller,
        problem=structure.problem,
    )


def write_back(
    structure: Structure,
    certificate: Certificate,
    outcome: Outcome,
    multipliers: list[list[Any]] | None,
    optimal: bool,
) -> None:
    """Set status, value, variables and multipliers of the user's problem from a certificate.

    The structure's own variables must hold the point of the certificate. Where `multipliers` is None, the
    multipliers of an earlier solve are deleted.
    """
    problem = structure.problem
    values = {**outcome.hidden, **{v.id: value for v, value in certificate.point.items()}}
    primal: dict[int, Any] = {}
    for variable in problem.variables():
        value = values.get(variable.id)
        usable = value is not None and np.isfinite(value).all()
        primal[variable.id] = value if usable else np.zeros(variable.shape)
        variable.save_value(primal[variable.id])
    for term, machine in zip(structure.risks, certificate.machines, strict=True):
        term.node.alpha, term.node.intercept = machine.alpha, float(machine.intercept)
        term.node.remember(machine)  # cvxpy evaluates the objective in `unpack`
    status = cp.OPTIMAL if optimal else cp.OPTIMAL_INACCURATE
    problem.unpack(CvxpySolution(status, None, primal, {}, {"solver": outcome.solver}))
    set_value(problem, attained(structure, certificate))
    for term in structure.risks:
        term.node.forget()
    for i, constraint in enumerate(problem.constraints):
        for j, variable in enumerate(constraint.dual_variables):
            variable.save_value(multipliers[i][j] if multipliers is not None else None)


def learned_machine(term: RiskTerm, machine: Machine) -> Learned:
    """Return the machine of a risk, with its kernel at the current values of the structure's variables."""
    parts: list[Part] = []
    combined = inductive = True
    for K, c, scale in zip(term.kernels, machine.coefficients, machine.scales, strict=True):
        c = c / scale if scale > 0 else machine.alpha
        pieces = terms(K)
        if pieces is None:
            combined = inductive = False
            parts.append(Part(np.array([scale]), Grams.from_array(np.asarray(K.value)[None]), c))
            continue
        inductive = inductive and all(weights.is_nonneg() for weights, _ in pieces)
        for weights, grams in pieces:
            parts.append(Part(scale * np.ravel(weights.value), grams, c, is_ridge(grams, pieces)))
    b, y, loss = float(machine.intercept), term.learner.y, repr(term.learner.loss)
    return Learned(machine.alpha, b, tuple(parts), combined, inductive, y, float(machine.value), loss)


def only_vector(structure: Structure) -> Array | None:
    """Return the value of the only vector variable of a problem without risks; None if it has several."""
    vectors = [v for v in structure.variables if v.ndim == 1]
    return np.asarray(vectors[0].value) if len(vectors) == 1 else None


def warn_caller(warning: Warning) -> None:
    """Warn at the first line outside the libraries."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def advice(structure: Structure, best: Result, control: Control, tried: Sequence[str]) -> str:
    """Return why the call ended and, unless the caller ended it, what the user can try."""
    unbounded = unbounded_variables(structure)
    if unbounded:
        falls = "The risk falls as they grow, towards a value that is not attained."
        return f"{unbounded_text(structure, unbounded)} {falls}"
    why = f"The method ended because {best.stopped}. " if best.stopped else ""
    if control.ended_by_caller:
        return f"{why}{best.outcome.remedy}" if best.outcome.remedy_at_limit else why.strip()
    others = [repr(name) for name in control.alternatives() if name not in tried]
    also = f" Methods that apply too, the fastest first: {', '.join(others[:SHOWN])}." if others else ""
    return f"{why}{best.outcome.remedy}{also}"


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
        learner.loss.project(alpha, learner.y, learner.has_intercept)
        for learner, alpha in zip(learners, alphas, strict=True)
    ]
    point = {v.id: np.asarray(value) for v, value in zip(variables, values, strict=True)}
    return Outcome(point, projected)
