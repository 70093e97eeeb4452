"""The exact method: the explicit conic problem, a ladder of solvers, judged by the certificate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.boxes import constraint_boxes
from kernelopt.certificates.multipliers import conic_bound
from kernelopt.conic import Attempt, Rung, attempt, ladder
from kernelopt.errors import InfeasibleError, KerneloptError, MethodError, SolverError, UnboundedError
from kernelopt.reading import Expansion, expand, risks, visible_variables
from kernelopt.solvers.ball import evened
from kernelopt.solvers.finish import Found, describe, restore
from kernelopt.solvers.progress import Callback
from kernelopt.solvers.registry import Method
from kernelopt.solvers.separability import check_separable
from kernelopt.solvers.sizing import size
from kernelopt.solvers.solution import Solution
from kernelopt.validation import Array

PATIENCE = 3600.0
REACHES = (1e3, 1e6)
REMEDY = "Try another solver=, scale the kernels to a mean diagonal of one, or accept the bounds."


@dataclass(frozen=True)
class Reading:
    """How a programme without risks is read: as a learning problem in words, or by bounds of its own.

    `recover` sets the variables of `words` from the values and multipliers of the programme just
    solved, and returns one alpha per risk of `words`; `certify` bounds the programme at them. `route` is
    tried before any solver: it fills the variables and multipliers itself.
    """

    words: cp.Problem
    recover: Callable[[], list[Array]] = list
    certify: Callable[[], Certificate] | None = None
    route: Callable[[], int] | None = None


def exact(
    problem: cp.Problem,
    *,
    tol: float = 1e-5,
    solver: Any = None,
    time_limit: float | None = None,
    memory: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    force: bool = False,
    solver_options: dict[str, Any] | None = None,
    reading: Reading | None = None,
) -> Solution:
    """Solve the explicit conic problem, trying solvers until the certificate meets `tol`.

    With a `reading` the problem is a programme without risks, and the point that its multipliers give
    is certified on the problem in words that it stands for.
    """
    started = time.perf_counter()
    target = problem if reading is None else reading.words
    refuse_hopeless(problem, time_limit, memory, force)
    for node in risks(target):
        check_separable(node)
    expansion = expand(problem)
    rungs = ladder(
        linear=expansion.problem.is_lp(), order=size(problem).order, solver=solver, time_limit=time_limit
    )
    rungs = [replace(r, options={**r.options, **(solver_options or {})}) for r in rungs]
    if reading is not None and reading.route is not None and solver is None:
        rungs.insert(0, Rung("a route of its own", route=reading.route))
    best: Found | None = None
    history: list[tuple[float, float, float]] = []
    times = {"build": time.perf_counter() - started, "solve": 0.0, "certify": 0.0}
    claims: list[Attempt] = []
    for rung in rungs:
        if time_limit is not None and claims and time.perf_counter() - started > time_limit:
            break
        tried = run(expansion, rung, verbose, times)
        claims.append(tried)
        raise_if_impossible(problem, expansion, tried)
        clock = time.perf_counter()
        found = judge(problem, expansion, tried, reading)
        times["certify"] += time.perf_counter() - clock
        if found.certificate.proof is not None:
            raise contradiction(problem, found.certificate.proof)
        history.append((time.perf_counter() - started, found.certificate.lower, found.certificate.upper))
        if best is None or better(found, best):
            best = found
        if told_to_stop(callback, rung.name, tried.status, found.certificate, history):
            break
        if best.certificate.gap <= tol:
            break
    if best is None or not best.certificate.feasible or all(a.status == "failed" for a in claims):
        raise without_point(claims, best)
    best.certificate = evened(target, best.certificate)
    restore(problem, best, tol)
    return describe(target, "exact", best, tol, tuple(history), times, REMEDY)


def told_to_stop(
    callback: Callback | None, solver: str, status: str, certificate: Certificate, history: list[Any]
) -> bool:
    """Tell the callback of a certified point; whether it raised StopIteration."""
    seconds, lower, upper = history[-1]
    report = {
        "method": "exact",
        "iteration": len(history),
        "seconds": seconds,
        "lower": lower,
        "upper": upper,
        "gap": certificate.gap,
        "point": {variable.id: np.copy(value) for variable, value in certificate.point.items()},
        "solver": solver,
        "status": status,
        "certificate": certificate,
    }
    try:
        if callback is not None:
            callback(report)
    except StopIteration:
        return True
    return False


def run(expansion: Expansion, rung: Rung, verbose: bool, times: dict[str, float]) -> Attempt:
    """Solve with one rung from a clean slate, and book the time."""
    for variable in expansion.problem.variables():
        variable.save_value(None)
    clock = time.perf_counter()
    tried = attempt(expansion.problem, rung, verbose)
    spent = time.perf_counter() - clock
    compiled = expansion.problem.compilation_time or 0.0
    times["build"] += min(compiled, spent)
    times["solve"] += max(spent - compiled, 0.0)
    return tried


def judge(problem: cp.Problem, expansion: Expansion, tried: Attempt, reading: Reading | None) -> Found:
    """Certify the point that a rung left in the variables, and keep what it takes to restore it."""
    target = problem
    alphas: list[Array] | None = None
    expansion.bring_back()
    if reading is not None:
        target = reading.words
        alphas = reading.recover() if finite(visible_variables(problem)) else None
    elif finite(visible_variables(problem)):
        alphas = []
        for written in expansion.risks:
            alpha = written.alpha()
            alphas.append(written.risk.oracle().alpha if alpha is None else alpha)
    values = {v.id: v.value for v in problem.variables()}
    duals = [[dual.value for dual in c.original.dual_variables] for c in expansion.constraints]
    if reading is not None and reading.certify is not None and finite(problem.variables()):
        certificate = reading.certify()
    else:
        certificate = certify(target, alpha=alphas or None)
    return Found(certificate, tried.rung.name, tried.iterations, values, duals)


def finite(variables: list[cp.Variable]) -> bool:
    """Whether all variables have finite values."""
    return all(v.value is not None and np.isfinite(np.asarray(v.value)).all() for v in variables)


def better(new: Found, old: Found) -> bool:
    """Whether a certificate is better: a smaller gap, or a finite bound where there was none."""
    if new.certificate.gap != old.certificate.gap:
        return new.certificate.gap < old.certificate.gap
    return new.certificate.feasible and not old.certificate.feasible


def raise_if_impossible(problem: cp.Problem, expansion: Expansion, tried: Attempt) -> None:
    """Raise where a solver's claim of infeasibility or unboundedness can be shown without it."""
    explicit = expansion.problem
    if tried.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        feasibility = cp.Problem(cp.Minimize(0), [c.copy() for c in explicit.constraints])
        variables = feasibility.variables()
        bound = conic_bound(feasibility, variables, constraint_boxes(feasibility, variables, None))
        if bound.ray is not None:
            raise contradiction(problem, bound.ray)
    elif tried.status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        raise_if_unbounded(explicit)


