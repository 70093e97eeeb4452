"""Powers of norms of linear images: prices of weights, and the sides of balls and ellipsoids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.atoms.quad_over_lin import quad_over_lin

from kernelopt.numerics.rounding import EIGENVALUE, gamma
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.trees import number
from kernelopt.validation import Array, Index

# cvxpy has called the class by different names.
POWER: Any = type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False))


@dataclass(frozen=True, eq=False)
class Length:
    """|L x|_p of the entries x >= 0 of some variables, one after the other, or sqrt(x'Ex).

    Attributes
    ----------
    variables : tuple of non-negative variables
    p : float in [1, inf]
        2 where neither L is diagonal up to the order of its rows nor the length is sqrt(x'Ex).
    matrix : sparse array of shape (k, n), or (n, n)
        L, or a positive definite E.
    is_form : bool
        Whether the matrix is E.
    """

    variables: tuple[cp.Variable, ...]
    p: float
    matrix: sp.csr_array
    is_form: bool = False

    @cached_property
    def diagonal(self) -> Array | None:
        """The absolute value of the one entry in each column of L, or zero; None where L has more."""
        return None if self.is_form else single_entries(self.matrix)


@dataclass(frozen=True, eq=False)
class Power:
    """factor * length^exponent, with factor >= 0 and exponent >= 1."""

    length: Length
    exponent: float = 1.0
    factor: float = 1.0

    def times(self, factor: float) -> Power:
        """Return a multiple."""
        return Power(self.length, self.exponent, factor * self.factor)


def single_entries(matrix: sp.csr_array) -> Array | None:
    """Return the absolute value of the one entry in each column, or zero; None for two in a line."""
    found = sp.csc_array(matrix)
    found.eliminate_zeros()
    if (np.diff(found.indptr) > 1).any() or np.unique(found.indices).size < found.nnz:
        return None
    return np.asarray(abs(found).sum(axis=0)).ravel()


def read_power(e: cp.Expression) -> Power | None:
    """Read a scalar expression as a power of a length, None if it is something else."""
    for kind, reader in READERS:
        if isinstance(e, kind):
            return reader(e)
    return read_sum(e)


def read_wrapped(e: cp.Expression) -> Power | None:
    """Read what cvxpy only marks."""
    return read_power(e.args[0])


def read_norm(e: cp.Expression) -> Power | None:
    """Read a norm of all entries."""
    p = {norm1: 1.0, norm_inf: np.inf}.get(type(e)) or float(e.p)
    return None if getattr(e, "axis", None) is not None or p < 1 else powered(e.args[0], p)


def read_largest(e: cp.Expression) -> Power | None:
    """Read the largest entry of a non-negative vector."""
    return powered(e.args[0], np.inf) if e.axis is None and e.args[0].is_nonneg() else None


def read_squares(e: cp.Expression) -> Power | None:
    """Read a sum of squares over a positive number."""
    below = e.args[1]
    if getattr(e, "axis", None) is not None or not below.is_constant() or not number(below) > 0:
        return None
    return powered(e.args[0], 2.0, 2.0, 1 / number(below))


def read_form(e: cp.Expression) -> Power | None:
    """Read x'Ex with a positive definite E."""
    read = affine(e.args[0]) if e.args[1].is_constant() else None
    value: Any = None if read is None else e.args[1].value
    if read is None or value is None or len(read.matrices) != 1 or read.constant.any():
        return None
    ((variable, L),) = read.matrices.items()
    E = np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)
    unchanged = L.shape[0] == L.shape[1] and (L != sp.identity(L.shape[0])).nnz == 0
    if not (unchanged and variable.is_nonneg() and np.array_equal(E, E.T) and is_definite(E)):
        return None
    return Power(Length((variable,), 2.0, sp.csr_array(E), is_form=True), 2.0)


def is_definite(E: Array) -> bool:
    """Whether a symmetric matrix is positive definite beyond the rounding errors of its eigenvalues."""
    d = np.diag(E)
    if not ((d > 0).all() and np.isfinite(E).all()):
        return False
    units = np.ldexp(1.0, -(np.frexp(d)[1] // 2))
    scaled = units[:, None] * E * units
    lost = EIGENVALUE * gamma(len(E)) * float(np.linalg.norm(scaled))
    return bool(np.linalg.eigvalsh(scaled)[0] > 2 * lost)


def read_raised(e: cp.Expression) -> Power | None:
    """Read a power of a length."""
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
    """Read r'x with r >= 0, the sum of absolute values of r_j x_j."""
    read = affine(e) if e.size == 1 else None
    if read is None or not read.matrices or read.constant.any():
        return None
    row = stacked(read).toarray()[0]
    return (
        powered_matrix(tuple(read.matrices), sp.csr_array(sp.diags_array(row)), 1.0)
        if (row >= 0).all()
        else None
    )


def powered(u: cp.Expression, p: float, exponent: float = 1.0, factor: float = 1.0) -> Power | None:
    """Return factor * |u|_p^exponent for u linear in non-negative variables, else None."""
    read = affine(u)
    if read is None or not read.matrices or read.constant.any():
        return None
    return powered_matrix(tuple(read.matrices), stacked(read), p, exponent, factor)


def powered_matrix(
    variables: tuple[cp.Variable, ...], L: sp.csr_array, p: float, exponent: float = 1.0, factor: float = 1.0
) -> Power | None:
    """Return factor * |L x|_p^exponent, None where the minimum of a linear function over it is not known."""
    length = Length(variables, p, L)
    if not all(v.is_nonneg() for v in variables) or (p != 2 and length.diagonal is None):
        return None
    return Power(length, exponent, factor)


def stacked(read: Affine) -> sp.csr_array:
    """Return the matrices of the variables side by side."""
    return sp.csr_array(sp.hstack(list(read.matrices.values())))


def columns_of(variables: tuple[cp.Variable, ...]) -> list[Index]:
    """Return the places of the entries of each variable, one variable after the other."""
    ends = np.cumsum([v.size for v in variables])
    return [np.arange(end - v.size, end) for v, end in zip(variables, ends, strict=True)]


READERS: tuple[tuple[Any, Callable[[Any], Power | None]], ...] = (
    (Wrap, read_wrapped),
    (Pnorm | norm1 | norm_inf, read_norm),
    (max_atom, read_largest),
    (quad_over_lin, read_squares),
    (QuadForm, read_form),
    (POWER, read_raised),
)
