"""A problem in the form that cvxpy compiles for a solver, and one solve that the running call can end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.conic.calls import call
from kernelopt.threads import quietly
from kernelopt.validation import Array, Index

REPLACED = ("symmetric", "PSD", "NSD", "diag")  # attributes of variables that cvxpy replaces by others
ROW_ERROR = 1e-6  # of the quotient of two dual values that is the number of a row
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


def flat_dual(values: Any) -> Array:
    """Return the entries of a constraint's dual value, all arrays of a cone one after the other."""
    parts = values if isinstance(values, list | tuple) else [values]
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


def saved_dual(constraint: cp.Constraint, raw: Any) -> Array | None:
    """Return the dual value that a constraint would have from the answer of a solver; it is not changed."""
    copy = constraint.copy()
    if raw is not None:
        copy.save_dual_value(raw)
    return None if raw is None or copy.dual_value is None else flat_dual(copy.dual_value)


def dual_rows(problem: cp.Problem, form: Compiled) -> list[tuple[Index, Array] | None]:
    """Return (row, scale) of each constraint: its dual value is scale * z[row], for z of the form.

    cvxpy inverts two answers of a solver, z = (1, 1, ...) and z = (1, 2, ...). The dual value of the first is
    the scale, and the quotient of both is the row, -1 where that is unknown. None stands for constraints
    without a dual value.
    """
    m = form.data["b"].size
    found = list[list[Array | None]]()
    for z in (np.ones(m), np.arange(1.0, m + 1)):
        answer = SimpleNamespace(
            status="Solved",
            x=np.zeros(form.data["c"].size),
            z=z,
            s=z,
            obj_val=0.0,
            solve_time=0.0,
            iterations=0,
        )
        duals = form.chain.invert(answer, form.inverse).dual_vars
        found.append([saved_dual(c, duals.get(c.id)) for c in problem.constraints])
    rows = list[tuple[Index, Array] | None]()
    for scale, counted in zip(*found, strict=True):
        if scale is None or counted is None:
            rows.append(None)
            continue
        with np.errstate(all="ignore"):
            place = np.nan_to_num(counted / scale - 1, nan=-1.0, posinf=-1.0, neginf=-1.0)
        row = np.rint(place).astype(int)
        whole = (np.abs(place - row) <= ROW_ERROR) & (row < m)
        rows.append((np.where(whole, row, -1), scale))
    return rows


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
