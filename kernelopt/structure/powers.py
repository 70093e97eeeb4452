"""Powers of norms, c |L x|_p^r, as prices and as balls, and sums of reciprocals of affine functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.dual_lengths import over_diagonal, over_matrix
from kernelopt.structure.parts import Part, Slopes, joined, split
from kernelopt.validation import Array, Index

FACTOR = 2.0**-48  # relative error of a factor of a power, which is read in a few roundings


@dataclass(frozen=True, eq=False)
class Length:
    """The norm |L x|_p or sqrt(x'Ex) of x, the entries of some variables one after the other.

    Attributes
    ----------
    variables : tuple of cp.Variable
        Not necessarily non-negative: a part of a `Learning` has only such.
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
    is_form: bool = False

    @cached_property
    def diagonal(self) -> Array | None:
        """The absolute value of the only entry in each column of L, 0 in an empty column.

        It is None for a form sqrt(x'Ex), and if a row or a column of L has more than one entry.
        """
        return None if self.is_form else single_entries(self.matrix)

    def dual(self, s: Slopes) -> float:
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


@dataclass(frozen=True, eq=False)
class Power(Part):
    """The convex function factor * length^exponent, with factor >= 0 and exponent >= 1: a price."""

    length: Length
    exponent: float = 1.0
    factor: float = 1.0

    @property
    def variables(self) -> tuple[cp.Variable, ...]:  # type: ignore[override]
        """The variables of the length."""
        return self.length.variables

    @property
    def c(self) -> Ball:
        """The factor, with the error of reading it."""
        return Ball(self.factor, FACTOR * self.factor)

    def support(self, s: Slopes) -> float:
        """Return d^t (c r)^(1 - t) / t for the dual length d, 1/r + 1/t = 1; for r = 1 zero where d <= c."""
        d, r = Ball(self.length.dual(s)), Ball(self.exponent)
        if d.mid == 0 or r.mid == 1 or not self.factor > 0 or not np.isfinite(d.mid):
            return 0.0 if d.mid <= self.c.below else np.inf
        largest = d * (d / (self.c * r)).root(self.exponent - 1) * ((r - 1) / r)
        return float(largest.above)

    def times(self, factor: float) -> Power:
        """Return this function times a non-negative number."""
        return Power(self.length, self.exponent, factor * self.factor)


@dataclass(frozen=True, eq=False)
class LpBall(Part):
    """The set {x >= 0: factor * length^exponent <= level} with level >= 0.

    The level is positive where the exponent is above one; it may be rounded upwards. `at` is the position of
    the constraint.
    """

    power: Power
    level: float
    at: tuple[int, ...] = ()
    rounded: bool = False

    @property
    def variables(self) -> tuple[cp.Variable, ...]:  # type: ignore[override]
        """The variables that the set bounds."""
        return self.power.variables

    @property
    def p(self) -> float:
        """The exponent of the norm."""
        return self.power.length.p

    @property
    def is_part(self) -> bool:
        """Whether the support is known: all variables are non-negative."""
        return all(v.is_nonneg() for v in self.variables)

    @property
    def is_unit(self) -> bool:
        """Whether the set is exactly {|x|_p <= level} for one variable."""
        d, power = self.power.length.diagonal, self.power
        plain = len(self.variables) == 1 and (power.factor, power.exponent) == (1.0, 1.0)
        return plain and not self.rounded and d is not None and bool((d == 1).all())

    @cached_property
    def radius(self) -> Ball:
        """The largest length."""
        return (Ball(self.level) / self.power.c).root(self.power.exponent)

    def reach(self, variable: cp.Variable) -> Array:
        """Return about the largest absolute value of each entry, infinite where none is known."""
        d = self.power.length.diagonal
        each = np.zeros(sum(v.size for v in self.variables)) if d is None else d
        with np.errstate(divide="ignore"):
            return np.ravel(self.radius.mid / split(self.variables, each)[variable.id])

    def support(self, s: Slopes) -> float:
        """Return the radius times the dual length."""
        return float((self.radius * self.power.length.dual(s)).above)

    def multipliers(self, s: Slopes, support: float) -> dict[int, float]:
        """Return support / (r level): the support is in proportion to level^(1 / r)."""
        return dict.fromkeys(self.at, support / (self.power.exponent * self.level) if self.level else 0.0)

    def start(self) -> dict[int, Array] | None:
        """Return equal shares of the reaches, of length one."""
        reaches = {v: self.reach(v) for v in self.variables}
        count = sum(reach.size for reach in reaches.values())
        if not all(np.isfinite(reach).all() for reach in reaches.values()):
            return None
        return {v.id: np.reshape(reach * count ** (-1 / self.p), v.shape) for v, reach in reaches.items()}


@dataclass(frozen=True, eq=False)
class Inverses(Part):
    """The convex function sum_i c_i / (a_i x_i + b_i) of a variable x >= 0, where a_i x_i + b_i > 0.

    The sum runs over the i in `entries`. The coefficients satisfy c_i >= 0 and a_i != 0, and either b_i > 0,
    or b_i = 0 and a_i > 0.
    """

    variables: tuple[cp.Variable]
    entries: Index
    c: Array
    a: Array
    b: Array

    def support(self, s: Slopes) -> float:
        """Return an upper bound of s'x - sum_i c_i / (a_i x_i + b_i) over x >= 0.

        For every t >= 0 and u > 0, c / u >= 2 sqrt(c t) - t u. Where t_i a_i <= -s_i, therefore, s_i x_i -
        c_i / (a_i x_i + b_i) <= t_i b_i - 2 sqrt(c_i t_i). The best t_i is -s_i / a_i, or c_i / b_i^2 where
        the maximum is at x_i = 0.
        """
        above = s[self.variables[0]].above
        others = np.delete(above, self.entries)
        ratio = Ball(-above[self.entries]) / self.a
        with np.errstate(divide="ignore"):
            at_zero = np.where(self.b > 0, self.c / self.b**2, np.inf)
        t = np.where(self.a > 0, np.minimum(ratio.below, at_zero), np.maximum(ratio.above, at_zero))
        if (others > 0).any() or not (t >= 0).all():
            return np.inf
        return float((Ball(t) * self.b - (Ball(self.c) * t).power(0.5) * 2).sum().above)


def single_entries(matrix: sp.csr_array) -> Array | None:
    """Return the absolute value of the only entry in each column, or zero.

    Returns
    -------
    array of shape (n,), or None
        None where a row or a column has more than one entry.
    """
    found = sp.csc_array(matrix)
    found.eliminate_zeros()
    if (np.diff(found.indptr) > 1).any() or np.unique(found.indices).size < found.nnz:
        return None
    return np.asarray(abs(found).sum(axis=0)).ravel()
