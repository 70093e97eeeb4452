"""The coefficients of an affine expression, read without the values of its variables."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.validation import Array


class Affine(NamedTuple):
    """The affine map x -> c + sum_v A_v vec(x_v), where vec stacks the columns of a variable."""

    constant: Array
    matrices: dict[cp.Variable, sp.csr_array]

    def gradient(self, variable: cp.Variable) -> Array:
        """Return the gradient of a scalar map by one variable: a row of A_v, or zeros."""
        matrix: Any = self.matrices.get(variable)
        return np.zeros(variable.size) if matrix is None else matrix.toarray()[0]

    def at(self, point: dict[int, Array]) -> Array:
        """Return the value of the map at a point, which is a dict from variable id to value."""
        value = self.constant.copy()
        for variable, matrix in self.matrices.items():
            value += matrix @ flat(point[variable.id])
        return value


def affine(expression: cp.Expression) -> Affine | None:
    """Return the coefficients of an affine expression.

    The constant is the value of a copy of the expression at zero, and the matrices are the gradients of that
    copy. The values of the given variables are neither read nor changed.

    Returns
    -------
    Affine, or None
        None where the expression is not affine, or where one of its parameters has no value.
    """
    if isinstance(expression, cp.Variable):  # the frequent case, without copies and gradients
        identity = sp.csr_array(sp.eye_array(expression.size))
        return Affine(np.zeros(expression.size), {expression: identity})
    if not expression.is_affine():
        return None
    variables = expression.variables()
    zeros = {variable.id: cp.Variable(variable.shape, var_id=variable.id) for variable in variables}
    for zero in zeros.values():
        zero.save_value(np.zeros(zero.shape))
    copy = expression.tree_copy({id(variable): zeros[variable.id] for variable in variables})
    value = copy.value
    if value is None:
        return None
    originals = {variable.id: variable for variable in variables}
    matrices = {originals[zero.id]: as_matrix(slope, copy.size) for zero, slope in copy.grad.items()}
    return Affine(flat(value), matrices)


def as_matrix(slope: Any, rows: int) -> sp.csr_array:
    """Return the Jacobian, with one row per entry, from cvxpy's gradient, which is its transpose."""
    matrix = sp.csr_array(slope).T if sp.issparse(slope) else np.reshape(slope, (-1, rows)).T
    return sp.csr_array(matrix)


def flat(value: Any) -> Array:
    """Return vec(value): the columns of an array, one below the other."""
    dense = value.toarray() if sp.issparse(value) else value
    return np.asarray(dense, dtype=float).ravel(order="F")
