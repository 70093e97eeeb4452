"""Powers of norms, c |L x|_p^r: regularisers in an objective, and norm balls and ellipsoids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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

from kernelopt.numerics.dual_lengths import over_diagonal, over_matrix
from kernelopt.numerics.rounding import (
    EIGENVALUE,
    NORM_ROUNDINGS,
    POWER_ROUNDINGS,
    UNIT,
    exact_sum,
    gamma,
    upwards,
)
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.parts import Part, Slopes, joined, split
from kernelopt.structure.trees import number, summands
from kernelopt.validation import Array

# The class of cvxpy's power with `approx=False`. It is read off an instance, since its name differs between
# versions of cvxpy.
POWER: Any = type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False))

NORMS = (Pnorm, norm1, norm_inf, max_atom)
"""Atoms with f(c x) = c f(x) for c > 0."""


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
class LpBall(Part):
    """The set {x >= 0: factor * length^exponent <= level} with level >= 0.

    The level is positive where the exponent is above one; it may be rounded upwards. `at` is the position of
    the constraint.
    """

    power: Power
    level: float
    at: int | None = None
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
    def is_unit(self) -> bool:
        """Whether the set is exactly {|x|_p <= level} for one variable."""
        d, power = self.power.length.diagonal, self.power
        plain = len(self.variables) == 1 and (power.factor, power.exponent) == (1.0, 1.0)
        return plain and not self.rounded and d is not None and bool((d == 1).all())

    @cached_property
    def radius(self) -> float:
        """About the largest length."""
        return float((self.level / self.power.factor) ** (1 / self.power.exponent))

    def reach(self, variable: cp.Variable) -> Array:
        """Return about the largest absolute value of each entry, infinite where none is known."""
        d = self.power.length.diagonal
        each = np.zeros(sum(v.size for v in self.variables)) if d is None else d
        with np.errstate(divide="ignore"):
            return np.ravel(self.radius / split(self.variables, each)[variable.id])

    def support(self, s: Slopes) -> float:
        """Return the radius times the dual length."""
        return upwards(self.radius * self.power.length.dual(s) * (1 + gamma(POWER_ROUNDINGS)))

    def multiplier(self, support: float) -> float:
        """Return support / (r level): the support is in proportion to level^(1 / r)."""
        return support / (self.power.exponent * self.level) if self.level else 0.0


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

    def support(self, s: Slopes) -> float:
        """Return d^t (c r)^(1 - t) / t for the dual length d, 1/r + 1/t = 1; for r = 1 zero where d <= c."""
        d, r, c = self.length.dual(s), self.exponent, self.factor * (1 - gamma(POWER_ROUNDINGS))
        if d == 0 or r == 1 or not c > 0 or not np.isfinite(d):
            return 0.0 if d <= c else np.inf
        largest = d * (d / (c * r)) ** (1 / (r - 1)) * (1 - 1 / r)
        return upwards(largest * (1 + gamma(NORM_ROUNDINGS / (r - 1) + NORM_ROUNDINGS)))

    def times(self, factor: float) -> Power:
        """Return this function times a non-negative number."""
        return Power(self.length, self.exponent, factor * self.factor)


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


def read_power(e: cp.Expression) -> Power | None:
    """Return a scalar expression as a power of a length, or None if it is not one."""
    for kind, reader in READERS:
        if isinstance(e, kind):
            return reader(e)
    return read_sum(e)


def read_ball_set(constraint: cp.Constraint, at: int) -> LpBall | None:
    """Return a constraint at a position as a norm ball or an ellipsoid, or None."""
    if not isinstance(constraint, Inequality) or constraint.size != 1:
        return None
    pairs = summands(constraint.args[0] - constraint.args[1])
    left = [(number(c), e) for c, e in pairs if not e.is_constant()]
    if len(left) != 1 or not left[0][0] > 0:
        return None
    power = read_power(left[0][1])
    constants = [-number(c) * number(e) for c, e in pairs if e.is_constant()]
    level, rounded = exact_sum(constants), len(constants) > 1
    if rounded:  # upwards: the minimum over a larger set is a lower bound
        level = upwards(level + 2 * UNIT * sum(map(abs, constants)))
    if power is None or not power.factor > 0 or not (level > 0 or (level == 0 and power.exponent == 1)):
        return None
    return LpBall(power.times(left[0][0]), level, at, rounded)


def read_wrapped(e: cp.Expression) -> Power | None:
    """Return a cvxpy node whose value is that of its argument, such as `psd_wrap`, as a power of a length."""
    return read_power(e.args[0])


def read_norm(e: cp.Expression) -> Power | None:
    """Return |u|_p of all entries as a power of a length."""
    p = {norm1: 1.0, norm_inf: np.inf}.get(type(e)) or float(e.p)
    return None if getattr(e, "axis", None) is not None or p < 1 else power_of_norm(e.args[0], p)


def read_largest(e: cp.Expression) -> Power | None:
    """Return max_i u_i of a non-negative vector, which is |u|_inf, as a power of a length."""
    return power_of_norm(e.args[0], np.inf) if e.axis is None and e.args[0].is_nonneg() else None


def read_squares(e: cp.Expression) -> Power | None:
    """Return |u|_2^2 / d for a constant d > 0 as a power of a length."""
    divisor = e.args[1]
    if getattr(e, "axis", None) is not None or not divisor.is_constant() or not number(divisor) > 0:
        return None
    return power_of_norm(e.args[0], 2.0, 2.0, 1 / number(divisor))


def read_form(e: cp.Expression) -> Power | None:
    """Return x'Ex for a non-negative variable x and a positive definite E as a power of a length."""
    read = affine(e.args[0]) if e.args[1].is_constant() else None
    value: Any = None if read is None else e.args[1].value
    if read is None or value is None or len(read.matrices) != 1 or read.constant.any():
        return None
    ((variable, L),) = read.matrices.items()
    E = np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)
    is_identity = L.shape[0] == L.shape[1] and (L != sp.identity(L.shape[0])).nnz == 0
    if not (is_identity and variable.is_nonneg() and np.array_equal(E, E.T) and is_definite(E)):
        return None
    return Power(Length((variable,), 2.0, sp.csr_array(E), is_form=True), 2.0)


