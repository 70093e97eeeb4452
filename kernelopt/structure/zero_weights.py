"""Weights that linear constraints force to zero: a'x <= 0 with x, a >= 0 has x_j = 0 where a_j > 0."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Return for each constraint the entries of the variables that `forced_columns` finds."""
    return tuple(masks(structure, columns) for columns in forced_columns(structure, structure.affines))


@kept_in_structure
def all_zero_weights(structure: Structure) -> dict[cp.Variable, Mask]:
    """Return the entries of the variables that some constraint forces to zero by signs."""
    return masks(structure, [j for columns in forced_columns(structure, structure.affines) for j in columns])


def lasting_zeros(structure: Structure) -> dict[cp.Variable, Mask]:
    """Return the entries that constraints without parameters force to zero, for all their values."""
    pairs = zip(structure.lifted.constraints, structure.affines, strict=True)
    found = forced_columns(structure, [None if c.parameters() else read for c, read in pairs])
    return masks(structure, [j for columns in found for j in columns])


def zero_equations(structure: Structure) -> list[cp.Constraint]:
    """Return x = 0 for the weights that a constraint forces to zero.

    They follow from the other constraints. With them no multiplier of a constraint a'x <= 0 need be as large
    as 1 / a_j.
    """
    return equations_of(all_zero_weights(structure))


def equations_of(entries: dict[cp.Variable, Mask]) -> list[cp.Constraint]:
    """Return x = 0 for entries of variables."""
    return [cp.vec(x, order="F")[np.flatnonzero(zero)] == 0 for x, zero in entries.items()]


@kept_in_structure
def forced_zeros(structure: Structure) -> tuple[Affine | None, ...]:
    """Return for each constraint the entries that it forces to zero as an affine expression, or None.

    They are the `zero_weights`, and the entries in the rows and columns of a matrix inequality whose diagonal
    entries vanish.
    """
    pairs = zip(structure.lifted.constraints, zero_weights(structure), strict=True)
    return tuple(
        affine(cp.hstack([equation.args[0] for equation in equations_of(entries)]))
        if entries
        else read_forced_zeros(constraint)
        for constraint, entries in pairs
    )


def masks(structure: Structure, columns: Sequence[int]) -> dict[cp.Variable, Mask]:
    """Return columns of `forced_columns` as entries of the variables, without the stand-ins of the risks."""
    ends = np.cumsum([v.size for v in structure.variables], dtype=int)
    inside = np.array([j for j in columns if j < ends[-1]], dtype=int)
    whole = np.isin(np.arange(ends[-1] if inside.size else 0), inside)
    pairs = zip(structure.variables, np.split(whole, ends[:-1]), strict=True) if inside.size else ()
    return {variable: mask for variable, mask in pairs if mask.any()}


def forced_columns(structure: Structure, affines: Sequence[Affine | None]) -> list[list[int]]:
    """Return for each constraint the entries of non-negative variables that it forces to zero.

    The entries are counted over all variables and then all stand-ins of the risks, one after the other. An
    entry that a constraint forces to zero no longer counts in the others, which are read again until no new
    entry is found. The size of a coefficient does not matter: -1e-25 x_1 - x_2 >= 0 forces both entries. The
    exception is a coefficient that is the rounding error of a difference of equal terms.

    Parameters
    ----------
    structure : Structure
    affines : sequence of Affine or None
        The expression of each constraint as an affine map, None where it is not to be read.
    """
    leaves = [*structure.variables, *(term.stand_in for term in structure.risks)]
    nonneg = np.concatenate([np.zeros(0, dtype=bool), *(np.full(v.size, v.is_nonneg()) for v in leaves)])
    zero, found = np.zeros(nonneg.size, dtype=bool), list[list[int]]([] for _ in affines)
    grown = True
    while grown:
        grown = False
        for constraint, read, own in zip(structure.lifted.constraints, affines, found, strict=True):
            if read is None or read.constant.all() or not any(v.is_nonneg() for v in read.matrices):
                continue
            A = joint(read.matrices, leaves, read.constant.size).tocoo()
            for sign in senses(constraint):
                wrong = np.where(nonneg[A.col], sign * A.data < 0, A.data != 0) & ~zero[A.col]
                rows = read.constant == 0
                rows[A.row[wrong]] = False
                new = rows[A.row] & nonneg[A.col] & ~zero[A.col] & (A.data != 0)
                if not new.any():
                    continue
                sizes = joint(sizes_of_terms(constraint.expr), leaves, read.constant.size)
                at = A.row[new], A.col[new]
                forced = np.unique(at[1][sign * A.data[new] > ROUNDING_SHARE * np.ravel(sizes[at])])
                zero[forced] = True
                own += forced.tolist()
                grown = grown or forced.size > 0
    return found


def joint(matrices: dict[cp.Variable, Any], leaves: Sequence[cp.Variable], rows: int) -> sp.csr_array:
    """Return the matrices of the variables beside each other, in the order of `leaves`."""
    blocks = [matrices[v] if v in matrices else sp.csr_array((rows, v.size)) for v in leaves]
    return sp.csr_array(sp.hstack(blocks))


def senses(constraint: cp.Constraint) -> tuple[float, ...]:
    """Return the signs s with s * expression <= 0."""
    if isinstance(constraint, Equality | Zero):
        return (1.0, -1.0)
    return (-1.0,) if isinstance(constraint, NonNeg) else (1.0,)


def sizes_of_terms(expression: cp.Expression) -> dict[cp.Variable, Any]:
    """Return by variable the sums of the absolute coefficients of the terms of a sum."""
    sizes: dict[cp.Variable, Any] = {}
    terms_of_sum = [expression]
    while terms_of_sum:
        term = terms_of_sum.pop()
        if isinstance(term, AddExpression | NegExpression):
            terms_of_sum += term.args
            continue
        read = affine(term)
        for variable, matrix in (read.matrices if read is not None else {}).items():
            size = abs(matrix)
            if size.shape[0] != expression.size:  # a number that is added to every entry
                size = sp.vstack([size] * expression.size, format="csr")
            sizes[variable] = sizes[variable] + size if variable in sizes else size
    return sizes


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
    value = M.value
    if value is not None and np.isfinite(value).all() and np.diag(value).all():  # at the present values
        return np.zeros(M.shape[0], dtype=bool)
    diagonal = affine(cp.diag(M))
    return np.zeros(M.shape[0], dtype=bool) if diagonal is None else ~not_identically_zero(diagonal)


def not_identically_zero(read: Affine) -> Mask:
    """Return which entries of an affine map have a constant or a coefficient that is not zero."""
    found: Array = np.abs(read.constant)
    for matrix in read.matrices.values():
        found = found + np.ravel(abs(matrix).sum(axis=1))
    return found > 0
