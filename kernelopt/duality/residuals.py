"""Values of terms, constraints and multipliers at given points, for `check`, `derive` and `kkt_table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.cones import slacks
from kernelopt.duality.equations import Swept
from kernelopt.duality.lagrangian import Multiplier, Term
from kernelopt.duality.solving import solved
from kernelopt.duality.symbols import dense
from kernelopt.errors import SolverError
from kernelopt.language.risk import Risk
from kernelopt.structure.residuals import violation
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import copied_problem, number
from kernelopt.validation import Array


def set_value(variable: cp.Variable, value: Any) -> None:
    """Set the value of a variable; cvxpy wants a sparse one as its entries."""
    if variable.attributes["sparsity"]:
        rows, columns = variable.sparse_idx
        variable.value_sparse = sp.coo_array((dense(value)[rows, columns], (rows, columns)), variable.shape)
    else:
        variable.save_value(dense(value))


def set_point(structure: Structure, point: Mapping[int, Any], risks: Sequence[float] = ()) -> None:
    """Set the structure's variables to a point by their ids, and the stand-ins of the risks to their values.

    `risks` holds the values of the risks; those that are missing are trained.
    """
    for variable in structure.variables:
        set_value(variable, point[variable.id])
    for k, term in enumerate(structure.risks):
        kernels = term.values() if k >= len(risks) else None
        trained = np.inf if kernels is None else term.learner.train(kernels).value
        term.stand_in.save_value(np.asarray(risks[k] if k < len(risks) else trained))


def objective_at(structure: Structure, point: Mapping[int, Any], risks: Sequence[float] = ()) -> float:
    """Return the objective of the minimisation at a point, which is set as in `set_point`."""
    with np.errstate(all="ignore"):
        set_point(structure, point, risks)
        return structure.sign * number(structure.lifted.objective.args[0])


def alphas(swept: Swept) -> list[tuple[Term, cp.Variable]]:
    """Return the risks that the table knows, each with its alpha."""
    terms = [t for t in swept.lagrangian.terms if isinstance(t.atom, Risk)]
    return [(t, next(v for v in t.variables if v.name().startswith("alpha"))) for t in terms]


def solved_at(swept: Swept, fixed: Sequence[tuple[Term, cp.Variable, Any]]) -> float:
    """Solve the swept dual with given alphas, set all its variables and multipliers, and return the value.

    Constraints on the given variables alone are left out: they hold, or are measured elsewhere.
    """
    whole = swept.problem
    given = {id(alpha): term.unit * cp.Constant(value) for term, alpha, value in fixed}
    copied = copied_problem(whole, dict(given))
    value = solved(cp.Problem(copied.objective, [c for c in copied.constraints if c.variables()]))
    for constraint, copy in zip(whole.constraints, copied.constraints, strict=True):
        for own, found in zip(constraint.dual_variables, copy.dual_variables, strict=True):
            own.save_value(found.value)
    for v in whole.variables():
        if id(v) in given:
            v.save_value(given[id(v)].value)
        elif v.value is None:
            v.save_value(np.zeros(v.shape))
    return value


def present(e: cp.Expression) -> Array:
    """Return the present value of an expression as a dense array.

    Raises
    ------
    SolverError
        If it has a variable without a value.
    """
    if e.value is None:
        raise SolverError("a check must know all variables, got none for those inside of a risk.")
    return dense(e.value)


@np.errstate(all="ignore")
def weighed(term: Term) -> float:
    """Return u g(a) at the present values, zero where u is."""
    return float(np.nansum(dense(term.weight.value) * term.sign * dense(term.atom.value)))


@np.errstate(all="ignore")
def residual(term: Term) -> float:
    """Return u g(a) + cost - <y, a> at the present values: never negative, and zero at a subgradient."""
    return weighed(term) - number(present(term.bound))


def near_random(
    variables: Sequence[cp.Variable], constraints: list[Constraint], rng: np.random.Generator
) -> None:
    """Set variables, which hold a feasible point, to a random one: half way to one near to random values.

    The other point is the projection of random values, of the size of the first one's, on the constraints;
    all points between the two are feasible.
    """
    now = [dense(v.value) for v in variables]
    size = max(map(largest, now), default=0.0) or 1.0
    distances = [cp.sum_squares(v - rng.normal(scale=size, size=v.shape)) for v in variables]
    if distances:
        solved(cp.Problem(cp.Minimize(cp.sum(distances) / size**2), constraints))
    for v, value in zip(variables, now, strict=True):
        set_value(v, (value + dense(v.value)) / 2)


def risk_residual(term: Term, alpha: Array) -> float:
    """Return how far the minimum of loss(z) + alpha'z over z is from l(alpha), which the loss states."""
    learner = term.atom.learner
    alpha = learner.loss.project(alpha / term.unit.value, learner.y, learner.bias is not None)
    z = cp.Variable(learner.n)
    least = solved(cp.Problem(cp.Minimize(learner.loss.expression(z, learner.y) + alpha @ z)))
    value = learner.loss.dual_value(alpha, learner.y)
    return float(abs(least - value) / max(1.0, abs(value)))


def maximum_of(term: Term) -> float:
    """Return the maximum over the variables of a term of <y, a> - cost, at the values of its arguments."""
    given = [*term.weight.variables(), *(a for _, a in term.pairs)]
    fixed = {id(e): cp.Constant(present(e)) for e in given}
    problem = copied_problem(cp.Problem(cp.Maximize(term.bound), term.domain), fixed)
    return value_apart(cp.Problem(problem.objective, [c for c in problem.constraints if c.variables()]))


def value_apart(problem: cp.Problem) -> float:
    """Return the optimum of a problem, and leave its variables the values that they have."""
    old = [(v, v.value) for v in problem.variables()]
    try:
        return solved(problem)
    finally:
        for v, value in old:
            v.save_value(value)


def product(constraint: Any, multiplier: Multiplier) -> float:
    """Return <multiplier, slack> of a constraint, nan where it has variables without values."""
    pairs = zip(slacks(constraint), multiplier.values(), strict=False)
    return float(sum(np.sum(dense(e.value) * v) for e, v in pairs))


def largest(value: Any) -> float:
    """Return the largest absolute entry, zero of no entries."""
    return float(np.max(np.abs(dense(value)), initial=0.0))


def largest_violation(constraints: Sequence[Constraint]) -> float:
    """Return the largest violation of some constraints, zero where there are none."""
    return max((largest(violation(c)) for c in constraints), default=0.0)


def magnitude(node: Any) -> float:
    """Return the largest entry of an expression; of a sum or a constraint the largest of its parts."""
    if isinstance(node, AddExpression | NegExpression | Sum | Promote | Constraint):
        return max((magnitude(arg) for arg in node.args), default=0.0)
    return 0.0 if node.value is None else largest(node.value)
