"""Affine functions of multipliers: the entries of the gradient of a Lagrangian, and its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints.constraint import Constraint

from kernelopt.validation import Array

ROUNDING = 1e-14  # coefficients below this share of the largest are rounding of cvxpy's scaling by sqrt(2)


@dataclass(eq=False)
class Multiplier:
    """A dual variable, or the expression that the presolve has put in its place.

    Attributes
    ----------
    variable : cp.Variable
    of : str
        What it is the multiplier of, in words.
    auxiliary : bool
        Whether it belongs to a part of an atom and not to a constraint of the user.
    solvable : bool
        Whether an equation of the user's variables may be solved for it. The value of those variables is
        then the gradient of the dual function by this multiplier.
    norm : bool
        Whether the dual function depends on it only by a norm, so that nothing is gained by negative entries.
    definition : Form, function without arguments or None
        What has replaced it. A function writes the expression anew from the multipliers in it.
    silent : bool
        Whether it is left out of all expressions, as the shifts of `Model` are outside of `recovery`.
    """

    variable: cp.Variable
    of: str
    auxiliary: bool = False
    solvable: bool = False
    norm: bool = False
    definition: Form | Callable[[], cp.Expression] | None = None
    silent: bool = False

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(self.variable.size)

    @property
    def expression(self) -> cp.Expression:
        """The variable, or what has replaced it, in the shape of the variable."""
        if self.definition is None:
            return self.variable
        if isinstance(self.definition, Form):
            symmetric = self.variable.ndim == 2 and self.variable.is_symmetric()
            return self.definition.expression(self.variable.shape, symmetric)
        return in_shape(self.definition(), self.variable.shape)


class Term(NamedTuple):
    """scale * matrix @ vec(multiplier), where `scale` is 1 if it is None and has parameters otherwise."""

    matrix: sp.csr_array
    multiplier: Multiplier
    scale: cp.Expression | None = None
    name: str = "A"


class Given(NamedTuple):
    """scale * vector for a constant vector, or matrix @ vec(parameter)."""

    matrix: sp.csr_array
    parameter: cp.Expression | None = None
    name: str = "c"


@dataclass(eq=False)
class Form:
    """The affine function sum of terms + sum of constants, with `size` entries."""

    size: int
    terms: list[Term] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)

    def add(
        self, matrix: Any, multiplier: Multiplier, scale: cp.Expression | None = None, name: str = "A"
    ) -> None:
        """Add a term; terms of one multiplier and scale are summed up."""
        matrix = without_rounding(sp.csr_array(matrix))
        for i, term in enumerate(self.terms):
            if term.multiplier is multiplier and term.scale is scale:
                matrix = without_rounding(sp.csr_array(term.matrix + matrix))
                self.terms[i] = Term(matrix, multiplier, scale, term.name)
                if not matrix.nnz:
                    del self.terms[i]
                return
        if matrix.nnz:
            self.terms.append(Term(matrix, multiplier, scale, name))

    def add_given(self, matrix: Any, parameter: cp.Expression | None = None, name: str = "c") -> None:
        """Add a constant vector, shape (size,) or (size, 1), or a matrix times a parameter."""
        if parameter is None:
            matrix = np.reshape(matrix.toarray() if sp.issparse(matrix) else matrix, (self.size, 1))
        matrix = without_rounding(sp.csr_array(matrix))
        for i, one in enumerate(self.given):
            if one.parameter is parameter and (parameter is not None or one.name == name):
                self.given[i] = Given(sp.csr_array(one.matrix + matrix), parameter, one.name)
                return
        if matrix.nnz:
            self.given.append(Given(matrix, parameter, name))

    def add_form(self, other: Form, matrix: Any, scale: cp.Expression | None = None) -> None:
        """Add scale * matrix @ other."""
        for term in other.terms:
            self.add(matrix @ term.matrix, term.multiplier, product(scale, term.scale), term.name)
        for one in other.given:
            if scale is None:
                self.add_given(matrix @ one.matrix, one.parameter, one.name)
            else:
                self.add_given(matrix @ one.matrix, scale, one.name)

    def substitute(self, multiplier: Multiplier, form: Form) -> None:
        """Replace a multiplier by an affine function of others."""
        taken = [term for term in self.terms if term.multiplier is multiplier]
        self.terms = [term for term in self.terms if term.multiplier is not multiplier]
        for term in taken:
            self.add_form(form, term.matrix, term.scale)

    def times(self, factor: float) -> Form:
        """Return the function times a number."""
        scaled = Form(self.size)
        scaled.add_form(self, factor * sp.eye_array(self.size, format="csr"))
        return scaled

    def without(self, multiplier: Multiplier) -> Form:
        """Return the function without the terms of one multiplier."""
        rest = [term for term in self.terms if term.multiplier is not multiplier]
        return Form(self.size, rest, list(self.given))

    def of(self, multiplier: Multiplier) -> list[Term]:
        """Return the terms of one multiplier."""
        return [term for term in self.terms if term.multiplier is multiplier]

    @property
    def alias(self) -> Multiplier | None:
        """The multiplier that the function is equal to, None where it is something else."""
        if len(self.audible) != 1 or any(one.matrix.nnz for one in self.given):
            return None
        term = self.audible[0]
        same = term.scale is None and multiple_of_identity(term.matrix) == 1
        return term.multiplier if same else None

    @property
    def negative(self) -> bool:
        """Whether all coefficients are negative or zero."""
        parts = [*(term.matrix for term in self.audible), *(one.matrix for one in self.given)]
        return all((matrix.data <= 0).all() for matrix in parts)

    @property
    def is_zero(self) -> bool:
        """Whether the function is identically zero."""
        return not self.audible and not any(one.matrix.nnz for one in self.given)

    @property
    def audible(self) -> list[Term]:
        """The terms whose multipliers are not silent."""
        return [term for term in self.terms if not term.multiplier.silent]

    def constant(self) -> Array:
        """Return the constant part at the current values of the parameters."""
        total = np.zeros(self.size)
        for one in self.given:
            if one.parameter is None:
                total += one.matrix.toarray()[:, 0]
            else:
                total += one.matrix @ np.ravel(one.parameter.value, order="F")
        return total

    def split(self) -> tuple[Form, Form]:
        """Return (A, B) with the function A - B, where coefficients are negative in B as far as possible."""
        plus, minus = Form(self.size), Form(self.size)
        for term in self.audible:
            side = minus if (term.matrix.data <= 0).all() else plus
            sign = -1.0 if side is minus else 1.0
            side.terms.append(Term(sp.csr_array(sign * term.matrix), *term[1:]))
        for one in self.given:
            side = minus if (one.matrix.data <= 0).all() else plus
            sign = -1.0 if side is minus else 1.0
            side.given.append(Given(sp.csr_array(sign * one.matrix), *one[1:]))
        return plus, minus

    def expression(self, shape: tuple[int, ...], symmetric: bool = False) -> cp.Expression:
        """Return the function as a cvxpy expression of a shape; of a matrix its symmetric part."""
        parts = [*self._products(shape, symmetric), *self._constants(shape, symmetric)]
        if not parts:
            return cp.Constant(np.zeros(shape))
        total = parts[0]
        for sign, part in [signed(part) for part in parts[1:]]:
            total = total - part if sign < 0 else total + part
        return total if total.shape == shape else cp.promote(total, shape)

    def _products(self, shape: tuple[int, ...], symmetric: bool) -> Iterator[cp.Expression]:
        for term in self.audible:
            part = product_expression(term.matrix, term.multiplier, shape, symmetric, term.name)
            yield part if term.scale is None else scaled(term.scale, part)

    def _constants(self, shape: tuple[int, ...], symmetric: bool) -> Iterator[cp.Expression]:
        for one in self.given:
            if one.parameter is None:
                yield constant_expression(one.matrix.toarray()[:, 0], shape, symmetric, one.name)
            else:
                yield parametric_expression(one, shape)


def signed(part: cp.Expression) -> tuple[float, cp.Expression]:
    """Return (-1, e) for -e, and (1, part) for anything else."""
    if isinstance(part, cp.atoms.affine.unary_operators.NegExpression):
        return -1.0, part.args[0]
    return 1.0, part


def scaled(scale: cp.Expression, part: cp.Expression) -> cp.Expression:
    """Return scale * part with the sign in front."""
    sign, inner = signed(part)
    return -(scale * inner) if sign < 0 else scale * inner


def product(one: cp.Expression | None, other: cp.Expression | None) -> cp.Expression | None:
    """Return the product of two scales."""
    if one is None or other is None:
        return other if one is None else one
    return one * other


def without_rounding(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix without entries that are zero up to rounding."""
    matrix.sum_duplicates()
    if matrix.nnz:
        matrix.data[np.abs(matrix.data) <= ROUNDING * np.abs(matrix.data).max()] = 0.0
        matrix.eliminate_zeros()
    return matrix


