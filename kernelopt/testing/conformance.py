"""The conformance runs of `kernelopt certify`: every conic solver on every problem of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solvers.defines import INSTALLED_CONIC_SOLVERS

from kernelopt.conic.ladder import checked_solver, mosek_is_licensed
from kernelopt.testing.answers import solve_and_measure
from kernelopt.testing.conic_form import ConicForm
from kernelopt.testing.suite import Case
from kernelopt.testing.verdicts import TOLERANCE, assess, checked_against_truth, true_error

MIXED_INTEGER = ("GLPK_MI", "CBC", "SCIP", "XPRESS")  # in cvxpy's list of conic solvers


@dataclass(frozen=True)
class ConformanceRow:
    """The result of one solver on one problem of the suite.

    Attributes
    ----------
    solver, problem, status : str
        The names of both, and the status that the solver returns.
    truth, value : float
        The true optimal value, and the one that the solver claims.
    error : float
        |value - truth| relative to |truth|.
    gap : float
        The relative gap of the certificate of the solver's own point and multipliers.
    infeasibility, complementarity : float
        As in `Answer`.
    seconds : float
    verdict, why : str
        As in `Verdict`.
    """

    solver: str
    problem: str
    status: str
    truth: float
    value: float
    error: float
    gap: float
    infeasibility: float
    complementarity: float
    seconds: float
    verdict: str
    why: str


def conic_solvers(names: Sequence[str] | None = None) -> list[str]:
    """Return the conic solvers to run: the installed ones, MOSEK with a licence only, or the named ones.

    Raises
    ------
    ParameterError
        If a named solver is not installed.
    """
    if names:
        return list(dict.fromkeys(checked_solver(name, cp.installed_solvers()) for name in names))
    unusable = MIXED_INTEGER if mosek_is_licensed() else (*MIXED_INTEGER, "MOSEK")
    return [name for name in INSTALLED_CONIC_SOLVERS if name not in unusable]


def fits(form: ConicForm, solver: Any) -> bool:
    """Whether the solver has the cones of the problem."""
    try:
        form.conic.get_problem_data(solver)
    except cp.SolverError:
        return False
    return True


def run_case(case: Case, solver: Any, tol: float = TOLERANCE) -> ConformanceRow | None:
    """Return the row of one solver on one problem, None where the solver lacks the cones."""
    form, truth = case.make()
    name = solver if isinstance(solver, str) else str(solver.name())
    if not fits(form, solver):
        return None
    answer = solve_and_measure(form, solver)
    maximize = isinstance(form.problem.objective, cp.Maximize)
    verdict = checked_against_truth(assess(answer, maximize, tol), answer, truth, tol)
    gap = np.nan if answer.certificate is None else answer.certificate.gap
    return ConformanceRow(
        solver=name,
        problem=case.name,
        status=answer.status,
        truth=truth,
        value=answer.value,
        error=true_error(answer.value, truth),
        gap=gap,
        infeasibility=answer.infeasibility,
        complementarity=answer.complementarity,
        seconds=answer.seconds,
        verdict=verdict.word,
        why=verdict.why,
    )


def conformance(
    chosen: Iterable[Case], solvers: Sequence[Any], show: Callable[[str], None] | None = None
) -> Iterator[ConformanceRow]:
    """Yield a row for every problem and every solver that has its cones.

    Parameters
    ----------
    chosen : iterable of Case
        Such as `kernelopt.testing.cases()`.
    solvers : sequence of names or cvxpy solver objects
    show : function of str, optional
        Called with the names of the problem and the solver before each solve.
    """
    for case in chosen:
        for solver in solvers:
            if show is not None:
                show(f"{case.name}, {solver if isinstance(solver, str) else solver.name()}")
            row = run_case(case, solver)
            if row is not None:
                yield row


def report(rows: Sequence[ConformanceRow]) -> dict[str, Any]:
    """Return the rows as a document, with the versions of the packages."""
    packages = {name: version(name) for name in ("kernelopt", "cvxpy", "numpy")}
    return {"versions": packages, "tolerance": TOLERANCE, "rows": [asdict(row) for row in rows]}
