"""The ladder of conic solvers: the attempts at a problem in order, and options that a solver refuses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.metadata import metadata
from typing import Any

import cvxpy as cp
from cvxpy.reductions.solvers.solver import Solver

from kernelopt.conic.compiled import solve_compiled
from kernelopt.conic.costs import MAX_FIRST_ORDER_ITERATIONS, Cones
from kernelopt.errors import KerneloptError, ParameterError, Stopped

LARGEST_INTERIOR_POINT_ORDER = 70  # without `cones`: Clarabel is predicted to take 16 s at this order
LARGEST_CVXOPT_ORDER = 3 * LARGEST_INTERIOR_POINT_ORDER  # the last resort may take longer
QUICK_TOLERANCE = 1e-7  # of SCS: certificates correct its multipliers, and the default gap is 1e-5
QUICK_ITERATIONS = 20_000  # the most that SCS took to that tolerance in the problems of `conic.costs`
ACCURATE_TOLERANCE = 1e-9  # near the accuracy of an interior-point method
TIGHT_TOLERANCE = 1e-11  # of Clarabel, where its default of 1e-8 left too large a gap
TOLERANCES = ("tol_gap_rel", "tol_gap_abs", "tol_feas")  # Clarabel's, 1e-8 by default
KNOWN = tuple(cp.settings.SOLVERS)
"""The names of all solvers that cvxpy has an interface for."""


@dataclass(frozen=True)
class SolverAttempt:
    """One way to solve a conic problem."""

    solver: Any  # the name of a solver, or a cvxpy solver object
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the solver."""
        return self.solver if isinstance(self.solver, str) else str(self.solver.name())


@dataclass(frozen=True)
class AttemptResult:
    """How an attempt ended; its point is in the variables of the problem."""

    attempt: SolverAttempt
    status: str
    iterations: int | None = None
    failure: str = ""


@cache
def installed_solvers() -> tuple[str, ...]:
    """Return the names of the solvers that cvxpy can import.

    `cvxpy.installed_solvers` tries to import all of them at every call, which takes 1 to 2 ms. Its own
    solves use the list made when cvxpy was imported, so the first answer stays valid.
    """
    return tuple(cp.installed_solvers())


@cache
def mosek_is_licensed() -> bool:
    """Whether MOSEK is installed and a licence can be checked out."""
    if "MOSEK" not in installed_solvers():
        return False
    import mosek

    try:
        with mosek.Env() as environment:
            environment.checkoutlicense(mosek.feature.pts)
    except mosek.Error:
        return False
    return True


def ladder(
    *,
    linear: bool,
    order: int = 0,
    cones: Cones | None = None,
    solver: Any = None,
    time_limit: float | None = None,
) -> list[SolverAttempt]:
    """Return the attempts at a problem, in the order in which they should be made.

    Parameters
    ----------
    linear : bool
        Whether the problem is a linear programme.
    order : int, default 0
        Largest order of a semidefinite cone; it is used where `cones` is not given.
    cones : Cones, optional
        The sizes of the cone form, such as `size(problem).cones`. Interior-point methods come first
        unless they are predicted to take more than a minute and ten times as long as a first-order
        method. They are left out where they are predicted to exceed an hour or 16 GB.
    solver : str or cvxpy solver object, optional
        Use this one only.
    time_limit : float, optional
        Seconds for one attempt.
    """
    installed = installed_solvers()
    if solver is not None:
        chosen = checked_solver(solver, installed)
        return [SolverAttempt(chosen, timed(chosen, time_limit))]
    interior = [
        SolverAttempt("CLARABEL"),
        SolverAttempt("CLARABEL", {"use_quad_obj": False}),
        SolverAttempt("CLARABEL", {"use_quad_obj": False, **dict.fromkeys(TOLERANCES, TIGHT_TOLERANCE)}),
    ]
    first_order = [
        SolverAttempt("SCS", scs_options(QUICK_TOLERANCE, QUICK_ITERATIONS)),
        SolverAttempt("SCS", scs_options(ACCURATE_TOLERANCE, MAX_FIRST_ORDER_ITERATIONS)),
    ]
    attempts = ordered(interior, first_order, order, cones)
    order = order if cones is None else cones.order
    if linear and "HIGHS" in installed:
        attempts.insert(0, SolverAttempt("HIGHS"))
    if "CVXOPT" in installed and order <= LARGEST_CVXOPT_ORDER:
        tolerances = dict.fromkeys(("abstol", "reltol", "feastol"), ACCURATE_TOLERANCE)
        attempts.append(SolverAttempt("CVXOPT", tolerances))
    if mosek_is_licensed():
        attempts.insert(0, SolverAttempt("MOSEK"))
    return [SolverAttempt(a.solver, {**a.options, **timed(a.solver, time_limit)}) for a in attempts]


