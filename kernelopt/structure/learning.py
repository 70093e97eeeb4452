"""Problems that separate: weighted risks, an affine function and prices, over sets that share no variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.entry_points import subclasses
from kernelopt.structure.affine import Affine, affine, flat
from kernelopt.structure.attributes import beside_cone
from kernelopt.structure.inverses import read_inverses
from kernelopt.structure.parts import Budget, Free, Part
from kernelopt.structure.powers import POWER, Power, power_of, power_of_norm, read_power
from kernelopt.structure.structure import RiskTerm, Structure, kept_in_structure
from kernelopt.structure.trees import number, short, summands
from kernelopt.validation import Array

LARGEST_EXPONENT = 8  # of sum_i w_i x_i^p: the rounding of w_i^(1/p) grows with p


@dataclass(frozen=True, eq=False)
class Learning:
    """min sum_k factors_k risk_k(x) + linear(x) + sum of prices, over x in sets.

    No two parts share a variable. With each risk replaced by an affine minorant, the minimum is therefore a
    sum of minima over one part each.

    Attributes
    ----------
    factors : tuple of float >= 0, one per risk
    linear : Affine
    parts : tuple of Part
        Every variable belongs to one of them.
    """

    factors: tuple[float, ...]
    linear: Affine
    parts: tuple[Part, ...]


class WeightedRisks(NamedTuple):
    """min sum_k factors_k * risks_k + rest with factors > 0 and an affine function of the variables."""

    risks: tuple[RiskTerm, ...]
    factors: tuple[float, ...]
    rest: Affine

    @property
    def risk(self) -> RiskTerm:
        """The only risk."""
        return self.risks[0]

    @property
    def factor(self) -> float:
        """The factor of the only risk."""
        return self.factors[0]

    @property
    def offset(self) -> float:
        """The constant of `rest`."""
        return float(self.rest.constant[0])


def weighted_risks(structure: Structure) -> WeightedRisks | str:
    """Return the objective as a sum of risks with positive factors and an affine rest, or why it is none."""
    if not structure.risks:
        return "it needs a risk, the problem has 0"
    if structure.unset:
        return structure.unset
    factors, rest = structure.objective.coefficients, structure.rest
    if structure.maximize or factors is None or rest is None or not min(factors) > 0:
        return "its objective must be positive multiples of its risks, plus an affine function of the weights"
    return WeightedRisks(structure.risks, tuple(float(each) for each in factors), rest)


def one_risk(structure: Structure) -> WeightedRisks | str:
    """Return the objective as factor * risk + offset with factor > 0, or a sentence why it is none."""
    if len(structure.risks) != 1:
        return f"it needs one risk, the problem has {len(structure.risks)}"
    read = weighted_risks(structure)
    if isinstance(read, str):
        return read
    if read.rest.matrices:
        wanted = "a positive multiple of the risk, plus a constant"
        return f"its objective must be {wanted}, got prices of the weights"
    return read


@kept_in_structure
def read_learning(structure: Structure) -> Learning | None:
    """Return a problem as a `Learning`, or None if it does not separate."""
    coefficients, rest = structure.objective
    if coefficients is None or rest is None or structure.domains or any(structure.constrained):
        return None
    if min(coefficients, default=0.0) < 0 or any(beside_cone(v) for v in structure.variables):
        return None
    sets: list[Any] = [read_set(structure, i) for i in structure.active]
    if any(found is None for found in sets):
        return None  # the sets are read first because reading the objective takes longer
    read = affine_and_terms(rest)
    if read is None:
        return None
    linear, prices = read
    used = [v for part in (*sets, *prices) for v in part.variables]
    if len(set(used)) < len(used) or not set(used) <= set(structure.variables):
        return None
    others = [cone(v) or Free((v,)) for v in structure.variables if v not in set(used)]
    return Learning(coefficients, linear, (*sets, *prices, *others))


def cone(variable: cp.Variable) -> Budget | None:
    """Return the cone x >= 0, or of PSD matrices, as a budget without a bound; None for another variable."""
    square = variable.ndim == 2 and variable.attributes["PSD"]
    if not square and not variable.is_nonneg():
        return None
    return Budget({variable: (np.eye(variable.shape[0]) if square else np.ones(variable.shape)).ravel()})


@kept_in_structure
def read_pieces(structure: Structure) -> list[Budget] | str:
    """Return the feasible set as a product of spectrahedra and simplices, one for each variable, or why not.

    They are {X PSD: tr X = r} and {x >= 0: r'x = 1}, with <= too, or the cones alone.
    """
    pieces: dict[cp.Variable, Budget] = {}
    for variable in structure.variables:
        found = cone(variable)
        if found is None or variable.ndim != 1 + bool(variable.attributes["PSD"]):
            return f"{variable.name()} must be a matrix with PSD=True or a vector with nonneg=True"
        if beside_cone(variable):
            return f"{variable.name()} has {beside_cone(variable)} beside its cone"
        pieces[variable] = found
    for i in structure.active:
        budget = structure.budgets[i]
        variable = budget.variable if budget is not None and len(budget.rows) == 1 else None
        constraint = structure.lifted.constraints[i]
        name = constraint.label or short(constraint)
        if budget is None or variable is None or not (budget.total > 0 and budget.bounds_all):
            return f"the constraint {name} does not fix the trace of one variable"
        if pieces[variable].at is not None:
            return f"the constraint {name} is the second that fixes the trace of {variable.name()}"
        pieces[variable] = budget
    return list(pieces.values())


def read_set(structure: Structure, at: int) -> Part | None:
    """Return a constraint as a budget that bounds every entry of its variables, as a ball or an ellipsoid.

    A set of another kind is a `Part` that a package names in the group of entry points "kernelopt.parts".
    """
    budget = structure.budgets[at]
    if budget is not None and budget.bounds_all:
        return budget
    ball = structure.balls[at]
    if ball is not None:
        return ball if all(v.is_nonneg() for v in ball.variables) else None
    kinds = (kind for _, kind in subclasses("kernelopt.parts", Part, {}))
    found = (kind.recognise(structure.lifted.constraints[at], at) for kind in kinds)
    return next(filter(None, found), None)


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
            signed = all(v.is_nonneg() for v in e.variables())
            readers = TERM_READERS if signed else ()
            found = next(filter(None, (reader(weights, e) for reader in readers)), None)
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
