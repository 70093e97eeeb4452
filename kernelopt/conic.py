"""The ladder of conic solvers: which are usable, with which options, and one attempt at a problem."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cvxpy as cp

from kernelopt.errors import KerneloptError, ParameterError

LARGEST_INTERIOR_POINT_ORDER = 70


@dataclass(frozen=True)
class Rung:
    """One way to solve a conic problem."""

    solver: Any  # the name of a solver, or a cvxpy solver object
    options: dict[str, Any] = field(default_factory=dict)
    route: Callable[[], int] | None = None  # instead of cvxpy: fills the problem, returns the iterations

    @property
    def name(self) -> str:
        """The name of the solver."""
        return self.solver if isinstance(self.solver, str) else str(self.solver.name())


@dataclass(frozen=True)
class Attempt:
    """What a rung returned; the values are in the variables of the problem."""

    rung: Rung
    status: str
    iterations: int | None = None
    failure: str = ""


@cache
def mosek_is_licensed() -> bool:
    """Whether MOSEK is installed and a licence can be checked out."""
    if "MOSEK" not in cp.installed_solvers():
        return False
    import mosek

    try:
        with mosek.Env() as environment:
            environment.checkoutlicense(mosek.feature.pts)
    except mosek.Error:
        return False
    return True


def ladder(*, linear: bool, order: int, solver: Any = None, time_limit: float | None = None) -> list[Rung]:
    """Return the rungs to walk, best first.

    Parameters
    ----------
    linear : bool
        Whether the problem is a linear programme.
    order : int
        Largest order of a semidefinite cone, 0 if there is none.
    solver : str or cvxpy solver object, optional
        Use this one only.
    time_limit : float, optional
        Seconds for one rung.
    """
    installed = cp.installed_solvers()
    if solver is not None:
        if isinstance(solver, str) and solver.upper() not in installed:
            raise ParameterError(
                f"solver must be installed, got {solver!r}; installed are {', '.join(sorted(installed))}. "
                f"Install it (pip install {solver.lower()}) or leave solver out."
            )
        name = solver.upper() if isinstance(solver, str) else solver
        return [Rung(name, timed(name, time_limit))]
    interior = [
        Rung("CLARABEL"),
        Rung("CLARABEL", {"use_quad_obj": False}),
        Rung("CLARABEL", {"use_quad_obj": False, "tol_gap_rel": 1e-10, "tol_gap_abs": 1e-10}),
    ]
    first_order = [
        Rung("SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000}),
        Rung("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100000}),
    ]
    rungs = [*interior, *first_order] if order <= LARGEST_INTERIOR_POINT_ORDER else first_order
    if linear and "HIGHS" in installed:
        rungs.insert(0, Rung("HIGHS"))
    if "CVXOPT" in installed and order <= 3 * LARGEST_INTERIOR_POINT_ORDER:
        rungs.append(Rung("CVXOPT", {"abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9}))
    if mosek_is_licensed():
        rungs.insert(0, Rung("MOSEK"))
    return [Rung(r.solver, {**r.options, **timed(r.solver, time_limit)}) for r in rungs]


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


def attempt(problem: cp.Problem, rung: Rung, verbose: bool = False) -> Attempt:
    """Solve a problem with one rung. Failures are reported, not raised; convexity errors are cvxpy's."""
    if rung.route is not None:
        try:
            return Attempt(rung, cp.OPTIMAL, rung.route())
        except KerneloptError as error:
            return Attempt(rung, "failed", failure=str(error))
    with warnings.catch_warnings():
        # The certificate judges: cvxpy's remarks on accuracy would only be noise.
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=rung.solver, verbose=verbose, warm_start=False, **rung.options)
        except (KerneloptError, cp.DCPError):
            raise
        except Exception as error:  # solvers raise what they like, mosek.Error and KeyError among them
            return Attempt(rung, "failed", failure=f"{type(error).__name__}: {error}")
    statistics = problem.solver_stats
    return Attempt(rung, str(problem.status), getattr(statistics, "num_iters", None))
