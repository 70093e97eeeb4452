"""Options of the user that a conic solver refuses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import cvxpy as cp

from kernelopt.conic.ladder import SolverAttempt, run_solver
from kernelopt.errors import ParameterError

SILENT = {  # a solver that ignores options which it does not know, with the options that it knows
    "CVXOPT": ("abstol", "feastol", "kktsolver", "max_iters", "maxiters", "refinement", "reltol"),
}
REFUSALS = ("TypeError", "KeyError", "ValueError", "AttributeError")  # of solvers at an unknown option


def refused_option(failure: str, options: Collection[str]) -> str | None:
    """Return the option that the failure of a solver is about, None where it is about none.

    `failure` is as for an `AttemptResult`: the name of an exception, a colon and its message.
    """
    if not failure.startswith(REFUSALS):
        return None
    words = "".join(c if c.isalnum() or c == "_" else " " for c in failure).split()
    return next((option for option in options if option in words), None)


def check_taken(option: str, value: Any, attempts: Sequence[SolverAttempt]) -> None:
    """Raise unless one of the solvers takes an option.

    Each is given a linear programme of one variable. The problem itself is not tried.
    """
    solvers = {attempt.name: attempt.solver for attempt in attempts}
    refusals = [refusal(solver, name, option, value) for name, solver in solvers.items()]
    if all(refusals):
        raise ParameterError(
            f"solver_options must be options of the solver, got {option!r}: {value!r}, refused by "
            f"{'; '.join(refusals)}. Correct the option, or leave it out."
        )


def refusal(solver: Any, name: str, option: str, value: Any) -> str:
    """Return the name of a solver with its message against an option, empty where it takes the option."""
    if name in SILENT:
        return "" if option in SILENT[name] else name
    x = cp.Variable()
    failure = run_solver(cp.Problem(cp.Minimize(x), [x >= 1]), SolverAttempt(solver, {option: value})).failure
    return f"{name} ({failure.rstrip('. ')})" if refused_option(failure, [option]) else ""
