"""Powers of norms, c |L x|_p^r: regularisers in an objective, and norm balls and ellipsoids."""

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
from kernelopt.validation import Array

# The class of cvxpy's power with `approx=False`. It is read off an instance, since its name differs between
# versions of cvxpy.
POWER: Any = type(cp.power(cp.Variable(nonneg=True), 2.5, approx=False))


@dataclass(frozen=True, eq=False)
class Length:
    """The norm |L x|_p or sqrt(x'Ex) of x >= 0, the entries of some variables one after the other.

    Attributes
    ----------
    variables : tuple of non-negative variables
    p : float in [1, inf]
        Always 2 unless L has at most one entry in each row and column.
    matrix : sparse array of shape (k, n), or (n, n)
        L, or the positive definite matrix E.
    is_form : bool
        Whether the length is sqrt(x'Ex).
    """

    variables: tuple[cp.Variable, ...]
    p: float
    matrix: sp.csr_array
    is_form: bool = False

    @cached_property
    def diagonal(self) -> Array | None:
        """The absolute value of the only entry in each column of L, 0 in an empty column.

        It is None for a form sqrt(x'Ex), and if a row or a column of L has more than one entry.
        """
        return None if self.is_form else single_entries(self.matrix)


@dataclass(frozen=True, eq=False)
class Power:
    """The convex function factor * length^exponent, with factor >= 0 and exponent >= 1."""

    length: Length
    exponent: float = 1.0
    factor: float = 1.0

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variables of the length."""
        return self.length.variables

    def times(self, factor: float) -> Power:
        """Return this function times a non-negative number."""
        return Power(self.length, self.exponent, factor * self.factor)


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


def read_power(e: cp.Expression) -> Power | None:
    """Return a scalar expression as a power of a length, or None if it is not one."""
    for kind, reader in READERS:
        if isinstance(e, kind):
            return reader(e)
    return read_sum(e)


def read_wrapped(e: cp.Expression) -> Power | None:
    """Return a cvxpy node whose value is that of its argument, such as `psd_wrap`, as a power of a length."""
    return read_power(e.args[0])


def read_norm(e: cp.Expression) -> Power | None:
    """Return |u|_p of all entries as a power of a length."""
    p = {norm1: 1.0, norm_inf: np.inf}.get(type(e)) or float(e.p)
    return None if getattr(e, "axis", None) is not None or p < 1 else power_of_norm(e.args[0], p)


def read_largest(e: cp.Expression) -> Power | None:
    """Return max_i u_i of a non-negative vector, which is |u|_inf, as a power of a length."""
    return power_of_norm(e.args[0], np.inf) if e.axis is None and e.args[0].is_nonneg() else None


def read_squares(e: cp.Expression) -> Power | None:
    """Return |u|_2^2 / d for a constant d > 0 as a power of a length."""
    divisor = e.args[1]
    if getattr(e, "axis", None) is not None or not divisor.is_constant() or not number(divisor) > 0:
        return None
    return power_of_norm(e.args[0], 2.0, 2.0, 1 / number(divisor))


def read_form(e: cp.Expression) -> Power | None:
    """Return x'Ex for a non-negative variable x and a positive definite E as a power of a length."""
    read = affine(e.args[0]) if e.args[1].is_constant() else None
    value: Any = None if read is None else e.args[1].value
    if read is None or value is None or len(read.matrices) != 1 or read.constant.any():
        return None
    ((variable, L),) = read.matrices.items()
    E = np.asarray(value.toarray() if sp.issparse(value) else value, dtype=float)
    is_identity = L.shape[0] == L.shape[1] and (L != sp.identity(L.shape[0])).nnz == 0
    if not (is_identity and variable.is_nonneg() and np.array_equal(E, E.T) and is_definite(E)):
        return None
    return Power(Length((variable,), 2.0, sp.csr_array(E), is_form=True), 2.0)


def is_definite(E: Array) -> bool:
    """Whether a symmetric matrix is certainly positive definite.

    The matrix is scaled to D E D with a diagonal in [1/2, 2), where D holds powers of two and the scaling is
    exact. The smallest eigenvalue of D E D must exceed twice the bound of its rounding error.
    """
    d = np.diag(E)
    if not ((d > 0).all() and np.isfinite(E).all()):
        return False
    units = np.ldexp(1.0, -(np.frexp(d)[1] // 2))
    scaled = units[:, None] * E * units
    error = EIGENVALUE * gamma(len(E)) * float(np.linalg.norm(scaled))
    return bool(np.linalg.eigvalsh(scaled)[0] > 2 * error)


def read_raised(e: cp.Expression) -> Power | None:
    """Return (c length^r)^s with s >= 1 as the power c^s length^(r s)."""
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
    """Return r'x with r >= 0 and x >= 0 as the length |diag(r) x|_1."""
    read = affine(e) if e.size == 1 else None
    if read is None or not read.matrices or read.constant.any():
        return None
    row = joint_matrix(read).toarray()[0]
    return (
        power_of_matrix_norm(tuple(read.matrices), sp.csr_array(sp.diags_array(row)), 1.0)
        if (row >= 0).all()
        else None
    )


def power_of_norm(u: cp.Expression, p: float, exponent: float = 1.0, factor: float = 1.0) -> Power | None:
    """Return factor * |u|_p^exponent for u = L x with non-negative variables x, or None for another u."""
    if not all(v.is_nonneg() for v in u.variables()):
        return None
    read = affine(u)
    if read is None or not read.matrices or read.constant.any():
        return None
    return power_of_matrix_norm(tuple(read.matrices), joint_matrix(read), p, exponent, factor)


def power_of_matrix_norm(
    variables: tuple[cp.Variable, ...], L: sp.csr_array, p: float, exponent: float = 1.0, factor: float = 1.0
) -> Power | None:
    """Return factor * |L x|_p^exponent as a `Power`, or None.

    A `Power` needs variables x >= 0 and a closed form of the dual norm over x >= 0. One is known for p = 2,
    and for any p if L has at most one entry in each row and column.
    """
    length = Length(variables, p, L)
    if not all(v.is_nonneg() for v in variables) or (p != 2 and length.diagonal is None):
        return None
    return Power(length, exponent, factor)


def joint_matrix(read: Affine) -> sp.csr_array:
    """Return the matrix [A_1, A_2, ...] of the variables one after the other."""
    return sp.csr_array(sp.hstack(list(read.matrices.values())))


READERS: tuple[tuple[Any, Callable[[Any], Power | None]], ...] = (
    (Wrap, read_wrapped),
    (Pnorm | norm1 | norm_inf, read_norm),
    (max_atom, read_largest),
    (quad_over_lin, read_squares),
    (QuadForm, read_form),
    (POWER, read_raised),
)
