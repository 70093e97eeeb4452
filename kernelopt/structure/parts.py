"""Parts of a problem: the sets and prices over which it separates; budgets, which are traces or sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints import Equality, Inequality, NonPos, Zero

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.decompositions import eigenpairs, eigenvalues
from kernelopt.numerics.norms import on_simplex
from kernelopt.numerics.rounding import eigenvalue_error, norm_above
from kernelopt.structure.affine import Affine, affine, single_entries
from kernelopt.structure.trees import POWER, exponent_of, rounds_coefficients, weighted_terms
from kernelopt.validation import Array, Index

Slopes = Mapping[cp.Variable, Ball]  # the coefficients of each variable, flattened by columns


class Part(ABC):
    """A set, or a price: a convex function phi of x >= 0 (or PSD), whose variables occur in no other part.

    A set is the function that is zero inside and infinite outside. Upper bounds hold in exact arithmetic.
    """

    variables: tuple[cp.Variable, ...]
    at: tuple[int, ...] = ()  # the positions of the constraints that state a set

    @classmethod
    def recognise(cls, constraints: Mapping[int, cp.Constraint]) -> Self | None:
        """Return constraints on variables x >= 0 as one set of this kind, or None.

        Parameters
        ----------
        constraints : dict from int to cvxpy constraint
            All constraints that are connected by common variables, by their positions.
        """
        return None

    @classmethod
    def recognise_price(cls, weights: Array, e: cp.Expression) -> Part | None:
        """Return weights'vec(e), a term of an objective in variables x >= 0, as a price, or None.

        Parameters
        ----------
        weights : array of shape (k,)
            One number for each entry of e.
        e : cvxpy expression of size k
            Its entries, by columns.
        """
        return None

    @abstractmethod
    def support(self, s: Slopes) -> float:
        r"""Return an upper bound of :math:`\max_x \langle s, x \rangle - \varphi(x)`.

        It holds in exact arithmetic for all coefficients in the balls of `s`, whose ends are `below` and
        `above`.

        Parameters
        ----------
        s : dict from variable to Ball
            The coefficients of each variable, flattened by columns.
        """

    def multipliers(self, s: Slopes, support: float) -> dict[int, float]:
        """Return the multipliers of the constraints: the derivatives of the support by their right sides.

        Parameters
        ----------
        s : dict from variable to Ball
            The coefficients of each variable, flattened by columns.
        support : float
            Its support, as `support` has returned it.
        """
        return {}

    def start(self) -> dict[int, Array] | None:
        """Return a point inside the set by the ids of the variables; None where none is known."""
        return None


def joined(variables: Sequence[cp.Variable], s: Slopes) -> Ball:
    """Return the coefficients of several variables, one after the other."""
    each = [(s[v].mid, np.broadcast_to(s[v].rad, v.size)) for v in variables]
    return Ball(*(np.concatenate(parts) for parts in zip(*each, strict=True)))


def split(variables: Sequence[cp.Variable], x: Array) -> dict[int, Array]:
    """Return the values of several variables by their ids, from their entries one after the other."""
    cuts = np.cumsum([v.size for v in variables])[:-1]
    return {v.id: np.reshape(part, v.shape) for v, part in zip(variables, np.split(x, cuts), strict=True)}


def gathered(variables: Sequence[cp.Variable], point: Mapping[int, Array]) -> Array:
    """Return the entries of several variables one after the other, from their values by their ids."""
    return np.concatenate([np.ravel(point[v.id]) for v in variables])


@dataclass(frozen=True, eq=False)
class Free(Part):
    """The whole space."""

    variables: tuple[cp.Variable]

    def support(self, s: Slopes) -> float:
        """Return 0 where s = 0, else infinity."""
        return np.inf if joined(self.variables, s).size.any() else 0.0


@dataclass(frozen=True, eq=False)
class Budget(Part):
    """A budget constraint: sum_v <row_v, x_v> = total, or <= total, with total >= 0.

    Each x_v is a non-negative vector (or number) with row_v >= 0, or a PSD matrix with <row_v, X> = c tr X
    and c > 0.

    Attributes
    ----------
    rows : dict from variable to array, flattened by columns
    total : float >= 0
        Infinite for a cone without a constraint.
    at_most : bool
        Whether the constraint is an inequality.
    sign : float
        The expression of the constraint is sign * (sum - total).
    at : tuple of int
        The position of the constraint among those of the problem; empty for a cone.
    rounding : float >= 0
        The relative error of `total` and of the entries of `rows`, where the problem states them as sums and
        products of numbers.
    """

    rows: dict[cp.Variable, Array]
    total: float = np.inf
    at_most: bool = False
    sign: float = 1.0
    at: tuple[int, ...] = ()
    rounding: float = 0.0

    p: ClassVar[float] = 1.0

    @classmethod
    def stated(cls, constraint: cp.Constraint, read: Affine | None, at: int) -> Self | None:
        """Return a scalar constraint as a budget, or None. `read` is its expression as an affine map."""
        equality = isinstance(constraint, Equality | Zero)
        scalar = constraint.size == 1 and (equality or isinstance(constraint, Inequality | NonPos))
        if read is None or not scalar or not read.matrices:
            return None
        rows = {variable: read.gradient(variable) for variable in read.matrices}
        sign = -1.0 if equality and sum(float(row.sum()) for row in rows.values()) < 0 else 1.0
        rows, total = {v: sign * row for v, row in rows.items()}, -sign * float(read.constant[0])
        signed = all(
            is_trace_multiple(v, row) or (v.is_nonneg() and (row >= 0).all() and row.any())
            for v, row in rows.items()
        )
        if not signed or total < 0:
            return None
        rounding = rounding_of_coefficients(constraint.expr)
        return cls(rows, total, not equality, sign, (at,), rounding) if rounding < 1 else None

    @property
    def variables(self) -> tuple[cp.Variable, ...]:  # type: ignore[override]
        """The variables of the sum."""
        return tuple(self.rows)

    @property
    def variable(self) -> cp.Variable:
        """The only variable of the sum."""
        (only,) = self.rows
        return only

    @property
    def is_matrix(self) -> bool:
        """Whether the only variable is a matrix."""
        return bool(self.variable.ndim == 2)

    @cached_property
    def bounds_all(self) -> bool:
        """Whether every entry of every variable is bounded by the constraint."""
        return all(is_trace_multiple(v, row) or bool((row > 0).all()) for v, row in self.rows.items())

    def reach(self, variable: cp.Variable) -> Array:
        """Return the largest trace of a matrix, shape (), or the largest value of each entry of a vector.

        An entry that does not occur in the constraint has no bound: its largest value is infinite.
        """
        row = self.rows[variable]
        if is_trace_multiple(variable, row):
            return np.asarray(self.total / row[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(row > 0, self.total / row, np.inf)

    def rate(self, s: Slopes) -> float:
        """Return an upper bound of the largest <s, x> over a sum of one: max_i s_i / row_i, or lambda_max(S).

        It is not negative where the constraint is an inequality, which holds at x = 0.
        """
        largest = [largest_ratio(s[v], v, row) for v, row in self.rows.items()]
        return max(largest + [0.0] * self.at_most)

    def support(self, s: Slopes) -> float:
        """Return total times `rate`; over a cone 0 or infinity."""
        rate, total = self.rate(s), Ball(self.total)
        if self.rounding:  # the exact ratio of the total to each entry of the rows is in this ball
            total = total * Ball(1.0, self.rounding) / Ball(1.0, self.rounding)
        return float((total * rate).above) if rate > 0 or self.total < np.inf else 0.0

    def multipliers(self, s: Slopes, support: float) -> dict[int, float]:
        """Return support / total, with the sign of the constraint."""
        return dict.fromkeys(self.at, self.sign * support / self.total if self.total else 0.0)

    def start(self) -> dict[int, Array] | None:
        """Return equal shares of the total for all entries of vectors and of diagonals."""
        return equal_shares({v: self.reach(v) for v in self.rows}, self.p)

    def project(self, X: Array) -> Array:
        """Return the Euclidean projection of a symmetric matrix or a vector on the set of one variable."""
        (row,) = self.rows.values()
        if not self.is_matrix:
            return self._project_vector(X, row)
        values, V = eigenpairs(X)
        projected: Array = (V * self._project_vector(values, row[:: len(X) + 1])) @ V.T
        return (projected + projected.T) / 2

    def _project_vector(self, x: Array, row: Array) -> Array:
        inside = np.isinf(self.total) or (self.at_most and float(row @ np.maximum(x, 0.0)) <= self.total)
        return on_simplex(x, None if inside else self.total, row)[0]


@dataclass(frozen=True, eq=False)
class Inverses(Part):
    """The convex function sum_i c_i / (a_i x_i + b_i) of a variable x >= 0, where a_i x_i + b_i > 0.

    The sum runs over the i in `entries`. The coefficients satisfy c_i >= 0 and a_i != 0, and either b_i > 0,
    or b_i = 0 and a_i > 0.
    """

    variables: tuple[cp.Variable]
    entries: Index
    c: Array
    a: Array
    b: Array

    @classmethod
    def recognise_price(cls, weights: Array, e: cp.Expression) -> Self | None:
        """Return sum_i weights_i e_i where e is cvxpy's power -1 of a vector; None for another e."""
        read = affine(e.args[0]) if isinstance(e, POWER) and exponent_of(e) == -1 else None
        if (
            read is None
            or rounds_coefficients(e.args[0])
            or len(read.matrices) != 1
            or not (weights >= 0).all()
        ):
            return None
        ((variable, matrix),) = read.matrices.items()
        matrix.eliminate_zeros()
        alone = single_entries(matrix) is not None and (np.diff(matrix.indptr) == 1).all()
        a, b = matrix.data, read.constant
        if not (alone and variable.is_nonneg() and ((b > 0) | ((b == 0) & (a > 0))).all()):
            return None
        return cls((variable,), matrix.indices.astype(np.intp), np.broadcast_to(weights, b.shape), a, b)

    def support(self, s: Slopes) -> float:
        """Return an upper bound of s'x - sum_i c_i / (a_i x_i + b_i) over x >= 0.

        For every t >= 0 and u > 0, c / u >= 2 sqrt(c t) - t u. Where t_i a_i <= -s_i, therefore, s_i x_i -
        c_i / (a_i x_i + b_i) <= t_i b_i - 2 sqrt(c_i t_i). The best t_i is -s_i / a_i, or c_i / b_i^2 where
        the maximum is at x_i = 0.
        """
        above = s[self.variables[0]].above
        others = np.delete(above, self.entries)
        ratio = Ball(-above[self.entries]) / self.a
        with np.errstate(divide="ignore"):
            at_zero = np.where(self.b > 0, self.c / self.b**2, np.inf)
        t = np.where(self.a > 0, np.minimum(ratio.below, at_zero), np.maximum(ratio.above, at_zero))
        if (others > 0).any() or not (t >= 0).all():
            return np.inf
        return float((Ball(t) * self.b - (Ball(self.c) * t).power(0.5) * 2).sum().above)


