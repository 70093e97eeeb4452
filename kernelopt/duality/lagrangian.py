"""The Lagrangian of a problem as a sweep finds it: terms, multipliers, and the parts of the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import spread, uniform
from kernelopt.validation import Array


@dataclass(eq=False)
class Term:
    """A convex atom with its weight: u g(a) = max over y of <y, a> - cost on a domain.

    Attributes
    ----------
    atom : cvxpy expression
    weight : cvxpy expression
        The weight u of g, or of -g for a concave atom.
    sign : float
        -1.0 for a concave atom.
    pairs : list of (y, a)
    cost : cvxpy expression
        A scalar.
    domain : list of cvxpy constraints
    """

    atom: Any
    weight: cp.Expression
    sign: float
    pairs: list[tuple[cp.Expression, cp.Expression]]
    cost: cp.Expression
    domain: list[Constraint]

    @property
    def variables(self) -> list[cp.Variable]:
        """The dual variables that the term brings."""
        given = {v.id for v in self.weight.variables()}
        roots = [*(y for y, _ in self.pairs), *self.domain, self.cost]
        found = {v.id: v for root in roots for v in root.variables() if v.id not in given}
        return list(found.values())

    @property
    def alphas(self) -> list[cp.Variable]:
        """The fit of a risk, empty for any other atom."""
        return [v for v in self.variables if v.name().startswith("alpha")]

    @property
    def bound(self) -> cp.Expression:
        """<y, a> - cost, whose maximum is u g(a)."""
        gain = total([pairing(y, a) for y, a in self.pairs])
        return gain if self.cost.is_zero() else gain - self.cost

    @property
    def unit(self) -> cp.Expression:
        """What the variables are proportional to: the weight where it is a multiplier, else one."""
        return cp.Constant(1.0) if self.weight.is_constant() else cp.sum(self.weight)


@dataclass(eq=False)
class Multiplier:
    """The multipliers of a constraint, one for each argument of a cone.

    Attributes
    ----------
    constraint : cvxpy constraint
    name : str
    variables : list of cp.Variable
    terms : list of (W, e)
        The constraint adds <W, e> to the Lagrangian.
    basis : array or None
        Q where the constraint K >> 0 has been replaced by Q'KQ >> 0.
    user : bool
        Whether it is a constraint of the problem, and not a bound of a variable or a part of an atom.
    """

    constraint: Any
    name: str
    variables: list[cp.Variable]
    terms: list[tuple[cp.Expression, cp.Expression]]
    basis: Array | None = None
    user: bool = True

    def values(self) -> list[Array]:
        """Return the values of the multipliers of the constraint as it was given."""
        found = [np.asarray(v.value) for v in self.variables]
        return found if self.basis is None else [self.basis @ V @ self.basis.T for V in found]


@dataclass(eq=False)
class Lagrangian:
    """What the sweep of a problem finds.

    Attributes
    ----------
    value : list of cvxpy expressions
        The parts of the Lagrangian that are free of the variables.
    gradient : dict from variable to list of cvxpy expressions
        The parts of the gradient by each variable of the problem, of the cone forms of atoms without an
        entry, and of the expressions of risks.
    terms : list of Term
    cones : list of cvxpy constraints
        The dual cones of the multipliers.
    multipliers : list of Multiplier
    """

    value: list[cp.Expression] = field(default_factory=list)
    gradient: dict[cp.Variable, list[cp.Expression]] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    cones: list[Constraint] = field(default_factory=list)
    multipliers: list[Multiplier] = field(default_factory=list)


def times(scale: cp.Expression, e: cp.Expression, axis: Any = None) -> cp.Expression:
    """Return scale * e, where the scale is one number or has one for each slice of e along an axis."""
    w = uniform(scale)
    if w is None:
        return cp.multiply(spread(scale, e.shape, axis), e)
    return w * e


def pairing(W: cp.Expression, e: cp.Expression) -> cp.Expression:
    """Return the inner product of two expressions of one shape."""
    w = uniform(W)
    if w is not None:
        return times(w, cp.sum(e))
    return e @ W if W.ndim == 1 else cp.sum(cp.multiply(W, e))


def total(parts: Sequence[cp.Expression]) -> cp.Expression:
    """Return the sum of expressions of one shape, zero of none."""
    return sum(parts[1:], parts[0]) if parts else cp.Constant(0.0)
