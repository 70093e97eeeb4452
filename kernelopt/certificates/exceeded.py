"""Certificates of infeasible problems: the least risk exceeds its bound, or a ray in doubles."""

from __future__ import annotations

from typing import Literal, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.certificates.certificate import Certificate
from kernelopt.certificates.certify import certificate_at
from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.errors import Stopped
from kernelopt.language.risk import Risk
from kernelopt.structure.expansion import expand
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import nodes, short
from kernelopt.structure.units import units
from kernelopt.threads import quietly
from kernelopt.validation import Array

SHOWN = 1e-5  # relative distance of two bounds below which one number is shown for the least value


class Exceeded(NamedTuple):
    """A constraint whose left-hand side is above its bound, in words, and the certificate that shows it."""

    text: str
    certificate: Certificate


def risk_above_its_bound(structure: Structure) -> Exceeded | None:
    """Return the certificate of the least value of a bounded risk, where it is above the bound.

    The least value is that under the other constraints. Its lower bound says how far the bound must be
    loosened at least, and its upper bound which one is enough.
    """
    problem = structure.problem
    for i, constraint in enumerate(problem.constraints):
        if not isinstance(constraint, Inequality) or not constraint.args[1].is_constant():
            continue
        left, right = constraint.args
        if left.size != 1 or not any(isinstance(node, Risk) for node in nodes(left)):
            continue
        others = [c for c in problem.constraints if c is not constraint]
        try:
            certificate = least_value(Structure(cp.Problem(cp.Minimize(left), others)))
        except Stopped:  # the conflict is proved already, by a ray
            return None
        bound = float(np.min(right.value))
        if certificate is not None and bound < certificate.lower < np.inf:
            written = short(constraint) if constraint.label else f"constraint {i}: {short(constraint)}"
            attained = certificate.upper - certificate.lower <= SHOWN * abs(certificate.upper)
            least = f"{certificate.lower:.6g}" + ("" if attained else " or more")
            text = (
                f"{written}, is below the least value that the other constraints allow, "
                f"{least}: loosen its bound by {certificate.lower - bound:.3g} at least"
            )
            return Exceeded(text, certificate)
    return None


def least_value(structure: Structure) -> Certificate | None:
    """Return the certificate of the minimum of a problem by a conic solver, None where none has a point."""
    with quietly():
        expansion = expand(structure.explicit, units(structure))
    for attempt in ladder(linear=False, order=0):
        run_solver(expansion.problem, attempt)
        expansion.bring_back()
        values = {v.id: v.value for v in structure.variables}
        if all(value is not None and np.isfinite(value).all() for value in values.values()):
            found = [written.alpha() for written in expansion.risks]
            alphas = [
                written.risk.oracle().alpha if alpha is None else alpha
                for alpha, written in zip(found, expansion.risks, strict=True)
            ]
            point = {k: np.array(v, dtype=float) for k, v in values.items()}
            return certificate_at(structure, point, [alphas])
    return None


def unattainable(
    maximize: bool,
    route: Literal["closed", "conic"],
    proof: Array,
    reason: str,
    assumes: tuple[str, ...] = (),
) -> Certificate:
    """Return the certificate of an infeasible problem: its optimum is inf, or -inf for a maximisation.

    `reason` says why it cannot be saved in fractions.
    """
    value = -np.inf if maximize else np.inf
    return Certificate(value, value, route, assumes=assumes, proof=proof, source=reason)