def scs_options(tolerance: float, max_iterations: int) -> dict[str, Any]:
    """Return the options of SCS for an absolute and relative tolerance."""
    return {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": max_iterations}


def ordered(
    interior: list[SolverAttempt], first_order: list[SolverAttempt], order: int, cones: Cones | None
) -> list[SolverAttempt]:
    """Return the attempts of both kinds of method in the order of their predicted costs."""
    if cones is None:
        return [*interior, *first_order] if order <= LARGEST_INTERIOR_POINT_ORDER else first_order
    if cones.intractable:
        return first_order
    if not cones.first_order_first:
        return [*interior, *first_order]
    short, long = first_order
    if cones.longest_first_order_seconds < cones.interior_seconds:
        return [short, long, *interior]
    return [short, *interior, long]


def checked_solver(solver: Any, installed: Collection[str]) -> Any:
    """Return the name of an installed solver in capitals, or a solver object as it is."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str):
        raise ParameterError(
            f"solver must be the name of a solver or a cvxpy solver object, got {solver!r} "
            f"({type(solver).__name__}). Pass a name, one of {', '.join(sorted(installed))}."
        )
    name = solver.strip().upper()
    if name in installed:
        return name
    message = f"solver must be installed, got {solver!r}; installed are {', '.join(sorted(installed))}. "
    if name in KNOWN:
        how = f'pip install "cvxpy[{name}]"' if name.lower() in extras() else "cvxpy's manual says how"
        raise ParameterError(message + f"Install it ({how}) or leave solver out.")
    close = get_close_matches(name, [*installed, *KNOWN], n=1)
    meant = f"Did you mean {close[0]}? Correct it" if close else "Pass one of these"
    raise ParameterError(message + f"{meant}, or leave solver out.")


def extras() -> set[str]:
    """Return the extras of `pip install "cvxpy[...]"`, in lower case."""
    return {name.lower() for name in metadata("cvxpy").get_all("Provides-Extra") or []}


def timed(solver: Any, seconds: float | None) -> dict[str, Any]:
    """Return the option that limits the time of a solver, where it has one."""
    if seconds is None:
        return {}
    options: dict[str, dict[str, Any]] = {
        "CLARABEL": {"time_limit": float(seconds)},
        "SCS": {"time_limit_secs": float(seconds)},
        "HIGHS": {"time_limit": float(seconds)},
        "MOSEK": {"mosek_params": {"MSK_DPAR_OPTIMIZER_MAX_TIME": float(seconds)}},
    }
    return options.get(solver, {}) if isinstance(solver, str) else {}


def run_solver(problem: cp.Problem, attempt: SolverAttempt, verbose: bool = False) -> AttemptResult:
    """Solve a problem with one attempt. Failures are reported, not raised; convexity errors are cvxpy's.

    Parameters
    ----------
    problem : cp.Problem
        Afterwards its variables hold the point of the solver; `solver_stats` and `compilation_time` belong
        to this attempt.
    attempt : SolverAttempt
    verbose : bool, default False
        Print what cvxpy and the solver print.

    Raises
    ------
    Stopped
        At the deadline of the running call. The solver is abandoned at once, as on Ctrl-C, and the variables
        keep their values.
    """
    try:
        solve_compiled(problem, attempt.solver, attempt.options, verbose)
    except (KerneloptError, Stopped, cp.DCPError):
        raise
    except Exception as error:  # solvers raise exceptions of any class, such as mosek.Error and KeyError
        return AttemptResult(attempt, "failed", failure=f"{type(error).__name__}: {error}")
    statistics = problem.solver_stats
    return AttemptResult(attempt, str(problem.status), getattr(statistics, "num_iters", None))


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
