"""Proofs that a problem is infeasible or unbounded, independent of the solver that claims it."""

from __future__ import annotations

from typing import Literal

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.certificate import Certificate
from kernelopt.certificates.certify import certificate_at
from kernelopt.certificates.conic.multipliers import conic_bound
from kernelopt.certificates.conic.stated import without_attributes
from kernelopt.certificates.statements.conflicts import Conflict, conflict
from kernelopt.conic.ladder import AttemptResult, ladder, run_solver
from kernelopt.errors import InfeasibleError, KerneloptError, SolverError, Stopped, UnboundedError
from kernelopt.language.adapter import written_problem
from kernelopt.language.risk import Risk
from kernelopt.structure.enclosure import violation
from kernelopt.structure.expansion import expand
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.structure.trees import constraint_names, nodes, short
from kernelopt.structure.units import units, variable_units
from kernelopt.threads import quietly
from kernelopt.validation import Array

BOX_SIZES = (1e3, 1e6)  # |x| up to these: an unbounded objective decreases in proportion to the size
DECREASE_FACTOR = 10.0  # from the smaller size to the larger: a bounded minimum decreases by less
SOLVER_TOLERANCE = 1e-6  # relative violation up to which a point of a solver counts as feasible
LONGEST_FAILURE = 120  # characters of a solver's error in a message
NEAR_BOX = 0.1  # of the larger size: a variable beyond this would be unbounded
SHOWN = 1e-5  # relative distance of two bounds below which one number is shown for the least value


def risk_above_its_bound(structure: Structure) -> Conflict | None:
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
            return text, certificate
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


def raise_if_impossible(structure: Structure, explicit: cp.Problem, tried: AttemptResult) -> None:
    """Raise where a solver's claim of infeasibility or unboundedness can be shown without it."""
    if tried.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        feasibility = written_problem(cp.Minimize(0), [c.copy() for c in explicit.constraints])
        read = Structure(feasibility)
        boxes, plain = known_boxes(read), without_attributes(read.lifted, read.variables)
        bound = conic_bound(plain, read.variables, boxes, units=variable_units(read))
        if bound.ray is not None:
            raise contradiction(structure, bound.ray)
    elif tried.status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        raise_if_unbounded(structure, explicit)


def raise_if_unbounded(structure: Structure, explicit: cp.Problem) -> None:
    """Raise where the minimum over |x| <= r decreases in proportion to r, for the two BOX_SIZES."""
    near, far = (minimum_within(explicit, size) for size in BOX_SIZES)
    if near is not None and far is not None and far < min(-BOX_SIZES[0], DECREASE_FACTOR * near):
        values = {v.id: np.abs(v.value).max() for v in explicit.variables() if v.value is not None}
        unbounded = [v for v in structure.variables if values.get(v.id, 0.0) > NEAR_BOX * BOX_SIZES[1]]
        remedy = unbounded_text(structure, unbounded) or "Add the constraint that is missing."
        raise UnboundedError(
            f"the objective must be bounded, got {far:.1e} (minimised) with variables up to "
            f"{BOX_SIZES[1]:.0e}. {remedy}"
        )


def unbounded_variables(structure: Structure) -> list[cp.Variable]:
    """Return the variables of the risks' kernels that occur in no constraint and in no price.

    As such a variable grows its kernel grows, and the risk decreases to an infimum that is not attained.
    """
    if structure.objective is None:
        return []
    pairs = (*structure.objective.affine_terms, *structure.objective.terms)
    bounded = {v.id for _, e in pairs for v in e.variables()}
    for i in structure.active:
        constraint = structure.lifted.constraints[i]
        if not isinstance(constraint, cp.constraints.PSD):
            bounded |= {v.id for v in constraint.variables()}
    in_kernels = kernel_variables(structure)
    return [v for v in structure.variables if v.id in in_kernels and v.id not in bounded]


@kept_in_structure
def weights_that_grow(structure: Structure) -> list[cp.Variable]:
    """Return the unbounded variables along which the objective decreases, as far as the structure shows.

    They are in the kernels of a risk with a positive price. Those are left out that have bounds as an
    attribute, and those in the kernels of a risk whose labels are all equal: with an intercept its optimum
    is a constant, and no weight changes it.
    """
    if structure.objective is None:
        return []
    falling: set[int] = set()
    for term, price in zip(structure.risks, structure.objective.factors, strict=True):
        constant = term.learner.has_intercept and np.ptp(term.learner.y) == 0
        if price > 0 and not constant:
            falling |= {v.id for K in term.kernels for v in K.variables()}
    return [v for v in unbounded_variables(structure) if v.id in falling and v.attributes["bounds"] is None]


