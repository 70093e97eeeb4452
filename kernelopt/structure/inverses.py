"""Sums of reciprocals 1 / (a_i x_i + b_i) of affine functions of one entry each."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt.structure.affine import affine
from kernelopt.structure.powers import POWER, power_of, single_entries
from kernelopt.validation import Array, Index


@dataclass(frozen=True, eq=False)
class Inverses:
    """The convex function sum_i c_i / (a_i x_i + b_i) of a variable x >= 0, where a_i x_i + b_i > 0.

    The sum runs over the i in `entries`. The coefficients satisfy c_i >= 0 and a_i != 0, and either b_i > 0,
    or b_i = 0 and a_i > 0.
    """

    variable: cp.Variable
    entries: Index
    c: Array
    a: Array
    b: Array

    @property
    def variables(self) -> tuple[cp.Variable, ...]:
        """The variable."""
        return (self.variable,)


def read_inverses(c: Array, e: cp.Expression) -> Inverses | None:
    """Return sum_i c_i e_i as `Inverses`, where e is cvxpy's power -1 of a vector; None for another e."""
    read = affine(e.args[0]) if isinstance(e, POWER) and power_of(e) == -1 else None
    if read is None or len(read.matrices) != 1 or not (c >= 0).all():
        return None
    ((variable, matrix),) = read.matrices.items()
    matrix.eliminate_zeros()
    alone = single_entries(matrix) is not None and (np.diff(matrix.indptr) == 1).all()
    if not (alone and variable.is_nonneg()):
        return None
    a, b = matrix.data, read.constant
    if not ((b > 0) | ((b == 0) & (a > 0))).all():
        return None
    return Inverses(variable, matrix.indices.astype(np.intp), np.broadcast_to(c, b.shape), a, b)
