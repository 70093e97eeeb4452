"""A problem as an affine minimisation over parts that share no variable."""

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
from kernelopt.structure.inverses import read_inverses
from kernelopt.structure.powers import POWER, Power, power_of, powered, read_power
from kernelopt.structure.sizes import Edge
from kernelopt.structure.structure import Structure, once
from kernelopt.structure.trees import number, summands
from kernelopt.validation import Array

LARGEST_POWER = 8  # of weighted entries


@dataclass(frozen=True, eq=False)
class Ball:
    """factor * length^exponent <= level, with level >= 0; positive where the exponent is above one."""

    power: Power
    level: float

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variables that it bounds."""
        return self.power.length.variables


@dataclass(frozen=True, eq=False)
class Price:
    """A power of a length in the objective."""

    power: Power

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variables that are priced."""
        return self.power.length.variables


@dataclass(frozen=True, eq=False)
class Separation:
    """Minimise affine + sum of shares * risks + sum of the prices, over the sets of disjoint variables.

    Attributes
    ----------
    shares : tuple of float >= 0, one per risk
    affine : Affine
    sets : dict from the position of a constraint to Edge or Ball
        The constraint as the set that it is.
    prices : tuple of Price, Inverses, ...
    """

    shares: tuple[float, ...]
    affine: Affine
    sets: dict[int, Any]
    prices: tuple[Any, ...]

    @cached_property
    def used(self) -> tuple[cp.Variable, ...]:
        """The variables of the sets and of the prices."""
        return tuple(v for part in (*self.sets.values(), *self.prices) for v in part.variables)


@once
def read_separation(structure: Structure) -> Separation | None:
    """Read a problem as a `Separation`, None if it is none."""
    shares, rest = structure.objective
    if shares is None or rest is None or structure.domains or any(structure.constrained):
        return None
    if min(shares, default=0.0) < 0 or any(v.attributes["bounds"] is not None for v in structure.variables):
        return None
    sets = {i: read_set(structure, i) for i in structure.active}
    if any(found is None for found in sets.values()):
        return None  # before the objective is read, which takes longer
    taken = taken_apart(rest)
    if taken is None:
        return None
    linear, prices = taken
    found = Separation(shares, linear, sets, prices)
    used = set(found.used)
    return found if len(used) == len(found.used) and used <= set(structure.variables) else None


def read_edge_set(structure: Structure, at: int) -> Edge | None:
    """Return a constraint as a simplex or a spectrahedron that bounds all of its variables."""
    edge = structure.edges[at]
    return edge if edge is not None and edge.bounds_all else None


def read_ball_set(structure: Structure, at: int) -> Ball | None:
    """Return a constraint as a ball or an ellipsoid."""
    constraint = structure.lifted.constraints[at]
    if not isinstance(constraint, Inequality) or constraint.size != 1:
        return None
    pairs = summands(constraint.args[0] - constraint.args[1])
    left = [(number(c), e) for c, e in pairs if not e.is_constant()]
    if len(left) != 1 or not left[0][0] > 0:
        return None
    power = read_power(left[0][1])
    terms = [-number(c) * number(e) for c, e in pairs if e.is_constant()]
    level = exact_sum(terms)
    if len(terms) > 1:  # a larger set has no larger minimum
        level = upwards(level + 2 * UNIT * sum(map(abs, terms)))
    if power is None or not power.factor > 0 or not (level > 0 or (level == 0 and power.exponent == 1)):
        return None
    return Ball(power.times(left[0][0]), level)


SETS: tuple[Callable[[Structure, int], Any], ...] = (read_edge_set, read_ball_set)


def read_set(structure: Structure, at: int) -> Any:
    """Return the set that a constraint is, None where it is none with a known support function."""
    return next(filter(None, (reader(structure, at) for reader in SETS)), None)


def taken_apart(rest: cp.Expression) -> tuple[Affine, tuple[Any, ...]] | None:
    """Return an expression as an affine one and prices; None where a term is neither."""
    linear: list[Any] = [cp.Constant(0.0)]
    prices = []
    for c, term in summands(rest):
        for weights, e in entrywise(np.full(1, number(c)), term):
            if e.is_affine():
                linear.append(
                    cp.sum(cp.multiply(weights if e.size > 1 else weights[0], cp.vec(e, order="F")))
                )
                continue
            found = next(filter(None, (reader(weights, e) for reader in PRICES)), None)
            if found is None:
                return None
            prices.append(found)
    read = affine(sum(linear[1:], linear[0]))
    return None if read is None else (read, tuple(prices))


def entrywise(weights: Array, e: cp.Expression) -> list[tuple[Array, cp.Expression]]:
    """Return pairs (w, f) with weights'e = sum of w'f, for vectors flattened by columns."""
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


def read_price(weights: Array, e: cp.Expression) -> Price | None:
    """Read weights'e, where e is one power of a length or powers of single numbers."""
    if e.size == 1 and weights[0] >= 0:
        found = read_power(e)
        return None if found is None else Price(found.times(float(weights[0])))
    p = power_of(e) if isinstance(e, POWER) else 0.0
    if not (p > 1 and (weights > 0).all()):
        return None
    if np.ptp(weights) == 0:
        found = powered(e.args[0], p, p, float(weights[0]))
        return None if found is None else Price(found)
    # The roots are rounded, which the powers magnify: the price pays for small ones.
    found = powered(cp.multiply(weights ** (1 / p), e.args[0]), p, p) if p <= LARGEST_POWER else None
    if found is None or found.length.diagonal is None:
        return None
    return Price(found)


PRICES: tuple[Callable[[Array, cp.Expression], Any], ...] = (read_price, read_inverses)
