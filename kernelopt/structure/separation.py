"""Problems that separate: an affine objective and convex terms, over sets that share no variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.constraints import Inequality

from kernelopt.numerics.rounding import UNIT, exact_sum, upwards
from kernelopt.structure.affine import Affine, affine, flat
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.inverses import read_inverses
from kernelopt.structure.powers import POWER, Power, power_of, power_of_norm, read_power
from kernelopt.structure.sizes import Budget
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.structure.trees import number, summands
from kernelopt.validation import Array

LARGEST_EXPONENT = 8  # of sum_i w_i x_i^p: the rounding of w_i^(1/p) grows with p


@dataclass(frozen=True, eq=False)
class PowerBall:
    """The set {x >= 0: factor * length^exponent <= level} with level >= 0.

    The level is positive where the exponent is above one.
    """

    power: Power
    level: float

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variables that the set bounds."""
        return self.power.variables


@dataclass(frozen=True, eq=False)
class Separation:
    """min sum_k coefficients_k risk_k(x) + affine(x) + sum of terms(x), with x in every set.

    No variable occurs in two of the sets and the terms. With each risk replaced by an affine minorant, the
    minimum is therefore a sum of minima over one set or of one term each, which have closed forms.

    Attributes
    ----------
    coefficients : tuple of float >= 0, one per risk
    affine : Affine
    sets : dict from the position of a constraint to Budget or PowerBall
    terms : tuple of Power or Inverses
        The convex terms of the objective that are not affine.
    """

    coefficients: tuple[float, ...]
    affine: Affine
    sets: dict[int, Any]
    terms: tuple[Any, ...]

    @cached_property
    def used(self) -> tuple[cp.Variable, ...]:
        """The variables of the sets and of the terms, with repetitions."""
        return tuple(v for part in (*self.sets.values(), *self.terms) for v in part.variables)


@kept_in_structure
def read_separation(structure: Structure) -> Separation | None:
    """Return a problem as a `Separation`, or None if it does not separate."""
    coefficients, rest = structure.objective
    if coefficients is None or rest is None or structure.domains or any(structure.constrained):
        return None
    if min(coefficients, default=0.0) < 0 or any(beside_cone(v) for v in structure.variables):
        return None
    sets = {i: read_set(structure, i) for i in structure.active}
    if any(found is None for found in sets.values()):
        return None  # the sets are read first because reading the objective takes longer
    parts = affine_and_terms(rest)
    if parts is None:
        return None
    linear, terms = parts
    found = Separation(coefficients, linear, sets, terms)
    used = set(found.used)
    return found if len(used) == len(found.used) and used <= set(structure.variables) else None


def read_budget_set(structure: Structure, at: int) -> Budget | None:
    """Return a constraint as a budget that bounds every entry of its variables, or None."""
    budget = structure.budgets[at]
    return budget if budget is not None and budget.bounds_all else None


def read_power_ball(structure: Structure, at: int) -> PowerBall | None:
    """Return a constraint as a norm ball or an ellipsoid, or None."""
    constraint = structure.lifted.constraints[at]
    if not isinstance(constraint, Inequality) or constraint.size != 1:
        return None
    pairs = summands(constraint.args[0] - constraint.args[1])
    left = [(number(c), e) for c, e in pairs if not e.is_constant()]
    if len(left) != 1 or not left[0][0] > 0:
        return None
    power = read_power(left[0][1])
    constants = [-number(c) * number(e) for c, e in pairs if e.is_constant()]
    level = exact_sum(constants)
    if len(constants) > 1:  # rounded upwards: the minimum over a larger set is a lower bound
        level = upwards(level + 2 * UNIT * sum(map(abs, constants)))
    if power is None or not power.factor > 0 or not (level > 0 or (level == 0 and power.exponent == 1)):
        return None
    return PowerBall(power.times(left[0][0]), level)


SET_READERS: tuple[Callable[[Structure, int], Any], ...] = (read_budget_set, read_power_ball)


def read_set(structure: Structure, at: int) -> Any:
    """Return a constraint as a set whose support function has a closed form, or None."""
    return next(filter(None, (reader(structure, at) for reader in SET_READERS)), None)


def affine_and_terms(rest: cp.Expression) -> tuple[Affine, tuple[Any, ...]] | None:
    """Return a scalar expression as an affine part and convex terms, or None where a summand is neither."""
    linear: list[Any] = [cp.Constant(0.0)]
    terms = []
    for c, term in summands(rest):
        for weights, e in entrywise(np.full(1, number(c)), term):
            if e.is_affine():
                linear.append(
                    cp.sum(cp.multiply(weights if e.size > 1 else weights[0], cp.vec(e, order="F")))
                )
                continue
            found = next(filter(None, (reader(weights, e) for reader in TERM_READERS)), None)
            if found is None:
                return None
            terms.append(found)
    read = affine(sum(linear[1:], linear[0]))
    return None if read is None else (read, tuple(terms))


def entrywise(weights: Array, e: cp.Expression) -> list[tuple[Array, cp.Expression]]:
    """Return pairs (w, f) with weights' vec(e) = sum of w' vec(f), where no f is a sum or a multiple."""
    weights = np.broadcast_to(weights, (e.size,))
    args = e.args
    if isinstance(e, AddExpression):
        sizes = [(weights.sum(keepdims=True) if arg.size < e.size else weights, arg) for arg in args]
        return [pair for w, arg in sizes for pair in entrywise(w, arg)]
    if isinstance(e, NegExpression):
        return entrywise(-weights, args[0])
    if isinstance(e, Sum) and e.size == 1:
        return entrywise(np.full(args[0].size, weights[0]), args[0])
    if isinstance(e, Promote):
        return entrywise(weights.sum(keepdims=True), args[0])
    if isinstance(e, DivExpression) and args[1].is_constant() and args[1].size in (1, e.size):
        return entrywise(weights / flat(args[1].value), args[0])
    if isinstance(e, multiply | MulExpression) and args[0].is_constant() and args[1].ndim < 2:
        factor = flat(args[0].value)
        dot = isinstance(e, MulExpression) and args[0].ndim == 1
        if dot or (
            not isinstance(e, MulExpression) and factor.size in (1, e.size) and args[1].size == e.size
        ):
            return entrywise(factor * weights, args[1])
    return [(weights, e)]


def read_power_term(weights: Array, e: cp.Expression) -> Power | None:
    """Return weights' vec(e) as a power of a length, for a scalar e or a vector of powers, or None.

    For u >= 0, sum_i w_i u_i^p = |(w_i^(1/p) u_i)_i|_p^p.
    """
    if e.size == 1 and weights[0] >= 0:
        found = read_power(e)
        return None if found is None else found.times(float(weights[0]))
    p = power_of(e) if isinstance(e, POWER) else 0.0
    if not (p > 1 and (weights > 0).all()):
        return None
    if np.ptp(weights) == 0:
        return power_of_norm(e.args[0], p, p, float(weights[0]))
    # The p-th power multiplies the rounding error of w_i^(1/p) by p. The bounds allow for a moderate p.
    found = power_of_norm(cp.multiply(weights ** (1 / p), e.args[0]), p, p) if p <= LARGEST_EXPONENT else None
    if found is None or found.length.diagonal is None:
        return None
    return found


TERM_READERS: tuple[Callable[[Array, cp.Expression], Any], ...] = (read_power_term, read_inverses)
