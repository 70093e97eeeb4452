"""The conformance runs of `kernelopt certify`: every conic solver on every problem of the suite.

The verdict on an answer is made from certificates and residuals, and not from the solver's status.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solvers.defines import INSTALLED_CONIC_SOLVERS

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.compiled import compiled
from kernelopt.conic.ladder import SolverAttempt, checked_solver, ladder, mosek_is_licensed, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError
from kernelopt.structure.structure import Structure
from kernelopt.testing.conic_form import Claim, ConicForm
from kernelopt.testing.residuals import (
    FAILURES,
    complementarity_violation,
    finite,
    measured,
    number,
    primal_violation,
)
from kernelopt.testing.suite import Case

Word = Literal["certified", "proved infeasible", "refuted", "not certified", "failed", "false bracket"]
TOLERANCE = 1e-4  # relative: of values, gaps and residuals
PLANTED_ROUNDING = 1e-9  # relative: a planted value differs so much from that of its rounded data, at most
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
        The true optimal value, and the one that the solver claims.
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


@dataclass(frozen=True)
class Answer:
    """What a solver claims of a conic problem, its residuals, and the certificate of its point.

    Attributes
    ----------
    status : str
    claim : "value", "infeasible", "unbounded" or "none"
        What the status says of the learning problem, see `ConicForm.claim`.
    value : float
        The optimal value that the solver claims, nan where it claims none.
    attained : float
        The objective of the conic problem at the solver's point, nan without a point.
    infeasibility, violated : float and str
        The `primal_violation` of the point, nan without a point, and its constraint.
    complementarity : float
        The `complementarity_violation`, nan without multipliers.
    certificate : Certificate or None
        Of the learning problem, at the solver's point and alpha.
    failure : str
        Why there is no answer, or no certificate.
    """

    status: str
    claim: Claim
    value: float
    attained: float
    infeasibility: float
    violated: str
    complementarity: float
    certificate: Certificate | None
    failure: str


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


def run_case(case: Case, solver: Any, tol: float = TOLERANCE) -> ConformanceRow | None:
    """Return the row of one solver on one problem, None where the solver lacks the cones."""
    form, truth = case.make()
    try:
        compiled(form.conic, solver)
    except cp.SolverError:
        return None
    form.clear()
    (attempt,) = ladder(linear=False, solver=solver, time_limit=SECONDS)
    options = {**FINER_OPTIONS.get(attempt.name, {}), **attempt.options}
    clock = time.perf_counter()
    with np.errstate(all="ignore"):
        done = run_solver(form.conic, SolverAttempt(attempt.solver, options))
        seconds, value = time.perf_counter() - clock, np.nan
        if done.status == "failed":
            form.clear()  # the values of a failed solve are no answer
        elif form.conic.solution is not None:
            value = number(form.conic.solution.opt_val)
        infeasibility, violated = measured(primal_violation, form.conic)
        complementarity, _ = measured(complementarity_violation, form.conic)
        attained, _ = measured(lambda problem: (number(problem.objective.value), ""), form.conic)
        certificate, missing = certificate_of(form)
    failure = "; ".join(filter(None, [done.failure, missing]))
    claim, residuals = form.claim(done.status), (attained, infeasibility, violated, complementarity)
    answer = Answer(done.status, claim, value, *residuals, certificate, failure)
    verdict, why = against_truth(assess(answer, form.problem, tol), answer, truth, tol)
    return ConformanceRow(
        solver=attempt.name,
        problem=case.name,
        status=done.status,
        truth=truth,
        value=value,
        error=true_error(value, truth),
        gap=np.nan if certificate is None else certificate.gap,
        infeasibility=infeasibility,
        complementarity=complementarity,
        seconds=seconds,
        verdict=verdict,
        why=why,
    )


def certificate_of(form: ConicForm) -> tuple[Certificate | None, str]:
    """Return the certificate of the solver's point, or the reason why there is none.

    If the solver has an alpha, the bounds are those of this alpha, and no machine is trained.
    """
    problem = form.problem
    try:
        if form.expansion is not None:
            form.expansion.bring_back()
        point, alphas = form.proposed()
        if isinstance(problem, BoundedProblem) and point is not None:
            labels = {c.label: c.dual_variables[0].value for c in form.conic.constraints}
            multipliers = {k: d if d is not None and finite([d]) else None for k, d in labels.items()}
            return problem.bounds({v.id: value for v, value in point.items()}, multipliers), ""
        if point is None:
            form.clear()
            return certify(problem), ""
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


def assess(answer: Answer, problem: cp.Problem, tol: float) -> tuple[Word, str]:
    """Return the verdict on an answer, and the reason. The solver's status only says what is claimed."""
    certificate, said = answer.certificate, f"says {answer.status}"
    if answer.claim == "none":
        return "failed", answer.failure
    if certificate is None:
        return "not certified", answer.failure
    attained, bound = certificate.upper, certificate.lower
    if isinstance(problem.objective, cp.Maximize):
        attained, bound = bound, attained
    if answer.claim == "unbounded":
        if np.isfinite(bound):
            return "refuted", f"{said}, and {bound:.6g} bounds the optimum"
        return "not certified", f"{said}, which no bound contradicts"
    if answer.claim == "infeasible" and certificate.feasible and np.isfinite(attained):
        return "refuted", f"{said}, and {attained:.6g} is attained"
    proof = "a Farkas ray" if certificate.proof is not None else ""
    if proved_inseparable(problem):
        proof = "inseparable labels"
    if answer.claim == "infeasible":
        return ("proved infeasible", proof) if proof else ("not certified", f"{said}, without a proof")
    if proof:
        return "refuted", f"claims a value, and {proof} shows that there is no feasible point"
    return assess_value(answer, certificate, tol)