def equal_shares(reaches: Mapping[cp.Variable, Array], p: float) -> dict[int, Array] | None:
    """Return equal shares of the largest values of all entries, |shares|_p = 1; None where one is infinite.

    Of a matrix the largest value is the largest trace, and its diagonal has the shares.
    """
    if not all(np.isfinite(reach).all() for reach in reaches.values()):
        return None
    share = sum(v.size if reach.ndim else v.shape[0] for v, reach in reaches.items()) ** (-1 / p)
    return {
        v.id: share * (reach.reshape(v.shape, order="F") if reach.ndim else reach * np.eye(v.shape[0]))
        for v, reach in reaches.items()
    }


def rounding_of_coefficients(e: cp.Expression) -> float:
    """Return a bound of the relative errors with which the coefficients of a scalar expression are read.

    It is infinite where a coefficient may vanish, or where the terms of its sums round themselves.
    """
    sums = dict[cp.Variable | None, Ball]()  # of the constants for None
    for w, term in weighted_terms(e, Ball(np.ones(1))):
        read = affine(term)
        if read is None or rounds_coefficients(term):
            return np.inf
        for variable, A in ((None, read.constant[:, None]), *read.matrices.items()):
            rows = A.T @ w if A.shape[0] > 1 else Ball(np.ravel(A.toarray() if sp.issparse(A) else A)) * w
            sums[variable] = sums[variable] + rows if variable in sums else rows
    errors = (np.broadcast_to(row.rad, row.mid.shape) / np.abs(row.mid) for row in sums.values())
    with np.errstate(divide="ignore", invalid="ignore"):
        return max(float(np.nan_to_num(each, nan=0.0, posinf=np.inf).max(initial=0.0)) for each in errors)


