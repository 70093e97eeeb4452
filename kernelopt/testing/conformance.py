"""The conformance runs of `kernelopt certify`: a conic solver on a problem of the suite.

The verdict on an answer is made from certificates and residuals, and not from the solver's status.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solvers.defines import INSTALLED_CONIC_SOLVERS

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.certificate import BoundedProblem
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.compiled import compiled
from kernelopt.conic.ladder import SolverAttempt, checked_solver, ladder, mosek_is_licensed, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError
from kernelopt.structure.structure import Structure
from kernelopt.testing.findings import planted_between
from kernelopt.testing.residuals import (
    FAILURES,
    attained_value,
    complementarity_violation,
    finite,
    measured,
    number,
    primal_violation,
)
from kernelopt.testing.suite import Case, ConicForm

TOLERANCE = 1e-4  # relative: of values, gaps and residuals
SECONDS = 30.0  # of a solve
MIXED_INTEGER = ("GLPK_MI", "CBC", "SCIP", "XPRESS")  # in cvxpy's list of conic solvers
# The default accuracy of SCS is too coarse for gaps of 1e-4, the tolerance of a verdict.
FINER_OPTIONS: dict[str, dict[str, Any]] = {"SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000}}


@dataclass(frozen=True)
class ConformanceRow:
    """The result of one solver on one problem of the suite.

    Attributes
    ----------
    solver, problem, status : str
        The names of both, and the status that the solver returns.
    truth, value : float
        The true optimal value, and the value that the solver claims.
    error : float
        |value - truth| relative to |truth|.
    gap : float
        The relative gap of the certificate of the solver's own point and multipliers.
    infeasibility, complementarity : float
        The `primal_violation` and the `complementarity_violation` of the solver's point and multipliers.
    seconds : float
    verdict : str
        * "certified": the gap of the certificate is at most the tolerance, the claimed value lies between its
          bounds, and the point is feasible.
        * "proved infeasible": a Farkas ray shows it, or convex hulls of the two classes that meet.
        * "refuted": the certificate or a residual shows that the claim is wrong.
        * "not certified": the claim is neither certified nor refuted.
        * "failed": there is no claim.
        * "false bracket": the true value is not between the bounds of the certificate. This is a defect of
          kernelopt.
    why : str
        The reason; empty for "certified".
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


def run_case(name: str, case: Case, solver: Any, tol: float = TOLERANCE) -> ConformanceRow | None:
    """Return the row of one solver on one problem, None where the solver lacks the cones."""
    form, truth = case()
    conic, value = form.conic, np.nan
    try:
        compiled(conic, solver)
    except cp.SolverError:
        return None
    form.clear()
    (attempt,) = ladder(linear=False, solver=solver, time_limit=SECONDS)
    options = {**FINER_OPTIONS.get(attempt.name, {}), **attempt.options}
    clock = time.perf_counter()
    with np.errstate(all="ignore"):
        done = run_solver(conic, SolverAttempt(attempt.solver, options))
        seconds = time.perf_counter() - clock
        if done.status == "failed":
            form.clear()  # the values of a failed solve are no answer
        elif conic.solution is not None:
            value = number(conic.solution.opt_val)
        infeasibility, violated = measured(primal_violation, conic, (np.nan, ""))
        complementarity = measured(complementarity_violation, conic, np.nan)
        attained = measured(attained_value, conic, np.nan)
        certificate, missing = certificate_of(form)
    row = ConformanceRow(
        solver=attempt.name,
        problem=name,
        status=done.status,
        truth=truth,
        value=value,
        error=0.0 if value == truth else abs(value - float(truth)) / (abs(float(truth)) or 1.0),
        gap=np.nan if certificate is None else certificate.gap,
        infeasibility=infeasibility,
        complementarity=complementarity,
        seconds=seconds,
        verdict="failed",
        why="; ".join(filter(None, [done.failure, missing])),
    )
    if certificate is None:
        return row if form.claim(done.status) == "none" else replace(row, verdict="not certified")
    verdict, why = assess(row, form, certificate, attained, violated, tol)
    return replace(row, verdict=verdict, why=why)