def kernel_variables(structure: Structure) -> set[int]:
    """Return the ids of the variables that the kernels of the risks contain."""
    return {v.id for term in structure.risks for K in term.kernels for v in K.variables()}


def unbounded_text(structure: Structure, unbounded: list[cp.Variable]) -> str:
    """Return a sentence that names the unbounded variables and the remedy, empty where there are none."""
    if not unbounded:
        return ""
    weights = kernel_variables(structure)
    n = structure.risks[0].kernels[0].shape[0] if structure.risks else 0
    in_kernels = any(v.id in weights for v in unbounded)
    remedy = f"trace(K) == {n}" if in_kernels else "a bound, or a price in the objective"
    return f"Nothing bounds {', '.join(v.name() for v in unbounded)}: add {remedy}."


def contradiction(structure: Structure, ray: Array) -> InfeasibleError:
    """Return the error for a problem whose constraints have a Farkas ray.

    Its certificate is an exact statement where the conflict is shown in fractions. Otherwise it is the
    certificate of the least risk where that exceeds its bound, or else the Farkas ray itself in doubles.
    """
    found = conflict(structure) or risk_above_its_bound(structure)
    if found is None:
        shown = "it was shown by a Farkas ray in doubles"
        found = "", unattainable(structure.maximize, "conic", ray, shown, structure.assumes)
    text, proof = f": {found[0]}" if found[0] else "", found[1]
    can_be_saved = not isinstance(getattr(proof, "source", None), str)
    saving = " proof['certificate'].save(path) writes a proof to a file." if can_be_saved else ""
    named = constraint_names(structure.problem) or ["the constraints of the risks"]
    unlabelled = any(not c.label for c in structure.problem.constraints)
    naming = " Constraints are named in this message by constraint.set_label(name)." if unlabelled else ""
    return InfeasibleError(
        f"the constraints must have a common point, got constraints that contradict each other{text}. "
        f"Multipliers of the constraints prove this: proof['ray'] is a Farkas ray of the cone form.{saving} "
        f"Loosen one of: {', '.join(named)}.{naming}",
        {"ray": ray, "certificate": proof},
    )


def minimum_within(problem: cp.Problem, size: float) -> float | None:
    """Return the minimum of the (minimised) objective over |x| <= `size`, None where none was found."""
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    box = [constraint for v in problem.variables() for constraint in (v <= size, v >= -size)]
    boxed = written_problem(cp.Minimize(sign * problem.objective.args[0]), [*problem.constraints, *box])
    boxed = written_problem(boxed.objective, [c.copy() for c in boxed.constraints])
    run_solver(boxed, ladder(linear=False, order=0)[0])
    if boxed.value is None or not np.isfinite(boxed.value):
        return None
    worst = max((float(np.max(violation(c))) for c in boxed.constraints), default=0.0)
    return float(boxed.value) if worst <= SOLVER_TOLERANCE * size else None


def no_feasible_point(claims: list[AttemptResult], best: Certificate | None) -> KerneloptError:
    """Return the exception for a problem for which no solver found a point that could be made feasible."""
    statuses = [f"{a.status} {a.failure[:LONGEST_FAILURE]}".rstrip() for a in claims]
    text = "; ".join(f"{a.attempt.name}: {status}" for a, status in zip(claims, statuses, strict=True))
    if claims and all("infeasible" in a.status for a in claims):
        return InfeasibleError(
            f"every solver calls the problem infeasible, without a proof in doubles ({text})."
        )
    if claims and all("unbounded" in a.status for a in claims):
        return UnboundedError(
            f"every solver calls the problem unbounded ({text}). Bound the weights or the kernel."
        )
    reason = f" {best.reason}." if best is not None and best.reason else ""
    return SolverError(
        f"no solver left a point that could be made feasible ({text}).{reason} Leave solver= out to try all "
        "that are installed, scale the kernels to a mean diagonal of one, or install another "
        "(pip install cvxopt)."
    )
