"""The coefficients of an affine expression, whatever its variables hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.validation import Array


class Affine(NamedTuple):
    """constant + sum over variables of matrix @ vec(variable), flattened by columns as cvxpy does."""

    constant: Array
    matrices: dict[cp.Variable, sp.csr_array]

    def gradient(self, variable: cp.Variable) -> Array:
        """Return the coefficients of one variable in a scalar, zero where it does not appear."""
        matrix: Any = self.matrices.get(variable)
        return np.zeros(variable.size) if matrix is None else matrix.toarray()[0]

    def at(self, point: dict[int, Array]) -> Array:
        """Return the value at a point, given by variable id."""
        value = self.constant.copy()
        for variable, matrix in self.matrices.items():
            value += matrix @ flat(point[variable.id])
        return value


def affine(expression: cp.Expression) -> Affine | None:
    """Read an affine expression; None if it is not affine, or a parameter has no value.

    A copy of the expression is evaluated at zero: the variables themselves are not looked at.
    """
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
    """Return cvxpy's gradient, which is the transpose, as a matrix with one row per entry."""
    matrix = sp.csr_array(slope).T if sp.issparse(slope) else np.reshape(slope, (-1, rows)).T
    return sp.csr_array(matrix)


def flat(value: Any) -> Array:
    """Return an array flattened by columns."""
    dense = value.toarray() if sp.issparse(value) else value
    return np.asarray(dense, dtype=float).ravel(order="F")
