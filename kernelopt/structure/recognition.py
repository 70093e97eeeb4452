"""The sets and prices that cvxpy constraints and terms of an objective state, read as parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.atoms.quad_over_lin import quad_over_lin
from cvxpy.constraints import Inequality

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import eigenvalue_error
from kernelopt.structure.affine import Affine, affine, flat
from kernelopt.structure.powers import Inverses, Length, LpBall, Power, single_entries
from kernelopt.structure.trees import number, summands
from kernelopt.validation import Array

# The class of cvxpy's power with `approx=False`. It is read off an instance, since its name differs between
# versions of cvxpy.
POWER: Any = type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False))

NORMS = (Pnorm, norm1, norm_inf, max_atom)
"""Atoms with f(c x) = c f(x) for c > 0."""
LARGEST_EXPONENT = 8  # of sum_i w_i x_i^p: the rounding of w_i^(1/p) grows with p


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
    # Several constants are added up and rounded upwards: the minimum over a larger set is a lower bound.
    level = float(Ball(np.array(constants)).sum().above)
    known = 0 < level < np.inf or (level == 0 and power is not None and power.exponent == 1)
    if power is None or not power.factor > 0 or not known:
        return None
    return LpBall(power.times(left[0][0]), level, (at,), len(constants) > 1)


def read_wrapped(e: cp.Expression) -> Power | None:
    """Return a cvxpy node with the value of its argument, such as `psd_wrap`, as a power of a length."""
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
    return bool(np.linalg.eigvalsh(scaled)[0] > 2 * eigenvalue_error(scaled))


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


def read_inverses(c: Array, e: cp.Expression) -> Inverses | None:
    """Return sum_i c_i e_i as `Inverses`, where e is cvxpy's power -1 of a vector; None for another e."""
    read = affine(e.args[0]) if isinstance(e, POWER) and power_of(e) == -1 else None
    if read is None or len(read.matrices) != 1 or not (c >= 0).all():
        return None
    ((variable, matrix),) = read.matrices.items()
    matrix.eliminate_zeros()
    alone = single_entries(matrix) is not None and (np.diff(matrix.indptr) == 1).all()
    if not (alone and variable.is_nonneg()):
        return None
    a, b = matrix.data, read.constant
    if not ((b > 0) | ((b == 0) & (a > 0))).all():
        return None
    return Inverses((variable,), matrix.indices.astype(np.intp), np.broadcast_to(c, b.shape), a, b)


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
