"""What a solver answers, measured: nothing of it is believed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate, certify
from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.certificates.separability import check_separable
from kernelopt.conic.ladder import SolverAttempt, ladder, run_solver
from kernelopt.errors import ConditionWarning, InfeasibleError, KerneloptError
from kernelopt.methods.exact.programme import Programme
from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

Claim = Literal["value", "infeasible", "unbounded", "none"]
INFEASIBLE = (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE)
UNBOUNDED = (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE)
FINER: dict[str, dict[str, Any]] = {"SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000}}
FAILURES = (
    KerneloptError,
    ArithmeticError,
    ValueError,
    RuntimeError,
    IndexError,
)  # LinAlgError is a ValueError


@dataclass(frozen=True)
class Answer:
    """What a solver left in a conic problem, and the certificate of it.

    Attributes
    ----------
    status : str
        What the solver says.
    claim : "value", "infeasible", "unbounded" or "none"
        What that says of the learning problem: an unbounded dual programme says that it is infeasible.
    value : float
        The optimal value that it claims, nan where it claims none.
    attained : float
        The objective of the conic problem at its point, nan without a point.
    infeasibility : float
        The largest violation of a constraint at its point, relative to the size of its sides; nan without a
        point.
    violated : str
        The label of that constraint.
    complementarity : float
        The largest product of a multiplier with the slack of its constraint, relative to the value, or the
        distance of a multiplier from its cone; nan without multipliers.
    seconds : float
        Of compiling and solving.
    certificate : Certificate or None
        Of the learning problem at the solver's point and alpha; None where it failed.
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


class Form:
    """The conic problem that stands for a learning problem: a programme of its paper, or all of it in words.

    Parameters
    ----------
    problem : cp.Problem
        The learning problem.
    programme : Programme, optional
    """

    def __init__(self, problem: cp.Problem, programme: Programme | None = None) -> None:
        self.problem, self.programme = problem, programme
        self.expansion: Expansion | None = None
        if programme is None:
            self.expansion = expand(problem)
            self.conic = self.expansion.problem
        else:
            self.conic = programme.problem

    @property
    def is_dual(self) -> bool:
        """Whether the conic problem maximises where the learning problem minimises, or the reverse."""
        return type(self.conic.objective) is not type(self.problem.objective)

    def claim(self, status: str) -> Claim:
        """Return what a status says of the learning problem."""
        if status in INFEASIBLE or status in UNBOUNDED:
            return "infeasible" if (status in INFEASIBLE) != self.is_dual else "unbounded"
        return "none" if status in ("failed", cp.SOLVER_ERROR) else "value"

    def clear(self) -> None:
        """Forget all values and multipliers: nothing stale is taken for an answer."""
        for variable in (*self.conic.variables(), *self.problem.variables()):
            variable.save_value(None)
        for constraint in self.conic.constraints:
            for dual in constraint.dual_variables:
                dual.save_value(None)

    def proposed(self) -> tuple[dict[cp.Variable, Any] | None, list[Array] | None]:
        """Return the point of the learning problem and one alpha per risk, None where they are not finite."""
        if not finite([v.value for v in self.conic.variables()]):
            return None, None
        if self.programme is not None:
            point, alphas = self.programme.recover()
        else:
            written = [risk.alpha() for risk in self.expansion.risks] if self.expansion is not None else []
            alphas = [alpha for alpha in written if alpha is not None]
            alphas = alphas if len(alphas) == len(written) else []
            point = {v: v.value for v in Structure(self.problem).user_variables}
        usable = finite(point.values())
        return (dict(point) if usable else None), (list(alphas) if alphas and finite(alphas) else None)


def finite(values: Any) -> bool:
    """Whether all values are there, and finite."""
    return all(v is not None and np.isfinite(np.asarray(v, dtype=float)).all() for v in values)


def settings(solver: Any, seconds: float) -> SolverAttempt:
    """Return a solver with its own settings and a time limit; SCS, whose are coarse, with finer ones."""
    (attempt,) = ladder(linear=False, solver=solver, time_limit=seconds)
    return SolverAttempt(attempt.solver, {**FINER.get(attempt.name, {}), **attempt.options})


def ask(form: Form, solver: Any, seconds: float = 30.0) -> Answer:
    """Solve the conic problem by one solver, measure what it leaves, and certify that.

    Parameters
    ----------
    form : Form
    solver : str or cvxpy solver object
    seconds : float > 0, default 30.0
        Handed to the solver as its time limit, where it has one.
    """
    form.clear()
    clock = time.perf_counter()
    with np.errstate(all="ignore"):
        tried = run_solver(form.conic, settings(solver, seconds))
    spent = time.perf_counter() - clock
    status, value, failure = tried.status, np.nan, tried.failure
    if status != "failed" and form.conic.solution is not None:
        value = number(form.conic.solution.opt_val)
    if status == "failed":
        form.clear()  # what it left before it failed is no answer
    return measured_answer(form, status, form.claim(status), value, spent, failure)