def transposition(n: int) -> sp.csr_array:
    """Return the permutation with vec(X') = permutation @ vec(X) for n x n matrices."""
    order = np.arange(n * n).reshape(n, n).ravel(order="F")
    return sp.csr_array(sp.eye_array(n * n, format="csr")[order])


def symmetrized(matrix: sp.csr_array, n: int) -> sp.csr_array:
    """Return the map to the symmetric part: 1/2 (M + PM) with the transposition P."""
    return without_rounding(sp.csr_array((matrix + transposition(n) @ matrix) / 2))


def multiple_of_identity(matrix: sp.csr_array) -> float | None:
    """Return c where the matrix is c I, else None."""
    if matrix.shape[0] != matrix.shape[1] or matrix.nnz != matrix.shape[0]:
        return None
    entries = matrix.tocoo()
    if not (entries.row == entries.col).all() or np.ptp(entries.data) > ROUNDING * abs(entries.data[0]):
        return None
    return float(entries.data[0])


def coefficient_of(term: Term, symmetric: bool) -> float | None:
    """Return c where a term is c times its multiplier; for matrices up to the symmetric part."""
    factor = multiple_of_identity(term.matrix)
    if factor is not None or not symmetric:
        return factor
    shape = term.multiplier.variable.shape
    if len(shape) != 2 or not term.multiplier.variable.is_symmetric():
        return None
    n = shape[0]
    if term.matrix.shape[0] != n * n:
        return None
    both = symmetrized(symmetrized(term.matrix, n).T.tocsr(), n)
    same = symmetrized(sp.csr_array(sp.eye_array(n * n, format="csr")), n)
    factor = float(both[0, 0])
    gap = abs(both - factor * same)
    return factor if factor and (not gap.nnz or gap.max() <= ROUNDING * abs(factor)) else None


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
    matrix: sp.csr_array, multiplier: Multiplier, shape: tuple[int, ...], symmetric: bool, name: str
) -> cp.Expression:
    """Return matrix @ vec(multiplier) as a short expression of a shape."""
    y = multiplier.expression
    if symmetric:
        n = shape[0]
        factor = coefficient_of(Term(matrix, multiplier), True)
        if factor is not None:
            return times(factor, y if y.is_symmetric() or multiplier.variable.is_symmetric() else half_sum(y))
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


def diagonal_of(matrix: sp.csr_array) -> Array | None:
    """Return the diagonal of a diagonal matrix, None for any other."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    entries = matrix.tocoo()
    return np.asarray(matrix.diagonal()) if (entries.row == entries.col).all() else None


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


def parametric_expression(one: Given, shape: tuple[int, ...]) -> cp.Expression:
    """Return matrix @ vec(parameter) as an expression of a shape."""
    parameter: Any = one.parameter
    factor = multiple_of_identity(one.matrix)
    if factor is not None:
        return times(factor, in_shape(parameter, shape))
    if parameter.size == 1:
        value = one.matrix.toarray()[:, 0]
        scalar = parameter if parameter.ndim == 0 else cp.reshape(parameter, (), order="F")
        if np.ptp(value) == 0:
            return times(float(value[0]), scalar)
        return scalar * constant_expression(value, shape, False, one.name)
    flat = parameter if parameter.ndim == 1 else cp.vec(parameter, order="F")
    return in_shape(cp.Constant(one.matrix.toarray(), name=one.name) @ flat, shape)


def labelled(constraint: Constraint, label: str) -> Constraint:
    """Return a constraint with a label."""
    constraint.set_label(label)
    return constraint
