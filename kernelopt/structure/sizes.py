"""Constraints that bound variables: budgets (a trace, a simplex) and norm balls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
from cvxpy.atoms.max import max as max_atom
from cvxpy.atoms.norm1 import norm1
from cvxpy.atoms.norm_inf import norm_inf
from cvxpy.atoms.pnorm import Pnorm
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.structure.affine import Affine
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Budget:
    """A budget constraint: sum_v <row_v, x_v> = total, or <= total, with total >= 0.

    Each x_v is a non-negative vector (or number) with row_v >= 0, or a PSD matrix with <row_v, X> = c tr X
    and c > 0.

    Attributes
    ----------
    rows : dict from variable to array, flattened by columns
    total : float >= 0
    at_most : bool
        Whether the constraint is an inequality.
    sign : float
        The expression of the constraint is sign * (sum - total).
    """

    rows: dict[cp.Variable, Array]
    total: float
    at_most: bool
    sign: float

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variables of the sum."""
        return tuple(self.rows)

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


@dataclass(frozen=True, eq=False)
class NormBall:
    """|x|_p <= radius for one variable x."""

    variable: cp.Variable
    p: float
    radius: float


def read_budget(constraint: cp.Constraint, read: Affine | None) -> Budget | None:
    """Return a scalar constraint as a `Budget`, or None. `read` is its expression as an affine map."""
    if read is None or constraint.size != 1 or not read.matrices:
        return None
    rows = {variable: matrix.toarray()[0] for variable, matrix in read.matrices.items()}
    equality = isinstance(constraint, Equality)
    sign = -1.0 if equality and sum(float(row.sum()) for row in rows.values()) < 0 else 1.0
    rows = {variable: sign * row for variable, row in rows.items()}
    total = -sign * float(read.constant[0])
    for variable, row in rows.items():
        if not (
            is_trace_multiple(variable, row) or (variable.is_nonneg() and (row >= 0).all() and row.any())
        ):
            return None
    return Budget(rows, total, not equality, sign) if total >= 0 else None


def is_trace_multiple(variable: cp.Variable, row: Array) -> bool:
    """Whether row'vec(variable) is a positive multiple of the trace of a PSD variable."""
    if not variable.attributes["PSD"]:
        return False
    n = variable.shape[0]
    return bool(row[0] > 0 and (row[:: n + 1] == row[0]).all() and np.count_nonzero(row) == n)


def read_norm_ball(constraint: cp.Constraint) -> NormBall | None:
    """Return a constraint |x|_p <= R, with one variable x and a constant R, as a `NormBall`; else None.

    For x >= 0 the constraint max(x) <= R is |x|_inf <= R.
    """
    if not isinstance(constraint, Inequality) or not constraint.args[1].is_constant():
        return None
    norm, radius = constraint.args
    if radius.size != 1 or norm.size != 1 or not norm.args or not isinstance(norm.args[0], cp.Variable):
        return None
    if getattr(norm, "axis", None) is not None or radius.value is None:
        return None
    variable = norm.args[0]
    if isinstance(norm, Pnorm):
        p = float(norm.p)
    elif isinstance(norm, norm1):
        p = 1.0
    elif isinstance(norm, norm_inf) or (isinstance(norm, max_atom) and variable.is_nonneg()):
        p = np.inf
    else:
        return None
    return NormBall(variable, p, float(np.ravel(radius.value)[0]))


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