def is_definite(E: Array) -> bool:
    """Whether a symmetric matrix is certainly positive definite.

    The matrix is scaled to D E D with a diagonal in [1/2, 2), where D holds powers of two and the scaling is
    exact. The smallest eigenvalue of D E D must exceed twice the bound of its rounding error.
    """
    d = np.diag(E)
    if not ((d > 0).all() and np.isfinite(E).all()):
        return False
    units = np.ldexp(1.0, -(np.frexp(d)[1] // 2))
    scaled = units[:, None] * E * units
    error = EIGENVALUE * gamma(len(E)) * float(np.linalg.norm(scaled))
    return bool(np.linalg.eigvalsh(scaled)[0] > 2 * error)


def read_raised(e: cp.Expression) -> Power | None:
    """Return (c length^r)^s with s >= 1 as the power c^s length^(r s)."""
    exponent = power_of(e)
    inner = read_power(e.args[0]) if exponent >= 1 else None
    if inner is None:
        return None
    return Power(inner.length, exponent * inner.exponent, inner.factor**exponent)


def power_of(e: Any) -> float:
    """Return the exponent of cvxpy's power; NaN for a parameter without a value."""
    value = e.p.value if isinstance(e.p, cp.Expression) else e.p
    return float("nan") if value is None else float(value)


def read_sum(e: cp.Expression) -> Power | None:
    """Return r'x with r >= 0 and x >= 0 as the length |diag(r) x|_1."""
    read = affine(e) if e.size == 1 else None
    if read is None or not read.matrices or read.constant.any():
        return None
    row = joint_matrix(read).toarray()[0]
    return (
        power_of_matrix_norm(tuple(read.matrices), sp.csr_array(sp.diags_array(row)), 1.0)
        if (row >= 0).all() and all(v.is_nonneg() for v in read.matrices)
        else None
    )


def power_of_norm(u: cp.Expression, p: float, exponent: float = 1.0, factor: float = 1.0) -> Power | None:
    """Return factor * |u|_p^exponent for u = L x, or None for another u."""
    read = affine(u)
    if read is None or not read.matrices or read.constant.any():
        return None
    return power_of_matrix_norm(tuple(read.matrices), joint_matrix(read), p, exponent, factor)


def power_of_matrix_norm(
    variables: tuple[cp.Variable, ...], L: sp.csr_array, p: float, exponent: float = 1.0, factor: float = 1.0
) -> Power | None:
    """Return factor * |L x|_p^exponent as a `Power`, or None.

    A `Power` needs a closed form of the dual norm over x >= 0. One is known for p = 2, and for any p if L has
    at most one entry in each row and column.
    """
    length = Length(variables, p, L)
    return None if p != 2 and length.diagonal is None else Power(length, exponent, factor)


def joint_matrix(read: Affine) -> sp.csr_array:
    """Return the matrix [A_1, A_2, ...] of the variables one after the other."""
    return sp.csr_array(sp.hstack(list(read.matrices.values())))


READERS: tuple[tuple[Any, Callable[[Any], Power | None]], ...] = (
    (Wrap, read_wrapped),
    (Pnorm | norm1 | norm_inf, read_norm),
    (max_atom, read_largest),
    (quad_over_lin, read_squares),
    (QuadForm, read_form),
    (POWER, read_raised),
)
