"""From a point to a solution: certifying it, putting it into the problem, and describing it."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solution import Solution as CvxpySolution

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.minorants import domains, minorant
from kernelopt.conic import attempt, ladder
from kernelopt.errors import ConvergenceWarning
from kernelopt.reading import copied, risks
from kernelopt.solvers.ball import exponent
from kernelopt.solvers.progress import History, Progress
from kernelopt.solvers.solution import Solution, learned_machine, single, weights_are_unique
from kernelopt.validation import Array

SHARE = 0.1  # of the tolerance, by which the point may be worse than the best value reported


@dataclass
class Found:
    """A certified point, and everything needed to put it back."""

    certificate: Certificate
    solver: str
    iterations: int | None = None
    values: dict[int, Any] = field(default_factory=dict)  # by variable id, those inside the risks too
    duals: list[list[Any]] = field(default_factory=list)  # multipliers, by constraint
    machines: list[Array] | None = None  # alphas that attain the upper bound, where not those of the lower


def conclude(
    problem: cp.Problem, progress: Progress, candidate: dict[Any, Array], alphas: list[Array], remedy: str
) -> Solution:
    """Certify the point where an iterative method ended, and put it into the problem with its multipliers.

    The machines that the method trained are taken if their gap is small enough, else better ones trained.
    """
    clock = progress.seconds
    certificate = certify(problem, candidate, alpha=alphas, retrain=False)
    retrained = False
    worse = attained(problem, certificate) - progress.upper  # than a machine that was seen on the way
    if certificate.gap > progress.tol or worse > SHARE * progress.tol * max(1.0, abs(progress.upper)):
        trained = certify(problem, candidate, alpha=alphas)
        if (trained.gap, attained(problem, trained)) < (certificate.gap, attained(problem, certificate)):
            certificate, retrained = trained, True
    times = {"build": 0.0, "solve": clock, "certify": progress.seconds - clock}
    duals = multipliers(problem, list(certificate.alphas))
    found = Found(certificate, progress.method, progress.iterations, duals=duals)
    with ExitStack() as stack:  # putting the point back evaluates the objective: not to train for that
        if not retrained:
            for node, alpha in zip(risks(problem), certificate.alphas, strict=True):
                stack.enter_context(node.pinned(alpha))
        restore(problem, found, progress.tol)
    if retrained:
        found.machines = [node.oracle().alpha for node in risks(problem)]
    history, why = progress.history, remedied(progress, remedy)
    return describe(problem, progress.method, found, progress.tol, history, times, why)


def settle(
    problem: cp.Problem,
    progress: Progress,
    certificate: Certificate,
    machines: list[tuple[Array, Array | None]],
    duals: list[list[Any]],
    remedy: str,
) -> Solution:
    """Put a point with a certificate of the method's own into the problem.

    The `machines` that attain its upper bound, an alpha and scales for each risk, are not trained again.
    """
    clock = progress.history[-1][0]
    found = Found(
        certificate,
        progress.method,
        progress.iterations,
        duals=duals,
        machines=[alpha for alpha, _ in machines],
    )
    times = {"build": 0.0, "solve": clock, "certify": progress.seconds - clock}
    with ExitStack() as stack:
        for node, machine in zip(risks(problem), machines, strict=True):
            stack.enter_context(node.pinned(*machine))
        restore(problem, found, progress.tol)
        history, why = progress.history, remedied(progress, remedy)
        return describe(problem, progress.method, found, progress.tol, history, times, why)


def remedied(progress: Progress, remedy: str) -> str:
    """Return why a method ended, and the remedy where it was not the caller who ended it."""
    if not progress.stopped:
        return remedy
    return f"The method ended because {progress.stopped}." + f" {remedy}" * (not progress.asked)


def attained(problem: cp.Problem, certificate: Certificate) -> float:
    """Return the value of the point of a certificate, for the minimisation."""
    return -certificate.lower if isinstance(problem.objective, cp.Maximize) else certificate.upper


def multipliers(problem: cp.Problem, alphas: list[Array]) -> list[list[Any]]:
    """Return multipliers of the constraints: those of the relaxation at alpha, equal at the optimum."""
    found = risks(problem)
    below = {id(node): cp.pos(minorant(node, alpha)) for node, alpha in zip(found, alphas, strict=True)}
    copies = [copied(constraint, below) for constraint in problem.constraints]
    constraints = [c.copy for c in copies] + domains(problem, found)
    relaxed = cp.Problem(problem.objective.tree_copy(below), constraints)
    attempt(relaxed, ladder(linear=relaxed.is_lp(), order=0)[0])
    for constraint in copies:
        constraint.bring_back()
    return [[dual.value for dual in c.dual_variables] for c in problem.constraints]


def restore(problem: cp.Problem, found: Found, tol: float) -> None:
    """Put a point into the problem: status, value, variables and multipliers."""
    repaired = {v.id: value for v, value in found.certificate.point.items()}
    primal = {v.id: filled(v, repaired.get(v.id, found.values.get(v.id))) for v in problem.variables()}
    status = cp.OPTIMAL if found.certificate.gap <= tol else cp.OPTIMAL_INACCURATE
    problem.unpack(CvxpySolution(status, None, primal, {}, {"solver": found.solver}))
    for constraint, duals in zip(problem.constraints, found.duals, strict=False):
        for variable, dual in zip(constraint.dual_variables, duals, strict=True):
            variable.save_value(dual)


def describe(
    target: cp.Problem,
    method: str,
    found: Found,
    tol: float,
    history: History,
    times: dict[str, float],
    remedy: str,
) -> Solution:
    """Fill the risks of `target` at the point found, and describe it; warn where the gap is above `tol`."""
    certificate = found.certificate
    for variable, value in certificate.point.items():
        variable.save_value(value)
    learned = []
    for node, alpha in zip(risks(target), found.machines or certificate.alphas, strict=True):
        machine = learned_machine(node, alpha)
        node.alpha, node.intercept = machine.alpha, machine.intercept
        learned.append(machine)
    if certificate.gap > tol:
        warnings.warn(
            ConvergenceWarning(
                f"the certified gap {certificate.gap:.1e} is above tol = {tol:g} ({certificate}). {remedy}"
            ),
            stacklevel=5,
        )
    return Solution(
        status="optimal" if certificate.gap <= tol else "inaccurate",
        method=method,
        solver=found.solver,
        value=certificate.lower if isinstance(target.objective, cp.Maximize) else certificate.upper,
        certificate=certificate,
        weights=single([m.weights for m in learned]) if learned else only_vector(target),
        weights_unique=weights_are_unique(learned[0], exponent(target)) if len(learned) == 1 else None,
        learned=tuple(learned),
        iterations=found.iterations,
        history=history,
        build_time=times["build"],
        solve_time=times["solve"],
        certify_time=times["certify"],
    )


def filled(variable: cp.Variable, value: Any) -> Any:
    """Return a value for a hidden variable that a failed solver left empty or not finite."""
    usable = value is not None and np.isfinite(np.asarray(value)).all()
    return value if usable else np.zeros(variable.shape)


def only_vector(problem: cp.Problem) -> Array | None:
    """Return the value of the one vector variable of a problem without risks."""
    vectors = [v for v in problem.variables() if v.ndim == 1]
    return np.asarray(vectors[0].value) if len(vectors) == 1 else None