def raise_if_unbounded(explicit: cp.Problem) -> None:
    """Raise where the objective falls in proportion to how far the variables may go."""
    near, far = (least_within(explicit, reach) for reach in REACHES)
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


def least_within(problem: cp.Problem, reach: float) -> float | None:
    """Return the least objective (of the minimisation) found with all variables within `reach`."""
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    caps = [constraint for v in problem.variables() for constraint in (v <= reach, v >= -reach)]
    capped = cp.Problem(cp.Minimize(sign * problem.objective.args[0]), [*problem.constraints, *caps])
    capped = cp.Problem(capped.objective, [c.copy() for c in capped.constraints])
    attempt(capped, ladder(linear=False, order=0)[0])
    if capped.value is None or not np.isfinite(capped.value):
        return None
    worst = max((float(np.max(c.violation())) for c in capped.constraints), default=0.0)
    return float(capped.value) if worst <= 1e-6 * reach else None


def names(problem: cp.Problem) -> list[str]:
    """Return the labels of the constraints, or their text."""
    return [c.label or f"constraint {i}" for i, c in enumerate(problem.constraints)] or [
        "the constraints of the risks"
    ]


def without_point(claims: list[Attempt], best: Found | None) -> KerneloptError:
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
    reason = f" {best.certificate.reason}." if best is not None and best.certificate.reason else ""
    return SolverError(
        f"no solver left a point that could be made feasible ({text}).{reason} Leave solver= out to try all "
        "that are installed, scale the kernels to a mean diagonal of one, or install another "
        "(pip install cvxopt)."
    )


def refuse_hopeless(problem: cp.Problem, time_limit: float | None, memory: float | None, force: bool) -> None:
    """Raise for a semidefinite problem that cannot be finished, unless forced."""
    expected = size(problem)
    if force or not expected.order:
        return
    patience = PATIENCE if time_limit is None else time_limit
    room = 16e9 if memory is None else memory
    if expected.seconds > patience or expected.memory > room:
        raise MethodError(
            f"a semidefinite problem of order {expected.order} needs about {expected.seconds:.0f} s and "
            f"{expected.memory / 1e9:.1f} GB, more than {patience:.0f} s or {room / 1e9:.1f} GB. Give the "
            "weights nonneg=True (second-order cones), use fewer points, or pass force=True."
        )


EXACT = Method("exact", lambda problem: [], exact)
