"""What is known of a problem after a method has run: its outcome, certified, and the better of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.lower.choices import signed_bound
from kernelopt.errors import Stopped
from kernelopt.methods.control import Control
from kernelopt.methods.method import Outcome
from kernelopt.methods.sizing import size
from kernelopt.structure.evaluation import Given
from kernelopt.structure.structure import Structure

CAUTION = 2.0  # times the predicted seconds of a certificate must be left for it to be begun
SHARE = 0.1  # of the tolerance, by which the point may be worse than the best value reported


@dataclass(frozen=True)
class Result:
    """What is known of a problem: an outcome, its certificate, and why the method ended."""

    method: str
    outcome: Outcome
    certificate: Certificate
    stopped: str


def certified(structure: Structure, outcome: Outcome, control: Control) -> Certificate:
    """Return bounds of the optimum at an outcome, in the time that is left.

    The machines that the method trained are taken if their gap is small enough, else better ones trained.
    """
    if outcome.certificate is not None:
        return with_bound(structure, outcome.certificate, signed_bound(structure).value)
    control.extend()
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
        return without_solver(structure, outcome, given, control)
    try:
        if given is not None:
            best = certificate_at(structure, outcome.point, choices, given=given, watch=control.check)
            worse = structure.sign * attained(structure, best) - control.upper
            if best.gap <= control.tol and not worse > SHARE * control.allowed:
                return best
        trained = certificate_at(structure, outcome.point, choices, watch=control.check)
        return trained if best is None or better(structure, trained, best) else best
    except (Stopped, KeyboardInterrupt) as ended:
        control.note(ended)
        if best is None:
            return without_solver(structure, outcome, given, control)
        return with_bound(structure, best, outcome.lower)


def without_solver(
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
    """Whether a certificate has nearer bounds, or as near ones and a better point."""
    values = (structure.sign * attained(structure, c) for c in (new, old))
    return (new.distance, next(values)) < (old.distance, next(values))


def with_bound(structure: Structure, certificate: Certificate, lower: float) -> Certificate:
    """Return a certificate with another bound by duality (of the minimisation) where that is better.

    Two bounds that cross by their rounding are not put together.
    """
    if structure.maximize and certificate.lower <= -lower < certificate.upper:
        return replace(certificate, upper=-lower)
    if not structure.maximize and certificate.lower < lower <= certificate.upper:
        return replace(certificate, lower=lower)
    return certificate


def united(structure: Structure, best: Certificate, other: Certificate) -> Certificate:
    """Return the first certificate with the bound by duality of the other where that is better."""
    certificate = with_bound(structure, best, -other.upper if structure.maximize else other.lower)
    if certificate.distance < best.distance:
        return replace(certificate, alphas=other.alphas, route=other.route)
    return certificate


def merged(structure: Structure, one: Result, two: Result) -> Result:
    """Return the result with the better point, and the better of the two bounds by duality."""
    values = [structure.sign * attained(structure, r.certificate) for r in (one, two)]
    best, other = (two, one) if values[1] < values[0] else (one, two)
    certificate = united(structure, best.certificate, other.certificate)
    return replace(best, certificate=certificate, stopped=two.stopped)
