"""Values of duals at given points: the numbers behind `derive`, `kkt_table` and paths of dual variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.conic.ladder import ladder, run_solver
from kernelopt.duality.adjoints import value_of
from kernelopt.duality.check import set_value
from kernelopt.duality.equations import Swept
from kernelopt.duality.solving import USABLE
from kernelopt.duality.sweep import Term
from kernelopt.duality.symbols import dense
from kernelopt.errors import SolverError
from kernelopt.language.risk import Risk
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import number, replaced
from kernelopt.threads import quietly
from kernelopt.validation import Array


def solved(problem: cp.Problem) -> float:
    """Solve a small convex problem, and return its value.

    Raises
    ------
    SolverError
        If no solver has an answer.
    """
    if not problem.variables():
        return float(np.ravel(problem.objective.value)[0])
    semidefinite = (c for c in problem.constraints if isinstance(c, cp.constraints.PSD))
    order = max((c.args[0].shape[0] for c in semidefinite), default=0)
    statuses = []
    with quietly():
        for attempt in ladder(linear=problem.is_lp(), order=order):
            result = run_solver(problem, attempt)
            statuses.append(f"{attempt.name}: {result.failure or result.status}")
            if result.status in USABLE:
                return float(problem.solution.opt_val)
    raise SolverError(f"a check of the derivation must have an optimum, got {'; '.join(statuses)}.")


def alphas(swept: Swept) -> list[tuple[Term, cp.Variable]]:
    """Return the risks that the table knows, each with its alpha."""
    terms = [t for t in swept.lagrangian.terms if isinstance(t.atom, Risk)]
    return [(t, next(v for v in t.variables if v.name().startswith("alpha"))) for t in terms]


class AtAlpha:
    """The swept dual with alpha fixed: its problem, and the point of the multipliers of its equations.

    Constraints on the fixed variables alone are left out: they hold, or are measured elsewhere.
    """

    def __init__(self, swept: Swept, given: Sequence[tuple[Term, cp.Variable, Array]]) -> None:
        self.swept, self.given = swept, given
        memo: dict[int, Any] = {}
        for term, alpha, value in given:
            u = term.weight
            memo[id(alpha)] = cp.Constant(value) if u.is_constant() else cp.sum(u) * cp.Constant(value)
        whole = swept.problem
        copies = {id(c): c.copy([replaced(a, memo) for a in c.args]) for c in whole.constraints}
        self.copies = {key: c for key, c in copies.items() if c.variables()}
        value = replaced(whole.objective.args[0], memo)
        self.problem = cp.Problem(cp.Maximize(value), list(self.copies.values()))

    def solve(self) -> float:
        """Solve the problem, set the fixed variables too, and return the value."""
        value = solved(self.problem)
        for term, alpha, fixed in self.given:
            scale = 1.0 if term.weight.is_constant() else float(np.ravel(term.weight.value)[0])
            alpha.save_value(scale * fixed)
        for v in self.swept.problem.variables():
            if v.value is None:
                v.save_value(np.zeros(v.shape))
        return value

    def point(self) -> dict[int, Array]:
        """Return the values of the primal's variables by id."""
        found = {v.id: np.zeros(v.shape) for v in self.swept.unused}
        for equation in self.swept.equations:
            copy = self.copies.get(id(equation.constraint))
            value = None if copy is None else copy.dual_value
            shape = equation.variable.shape
            found[equation.variable.id] = np.zeros(shape) if value is None else equation.point(value)
        return found


def objective_at(structure: Structure, risks: Sequence[float] = ()) -> float:
    """Return the objective of the minimisation at the values of the structure's variables.

    `risks` holds the values of the risks; those that are missing are trained.
    """
    with np.errstate(all="ignore"):
        for k, term in enumerate(structure.risks):
            if k < len(risks):
                value = risks[k]
            else:
                kernels = term.values()
                value = np.inf if kernels is None else term.learner.train(kernels).value
            term.stand_in.save_value(np.asarray(value))
        return structure.sign * number(structure.lifted.objective.args[0])


def near_random(problem: cp.Problem, constraints: list[Any], rng: np.random.Generator) -> None:
    """Set the variables of a problem to a random feasible point: half way to one near to random values.

    The variables must hold a feasible point. The other point is the projection of random values, of the
    size of the first one's, on the constraints; all points between the two are feasible.
    """
    variables = problem.variables()
    now = {v.id: dense(v.value) for v in variables}
    size = max((float(np.abs(value).max(initial=0.0)) for value in now.values()), default=0.0) or 1.0
    targets = [rng.normal(scale=size, size=v.shape) for v in variables]
    distance = cp.sum([cp.sum_squares(v - r) for v, r in zip(variables, targets, strict=True)])
    solved(cp.Problem(cp.Minimize(distance / size**2), constraints))
    for v in variables:
        set_value(v, (now[v.id] + dense(v.value)) / 2)


def risk_residual(term: Term, alpha: Array) -> float:
    """Return how far the minimum of loss(z) + alpha'z over z is from l(alpha), which the loss states."""
    learner = term.atom.learner
    u = 1.0 if term.weight.is_constant() else float(np.ravel(term.weight.value)[0])
    alpha = learner.loss.project(alpha / u, learner.y, learner.bias is not None)
    z = cp.Variable(learner.n)
    least = solved(cp.Problem(cp.Minimize(learner.loss.expression(z, learner.y) + alpha @ z)))
    value = learner.loss.dual_value(alpha, learner.y)
    return float(abs(least - value) / max(1.0, abs(value)))


def value_at(e: Any) -> float:
    """Return the present value of a scalar expression."""
    known = value_of(e) if isinstance(e, cp.Expression | int | float) else None
    return float(np.ravel(e.value if known is None else known)[0])


def pairing_at(y: cp.Expression, a: cp.Expression) -> float:
    """Return the present value of <y, a>."""
    if a.value is None:
        raise SolverError("a check must know all variables, got none for those inside of a risk.")
    return float(np.vdot(dense(y.value), dense(a.value)))


def residual(term: Term) -> float:
    """Return u g(a) + cost - <y, a> at the present values: never negative, and zero at a subgradient."""
    with np.errstate(all="ignore"):
        value = float(np.nansum(dense(term.weight.value) * term.sign * dense(term.atom.value)))
        cost = value_at(term.cost) if isinstance(term.cost, cp.Expression) else 0.0
    return value + cost - sum(pairing_at(y, a) for y, a in term.pairs)