def measured_answer(
    form: Form, status: str, claim: Claim, value: float, seconds: float, failure: str = ""
) -> Answer:
    """Return what stands in the conic problem, measured and certified, beside what the solver claims."""
    with np.errstate(all="ignore"):
        infeasibility, violated = measured(largest_violation, form.conic)
        attained, _ = measured(value_at_point, form.conic)
        complementarity, _ = measured(largest_product, form.conic)
        certificate, missing = certified(form)
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
        inseparable(form.problem),
        "; ".join(filter(None, [failure, missing])),
    )


def inseparable(problem: cp.Problem) -> bool:
    """Whether a risk of the problem is a hard margin that no kernel of its set can meet, with proof."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # that it can hardly be met is no proof
        try:
            for term in Structure(problem).risks:
                check_separable(term.learner)
        except InfeasibleError:
            return True
    return False


def certified(form: Form) -> tuple[Certificate | None, str]:
    """Return the certificate of what the solver left, by its own alpha alone, or why there is none."""
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


def number(value: Any) -> float:
    """Return a value as a float, nan where it is none."""
    try:
        return float(np.asarray(value, dtype=float).reshape(()))
    except (TypeError, ValueError):
        return np.nan


def measured(how: Callable[[cp.Problem], tuple[float, str]], problem: cp.Problem) -> tuple[float, str]:
    """Return a measurement of a problem at its values; nan where there are none."""
    if not finite([v.value for v in problem.variables()]):
        return np.nan, ""
    try:
        return how(problem)
    except FAILURES:
        return np.nan, ""


def value_at_point(problem: cp.Problem) -> tuple[float, str]:
    """Return the objective at the values of the variables."""
    return number(problem.objective.value), ""


def largest_violation(problem: cp.Problem) -> tuple[float, str]:
    """Return the largest violation relative to max(1, the largest entry of its sides), and whose it is.

    The signs of variables count as constraints.
    """
    worst, where = 0.0, ""
    for variable in problem.variables():
        value = np.asarray(variable.value, dtype=float)
        missed = (
            float(np.abs(variable.project(value) - value).max(initial=0.0)) if variable.attributes else 0.0
        )
        missed /= max(1.0, float(np.abs(value).max(initial=0.0)))
        if missed > worst:
            worst, where = missed, f"the domain of {variable.name()}"
    for constraint in problem.constraints:
        size = max((float(np.abs(arg.value).max(initial=0.0)) for arg in constraint.args), default=0.0)
        missed = float(np.max(constraint.violation(), initial=0.0)) / max(1.0, size)
        if not missed <= worst:  # nan is the worst
            worst, where = missed, str(constraint.label or constraint)
    return worst, where


def largest_product(problem: cp.Problem) -> tuple[float, str]:
    """Return how far the multipliers of inequalities and cones are from complementary, and whose that is.

    It is the larger of |<multiplier, slack>| relative to max(1, |value|) and of the distance of the
    multiplier from its dual cone relative to max(1, its size); inf for a multiplier that is not finite, nan
    without multipliers.
    """
    worst, where = 0.0, ""
    size = max(1.0, abs(number(problem.solution.opt_val)))
    for constraint in problem.constraints:
        if isinstance(constraint, cp.constraints.Zero | cp.constraints.Equality):
            continue
        duals = [dual.value for dual in constraint.dual_variables]
        if any(dual is None for dual in duals):
            return np.nan, ""
        if not finite(duals):
            return np.inf, str(constraint.label or constraint)
        slacks = [constraint.expr] if isinstance(constraint, cp.constraints.Inequality) else constraint.args
        pairs = zip(duals, slacks, strict=True)
        product = abs(sum(float(np.vdot(np.asarray(d), np.asarray(s.value))) for d, s in pairs)) / size
        missed = max(product, outside_dual_cone(constraint, [np.asarray(d, dtype=float) for d in duals]))
        if not missed <= worst:
            worst, where = missed, str(constraint.label or constraint)
    return worst, where


def outside_dual_cone(constraint: cp.Constraint, duals: list[Array]) -> float:
    """Return how far a multiplier is from its cone, relative to max(1, its size); 0 for other cones."""
    size = max(1.0, *(float(np.abs(dual).max(initial=0.0)) for dual in duals))
    if isinstance(constraint, cp.constraints.Inequality | cp.constraints.NonNeg):
        return max(0.0, -float(duals[0].min(initial=0.0))) / size
    if isinstance(constraint, cp.constraints.PSD):
        return max(0.0, -float(np.linalg.eigvalsh((duals[0] + duals[0].T) / 2)[0])) / size
    return 0.0
