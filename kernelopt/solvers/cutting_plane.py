"""Cutting planes for any problem with risks: machines at the master's kernels bound it from below."""

from __future__ import annotations

from typing import Literal

import cvxpy as cp
import numpy as np

from kernelopt.certificates import certify
from kernelopt.certificates.certify import best_bound
from kernelopt.certificates.repair import feasible_point, write_point
from kernelopt.errors import MethodError, ParameterError, SolverError
from kernelopt.language.risk import Risk
from kernelopt.reading import expand, risks
from kernelopt.solvers.ball import read_ball
from kernelopt.solvers.exact import contradiction, raise_if_unbounded
from kernelopt.solvers.finish import conclude
from kernelopt.solvers.master import Master, MasterFailure, Point
from kernelopt.solvers.progress import Callback, Progress
from kernelopt.solvers.registry import Method
from kernelopt.solvers.separability import check_separable
from kernelopt.solvers.sizing import large
from kernelopt.solvers.solution import Solution
from kernelopt.solvers.taylor import TaylorMaster
from kernelopt.validation import positive

FIRST_LEVEL = 0.3
DARING, CAREFUL = 0.1, 0.8
HALVINGS = 30
REMEDY = "Try more max_iterations, or method='exact'."


def cutting_plane(
    problem: cp.Problem,
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    master: Literal["exact", "taylor"] = "exact",
    stabilize: bool = True,
    max_iterations: int = 500,
) -> Solution:
    """Alternate between machines at a kernel, which cut, and the master problem, which moves the kernel.

    Every risk is replaced by a variable t above its cuts l(alpha) - 1/2 <alpha alpha', K>. The lower
    bound is that of the average of all alphas with the multipliers of their cuts: it is never below the
    master's value. With `stabilize` the next kernel is the one nearest to the best so far where the model
    promises a share of the gap, larger after steps that kept their promise (a level method).

    `master="taylor"` is Algorithm 3 of Kloft et al. (2011), for one risk with weights in an l_p ball and
    1 < p < inf: the norm constraint is expanded to second order and the result projected on the sphere.
    """
    found = risks(problem)
    for node in found:
        check_separable(node)
    positive(max_iterations, "max_iterations")
    share = FIRST_LEVEL
    maximize = isinstance(problem.objective, cp.Maximize)
    with Progress("cutting-plane", tol, time_limit, callback, verbose, maximize) as progress:
        try:
            model = build(problem, found, master)
            inside = point = model.start()
        except MasterFailure as failure:
            raise impossible(problem, failure) from failure
        lower, alphas = -np.inf, None
        for _ in range(max_iterations):
            before = progress.upper
            point, value = evaluate(problem, model, point, inside)
            if progress.report(lower, value, point=point, proof=alphas):
                break
            for k, node in enumerate(found):
                model.add(k, node.oracle().alpha)
            try:
                proposal = model.solve()
                alphas = model.averaged(proposal.multipliers)
                lower = best_bound(problem, model.variables, found, [alphas], None)[0].value
                point = proposal.point
                if stabilize and isinstance(model, Master) and np.isfinite(progress.upper):
                    share = max(DARING, 0.8 * share) if value < before else min(CAREFUL, 1.2 * share)
                    level = proposal.value + share * (progress.upper - proposal.value)
                    point = model.nearest(progress.best, level)
            except MasterFailure as failure:
                raise_if_impossible(problem, model, failure)
                progress.stopped = f"the master problem could not be solved ({failure})"
                break
            if lower >= progress.upper - tol * max(1.0, abs(progress.upper)):
                progress.report(lower, np.inf, point=point, proof=alphas)
                break
        else:
            progress.stopped = f"{max_iterations} iterations were made"
    candidate = {v: progress.best[v.id] for v in model.variables}
    proof = progress.proof or [node.oracle().alpha for node in found]
    return conclude(problem, progress, candidate, proof, REMEDY)


def build(problem: cp.Problem, found: list[Risk], master: str) -> Master | TaylorMaster:
    """Return the master problem of the kind asked for."""
    if master == "exact":
        return Master(problem, found)
    if master != "taylor":
        raise ParameterError(f"master must be 'exact' or 'taylor', got {master!r}.")
    read = read_ball(problem)
    if isinstance(read, str) or read.p == 1 or np.isinf(read.p):
        why = read if isinstance(read, str) else f"p must be between 1 and infinity, got {read.p:g}"
        raise MethodError(f"master='taylor' does not apply: {why}. Use master='exact'.")
    return TaylorMaster(read)


def evaluate(
    problem: cp.Problem, model: Master | TaylorMaster, point: Point, inside: Point
) -> tuple[Point, float]:
    """Return the point made feasible, and its value for the minimisation, infinite where it cannot be.

    Where a risk is infinite, as a hard margin is at a kernel that does not separate, the point moves
    towards `inside`, since there is no machine to cut with.
    """
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    for _ in range(HALVINGS):
        repaired, _ = feasible_point(problem, model.variables, point)
        write_point(model.variables, point if repaired is None else repaired)
        if all(np.isfinite(node.oracle().value) for node in risks(problem)):
            if repaired is None:
                return point, np.inf
            value = problem.objective.value
            return repaired, np.inf if value is None else sign * float(value)
        point = {key: (point[key] + inside[key]) / 2 for key in point}
    return point, np.inf


def raise_if_impossible(problem: cp.Problem, model: Master | TaylorMaster, failure: MasterFailure) -> None:
    """Raise where the master has a ray, and the problem itself can be shown to have it too."""
    if failure.ray is not None:
        alphas = model.averaged(failure.ray)
        bound, _, _ = best_bound(problem, model.variables, risks(problem), [alphas], None)
        if bound.ray is not None:
            raise contradiction(problem, bound.ray)
    if "DualInfeasible" in str(failure):
        raise_if_unbounded(expand(problem).problem)


def impossible(problem: cp.Problem, failure: MasterFailure) -> Exception:
    """Return the error of a problem whose constraints alone cannot be met, with the proof if there is one."""
    for variable in problem.variables():
        variable.save_value(np.zeros(variable.shape))
    proof = certify(problem, alpha=[np.zeros(node.learner.n) for node in risks(problem)]).proof
    if proof is not None:
        return contradiction(problem, proof)
    return SolverError(f"the master problem could not be solved ({failure}). Use method='exact'.")


def without_risk(problem: cp.Problem) -> list[str]:
    """Return what stands in the way: nothing to cut."""
    return [] if risks(problem) else ["it needs a risk, the problem has none"]


CUTTING_PLANE = Method("cutting-plane", without_risk, cutting_plane, large)
