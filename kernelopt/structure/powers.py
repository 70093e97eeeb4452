"""Powers of norms, c |L x|_p^r, as prices and as sets, and the cvxpy expressions that state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.atoms.quad_over_lin import quad_over_lin
from cvxpy.constraints import Inequality

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.decompositions import semidefinite_beyond
from kernelopt.numerics.dual_lengths import over_diagonal, over_matrix
from kernelopt.structure.affine import affine, flat, single_entries
from kernelopt.structure.parts import Part, Slopes, equal_shares, joined, split
from kernelopt.structure.trees import POWER, exponent_of, number, rounds_coefficients, weighted_terms
from kernelopt.validation import Array

FACTOR = 2.0**-48  # relative error of a factor of a power, which is read in a few roundings
LARGEST_EXPONENT = 8  # of sum_i w_i x_i^p: the rounding of w_i^(1/p) grows with p
NORMS = (Pnorm, norm1, norm_inf, max_atom)
"""Atoms with f(c x) = c f(x) for c > 0."""


@dataclass(frozen=True, eq=False)
class Power(Part):
    """The convex function factor * length^exponent, factor >= 0 and exponent >= 1: a price of x >= 0.

    The length is |L x|_p or sqrt(x'Ex) of x, the entries of the variables one after the other.

    Attributes
    ----------
    variables : tuple of cp.Variable
        Not necessarily non-negative: a part over which a problem separates has only such.
    p : float in [1, inf]
        Always 2 unless L has at most one entry in each row and column.
    matrix : sparse array of shape (k, n), or (n, n)
        L, or the positive definite matrix E.
    is_form : bool
        Whether the length is sqrt(x'Ex).
    """

    variables: tuple[cp.Variable, ...]
    p: float
    matrix: sp.csr_array
    exponent: float = 1.0
    factor: float = 1.0
    is_form: bool = False

    @classmethod
    def recognise_price(cls, weights: Array, e: cp.Expression) -> Power | None:
        """Return weights'vec(e) for a scalar power e or a vector of powers, or None.

        For u >= 0, sum_i w_i u_i^p = |(w_i^(1/p) u_i)_i|_p^p.
        """
        if e.size == 1 and weights[0] >= 0:
            found = read_power(e)
            return found and found.times(float(weights[0]))
        p = exponent_of(e) if isinstance(e, POWER) else 0.0
        if not (p > 1 and (weights > 0).all()):
            return None
        if np.ptp(weights) == 0:
            return power_of_norm(e.args[0], p, p, float(weights[0]))
        # The p-th power multiplies the rounding error of w_i^(1/p) by p. The bounds allow for a moderate p.
        if p > LARGEST_EXPONENT:
            return None
        found = power_of_norm(cp.multiply(weights ** (1 / p), e.args[0]), p, p)
        return found if found is not None and found.diagonal is not None else None

    @cached_property
    def diagonal(self) -> Array | None:
        """The absolute value of the only entry in each column of L, 0 in an empty column.

        It is None for a form sqrt(x'Ex), and if a row or a column of L has more than one entry.
        """
        return None if self.is_form else single_entries(self.matrix)

    @property
    def c(self) -> Ball:
        """The factor, with the error of reading it."""
        return Ball(self.factor, FACTOR * self.factor)

    def dual_length(self, s: Slopes) -> float:
        r"""Return a close upper bound of the maximum of s'x over x >= 0 with a length of at most one.

        By weak duality :math:`s'x \le w'Lx \le |w|_q |Lx|_p` for every w with :math:`L'w \ge s`, and for
        sqrt(x'Ex), :math:`s'x \le z'Ex \le \sqrt{z'Ez} \sqrt{x'Ex}` where :math:`Ez \ge s`. It is infinite
        where no such vector was found, and zero where s <= 0.
        """
        b = joined(self.variables, s).above
        if not np.isfinite(b).all():
            return np.inf
        if not b.max(initial=0.0) > 0:
            return 0.0
        if self.diagonal is not None:
            return over_diagonal(self.diagonal, b, self.p)
        return over_matrix(self.matrix.toarray(), b, self.is_form)

    def support(self, s: Slopes) -> float:
        """Return d^t (c r)^(1 - t) / t for the dual length d, 1/r + 1/t = 1; for r = 1 zero where d <= c."""
        d, r = Ball(self.dual_length(s)), Ball(self.exponent)
        if d.mid == 0 or r.mid == 1 or not self.factor > 0 or not np.isfinite(d.mid):
            return 0.0 if d.mid <= self.c.below else np.inf
        largest = d * (d / (self.c * r)).root(self.exponent - 1) * ((r - 1) / r)
        return float(largest.above)

    def times(self, factor: float) -> Power:
        """Return this function times a non-negative number."""
        return replace(self, factor=factor * self.factor)


@dataclass(frozen=True, eq=False)
class LpBall(Part):
    """The set {x: power(x) <= level}; a problem separates over it only if all variables are non-negative.

    The level is positive where the exponent is above one; it may be rounded upwards.
    """

    power: Power
    level: float
    at: tuple[int, ...] = ()
    rounded: bool = False

    @classmethod
    def recognise(cls, constraints: Mapping[int, cp.Constraint]) -> Self | None:
        """Return one constraint as a norm ball or an ellipsoid, or None."""
        (constraint, *others) = constraints.values()
        if others or not isinstance(constraint, Inequality) or constraint.size != 1:
            return None
        terms = weighted_terms(constraint.args[0] - constraint.args[1], np.ones(1))
        left = [(w, e) for w, e in terms if not e.is_constant()]
        if len(left) != 1 or left[0][1].size != 1 or not left[0][0] > 0:
            return None
        power = read_power(left[0][1])
        constants = np.concatenate([np.zeros(0), *(-w * flat(e.value) for w, e in terms if e.is_constant())])
        # Several constants are added up and rounded upwards: the minimum over a larger set is a lower bound.
        level = float(Ball(constants).sum().above)
        known = 0 < level < np.inf or (level == 0 and power is not None and power.exponent == 1)
        if power is None or not power.factor > 0 or not known:
            return None
        return cls(power.times(float(left[0][0][0])), level, tuple(constraints), constants.size > 1)

    @property
    def variables(self) -> tuple[cp.Variable, ...]:  # type: ignore[override]
        """The variables that the set bounds."""
        return self.power.variables

    @property
    def p(self) -> float:
        """The exponent of the norm."""
        return self.power.p

    @property
    def is_unit(self) -> bool:
        """Whether the set is exactly {|x|_p <= level} for one variable."""
        d, power = self.power.diagonal, self.power
        plain = len(self.variables) == 1 and (power.factor, power.exponent) == (1.0, 1.0)
        return plain and not self.rounded and d is not None and bool((d == 1).all())

    @cached_property
    def radius(self) -> Ball:
        """The largest length."""
        return (Ball(self.level) / self.power.c).root(self.power.exponent)

    def reach(self, variable: cp.Variable) -> Array:
        """Return about the largest absolute value of each entry, infinite where none is known."""
        d = self.power.diagonal
        each = np.zeros(sum(v.size for v in self.variables)) if d is None else d
        with np.errstate(divide="ignore"):
            return np.ravel(self.radius.mid / split(self.variables, each)[variable.id])

    def support(self, s: Slopes) -> float:
        """Return the radius times the dual length."""
        return float((self.radius * self.power.dual_length(s)).above)

    def multipliers(self, s: Slopes, support: float) -> dict[int, float]:
        """Return support / (r level): the support is in proportion to level^(1 / r)."""
        return dict.fromkeys(self.at, support / (self.power.exponent * self.level) if self.level else 0.0)

    def start(self) -> dict[int, Array] | None:
        """Return equal shares of the reaches, of length one."""
        return equal_shares({v: self.reach(v) for v in self.variables}, self.p)


def read_power(e: Any) -> Power | None:
    """Return a scalar expression as a power of a length, or None if it is not one.

    Among them are r'x = |diag(r) x|_1 for r, x >= 0, and max_i u_i = |u|_inf for u >= 0.
    """
    whole = getattr(e, "axis", None) is None
    if isinstance(e, Wrap):
        return read_power(e.args[0])
    if isinstance(e, POWER):
        outer = exponent_of(e)
        inner = read_power(e.args[0]) if outer >= 1 else None
        return inner and replace(inner, exponent=outer * inner.exponent, factor=inner.factor**outer)
    if isinstance(e, max_atom):
        return power_of_norm(e.args[0], np.inf) if whole and e.args[0].is_nonneg() else None
    if isinstance(e, NORMS):
        return power_of_norm(e.args[0], order_of_norm(e)) if whole and order_of_norm(e) >= 1 else None
    if isinstance(e, quad_over_lin):
        known = whole and e.args[1].is_constant() and number(e.args[1]) > 0
        return power_of_norm(e.args[0], 2.0, 2.0, 1 / number(e.args[1])) if known else None
    if isinstance(e, QuadForm):
        return read_form(*e.args)
    read = affine(e) if e.size == 1 else None
    if read is None or rounds_coefficients(e) or not read.matrices or read.constant.any():
        return None
    row = np.concatenate([read.gradient(v) for v in read.matrices])
    signed = (row >= 0).all() and all(v.is_nonneg() for v in read.matrices)
    return Power(tuple(read.matrices), 1.0, sp.csr_array(sp.diags_array(row))) if signed else None


def order_of_norm(e: Any) -> float:
    """Return the p of a p-norm of cvxpy."""
    return {norm1: 1.0, norm_inf: np.inf}.get(type(e)) or float(e.p)


def read_form(x: cp.Expression, matrix: cp.Expression) -> Power | None:
    """Return x'Ex for a non-negative variable x and a positive definite E as a power of a length."""
    value: Any = matrix.value if matrix.is_constant() else None
    if value is None or not isinstance(x, cp.Variable) or not x.is_nonneg():
        return None
    E = np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)
    if not (np.array_equal(E, E.T) and is_definite(E)):
        return None
    return Power((x,), 2.0, sp.csr_array(E), 2.0, is_form=True)


def is_definite(E: Array) -> bool:
    """Whether a symmetric matrix is certainly positive definite.

    It is scaled to D E D with a diagonal in [1/2, 2), where D holds powers of two and the scaling is exact.
    """
    d = np.diag(E)
    if not (d > 0).all():
        return False
    units = np.ldexp(1.0, -(np.frexp(d)[1] // 2))
    return bool(semidefinite_beyond(units[:, None] * E * units, 0.0))


def power_of_norm(u: cp.Expression, p: float, exponent: float = 1.0, factor: float = 1.0) -> Power | None:
    """Return factor * |u|_p^exponent for u = L x, or None for another u.

    A `Power` needs a closed form of the dual norm over x >= 0. One is known for p = 2, and for any p if L has
    at most one entry in each row and column.
    """
    read = affine(u)
    if read is None or rounds_coefficients(u) or not read.matrices or read.constant.any():
        return None
    L = sp.csr_array(sp.hstack(list(read.matrices.values())))
    found = Power(tuple(read.matrices), p, L, exponent, factor)
    return None if p != 2 and found.diagonal is None else found