def assess_value(answer: Answer, certificate: Certificate, tol: float) -> tuple[Word, str]:
    """Return the verdict on a claimed value, by the bounds of the certificate and the residuals."""
    lower, upper, value = certificate.lower, certificate.upper, answer.value
    slack = tol * (max((abs(end) for end in (lower, upper) if np.isfinite(end)), default=0.0) or 1.0)
    if not np.isfinite(value):
        return "refuted", f"says {answer.status}, and its value is {value:g}"
    if value < lower - slack or value > upper + slack:
        return "refuted", f"claims {value:.6g}, outside of [{lower:.6g}, {upper:.6g}]"
    if np.isnan(answer.infeasibility):
        return "refuted", "claims a value without a finite point"
    if answer.infeasibility > tol:
        return "refuted", f"violates {answer.violated!r} by {answer.infeasibility:.1e}"
    if not certificate.gap <= tol:
        return "not certified", certificate.reason or f"the gap is {certificate.gap:.1e}"
    if np.isfinite(answer.attained) and abs(answer.attained - value) > slack:
        return "refuted", f"claims {value:.6g}, and its point has {answer.attained:.6g}"
    if answer.complementarity > tol:
        return "not certified", f"complementarity is missed by {answer.complementarity:.1e}"
    return "certified", ""


def against_truth(verdict: tuple[Word, str], answer: Answer, truth: float, tol: float) -> tuple[Word, str]:
    """Return the verdict, or "false bracket" where the true value shows that the certificate is wrong.

    The truth is inf for an infeasible minimisation, -inf for an unbounded one.
    """
    certificate = answer.certificate
    if certificate is None:
        return verdict
    slack = PLANTED_ROUNDING * (abs(truth) or 1.0) if np.isfinite(truth) else 0.0
    if certificate.lower > truth + slack or certificate.upper < truth - slack:
        bounds = f"[{certificate.lower:.9g}, {certificate.upper:.9g}]"
        return "false bracket", f"{bounds} excludes the optimum {truth:.9g}"
    if verdict[0] == "certified" and not true_error(answer.value, truth) <= 2 * tol:
        return "false bracket", f"{answer.value:.9g} was certified, the optimum is {truth:.9g}"
    return verdict


def true_error(value: float, truth: float) -> float:
    """Return |value - truth| / |truth|, or |value - truth| where the truth is zero.

    For an infinite truth it is 0 if the value is equal to it, and nan otherwise.
    """
    if not np.isfinite(truth):
        return 0.0 if value == truth else np.nan
    return abs(value - truth) / (abs(truth) or 1.0)


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
