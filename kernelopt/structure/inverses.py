"""Sums of reciprocals 1 / (a_i x_i + b_i) of affine functions of one entry each."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt.numerics.rounding import exact_sum, gamma
from kernelopt.structure.affine import affine
from kernelopt.structure.parts import Part, Slopes
from kernelopt.structure.powers import POWER, power_of, single_entries
from kernelopt.validation import Array, Index


@dataclass(frozen=True, eq=False)
class Inverses(Part):
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
    def variables(self) -> tuple[cp.Variable, ...]:  # type: ignore[override]
        """The variable."""
        return (self.variable,)

    def support(self, s: Slopes) -> float:
        """Return an upper bound of s'x - sum_i c_i / (a_i x_i + b_i) over x >= 0.

        For every t >= 0 and u > 0, c / u >= 2 sqrt(c t) - t u. Where t_i a_i <= -s_i, therefore, s_i x_i -
        c_i / (a_i x_i + b_i) <= t_i b_i - 2 sqrt(c_i t_i). The best t_i is -s_i / a_i, or c_i / b_i^2 where
        the maximum is at x_i = 0.
        """
        above = s[self.variable].above
        others = np.ones(above.size, dtype=bool)
        others[self.entries] = False
        if (above[others] > 0).any():
            return np.inf
        a, b, c = self.a, self.b, self.c
        ratio = -above[self.entries] / a
        ratio -= np.sign(a) * gamma(2) * np.abs(ratio)  # rounded down where a > 0, up where a < 0
        at_zero = np.where(b > 0, c / b**2, np.inf)
        best = np.where(
            a > 0, np.minimum(ratio, at_zero * (1 - gamma(8))), np.maximum(ratio, at_zero * (1 + gamma(8)))
        )
        if not (best >= 0).all():
            return np.inf
        gains, losses = 2 * np.sqrt(c * best), best * b
        value = exact_sum(np.concatenate([losses, -gains]))
        return value + gamma(16) * float(gains.sum() + losses.sum())


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
