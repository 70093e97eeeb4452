"""Products of constant matrices with multipliers, as the shortest expressions."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.binary_operators import MulExpression, multiply
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.constraints.constraint import Constraint

from kernelopt.duality.matrices import coefficient_of, diagonal_of, multiple_of_identity, symmetrized
from kernelopt.validation import Array


def signed(part: cp.Expression) -> tuple[float, cp.Expression]:
    """Return (-1, e) for -e, and (1, part) for anything else."""
    if isinstance(part, NegExpression):
        return -1.0, part.args[0]
    return 1.0, part


def scaled(scale: cp.Expression, part: cp.Expression) -> cp.Expression:
    """Return scale * part with the sign and the number in front."""
    sign, inner = signed(part)
    number, inner = positive_factor(inner)
    return times(sign * number, scale * inner)


def positive_factor(expression: cp.Expression) -> tuple[float, cp.Expression]:
    """Return (c, e) with expression = c * e for a number c > 0."""
    if isinstance(expression, multiply | MulExpression):
        left, right = expression.args
        if isinstance(left, Promote):
            left = left.args[0]
        if isinstance(left, cp.Constant) and left.size == 1 and float(np.ravel(left.value)[0]) > 0:
            return float(np.ravel(left.value)[0]), right
    return 1.0, expression


def constant_entry(expression: cp.Expression) -> float | None:
    """Return the one value of the entries of a constant, None for any other expression."""
    if not expression.is_constant() or expression.parameters():
        return None
    values = np.ravel(expression.value)
    return float(values[0]) if np.ptp(values) == 0 else None


def times(factor: float, expression: cp.Expression) -> cp.Expression:
    """Return factor * expression, without a factor of one."""
    if factor == 1:
        return expression
    if factor == -1:
        return -expression
    if factor < 0:
        return -(-factor * expression)
    return factor * expression


def in_shape(expression: cp.Expression, shape: tuple[int, ...]) -> cp.Expression:
    """Return an expression with its entries, by columns, in another shape."""
    return expression if expression.shape == shape else cp.reshape(expression, shape, order="F")


def product_expression(
    matrix: sp.csr_array,
    y: cp.Expression,
    variable: cp.Variable,
    shape: tuple[int, ...],
    symmetric: bool,
    name: str,
) -> cp.Expression:
    """Return matrix @ vec(y) as a short expression of a shape, where y takes the place of a variable.

    Of a matrix it is the symmetric part if `symmetric`. The matrix is a constant with a name where it
    appears.
    """
    if symmetric:
        n = shape[0]
        factor = coefficient_of(matrix, variable, True)
        if factor is not None:
            own = variable.ndim == 2 and variable.is_symmetric()
            y = in_shape(y, shape)
            return times(factor, y if own or y.is_symmetric() else half_sum(y))
        matrix = symmetrized(matrix, n)
    factor = multiple_of_identity(matrix)
    if factor is not None:
        return times(factor, in_shape(y, shape))
    if y.size == 1:
        value = matrix.toarray()[:, 0].reshape(shape, order="F")
        y = y if y.ndim == 0 else cp.reshape(y, (), order="F")
        identity = len(shape) == 2 and multiple_of_identity(sp.csr_array(value))
        if identity:
            return times(identity, y * cp.Constant(np.eye(shape[0]), name="I"))
        if np.ptp(value) == 0:
            return times(float(value.flat[0]), y)  # promoted by the sum that it is part of
        if (value <= 0).all():
            return -(y * cp.Constant(-value, name=name))
        return y * cp.Constant(value, name=name)
    if matrix.shape[0] == 1:
        return row_product(matrix.toarray()[0], y, shape, name)
    diagonal = diagonal_of(matrix)
    if diagonal is not None:
        return cp.multiply(cp.Constant(diagonal.reshape(shape, order="F"), name=name), in_shape(y, shape))
    sign = -1.0 if (matrix.data <= 0).all() else 1.0
    dense = sign * (matrix.toarray() if matrix.nnz > matrix.size / 20 else matrix)
    flat = y if y.ndim == 1 else cp.vec(y, order="F")
    return times(sign, in_shape(cp.Constant(dense, name=name) @ flat, shape))


def row_product(row: Array, y: cp.Expression, shape: tuple[int, ...], name: str) -> cp.Expression:
    """Return row'vec(y), written as a sum or a trace where it is one."""
    if np.ptp(row) == 0:
        return in_shape(times(float(row[0]), cp.sum(y)), shape)
    if y.ndim == 2:
        weights = row.reshape(y.shape, order="F")
        identity = multiple_of_identity(sp.csr_array(weights)) if y.shape[0] == y.shape[1] else None
        if identity is not None:
            return in_shape(times(identity, cp.trace(y)), shape)
        sign = -1.0 if (weights <= 0).all() else 1.0
        return in_shape(times(sign, cp.sum(cp.multiply(cp.Constant(sign * weights, name=name), y))), shape)
    sign = -1.0 if (row <= 0).all() else 1.0
    return in_shape(times(sign, cp.Constant(sign * row, name=name) @ y), shape)


def half_sum(y: cp.Expression) -> cp.Expression:
    """Return the symmetric part (y + y') / 2."""
    return (y + y.T) / 2


def constant_expression(vector: Array, shape: tuple[int, ...], symmetric: bool, name: str) -> cp.Expression:
    """Return a constant as an expression: a number where all entries are equal."""
    value = vector.reshape(shape, order="F")
    if symmetric:
        value = (value + value.T) / 2
        identity = multiple_of_identity(sp.csr_array(value))
        if identity is not None and value.size > 1:
            return times(identity, cp.Constant(np.eye(len(value)), name="I"))
    if not shape or (np.ptp(value) == 0 and not symmetric):
        number = float(np.ravel(value)[0])
        return -cp.Constant(-number) if number < 0 else cp.Constant(number)
    if (value <= 0).all():
        return -cp.Constant(-value, name=name)
    return cp.Constant(value, name=name)


def parametric_expression(
    matrix: sp.csr_array, parameter: Any, shape: tuple[int, ...], name: str
) -> cp.Expression:
    """Return matrix @ vec(parameter) as an expression of a shape."""
    factor = multiple_of_identity(matrix)
    if factor is not None:
        return times(factor, in_shape(parameter, shape))
    if parameter.size == 1:
        value = matrix.toarray()[:, 0]
        scalar = parameter if parameter.ndim == 0 else cp.reshape(parameter, (), order="F")
        if np.ptp(value) == 0:
            return times(float(value[0]), scalar)
        return scalar * constant_expression(value, shape, False, name)
    flat = parameter if parameter.ndim == 1 else cp.vec(parameter, order="F")
    return in_shape(cp.Constant(matrix.toarray(), name=name) @ flat, shape)


def labelled(constraint: Constraint, label: str) -> Constraint:
    """Return a constraint with a label."""
    constraint.set_label(label)
    return constraint
