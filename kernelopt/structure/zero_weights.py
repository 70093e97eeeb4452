"""Weights that linear constraints force to zero: a'x <= 0 with x, a >= 0 has x_j = 0 where a_j > 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.constraints import Equality, NonNeg, Zero

from kernelopt.language.terms import terms
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array, Mask

ROUNDING_SHARE = 1e-14  # of its terms: a coefficient below is a rounding error, and forces nothing


@kept_in_structure
def zero_weights(structure: Structure) -> tuple[dict[cp.Variable, Mask], ...]:
    """Return for each constraint the entries of the variables that `forced_entries` finds.

    The stand-ins of the risks are left out.
    """
    return of_variables(structure, structure.affines)


@kept_in_structure
def all_zero_weights(structure: Structure) -> dict[cp.Variable, Mask]:
    """Return the entries of the variables that some constraint forces to zero by signs."""
    return union(zero_weights(structure))


@kept_in_structure
def forced_zeros(structure: Structure) -> tuple[Affine | None, ...]:
    """Return for each constraint the entries that it forces to zero as an affine expression, or None.

    They are the `zero_weights`, and the entries in the rows and columns of a matrix inequality whose diagonal
    entries vanish.
    """
    pairs = zip(structure.lifted.constraints, zero_weights(structure), strict=True)
    return tuple(as_equations(entries) or read_forced_zeros(c) for c, entries in pairs)


def zero_equations(structure: Structure) -> list[cp.Constraint]:
    """Return x = 0 for the weights that a constraint forces to zero.

    They follow from the other constraints. With them no multiplier of a constraint a'x <= 0 need be as large
    as 1 / a_j.
    """
    return equations_of(all_zero_weights(structure))


def lasting_zeros(structure: Structure) -> dict[cp.Variable, Mask]:
    """Return the entries that constraints without parameters force to zero, for all their values."""
    pairs = zip(structure.lifted.constraints, structure.affines, strict=True)
    return union(of_variables(structure, [None if c.parameters() else read for c, read in pairs]))


def equations_of(entries: dict[cp.Variable, Mask]) -> list[cp.Constraint]:
    """Return x = 0 for entries of variables."""
    return [cp.vec(x, order="F")[np.flatnonzero(zero)] == 0 for x, zero in entries.items()]


def of_variables(
    structure: Structure, affines: Sequence[Affine | None]
) -> tuple[dict[cp.Variable, Mask], ...]:
    """Return the `forced_entries` of the constraints, without the stand-ins of the risks."""
    own = set(structure.variables)
    found = forced_entries(structure.lifted.constraints, affines)
    return tuple({v: mask for v, mask in entries.items() if v in own} for entries in found)


def union(found: Sequence[dict[cp.Variable, Mask]]) -> dict[cp.Variable, Mask]:
    """Return the entries that are in one of several masks."""
    whole: dict[cp.Variable, Mask] = {}
    for entries in found:
        for variable, mask in entries.items():
            whole[variable] = whole.get(variable, np.zeros(variable.size, dtype=bool)) | mask
    return whole


def forced_entries(
    constraints: Sequence[cp.Constraint], affines: Sequence[Affine | None]
) -> tuple[dict[cp.Variable, Mask], ...]:
    """Return for each constraint the entries of non-negative variables that it forces to zero.

    An entry that a constraint forces to zero no longer counts in the others, which are read again until no
    new entry is found. The size of a coefficient does not matter: -1e-25 x_1 - x_2 >= 0 forces both entries.
    The exception is a coefficient that is the rounding error of a difference of equal terms.

    Parameters
    ----------
    constraints : sequence of cvxpy constraints
    affines : sequence of Affine or None
        The expression of each constraint as an affine map, None where it is none.
    """
    variables = {v for read in affines if read is not None for v in read.matrices}
    zero: dict[cp.Variable, Mask] = {v: np.zeros(v.size, dtype=bool) for v in variables}
    found: list[dict[cp.Variable, Mask]] = [{} for _ in constraints]
    grown = True
    while grown:
        grown = False
        for constraint, read, own in zip(constraints, affines, found, strict=True):
            if read is None:
                continue
            for sign in senses(constraint):
                for variable, new in forced_by(constraint, read, sign, zero):
                    zero[variable] |= new
                    own[variable] = own.get(variable, False) | new
                    grown = True
    return tuple(found)


def senses(constraint: cp.Constraint) -> tuple[float, ...]:
    """Return the signs s with s * expression <= 0."""
    if isinstance(constraint, Equality | Zero):
        return (1.0, -1.0)
    return (-1.0,) if isinstance(constraint, NonNeg) else (1.0,)


def forced_by(
    constraint: cp.Constraint, read: Affine, sign: float, zero: dict[cp.Variable, Mask]
) -> Iterator[tuple[cp.Variable, Mask]]:
    """Yield the variables with the entries that are zero by the rows of sign * read <= 0, beyond `zero`."""
    if not any(variable.is_nonneg() for variable in read.matrices):
        return
    rows = read.constant == 0
    for variable, matrix in read.matrices.items():
        wrong = matrix * sign < 0 if variable.is_nonneg() else matrix != 0
        rows &= ~as_mask(wrong[:, np.flatnonzero(~zero[variable])].sum(axis=1))
    if not rows.any():
        return
    chosen = np.flatnonzero(rows)
    if not any((matrix[chosen] != 0).nnz for matrix in read.matrices.values()):
        return
    sizes = sizes_of_terms(constraint.expr)
    for variable, matrix in read.matrices.items():
        if variable.is_nonneg():
            above = (sign * matrix - ROUNDING_SHARE * sizes.get(variable.id, 0 * matrix))[chosen] > 0
            new = as_mask(above.sum(axis=0)) & ~zero[variable]
            if new.any():
                yield variable, new


def sizes_of_terms(expression: cp.Expression) -> dict[int, Any]:
    """Return by variable id the sums of the absolute coefficients of the terms of a sum."""
    sizes: dict[int, Any] = {}
    for term in terms_of_sum(expression):
        read = affine(term)
        for variable, matrix in (read.matrices if read is not None else {}).items():
            size = abs(matrix)
            if size.shape[0] != expression.size:  # a number that is added to every entry
                size = sp.vstack([size] * expression.size, format="csr")
            sizes[variable.id] = sizes[variable.id] + size if variable.id in sizes else size
    return sizes


def terms_of_sum(expression: cp.Expression) -> Iterator[cp.Expression]:
    """Yield the terms of an expression that is a sum or a difference, else the expression itself."""
    if isinstance(expression, AddExpression | NegExpression):
        for arg in expression.args:
            yield from terms_of_sum(arg)
    else:
        yield expression


def as_mask(counts: Any) -> Mask:
    """Return which entries of an array of counts are positive."""
    flat: Array = np.ravel(np.asarray(counts))
    return np.asarray(flat > 0)


def as_equations(entries: dict[cp.Variable, Mask]) -> Affine | None:
    """Return the equations x_j = 0 of the given entries as an affine map, None where there are none."""
    if not entries:
        return None
    chosen = {v: np.flatnonzero(mask) for v, mask in entries.items()}
    count = sum(at.size for at in chosen.values())
    matrices, start = {}, 0
    for variable, at in chosen.items():
        position = (np.arange(start, start + at.size), at)
        matrices[variable] = sp.csr_array((np.ones(at.size), position), shape=(count, variable.size))
        start += at.size
    return Affine(np.zeros(count), matrices)


def read_forced_zeros(constraint: Any) -> Affine | None:
    """Return the entries that a constraint M >> 0 forces to zero, as an affine expression, or None.

    A PSD matrix with M_ii = 0 has M_ij = 0 for all j. These equations are stated on their own because the
    smallest eigenvalue hides their violation: for M = [[0, x], [x, z]] it is about -x^2 / z, which is far
    smaller than the violation |x|.
    """
    if not isinstance(constraint, cp.constraints.PSD):
        return None
    M = constraint.args[0]
    vanishing = vanishing_diagonal(M)
    read = affine(M) if vanishing.any() else None
    if read is None:
        return None
    in_row_or_column = np.ravel(vanishing[:, None] | vanishing, order="F")
    rows = np.flatnonzero(in_row_or_column & not_identically_zero(read))
    if not rows.size:
        return None
    return Affine(read.constant[rows], {v: sp.csr_array(A[rows]) for v, A in read.matrices.items()})


def vanishing_diagonal(M: cp.Expression) -> Mask:
    """Return which diagonal entries of M are identically zero.

    For a combination of kernels these are the entries that are zero in each of its kernels.
    """
    parts = terms(M)
    if parts is not None:
        return np.asarray(sum(grams.magnitudes.sum(axis=0) for _, grams in parts) == 0)
    diagonal = affine(cp.diag(M))
    return np.zeros(M.shape[0], dtype=bool) if diagonal is None else ~not_identically_zero(diagonal)


def not_identically_zero(read: Affine) -> Mask:
    """Return which entries of an affine map have a constant or a coefficient that is not zero."""
    found: Array = np.abs(read.constant)
    for matrix in read.matrices.values():
        found = found + np.ravel(abs(matrix).sum(axis=1))
    return found > 0
