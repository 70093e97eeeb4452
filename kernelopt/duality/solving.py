"""The optimum of a dual, by the ladder of conic solvers."""

from __future__ import annotations

import cvxpy as cp

from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.errors import InfeasibleError, SolverError, UnboundedError


def optimize(problem: cp.Problem) -> None:
    """Solve a problem with one solver after another, until one of them calls its answer optimal.

    Raises
    ------
    InfeasibleError, UnboundedError, SolverError
        If none does; the class is that of the last status.
    """
    order = max(
        (c.args[0].shape[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)), default=0
    )
    statuses = []
    for attempt in ladder(linear=problem.is_lp(), order=order):
        result = run_solver(problem, attempt)
        statuses.append(f"{attempt.name}: {result.status}{result.failure and f' ({result.failure})'}")
        if result.status == cp.OPTIMAL:
            return
        if result.status in (cp.INFEASIBLE, cp.UNBOUNDED):
            break
    if problem.status == cp.OPTIMAL_INACCURATE:
        return
    kind = {cp.INFEASIBLE: InfeasibleError, cp.UNBOUNDED: UnboundedError}.get(result.status, SolverError)
    raise kind(
        f"the dual must have an optimum, got {'; '.join(statuses)}. A dual without a feasible point "
        "belongs to a "
        "primal that is unbounded or whose optimum has no multipliers; an unbounded one to an infeasible "
        "primal."
    )
