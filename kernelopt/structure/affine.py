"""The coefficients of an affine expression, read without the values of its variables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import MulExpression
from cvxpy.atoms.affine.diag import diag_mat
from cvxpy.atoms.affine.index import index
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.sum import Sum
from cvxpy.atoms.affine.trace import Trace
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.running import check
from kernelopt.validation import Array, Index

READING = 2e-8  # seconds for each entry of a matrix that is read, measured


class Affine(NamedTuple):
    """The affine map x -> c + sum_v A_v vec(x_v), where vec stacks the columns of a variable."""

    constant: Array
    matrices: dict[cp.Variable, sp.csr_array]

    def gradient(self, variable: cp.Variable) -> Array:
        """Return the gradient of a scalar map by one variable: a row of A_v, or zeros."""
        return np.asarray(self.over([variable]).toarray()[0])

    def over(self, variables: Sequence[cp.Variable]) -> sp.csr_array:
        """Return the coefficients of some variables, one after the other."""
        size = self.constant.size
        found = [self.matrices.get(v, sp.csr_array((size, v.size))) for v in variables]
        return sp.csr_array(sp.hstack(found)) if found else sp.csr_array((size, 0))

    def at(self, point: dict[int, Array]) -> Array:
        """Return the value of the map at a point, which is a dict from variable id to value."""
        value = self.constant.copy()
        for variable, matrix in self.matrices.items():
            value += matrix @ flat(point[variable.id])
        return value

    def mapped(self, constant: Callable[[Array], Array], matrix: Callable[[Any], Any]) -> Affine:
        """Return the composition with a linear map, given what it makes of c and of the A_v."""
        return Affine(constant(self.constant), {v: matrix(A) for v, A in self.matrices.items()})


def affine(expression: cp.Expression) -> Affine | None:
    """Return the coefficients of an affine expression.

    Sums, negatives, totals, traces, diagonals, parts and other shapes of variables and constants are read
    from their terms: these are the frequent cases. For all others the constant is the value of a copy of the
    expression at zero, and the matrices are the gradients of that copy. The values of the given variables are
    neither read nor changed.

    Returns
    -------
    Affine, or None
        None where the expression is not affine, or where one of its parameters has no value.
    """
    if isinstance(expression, cp.Variable):
        every = np.arange(expression.size)
        return Affine(np.zeros(expression.size), {expression: unit_rows(every, expression.size)})
    if isinstance(expression, cp.Constant):
        return Affine(flat(expression.value), {})
    if isinstance(expression, AddExpression):
        if all(arg.size == expression.size for arg in expression.args):
            read_terms = [read for arg in expression.args if (read := affine(arg)) is not None]
            return total(read_terms) if len(read_terms) == len(expression.args) else None
    elif isinstance(expression, Wrap):
        return affine(expression.args[0])
    elif isinstance(expression, NegExpression):
        read = affine(expression.args[0])
        return None if read is None else read.mapped(np.negative, operator.neg)
    elif isinstance(expression, reshape | index | diag_mat | Trace):
        entries, inside = entries_of(expression), expression.args[0]
        if isinstance(inside, cp.Variable):
            chosen = Affine(np.zeros(entries.size), {inside: unit_rows(entries, inside.size)})
        else:
            read = affine(inside)
            if read is None:
                return None
            chosen = read.mapped(lambda c: c[entries], lambda A: A[entries])
        return weighted_sum(chosen, 1.0) if isinstance(expression, Trace) else chosen
    elif isinstance(expression, Sum) and expression.size == 1:
        read = affine(expression.args[0])
        return None if read is None else weighted_sum(read, 1.0)
    elif type(expression) is MulExpression:  # elementwise products are of a class derived from it
        left, right = expression.args
        known = isinstance(left, cp.Constant) and left.is_real()
        if known and isinstance(right, cp.Variable) and right.ndim == 1:
            check(READING * left.size)
            return Affine(np.zeros(expression.size), {right: one_row_or_more(left.value)})
    check()
    return affine_by_gradients(expression)


def entries_of(expression: cp.Expression) -> Index:
    """Return the positions of the entries of the argument, by columns, that make up an expression.

    The expression is another shape of the argument, a part of it, or its trace, which adds the entries.
    """
    argument = expression.args[0]
    if isinstance(expression, Trace):
        return np.arange(0, argument.size, argument.shape[0] + 1, dtype=np.intp)
    positions = np.arange(argument.size).reshape(argument.shape, order="F")
    return np.asarray(expression.numeric([positions]), dtype=np.intp).ravel(order="F")


def weighted_sum(read: Affine, weights: Array | float) -> Affine:
    """Return the scalar map weights'(c + sum_v A_v vec(x_v)); a single weight counts for all entries."""
    w = np.broadcast_to(weights, read.constant.shape)
    return read.mapped(lambda c: (w @ c).reshape(1), lambda A: sp.csr_array(w[None] @ A))


def unit_rows(entries: Index, size: int) -> sp.csr_array:
    """Return the rows `entries` of the identity matrix."""
    count = entries.size
    return sp.csr_array((np.ones(count), entries, np.arange(count + 1)), shape=(count, size))


def one_row_or_more(array: Any) -> sp.csr_array:
    """Return a matrix, or a vector as a matrix of one row."""
    if sp.issparse(array):
        return sp.csr_array(array, dtype=float)
    dense = np.array(array, dtype=float, ndmin=2)
    rows, width = dense.shape
    columns = np.tile(np.arange(width, dtype=np.int32), rows)
    matrix = sp.csr_array((dense.ravel(), columns, width * np.arange(rows + 1)), shape=dense.shape)
    matrix.eliminate_zeros()  # much faster than scipy's search for the places of the other entries
    return matrix


def total(parts: list[Affine]) -> Affine:
    """Return the sum of affine maps to vectors of one size."""
    constant, matrices = np.zeros(1), dict[cp.Variable, sp.csr_array]()
    for part in parts:
        constant = constant + part.constant
        for variable, A in part.matrices.items():
            matrices[variable] = matrices[variable] + A if variable in matrices else A
    return Affine(constant, matrices)


def affine_by_gradients(expression: cp.Expression) -> Affine | None:
    """Return the coefficients of any affine expression, as `affine` does."""
    check()
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
