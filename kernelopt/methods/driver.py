"""The driver: it runs methods one after the other and returns the best certified solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates.impossible import weights_that_grow
from kernelopt.errors import KerneloptError, MethodError, SolverError, TimeLimitError
from kernelopt.grams import check_leading_blocks
from kernelopt.language.terms import terms
from kernelopt.methods.control import PATIENCE, ROUNDED, Control
from kernelopt.methods.describe import solution_at
from kernelopt.methods.fallback import fallback_outcome
from kernelopt.methods.method import Method, Outcome
from kernelopt.methods.results import Result, better_result, certify_outcome
from kernelopt.methods.solution import Solution
from kernelopt.running import check
from kernelopt.structure.structure import Structure


@dataclass(frozen=True)
class Candidate:
    """A method that applies to a problem.

    Attributes
    ----------
    method : Method
    match : object
        The data that `Method.match` has read from the problem.
    seconds : float
        The predicted seconds of the method and of its certificate.
    certification : float
        The predicted seconds of the certificate alone.
    """

    method: Method
    match: Any
    seconds: float
    certification: float


def drive(structure: Structure, candidates: Sequence[Candidate], control: Control) -> Solution:
    """Run the candidates in order until the certified gap meets the tolerance; return the solution.

    If a method ends above the tolerance or raises an error, the next method starts from the best point so
    far. If the caller or the time limit ends the call, the best point so far is returned.

    Raises
    ------
    InfeasibleError, UnboundedError
        If a proof was found that the problem is infeasible or unbounded.
    MethodError, SolverError
        The error of the first method, if no method found a point with finite bounds.
    """
    check_kernels(structure)
    sequence = MethodSequence(structure, control)
    writer = "" if control.checkpoint is None else control.checkpoint.method
    candidates = sorted(candidates, key=lambda c: c.method.name != writer)  # it goes on before others start
    for k, candidate in enumerate(candidates):
        if sequence.worthwhile(candidate):
            sequence.run(candidate, sequence.budget(candidate, candidates[k + 1 :]))
        check()  # a call around this one may have ended
        if sequence.done:
            break
    if not sequence.done and sequence.overtime is not None:  # the methods after it did not meet the tolerance
        sequence.run(sequence.overtime, np.inf)
    # If the user has named a solver or its options, the error of that solver is raised: there is no fallback.
    given = [getattr(c.method, name, None) for c in candidates for name in ("solver", "solver_options")]
    named = any(value is not None for value in given) and not control.ended_by_caller
    useful = sequence.found and (sequence.trained or not control.ended_by_caller)
    if not useful and isinstance(sequence.failure, SolverError | None) and not named:
        control.exceed_limit(PATIENCE.last)
        control.delay_interrupts()
        outcome = None
        with control:
            outcome = fallback_outcome(structure, control)
        if outcome is not None:
            sequence.take(control.method or "none", outcome)
    if not sequence.found or sequence.best is None:
        raise sequence.failure or no_point_error(control)
    tried = [c.method.name for c in candidates]
    return solution_at(structure, sequence.best, control, tried)


def check_kernels(structure: Structure) -> None:
    """Raise `NotPSDError` if a kernel with a non-negative weight is found to be indefinite."""
    for term in structure.risks:
        for K, form in zip(term.kernels, term.forms, strict=True):
            for _, grams in (terms(K) or ()) if form == "second-order cone" else ():
                check_leading_blocks(grams)


class MethodSequence:
    """Methods run one after the other, and their best result.

    Attributes
    ----------
    best : Result or None
    met : bool
        Whether its gap meets the tolerance.
    failure : KerneloptError or None
        The error of the first method that raised one.
    overtime : Candidate or None
        The first method, if it was ended because it took much longer than predicted.
    """

    def __init__(self, structure: Structure, control: Control) -> None:
        self.structure, self.control = structure, control
        self.best: Result | None = None
        self.met = False
        self.failure: KerneloptError | None = None
        self.overtime: Candidate | None = None

    @property
    def done(self) -> bool:
        """Whether the tolerance is met, or the caller has ended the call."""
        return self.met or self.control.ended_by_caller

    @property
    def found(self) -> bool:
        """Whether a feasible point is known."""
        return self.best is not None and self.best.certificate.feasible

    @property
    def trained(self) -> bool:
        """Whether the best point has a machine other than a constant, or the tolerance is met without one."""
        machines = () if self.best is None else self.best.certificate.machines
        return self.met or not machines or any(machine.alpha.any() for machine in machines)

    @property
    def first(self) -> bool:
        """Whether no method has run yet."""
        return self.best is None and self.failure is None and self.overtime is None

    def worthwhile(self, candidate: Candidate) -> bool:
        """Whether the predicted time of a method is acceptable in view of the time spent already.

        Where the objective decreases along weights that nothing bounds, its infimum is not attained. A second
        method then has no optimum to find, and none is run once a feasible point is known.
        """
        if self.found and weights_that_grow(self.structure):
            return False
        control, (factor, seconds) = self.control, PATIENCE.worthwhile
        acceptable = max(factor * (control.seconds - control.compiling), seconds)
        return self.first or candidate.seconds <= min(acceptable, control.remaining_in_call)

    def budget(self, candidate: Candidate, later: Sequence[Candidate]) -> float:
        """Return the seconds after which a method is ended and the next one starts.

        They are infinite for the first method if no later method is predicted to be that fast.
        """
        factor, seconds = PATIENCE.first_overrun if self.first else PATIENCE.overrun
        budget = max(factor * candidate.seconds, seconds)
        return np.inf if self.first and all(other.seconds > budget for other in later) else budget

    def run(self, candidate: Candidate, budget: float) -> None:
        """Run a method from the best point so far, and certify its outcome."""
        control, first = self.control, self.first
        outcome: Outcome | None = None  # if it is ended before it has a point
        try:
            with control.running(candidate.method.name, candidate.certification, budget):
                outcome = candidate.method.run(candidate.match, control)
        except (MethodError, SolverError) as error:
            self.failure = self.failure or error
            return
        if first and control.out_of_time and not control.ended_by_caller:
            self.overtime = candidate
        if outcome is not None:
            self.take(candidate.method.name, outcome)
            self.conclude(candidate)

    def take(self, method: str, outcome: Outcome) -> None:
        """Certify an outcome, and combine it with the best result."""
        structure, control = self.structure, self.control
        with control.certifying():
            certificate = certify_outcome(structure, outcome, control)
        if certificate is None:
            return
        rounded = ROUNDED if control.gap <= control.tol < certificate.gap else ""
        found = Result(method, outcome, certificate, control.stopped or rounded)
        self.best = found if self.best is None else better_result(structure, self.best, found)
        self.met = self.best.certificate.gap <= control.tol
        control.start = self.best.outcome

    def conclude(self, candidate: Candidate) -> None:
        """Add what follows from a certificate within the tolerance to the details of the outcome."""
        control = self.control
        if self.best is None or not self.met or control.ended_by_caller:
            return
        with control.certifying(), control:
            more = candidate.method.conclusions(candidate.match, self.best.certificate)
            self.best.outcome.details |= more


def no_point_error(control: Control) -> BaseException:
    """Return the exception for a call that was ended before there was a point."""
    if control.interrupted:
        return KeyboardInterrupt()
    kind = TimeLimitError if control.ended_by_caller and not control.hurried else SolverError
    return kind(
        f"a bounded point must be found, got none before {control.stopped or 'the end'} ({control.doing}). "
        "Give it more time, or another method: kernelopt.explain(problem) lists those that apply."
    )
