"""The one driver: from a problem to a certified solution, by one method or by several in turn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.multiplier import constraint_multipliers
from kernelopt.errors import ConvergenceWarning, KerneloptError, MethodError, SolverError, Stopped
from kernelopt.solvers.control import Control
from kernelopt.solvers.describe import learned_machine, only_vector, weights_are_unique, write_back
from kernelopt.solvers.fallback import known_outcome
from kernelopt.solvers.impossible import loose_weights, nothing_bounds
from kernelopt.solvers.learned import weights_of
from kernelopt.solvers.method import Method, Outcome
from kernelopt.solvers.sizing import size
from kernelopt.solvers.solution import Solution
from kernelopt.structure.ball import Ball, read_ball
from kernelopt.structure.evaluation import Evaluator, Given
from kernelopt.structure.structure import Structure

LIBRARIES = {"kernelopt", "formulations", "cvxpy"}
CAUTION = 2.0  # times the predicted seconds of a certificate must be left for it to be begun
SHARE = 0.1  # of the tolerance, by which the point may be worse than the best value reported
PATIENCE, LEAST_PATIENCE = 10.0, 60.0  # a next method may be predicted at so many times what was spent, or s
SHOWN = 3  # other methods that a warning names
OVERRUN, LEAST_BUDGET = 3.0, 2.0  # and may take so many times its prediction, or so many seconds


@dataclass(frozen=True)
class Candidate:
    """A method, what it read of the problem, and the seconds that it and its certificate will take."""

    method: Method
    match: Any
    seconds: float
    certification: float


@dataclass(frozen=True)
class Result:
    """What is known of a problem: an outcome, its certificate, and why the method ended."""

    method: str
    outcome: Outcome
    certificate: Certificate
    stopped: str


def drive(structure: Structure, candidates: Sequence[Candidate], control: Control) -> Solution:
    """Run methods, the first candidate first, until the certified gap meets the tolerance.

    Where one leaves more, or refuses, the next goes on from its point. Where the call is ended early, the
    best point so far comes back.

    Raises
    ------
    InfeasibleError, UnboundedError
        With a proof.
    MethodError, SolverError
        That of the first method, where none left a bounded point.
    """
    try:
        return driven(structure, candidates, control)
    finally:
        control.close()


def driven(structure: Structure, candidates: Sequence[Candidate], control: Control) -> Solution:
    """Run the methods, and put the best point into the user's problem."""
    best: Result | None = None
    failure: KerneloptError | None = None
    certifying = 0.0
    for candidate in candidates:
        spent = max(PATIENCE * control.seconds, LEAST_PATIENCE)
        later = best is not None or failure is not None
        if later and candidate.seconds > min(spent, control.whole_remaining):
            continue
        try:
            budget = np.inf if best is None else max(OVERRUN * candidate.seconds, LEAST_BUDGET)
            outcome = run(candidate, control, budget)
        except (MethodError, SolverError) as error:
            failure = failure or error
            continue
        if outcome is None:
            if control.asked:
                break
            continue
        clock = control.seconds
        found = Result(
            candidate.method.name, outcome, certified(structure, outcome, control), control.stopped
        )
        certifying += control.seconds - clock
        best = found if best is None else merged(structure, best, found)
        control.start = best.outcome
        if best.certificate.gap <= control.tol or control.asked:
            break
    if control.asked and (best is None or not best.certificate.feasible):
        control.shield()
        outcome = known_outcome(structure)
        if outcome is not None:
            found_at = certified(structure, outcome, control)
            known = Result(control.method, outcome, found_at, control.stopped)
            best = known if best is None else merged(structure, best, known)
    if best is None:
        raise failure or nothing_found(control)
    tried = [c.method.name for c in candidates]
    return finished(structure, best, control, certifying, tried)


def run(candidate: Candidate, control: Control, budget: float) -> Outcome | None:
    """Run a method for at most `budget` seconds; None where it was ended before it had a point."""
    with control.running(candidate.method.name, candidate.certification, budget):
        return candidate.method.run(candidate.match, control)
    return None


def nothing_found(control: Control) -> BaseException:
    """Return what to raise where a call was ended before there was a point."""
    if control.interrupted:
        return KeyboardInterrupt()
    return SolverError(
        f"a bounded point must be found, got none before {control.stopped or 'the end'}. Give it more "
        "time, or another method: kernelopt.explain(problem) lists those that apply."
    )


def certified(structure: Structure, outcome: Outcome, control: Control) -> Certificate:
    """Return bounds of the optimum at an outcome, in the time that is left.

    The machines that the method trained are taken if their gap is small enough, else better ones trained.
    """
    if outcome.certificate is not None:
        return outcome.certificate
    control.extend()
    control.show("certifying")
    problem = structure.problem
    if isinstance(problem, BoundedProblem):
        labels = [c.label for c in problem.constraints]
        duals = outcome.multipliers or [[None] for _ in labels]
        return problem.bounds(outcome.point, {k: d[0] for k, d in zip(labels, duals, strict=True)})
    alphas = outcome.alphas
    choices = [] if alphas is None else [alphas]
    given = outcome.machines or (None if alphas is None else [(a, None) for a in alphas])
    best: Certificate | None = None
    # What cvxpy compiles cannot be ended: it is not begun where there may be no time for it.
    if CAUTION * size(structure).certification_seconds > control.remaining:
        return hasty(structure, outcome, given, control)
    try:
        if given is not None:
            best = certificate_at(structure, outcome.point, choices, given=given, watch=control.check)
            worse = structure.sign * attained(structure, best) - control.upper
            if best.gap <= control.tol and not worse > SHARE * control.tol * max(1.0, abs(control.upper)):
                return best
        trained = certificate_at(structure, outcome.point, choices, watch=control.check)
        return trained if best is None or better(structure, trained, best) else best
    except (Stopped, KeyboardInterrupt) as ended:
        control.note(ended)
        if best is None:
            return hasty(structure, outcome, given, control)
        return with_bound(structure, best, outcome.lower)


