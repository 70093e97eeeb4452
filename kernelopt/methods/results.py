"""The certified result of a method, and the combination of the results of two methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certificate import (
    BoundedProblem,
    combined_certificate,
    minimised,
    with_better_bound,
)
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.gap import floor
from kernelopt.certificates.lower.choices import signed_bound
from kernelopt.errors import Stopped
from kernelopt.learner import Machine
from kernelopt.methods.control import PATIENCE, Control
from kernelopt.methods.method import Outcome
from kernelopt.methods.sizing import certification_seconds
from kernelopt.numerics.decompositions import SECONDS
from kernelopt.structure.evaluation import Given
from kernelopt.structure.structure import Point, Structure
from kernelopt.validation import Array


@dataclass(frozen=True)
class Result:
    """The outcome of a method with its certificate.

    `stopped` says why the method ended before the tolerance; it is empty otherwise.
    """

    method: str
    outcome: Outcome
    certificate: Certificate
    stopped: str


def certify_outcome(structure: Structure, outcome: Outcome, control: Control) -> Certificate | None:
    """Return the certificate of an outcome, computed within the deadline of the control.

    First the certificate is computed with the machines of the outcome. It is returned if its gap meets the
    tolerance and its value is about as good as the method reported. Otherwise a second certificate is
    computed with machines trained at the kernels of the point, and the better value and the better bound of
    the two are returned. If the time runs out, the certificate is computed without training and without a
    conic solver, or is None where the time does not suffice for that either.
    """
    if outcome.certificate is not None:
        return with_better_bound(structure, outcome.certificate, signed_bound(structure).value)
    control.exceed_limit()
    if isinstance(structure.problem, BoundedProblem):
        with control:
            return bounded_certificate(structure.problem, outcome.point, outcome.multipliers)
        return None
    alphas = outcome.alphas
    choices = [] if alphas is None else [alphas]
    given = outcome.machines or (None if alphas is None else [(a, None) for a in alphas])
    best: Certificate | None = None
    # A compilation by cvxpy cannot be interrupted, so none is started without enough time.
    if PATIENCE.compilation * certification_seconds(structure) > control.remaining:
        return certificate_without_solver(structure, outcome, given, control)
    with control:
        if given is not None:
            began = control.seconds
            best = certificate_at(structure, outcome.point, choices, given=given)
            worse = minimised(structure, best)[1] - control.upper
            if best.gap <= control.tol and not worse > PATIENCE.value_share * control.allowed:
                return best
            if control.hurried and best.feasible:  # training may take longer than the second that is left
                return with_better_bound(structure, best, outcome.lower)
            # Training factorises the combined kernels, which cannot be interrupted.
            least = max(control.seconds - began, training_seconds(structure))
            if PATIENCE.training * least > control.remaining:
                raise Stopped
        trained = certificate_at(structure, outcome.point, choices)
        return trained if best is None else combined_certificate(structure, best, trained)
    if best is None:
        return certificate_without_solver(structure, outcome, given, control)
    return with_better_bound(structure, best, outcome.lower)


def training_seconds(structure: Structure) -> float:
    """Return the predicted seconds of a training at stored kernels for all risks."""
    sizes = [(len(term.kernels), term.learner.n) for term in structure.risks]
    return sum(count * (PATIENCE.training_entry * n**2 + PATIENCE.factorisation * n**3) for count, n in sizes)


def bounded_certificate(
    problem: BoundedProblem, point: dict[int, Any], multipliers: list[list[Any]] | None
) -> Certificate:
    """Return the certificate that a `BoundedProblem` computes from a point and a solver's multipliers."""
    labels = [c.label for c in problem.constraints]
    duals = multipliers or [[None] for _ in labels]
    return problem.bounds(point, {k: d[0] for k, d in zip(labels, duals, strict=True)})


def certificate_without_solver(
    structure: Structure, outcome: Outcome, given: Sequence[Given] | None, control: Control
) -> Certificate | None:
    """Return the certificate of an outcome without a conic solver and without training.

    None where the time does not suffice, as for a decomposition of a large matrix.
    """
    control.delay_interrupts()
    if matrix_seconds(structure) > control.last_seconds:
        return None
    control.exceed_limit(last=True)
    zero = [np.zeros(term.learner.n) for term in structure.risks]
    alphas = outcome.alphas or zero
    given = given or [(a, None) for a in alphas]
    with control:
        found = certificate_at(structure, outcome.point, [alphas], given=given, conic=False)
        return with_better_bound(structure, found, outcome.lower)
    return None


def matrix_seconds(structure: Structure) -> float:
    """Return the predicted seconds of a certificate over PSD variables, with two decompositions of each."""
    orders = [float(v.shape[0]) for v in structure.variables if v.attributes["PSD"]]
    return sum(PATIENCE.passes * n**2 + (SECONDS.values + SECONDS.pairs) * n**3 for n in orders)


def closed_certificate(
    structure: Structure,
    lower: float,
    upper: float,
    point: Point,
    alphas: Sequence[Array],
    machines: tuple[Machine, ...],
) -> Certificate:
    """Return the certificate of bounds in closed form that a method has computed.

    The point and the machines attain `upper`, and the dual variables `alphas` prove `lower`.
    """
    return Certificate(
        lower,
        upper,
        "closed",
        assumes=structure.assumes,
        feasible=True,
        point={variable: point[variable.id] for variable in structure.user_variables},
        alphas=tuple(alphas),
        machines=machines,
        floor=floor(structure),
    )


def attained(structure: Structure, certificate: Certificate) -> float:
    """Return the objective at the point of a certificate: `upper`, or `lower` for a maximisation."""
    return certificate.lower if structure.maximize else certificate.upper


def better_result(structure: Structure, one: Result, two: Result) -> Result:
    """Return the result with the better point, with the better of the two bounds by duality."""
    certificate = combined_certificate(structure, one.certificate, two.certificate)
    best = one if certificate.point is one.certificate.point else two
    return replace(best, certificate=certificate, stopped=two.stopped)
