"""What a sweep finds in the Lagrangian of a problem, and its sums and products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.adjoints import spread, uniform, value_of
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


Terms = list[tuple[float, Any]]


def terms_of(e: Any, k: float = 1.0) -> Terms:
    """Return pairs (c, t) of numbers and expressions of the shape of e, with k e the sum of all c t."""
    kind = type(e).__name__
    if kind == "AddExpression" and all(a.shape == e.shape for a in e.args):
        return [term for a in e.args for term in terms_of(a, k)]
    if kind == "NegExpression" or (kind == "Sum" and e.args[0].ndim == 0):
        return terms_of(e.args[0], -k if kind == "NegExpression" else k)
    for number, other in (
        zip(e.args, e.args[::-1], strict=True) if kind in ("multiply", "DivExpression") else ()
    ):
        value = value_of(number) if number is e.args[1] or kind == "multiply" else None
        if value is not None and value.any() and not np.ptp(value) and other.shape == e.shape:
            return terms_of(other, k * float(value.flat[0]) ** (1 if kind == "multiply" else -1))
    return [(k, e)]


def sum_of(terms: Terms, shape: tuple[int, ...]) -> cp.Expression:
    """Return the sum of terms of a shape, without a product by one or minus one."""
    parts = [e if k == 1 else -e if k == -1 else k * e for k, e in terms]
    return total(parts) if parts else cp.Constant(np.zeros(shape))


def scaled(k: float, e: cp.Expression) -> cp.Expression:
    """Return k times a sum, each term by itself."""
    return sum_of(terms_of(e, k), e.shape)


def uses(parts: Iterable[Any], v: cp.Variable) -> bool:
    """Whether some expressions or constraints have a variable."""
    return any(w.id == v.id for part in parts for w in part.variables())
