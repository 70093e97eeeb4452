"""The one driver: from a problem to a certified solution, by one method or by several in turn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates.impossible import loose_weights, nothing_bounds
from kernelopt.certificates.multiplier import constraint_multipliers
from kernelopt.errors import ConvergenceWarning, KerneloptError, MethodError, SolverError
from kernelopt.language.terms import terms
from kernelopt.methods.control import Control
from kernelopt.methods.describe import learned_machine, only_vector, weights_are_unique, write_back
from kernelopt.methods.fallback import known_outcome
from kernelopt.methods.learned import weights_of
from kernelopt.methods.method import Method, Outcome
from kernelopt.methods.results import Result, attained, certified, merged
from kernelopt.methods.solution import Solution
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.structure import Structure

LIBRARIES = {"kernelopt", "formulations", "cvxpy"}
PATIENCE, LEAST_PATIENCE = 10.0, 60.0  # a next method may be predicted at so many times what was spent, or s
SHOWN = 3  # other methods that a warning names
OVERRUN, LEAST_BUDGET = 3.0, 2.0  # and may take so many times its prediction, or so many seconds
FIRST_OVERRUN, LEAST_FIRST = 10.0, 10.0  # as the first method may, before the next is tried


@dataclass(frozen=True)
class Candidate:
    """A method, what it read of the problem, and the seconds that it and its certificate will take."""

    method: Method
    match: Any
    seconds: float
    certification: float


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
    check_kernels(structure)
    trial = Trial(structure, control)
    for k, candidate in enumerate(candidates):
        if trial.worthwhile(candidate):
            trial.run(candidate, trial.budget(candidate, candidates[k + 1 :]))
        if trial.done:
            break
    if not trial.done and trial.overran is not None:  # no other method was better: it gets its time
        trial.run(trial.overran, np.inf)
    # Whoever names a solver or its options is told that it failed.
    given = [getattr(c.method, name, None) for c in candidates for name in ("solver", "solver_options")]
    named = any(value is not None for value in given) and not control.asked
    if not trial.found and isinstance(trial.failure, SolverError | None) and not named:
        control.extend()
        control.shield()
        outcome = known_outcome(structure, control.check)
        if outcome is not None:
            trial.take(control.method, outcome)
    if not trial.found or trial.best is None:
        raise trial.failure or nothing_found(control)
    tried = [c.method.name for c in candidates]
    return finished(structure, trial.best, control, tried)


def check_kernels(structure: Structure) -> None:
    """Raise `NotPSDError` where kernels with non-negative weights are seen to be indefinite."""
    for term in structure.risks:
        for K, form in zip(term.kernels, term.forms, strict=True):
            for _, grams in (terms(K) or ()) if form == "second-order cone" else ():
                grams.check_corners()


class Trial:
    """Methods in turn, and the best that they left.

    Attributes
    ----------
    best : Result or None
    failure : the error of the first method that refused, or None
    overran : the first method that was ended because it took much longer than predicted, or None
    """

    def __init__(self, structure: Structure, control: Control) -> None:
        self.structure, self.control = structure, control
        self.best: Result | None = None
        self.failure: KerneloptError | None = None
        self.overran: Candidate | None = None

    @property
    def done(self) -> bool:
        """Whether the tolerance is met, or the caller has ended the call."""
        met = self.best is not None and self.best.certificate.gap <= self.control.tol
        return met or self.control.asked

    @property
    def found(self) -> bool:
        """Whether there is a feasible point."""
        return self.best is not None and self.best.certificate.feasible

    @property
    def first(self) -> bool:
        """Whether no method has run yet."""
        return self.best is None and self.failure is None and self.overran is None

    def worthwhile(self, candidate: Candidate) -> bool:
        """Whether a method may end in a time that fits what was spent already."""
        spent = max(PATIENCE * self.control.seconds, LEAST_PATIENCE)
        return self.first or candidate.seconds <= min(spent, self.control.whole_remaining)

    def budget(self, candidate: Candidate, later: Sequence[Candidate]) -> float:
        """Return the seconds after which the next method is tried, infinite where there is none."""
        if not self.first:
            return max(OVERRUN * candidate.seconds, LEAST_BUDGET)
        budget = max(FIRST_OVERRUN * candidate.seconds, LEAST_FIRST)
        return budget if any(other.seconds <= budget for other in later) else np.inf

    def run(self, candidate: Candidate, budget: float) -> None:
        """Run a method, from the best point so far, and certify what it leaves."""
        control, first = self.control, self.first
        try:
            outcome = run(candidate, control, budget)
        except (MethodError, SolverError) as error:
            self.failure = self.failure or error
            return
        if first and control.late and not control.asked:
            self.overran = candidate
        if outcome is not None:
            self.take(candidate.method.name, outcome)

    def take(self, method: str, outcome: Outcome) -> None:
        """Certify an outcome, and keep the better point and the better bound."""
        structure, control = self.structure, self.control
        with control.certifying():
            certificate = certified(structure, outcome, control)
        found = Result(method, outcome, certificate, control.stopped)
        self.best = found if self.best is None else merged(structure, self.best, found)
        control.start = self.best.outcome


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


def finished(structure: Structure, best: Result, control: Control, tried: Sequence[str]) -> Solution:
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
    p = ball.p if isinstance(ball, BallProblem) else None
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
        solve_time=max(0.0, control.seconds - control.certify_seconds - outcome.build_time),
        certify_time=control.certify_seconds,
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
