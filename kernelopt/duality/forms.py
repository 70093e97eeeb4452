"""Affine functions of multipliers: the entries of the gradient of a Lagrangian, and its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.duality.matrices import multiple_of_identity, without_rounding
from kernelopt.duality.products import (
    constant_expression,
    in_shape,
    parametric_expression,
    product_expression,
    scaled,
    signed,
)


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
    bound : bool
        Whether it is the multiplier of a bound of a variable, which is no constraint of the user either.
    shares : Multiplier or None
        The gamma of an alpha, for a risk with a block norm.
    definition : Form, function without arguments or None
        What has replaced it. A function writes the expression anew from the multipliers in it.
    parametric : bool
        Whether the dual function has its product with a parameter of several entries.
    shift : bool
        Whether it is no multiplier but a shift of a gradient, see `Model.shifts`.
    silent : bool
        Whether it is left out of all expressions, as the shifts are outside of `recovery`.
    """

    variable: cp.Variable
    of: str
    auxiliary: bool = False
    solvable: bool = False
    norm: bool = False
    bound: bool = False
    shares: Multiplier | None = None
    definition: Form | Callable[[], cp.Expression] | None = None
    parametric: bool = False
    shift: bool = False
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
        """Whether all coefficients of multipliers, and not all of the constants, are negative or zero."""
        matrices = [term.matrix for term in self.terms if not term.multiplier.shift]
        return all((matrix.data <= 0).all() for matrix in matrices)

    @property
    def is_zero(self) -> bool:
        """Whether the function is identically zero."""
        return not self.audible and not any(one.matrix.nnz for one in self.given)

    @property
    def audible(self) -> list[Term]:
        """The terms whose multipliers are not silent."""
        return [term for term in self.terms if not term.multiplier.silent]

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
            part = product_expression(
                term.matrix, term.multiplier.expression, term.multiplier.variable, shape, symmetric, term.name
            )
            yield part if term.scale is None else scaled(term.scale, part)

    def _constants(self, shape: tuple[int, ...], symmetric: bool) -> Iterator[cp.Expression]:
        for one in self.given:
            if one.parameter is None:
                yield constant_expression(one.matrix.toarray()[:, 0], shape, symmetric, one.name)
            else:
                yield parametric_expression(one.matrix, one.parameter, shape, one.name)


def product(one: cp.Expression | None, other: cp.Expression | None) -> cp.Expression | None:
    """Return the product of two scales."""
    if one is None or other is None:
        return other if one is None else one
    return one * other
