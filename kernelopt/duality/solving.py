"""The optimum of a dual, by the ladder of conic solvers; answers are judged by what they prove."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solution import Solution

from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.duality.sweep import Swept
from kernelopt.errors import InfeasibleError, SolverError, UnboundedError
from kernelopt.language.adapter import written_problem
from kernelopt.threads import quietly

ACCURATE = 1e-6  # an answer of this relative gap ends the search; solvers stop at 1e-8 on gaps of their own
USABLE = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
ERRORS = {cp.INFEASIBLE: InfeasibleError, cp.UNBOUNDED: UnboundedError}


def put(problem: cp.Problem, solution: Solution) -> None:
    """Set a solution in the variables and constraints of a problem."""
    with np.errstate(all="ignore"):  # cvxpy evaluates the objective: 0 / 0 at a multiplier of zero
        problem.unpack(solution)


def optimize(problem: cp.Problem, error: Callable[[], float] = float) -> None:
    """Solve a problem with one solver after another until `error` is small, and keep the best answer.

    Parameters
    ----------
    problem : cp.Problem
    error : function without arguments, by default zero
        The error of the answer that is in the problem, such as the duality gap of the recovered point.

    Raises
    ------
    InfeasibleError, UnboundedError, SolverError
        If no solver has an answer; the class is that of the last status.
    """
    order = max((c.shape[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)), default=0)
    statuses, best, least = [], None, np.inf
    for attempt in ladder(linear=problem.is_lp(), order=order):
        result = run_solver(problem, attempt)
        statuses.append(f"{attempt.name}: {result.failure or result.status}")
        if result.status in USABLE:
            found = error()
            if best is None or found < least:
                best, least = problem.solution, found
        if least <= ACCURATE or (best is None and result.status in ERRORS):
            break
    if best is None:
        raise ERRORS.get(result.status, SolverError)(
            f"the problem must have an optimum, got {'; '.join(statuses)}. A dual without a feasible point "
            "belongs to a primal that is unbounded or whose optimum has no multipliers, an unbounded dual "
            "to an infeasible primal: correct the primal."
        )
    put(problem, best)


def solved(problem: cp.Problem) -> float:
    """Solve a small convex problem, and return its value.

    Raises
    ------
    InfeasibleError, UnboundedError, SolverError
        As `optimize`.
    """
    if not problem.variables():
        return float(np.ravel(problem.objective.value)[0])
    with quietly():
        optimize(problem)
    return float(problem.solution.opt_val)


@contextmanager
def kept(variables: Iterable[cp.Variable]) -> Iterator[None]:
    """Give variables their present values back in the end."""
    old = [(v, v.value) for v in variables]
    try:
        yield
    finally:
        for v, value in old:
            v.save_value(value)


def solved_at(swept: Swept, given: Mapping[int, Any]) -> float:
    """Solve the swept dual with given alphas, set all its variables and multipliers, and return the value.

    `given` has the alphas by the ids of the risks. Constraints on them alone are left out: they hold, or are
    measured elsewhere.
    """
    known = [(t, id(t.atom)) for t in swept.terms if id(t.atom) in given]
    fixed = {alpha: t.unit * given[key] for t, key in known for alpha in t.alphas}
    constraints = [alpha == value for alpha, value in fixed.items()]
    constraints += [c for c in swept.problem.constraints if not {*c.variables()} <= {*fixed}]
    found = solved(written_problem(swept.problem.objective, constraints))
    for alpha, value in fixed.items():  # without the error of a solver
        alpha.save_value(value.value)
    return found