def largest_ratio(s: Ball, variable: cp.Variable, row: Array) -> float:
    """Return an upper bound of max_i s_i / row_i, or of the largest eigenvalue of S over that of the row."""
    if not is_trace_multiple(variable, row):
        above, used = s.above, row > 0
        if (above[~used] > 0).any():
            return np.inf
        return float(np.nextafter(above[used] / row[used], np.inf).max())
    S = np.reshape(s.mid, variable.shape)
    if not np.isfinite(S).all():
        return np.inf
    error = eigenvalue_error(S) + norm_above(np.broadcast_to(s.rad, S.size))
    return float((Ball(eigenvalues((S + S.T) / 2)[-1], error) / row[0]).above)


def is_trace_multiple(variable: cp.Variable, row: Array) -> bool:
    """Whether row'vec(variable) is a positive multiple of the trace of a PSD variable."""
    if not variable.attributes["PSD"]:
        return False
    n = variable.shape[0]
    return bool(row[0] > 0 and (row[:: n + 1] == row[0]).all() and np.count_nonzero(row) == n)


def cone(variable: cp.Variable) -> Budget | None:
    """Return the cone x >= 0, or of PSD matrices, as a budget without a bound; None for another variable."""
    square = variable.ndim == 2 and variable.attributes["PSD"]
    if not square and not variable.is_nonneg():
        return None
    return Budget({variable: (np.eye(variable.shape[0]) if square else np.ones(variable.shape)).ravel()})


def trivially_true(constraint: cp.Constraint) -> bool:
    """Whether cvxpy knows from signs and attributes that a constraint holds for all values of its variables.

    These are c <= e with a constant c <= 0 and a non-negative expression e, and M >> 0 with a matrix M that
    cvxpy knows to be positive semidefinite.
    """
    if isinstance(constraint, Inequality):
        left, right = constraint.args
        return bool(left.is_constant() and np.all(left.value <= 0) and right.is_nonneg())
    if isinstance(constraint, cp.constraints.PSD):
        return bool(constraint.args[0].is_psd())
    return False
