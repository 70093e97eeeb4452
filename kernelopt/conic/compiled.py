"""A problem in the form that cvxpy compiles for a solver, and one solve that the running call can end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import cvxpy as cp

from kernelopt.conic.calls import call
from kernelopt.threads import quietly

REPLACED = ("symmetric", "PSD", "NSD", "diag")  # attributes of variables that cvxpy replaces by others
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Compiled(NamedTuple):
    """What cvxpy compiles for a solver: the data, the chain of reductions, and the way back."""

    data: dict[str, Any]
    chain: Any
    inverse: Any


def compiled(
    problem: cp.Problem, solver: Any, options: Mapping[str, Any] = NO_OPTIONS, verbose: bool = False
) -> Compiled:
    """Return a problem as cvxpy compiles it for a solver, without a warning."""
    with quietly():
        return Compiled(*problem.get_problem_data(solver, verbose=verbose, solver_opts=dict(options)))


def solve_compiled(
    problem: cp.Problem, solver: Any, options: Mapping[str, Any] = NO_OPTIONS, verbose: bool = False
) -> None:
    """Solve a problem as cvxpy's own `solve` does, but so that the running call can end it.

    Raises
    ------
    Stopped
        At the deadline of the running call. The solver is abandoned at once, as on Ctrl-C, and the variables
        keep their values.
    Exception
        Of any class, as the solver raises it.
    """
    data, chain, inverse = compiled(problem, solver, {**options, **keeping_squares(problem)}, verbose)

    def through_cvxpy() -> Any:
        return chain.solve_via_data(problem, data, False, verbose, dict(options))

    raw = call(chain.solver, data, through_cvxpy, dict(options), verbose)
    with quietly():  # about accuracy, which a certificate states
        problem.unpack_results(raw, chain, inverse)


def keeping_squares(problem: cp.Problem) -> dict[str, bool]:
    """Return the option of cvxpy under which a problem keeps its squares."""
    replaced = any(v.attributes[name] for v in problem.variables() for name in REPLACED)
    return {"use_quad_obj": False} if replaced and squares_are_lost() else {}


@cache
def squares_are_lost() -> bool:
    """Whether cvxpy compiles the squares of a symmetric variable to zero, as versions before 1.9.3 do."""
    square = cp.Problem(cp.Minimize(cp.sum_squares(cp.Variable((2, 2), symmetric=True))))
    data = compiled(square, "CLARABEL").data
    return "P" in data and not data["P"].nnz