def certificate_of(form: ConicForm) -> tuple[Certificate | None, str]:
    """Return the certificate of the solver's point, or the reason why there is none.

    If the solver has an alpha, the bounds are computed from this alpha, and no machine is trained.
    """
    problem = form.problem
    try:
        if form.expansion is not None:
            form.expansion.bring_back()
        point, alphas = form.proposed()
        if point is None:
            form.clear()
            return certify(problem), ""
        if isinstance(problem, BoundedProblem):
            labels = {c.label: c.dual_variables[0].value for c in form.conic.constraints}
            multipliers = {k: d if finite([d]) else None for k, d in labels.items()}
            return problem.bounds({v.id: value for v, value in point.items()}, multipliers), ""
        return certify(problem, point, alpha=alphas, retrain=alphas is None), ""
    except FAILURES as error:
        return None, f"no certificate: {type(error).__name__}: {error}"


def proved_inseparable(problem: cp.Problem) -> bool:
    """Whether a risk has a hard margin and labels that no kernel of its set separates, with proof."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # a bad condition is no proof
        try:
            for term in Structure(problem).risks:
                check_separable(term.learner)
        except InfeasibleError:
            return True
    return False


def assess(
    row: ConformanceRow, form: ConicForm, certificate: Certificate, attained: float, violated: str, tol: float
) -> tuple[str, str]:
    """Return the verdict on an answer, and the reason. The solver's status only says what is claimed.

    Parameters
    ----------
    row : ConformanceRow
        With everything but the verdict.
    form : ConicForm
    certificate : Certificate
        Of the learning problem, at the solver's point and alpha.
    attained : float
        The objective of the conic problem at the solver's point, nan without a point.
    violated : str
        The constraint of the largest violation.
    tol : float
    """
    lower, upper, claim, says = certificate.lower, certificate.upper, form.claim(row.status), row.status
    if not planted_between(lower, upper, row.truth):
        return "false bracket", f"[{lower:.9g}, {upper:.9g}] excludes the optimum {row.truth:.9g}"
    if claim == "none":
        return "failed", row.why
    best, bound = (lower, upper) if isinstance(form.problem.objective, cp.Maximize) else (upper, lower)
    if claim == "unbounded":
        if np.isfinite(bound):
            return "refuted", f"says {says}, and {bound:.6g} bounds the optimum"
        return "not certified", f"says {says}, which no bound contradicts"
    if claim == "infeasible" and certificate.feasible and np.isfinite(best):
        return "refuted", f"says {says}, and {best:.6g} is attained"
    proof = "a Farkas ray" if certificate.proof is not None else ""
    if proved_inseparable(form.problem):
        proof = "inseparable labels"
    if claim == "infeasible":
        return ("proved infeasible", proof) if proof else ("not certified", f"says {says}, without a proof")
    if proof:
        return "refuted", f"claims a value, and {proof} shows that there is no feasible point"
    return assess_value(row, certificate, attained, violated, tol)


def assess_value(
    row: ConformanceRow, certificate: Certificate, attained: float, violated: str, tol: float
) -> tuple[str, str]:
    """Return the verdict on a claimed value, by the bounds of the certificate and the residuals."""
    lower, upper, value = certificate.lower, certificate.upper, row.value
    slack = tol * (max((abs(end) for end in (lower, upper) if np.isfinite(end)), default=0.0) or 1.0)
    if not np.isfinite(value):
        return "refuted", f"says {row.status}, and its value is {value:g}"
    if value < lower - slack or value > upper + slack:
        return "refuted", f"claims {value:.6g}, outside of [{lower:.6g}, {upper:.6g}]"
    if np.isnan(row.infeasibility):
        return "refuted", "claims a value without a finite point"
    if row.infeasibility > tol:
        return "refuted", f"violates {violated!r} by {row.infeasibility:.1e}"
    if not certificate.gap <= tol:
        return "not certified", certificate.reason or f"the gap is {certificate.gap:.1e}"
    if np.isfinite(attained) and abs(attained - value) > slack:
        return "refuted", f"claims {value:.6g}, and its point has {attained:.6g}"
    if row.complementarity > tol:
        return "not certified", f"complementarity is missed by {row.complementarity:.1e}"
    if not row.error <= 2 * tol:
        return "false bracket", f"{value:.9g} was certified, the optimum is {row.truth:.9g}"
    return "certified", ""
