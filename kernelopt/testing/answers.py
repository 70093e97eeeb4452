"""The answer of a solver to a conic problem, with its residuals and its certificate."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.ladder import SolverAttempt, ladder, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError
from kernelopt.structure.structure import Structure
from kernelopt.testing.conic_form import Claim, ConicForm
from kernelopt.testing.residuals import (
    FAILURES,
    complementarity_violation,
    finite,
    number,
    primal_violation,
    residual,
    value_at_point,
)

# The default accuracy of SCS is too coarse for gaps of 1e-4, the tolerance of a verdict.
FINER_OPTIONS: dict[str, dict[str, Any]] = {"SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000}}


@dataclass(frozen=True)
class Answer:
    """What a solver claims of a conic problem, its residuals, and the certificate of its point.

    Attributes
    ----------
    status : str
        The status that the solver returns.
    claim : "value", "infeasible", "unbounded" or "none"
        What the status says of the learning problem, see `ConicForm.claim`.
    value : float
        The optimal value that the solver claims, nan where it claims none.
    attained : float
        The objective of the conic problem at the solver's point, nan without a point.
    infeasibility : float
        The `primal_violation` of the point, nan without a point.
    violated : str
        The label of the constraint that is violated most.
    complementarity : float
        The `complementarity_violation` of the point and the multipliers, nan without multipliers.
    seconds : float
        The time for compiling and solving.
    certificate : Certificate or None
        The certificate of the learning problem at the solver's point and alpha, None where there is none.
    inseparable : bool
        Whether the labels are proved to be inseparable for a hard margin.
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
    seconds: float
    certificate: Certificate | None = field(repr=False)
    inseparable: bool = False
    failure: str = ""


def attempt_by(solver: Any, seconds: float) -> SolverAttempt:
    """Return a solver with its default options, but for those of `FINER_OPTIONS`, and a time limit."""
    (attempt,) = ladder(linear=False, solver=solver, time_limit=seconds)
    return SolverAttempt(attempt.solver, {**FINER_OPTIONS.get(attempt.name, {}), **attempt.options})


def solve_and_measure(form: ConicForm, solver: Any, seconds: float = 30.0) -> Answer:
    """Solve the conic problem by one solver, compute the residuals of its answer, and certify it.

    Parameters
    ----------
    form : ConicForm
    solver : str or cvxpy solver object
    seconds : float > 0, default 30.0
        The time limit of the solver, where it has such an option.
    """
    form.clear()
    clock = time.perf_counter()
    with np.errstate(all="ignore"):
        attempt = run_solver(form.conic, attempt_by(solver, seconds))
    elapsed = time.perf_counter() - clock
    status, value, failure = attempt.status, np.nan, attempt.failure
    if status != "failed" and form.conic.solution is not None:
        value = number(form.conic.solution.opt_val)
    if status == "failed":
        form.clear()  # the values of a failed solve are no answer
    return measured_answer(form, status, form.claim(status), value, elapsed, failure)


def measured_answer(
    form: ConicForm, status: str, claim: Claim, value: float, seconds: float, failure: str = ""
) -> Answer:
    """Return the claim with the residuals and the certificate of the values in the conic problem."""
    with np.errstate(all="ignore"):
        infeasibility, violated = residual(primal_violation, form.conic)
        attained, _ = residual(value_at_point, form.conic)
        complementarity, _ = residual(complementarity_violation, form.conic)
        certificate, missing = certificate_of(form)
    return Answer(
        status,
        claim,
        value,
        attained,
        infeasibility,
        violated,
        complementarity,
        seconds,
        certificate,
        proved_inseparable(form.problem),
        "; ".join(filter(None, [failure, missing])),
    )


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
