"""What a solver claims is impossible, shown without it: infeasible and unbounded problems."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.multipliers import conic_bound
from kernelopt.conic import Attempt, attempt, ladder
from kernelopt.errors import InfeasibleError, KerneloptError, SolverError, UnboundedError
from kernelopt.structure.structure import Structure
from kernelopt.threads import Watch
from kernelopt.validation import Array

REACHES = (1e3, 1e6)


def raise_if_impossible(
    structure: Structure, explicit: cp.Problem, tried: Attempt, watch: Watch | None = None
) -> None:
    """Raise where a solver's claim of infeasibility or unboundedness can be shown without it."""
    if tried.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        feasibility = cp.Problem(cp.Minimize(0), [c.copy() for c in explicit.constraints])
        read = Structure(feasibility)
        bound = conic_bound(read.lifted, list(read.variables), known_boxes(read, None), watch)
        if bound.ray is not None:
            raise contradiction(structure.problem, bound.ray)
    elif tried.status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        raise_if_unbounded(explicit, watch)


def raise_if_unbounded(explicit: cp.Problem, watch: Watch | None = None) -> None:
    """Raise where the objective falls in proportion to how far the variables may go."""
    near, far = (least_within(explicit, reach, watch) for reach in REACHES)
    if near is not None and far is not None and far < min(-1e3, 10 * near):
        raise UnboundedError(
            f"the objective must be bounded, got {far:.1e} (minimised) with variables up to "
            f"{REACHES[1]:.0e}. Add the constraint that is missing, such as a trace."
        )


def contradiction(problem: cp.Problem, ray: Array) -> InfeasibleError:
    """Return the error of a problem whose constraints have a Farkas ray."""
    return InfeasibleError(
        "the constraints contradict each other, got a proof from their multipliers (proof['ray'], a Farkas "
        "ray of the cone form). Loosen one of: " + ", ".join(names(problem)) + ".",
        {"ray": ray},
    )


def least_within(problem: cp.Problem, reach: float, watch: Watch | None) -> float | None:
    """Return the least objective (of the minimisation) found with all variables within `reach`."""
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    caps = [constraint for v in problem.variables() for constraint in (v <= reach, v >= -reach)]
    capped = cp.Problem(cp.Minimize(sign * problem.objective.args[0]), [*problem.constraints, *caps])
    capped = cp.Problem(capped.objective, [c.copy() for c in capped.constraints])
    attempt(capped, ladder(linear=False, order=0)[0], watch=watch)
    if capped.value is None or not np.isfinite(capped.value):
        return None
    worst = max((float(np.max(c.violation())) for c in capped.constraints), default=0.0)
    return float(capped.value) if worst <= 1e-6 * reach else None


def names(problem: cp.Problem) -> list[str]:
    """Return the labels of the constraints, or their text."""
    return [c.label or f"constraint {i}" for i, c in enumerate(problem.constraints)] or [
        "the constraints of the risks"
    ]


def without_point(claims: list[Attempt], best: Certificate | None) -> KerneloptError:
    """Return what the solvers agree on as an exception, when none left a feasible point."""
    text = "; ".join(f"{a.rung.name}: {a.status}{' ' + a.failure[:120] if a.failure else ''}" for a in claims)
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
