"""Kernel expressions as sums of weighted Gram matrices."""

from __future__ import annotations

from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import DivExpression, MulExpression, multiply
from cvxpy.atoms.affine.diag import diag_vec
from cvxpy.atoms.affine.index import index
from cvxpy.atoms.affine.promote import Promote
from cvxpy.atoms.affine.reshape import reshape
from cvxpy.atoms.affine.unary_operators import NegExpression

from kernelopt.grams import Grams, Storage
from kernelopt.grams.caching import cached_array
from kernelopt.grams.joined import one_by_one
from kernelopt.language.combination import Combination
from kernelopt.validation import Array, Index, as_symmetric


class Term(NamedTuple):
    """The sum of weights_i K_i over the m Gram matrices of a stack."""

    weights: cp.Expression
    grams: Grams

    @property
    def vanishes(self) -> bool:
        """Whether it is a constant matrix of zeros, as in `K >> 0`, which cvxpy writes as K - 0."""
        given = self.grams.storage
        constant = isinstance(given, ExpressionStorage) and Combination not in given.expression.atoms()
        return constant and not given.gram(0).any()


class ExpressionStorage(Storage):
    """A constant matrix that is evaluated from a cvxpy expression when it is needed."""

    def __init__(self, expression: cp.Expression, rows: slice | Index | None = None) -> None:
        self.expression, self.points = expression, rows
        n = expression.shape[0] if rows is None else len(np.arange(expression.shape[0])[rows])
        super().__init__(1, n, ["the fixed kernel"])

    @cached_array
    def _gram(self) -> Array:
        K = as_symmetric(dense(self.expression), self.names[0])
        return K if self.points is None else K[self.points][:, self.points]

    def gram(self, i: int) -> Array:
        return self._gram

    def block(self, rows: slice | Index) -> Storage:
        whole = np.arange(self.expression.shape[0])
        chosen = whole if self.points is None else whole[self.points]
        return ExpressionStorage(self.expression, chosen[rows])

    def _subset(self, chosen: Index) -> Storage:
        return one_by_one(self, chosen)


def terms(K: cp.Expression) -> list[Term] | None:
    """Return a kernel as a list of terms with the sum K, or None if it is no such sum.

    The following are recognised: combinations, constant matrices, scalar multiples of both, `V @ diag(mu) @
    V.T`, principal blocks, and sums of all these. For example `combine(mu, grams) + tau * np.eye(N)` has two
    terms.
    """
    if isinstance(K, Combination):
        return [Term(K.weights, K.grams)]
    if isinstance(K, AddExpression):
        parts = [terms(arg) for arg in K.args]
        return None if None in parts else [term for part in parts for term in part or []]
    if isinstance(K, index):
        inner = terms(K.args[0])
        rows, columns = K.key
        if inner is None or rows != columns:
            return None
        return [Term(w, grams.block(rows)) for w, grams in inner]
    if isinstance(K, NegExpression):
        inner = terms(K.args[0])
        return None if inner is None else [Term(-w, grams) for w, grams in inner]
    if isinstance(K, multiply | DivExpression | MulExpression):
        read = read_product(K)
        if read is not None:
            return read
    if K.is_constant() and not K.parameters():
        return [constant_term(K)]
    return None


def read_product(K: cp.Expression) -> list[Term] | None:
    """Return the terms of a scalar times a kernel, a kernel over a scalar, or V diag(mu) V'; or None."""
    left, right = K.args
    if isinstance(K, DivExpression):
        scalar = as_scalar(right)
        inner = None if scalar is None else terms(left)
        return None if inner is None else [Term(w / scalar, grams) for w, grams in inner]
    for scale, matrix in ((left, right), (right, left)):
        scalar = as_scalar(scale)
        if scalar is not None and (scalar.is_constant() or matrix.is_constant()):
            inner = terms(matrix)
            return None if inner is None else [Term(scalar * w, grams) for w, grams in inner]
    if isinstance(K, MulExpression):
        return read_spectral(left, right)
    return None


def as_scalar(expression: cp.Expression) -> cp.Expression | None:
    """Return the scalar of an expression that is a scalar or a promoted scalar, else None."""
    if isinstance(expression, Promote):
        return as_scalar(expression.args[0])
    return expression if expression.size == 1 and expression.ndim == 0 else None


def read_spectral(left: cp.Expression, right: cp.Expression) -> list[Term] | None:
    """Return (V diag(mu)) V' as the rank-one matrices of the columns of V with the weights mu, or None."""
    if not (isinstance(left, MulExpression) and right.is_constant() and not right.parameters()):
        return None
    V, middle = left.args
    if not (isinstance(middle, diag_vec) and V.is_constant() and not V.parameters()):
        return None
    left_factor, right_factor = dense(V), dense(right)
    if not np.array_equal(left_factor, right_factor.T):
        return None
    weights = middle.args[0]
    if isinstance(weights, reshape) and weights.args[0].ndim == 1:
        weights = weights.args[0]
    return [Term(weights, Grams.rank_one(left_factor))]


def dense(expression: cp.Expression) -> Array:
    """Return the value of a constant as a dense array."""
    value = expression.value
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)


def constant_term(K: cp.Expression) -> Term:
    """Return a constant matrix as a term of weight one; a multiple of I is a weight times the identity."""
    one = cp.Constant(np.ones(1))
    if K.ndim < 2:  # in a sum of 1 x 1 matrices cvxpy leaves numbers as scalars, such as the 0 of `K >> 0`
        K = cp.Constant(dense(K).reshape(1, 1))
    if isinstance(K, cp.Constant):
        value = K.value
        diagonal = np.asarray(value.diagonal())
        constant = diagonal[0] != 0 and (diagonal == diagonal[0]).all()
        if constant and abs(value).sum() == abs(diagonal).sum():
            return Term(diagonal[0] * one, Grams.identity(K.shape[0]))
    return Term(one, Grams(ExpressionStorage(K)))