def hasty(
    structure: Structure, outcome: Outcome, given: Sequence[Given] | None, control: Control
) -> Certificate:
    """Return bounds of the optimum at an outcome without a conic solve and without training."""
    control.shield()
    zero = [np.zeros(term.learner.n) for term in structure.risks]
    alphas = outcome.alphas or zero
    given = given or [(a, None) for a in alphas]
    found = certificate_at(structure, outcome.point, [alphas], given=given, conic=False)
    return with_bound(structure, found, outcome.lower)


def attained(structure: Structure, certificate: Certificate) -> float:
    """Return the value of the point of a certificate."""
    return certificate.lower if structure.maximize else certificate.upper


def better(structure: Structure, new: Certificate, old: Certificate) -> bool:
    """Whether a certificate has a smaller gap, or as small a one and a better point."""
    values = (structure.sign * attained(structure, c) for c in (new, old))
    return (new.gap, next(values)) < (old.gap, next(values))


def with_bound(structure: Structure, certificate: Certificate, lower: float) -> Certificate:
    """Return a certificate with another bound by duality (of the minimisation) where that is better.

    Two bounds that cross by their rounding are not put together.
    """
    if structure.maximize and certificate.lower <= -lower < certificate.upper:
        return replace(certificate, upper=-lower)
    if not structure.maximize and certificate.lower < lower <= certificate.upper:
        return replace(certificate, lower=lower)
    return certificate


def merged(structure: Structure, one: Result, two: Result) -> Result:
    """Return the result with the better point, and the better of the two bounds by duality."""
    values = [structure.sign * attained(structure, r.certificate) for r in (one, two)]
    best, other = (two, one) if values[1] < values[0] else (one, two)
    bound = -other.certificate.upper if structure.maximize else other.certificate.lower
    certificate = with_bound(structure, best.certificate, bound)
    if certificate.gap < best.certificate.gap:
        certificate = replace(certificate, alphas=other.certificate.alphas, route=other.certificate.route)
    return replace(best, certificate=certificate, stopped=two.stopped)


def finished(
    structure: Structure, best: Result, control: Control, certifying: float, tried: Sequence[str]
) -> Solution:
    """Put the best point into the user's problem, and describe it."""
    certificate, outcome = best.certificate, best.outcome
    optimal = certificate.gap <= control.tol
    duals = outcome.multipliers
    if duals is None:
        # After the end that the caller asked for, only what needs no solver.
        try:
            duals = constraint_multipliers(
                structure, list(certificate.alphas), control.check, conic=not control.asked
            )
        except KeyboardInterrupt as pressed:
            control.note(pressed)
    control.shield()
    point = {variable.id: value for variable, value in certificate.point.items()}
    if point:
        Evaluator(structure).write(point)
    terms = zip(structure.risks, certificate.machines, strict=True) if certificate.feasible else ()
    learned = tuple(learned_machine(term, machine) for term, machine in terms)
    write_back(structure, certificate, outcome.hidden, duals, outcome.solver, optimal)
    ball = read_ball(structure)
    p = ball.p if isinstance(ball, Ball) else None
    if not optimal:
        text = f"the certified gap {certificate.gap:.1e} is above tol = {control.tol:g} ({certificate})."
        warnings.warn(
            ConvergenceWarning(f"{text} {remedy(structure, best, control, tried)}"), stacklevel=outside()
        )
    return Solution(
        status="optimal" if optimal else "inaccurate",
        method=best.method,
        solver=outcome.solver,
        value=attained(structure, certificate),
        certificate=certificate,
        weights=weights_of(learned, [term.node for term in structure.risks])
        if learned
        else only_vector(structure),
        weights_unique=weights_are_unique(learned[0], p) if len(learned) == 1 else None,
        learned=learned,
        iterations=outcome.iterations,
        history=control.history,
        build_time=outcome.build_time,
        solve_time=max(0.0, control.seconds - certifying - outcome.build_time),
        certify_time=certifying,
    )


def outside() -> int:
    """Return the level on the stack, for a warning of the caller, of the line outside the libraries."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    return level


def remedy(structure: Structure, best: Result, control: Control, tried: Sequence[str]) -> str:
    """Return why the call ended, and what would help where it was not the caller who ended it."""
    loose = loose_weights(structure)
    if loose:
        falls = "The risk falls as they grow, towards a value that is not attained."
        return f"{nothing_bounds(structure, loose)} {falls}"
    why = f"The method ended because {best.stopped}. " if best.stopped else ""
    if control.asked:
        return why.strip()
    others = [repr(name) for name in control.alternatives if name not in tried]
    also = f" Methods that apply too, the fastest first: {', '.join(others[:SHOWN])}." if others else ""
    return f"{why}{best.outcome.remedy}{also}"
