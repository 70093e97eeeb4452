"""Bounds of the columns of a cone program by interval propagation through its rows and its objective.

This is the feasibility-based bound tightening of presolvers (Savelsbergh, ORSA J. Comput. 6 (1994)), for
cones and with outward rounding. The activity of row i is sum_j a_ij x_j.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.boxes import Box
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.exponential_cones import Exponential, Power
from kernelopt.certificates.conic.lagrangian import column_minima
from kernelopt.certificates.conic.settings import SETTINGS
from kernelopt.certificates.conic.symmetric_cones import SecondOrder
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Index


def tightened(program: ConeProgram, box: Box, objective_bound: float = np.inf) -> Box:
    """Return bounds of the columns for all feasible x in `box` with an objective up to `objective_bound`.

    In each row of s = b - Ax, every column is bounded by the bounds of the other columns and of s. The bounds
    of s follow from its cones (`Cone.bounds`). Rows that are sums of other rows are added (`implied_rows`).
    All bounds are rounded outward. Where no such x exists every bound is valid; the returned ones have
    lower <= upper.
    """
    rows = Rows(program)
    x, stalled = box, 0
    s = rows.cone_bounds(Box(np.full(rows.b.size, -np.inf), np.full(rows.b.size, np.inf)))
    with np.errstate(all="ignore"):
        for _ in range(SETTINGS.sweeps):
            before, (x, s), old = x, rows.sweep(x, s), s
            if np.isfinite(objective_bound):
                x = by_objective(program, x, objective_bound)
            crossed = x.lower > x.upper
            if crossed.any():  # no such x exists: return the earlier bounds, or the crossed ones exchanged
                lower = np.where(np.isfinite(before.lower), before.lower, np.minimum(x.lower, x.upper))
                upper = np.where(np.isfinite(before.upper), before.upper, np.maximum(x.lower, x.upper))
                return Box(np.where(crossed, lower, x.lower), np.where(crossed, upper, x.upper))
            stalled = 0 if np.isfinite(x).sum() > np.isfinite(before).sum() else stalled + 1
            if stalled > SETTINGS.stalled_sweeps or all(map(np.array_equal, [*before, *old], [*x, *s])):
                break
    return x


class Rows:
    """The rows s = b - Ax of a cone program and the implied ones, with the entries of A in three arrays."""

    def __init__(self, program: ConeProgram) -> None:
        extra, right = implied_rows(program)
        A = sp.csc_array(sp.vstack([program.A, extra], format="csc"))
        A.eliminate_zeros()
        self.cones, self.own = program.cones, program.b.size
        self.b = np.concatenate([program.b, right])
        self.row, self.value = A.indices, A.data
        self.column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        self.present = np.flatnonzero(np.diff(A.indptr))
        self.starts = A.indptr[self.present]
        entries = np.arange(self.row.size)
        self.sums = sp.csr_array((np.ones(entries.size), (self.row, entries)), (self.b.size, entries.size))

    def sweep(self, x: Box, s: Box) -> tuple[Box, Box]:
        """Return the bounds of x and s after one propagation through all rows.

        The columns of arrays are for ax + s = b and for a(-x) + (-s) = -b. Entries of x are bounded by
        a_ij x_j = b_i - s_i - (the other terms of row i), with the least values of all.
        """
        low, high = (np.stack([one, -other], axis=1) for one, other in (x, (x.upper, x.lower)))
        a = self.value[:, None]
        least = (Ball(a) * np.where(a > 0, low[self.column], high[self.column])).below
        infinite = ~np.isfinite(least)
        terms, count = Ball(np.where(infinite, 0.0, least)), self.sums @ infinite.astype(float)
        rest = Ball(np.stack([self.b, -self.b], axis=1)) - self.sums @ terms
        most = np.where(count == 0, rest.above, np.inf)
        s = self.cone_bounds(Box(np.maximum(s.lower, -most[:, 1]), np.minimum(s.upper, most[:, 0])))
        bound = (rest - np.stack([s.lower, -s.upper], axis=1))[self.row] + terms
        limit = Ball(np.where(count[self.row] > infinite, np.inf, bound.above)) / Ball(a)
        upper, lower = np.where(a > 0, limit.above, np.inf), np.where(a > 0, -np.inf, limit.below)
        found, at = Box(x.lower.copy(), x.upper.copy()), self.present
        if at.size:
            largest = np.maximum.reduceat(np.maximum(lower[:, 0], -upper[:, 1]), self.starts)
            smallest = np.minimum.reduceat(np.minimum(upper[:, 0], -lower[:, 1]), self.starts)
            found.lower[at], found.upper[at] = (
                np.maximum(x.lower[at], largest),
                np.minimum(x.upper[at], smallest),
            )
        return found, s

    def cone_bounds(self, s: Box) -> Box:
        """Return s with the bounds that follow from its cones."""
        lower, upper = s.lower.copy(), s.upper.copy()
        lower[self.own :] = np.maximum(lower[self.own :], 0.0)
        for cone in self.cones:
            low, high = cone.of(lower), cone.of(upper)
            low[:], high[:] = cone.bounds(low, high)
        return Box(lower, upper)


def implied_rows(program: ConeProgram) -> tuple[sp.csr_array, Array]:
    """Return rows (A, b) of b - Ax >= 0 that are sums of rows and have exact coefficients.

    They are s_0 +- s_i >= 0 for second-order cones, z - x - y >= 0 for exponential ones, where
    z >= y exp(x / y) >= y + x, and s_i + s_k >= 0 for two rows t - u >= 0 and t + u >= 0: non-negative rows
    with a column whose negative entries are these two, and equal.
    """
    A, dims = sp.csr_array(program.A), program.dims
    below = A[dims.zero : dims.zero + dims.nonneg]
    below = sp.csc_array(below.multiply(below < 0))
    below.eliminate_zeros()
    below.sort_indices()
    starts = below.indptr[:-1][np.diff(below.indptr) == 2]
    starts = starts[below.data[starts] == below.data[starts + 1]]
    pairs = dims.zero + below.indices[starts[:, None] + [0, 1, 1]]
    chosen, signs = [pairs], [np.tile([1.0, 1.0, 0.0], (len(pairs), 1))]
    for cone in program.cones:
        at = np.arange(cone.rows.start, cone.rows.stop).reshape(-1, cone.length)
        if isinstance(cone, SecondOrder):
            at = at[np.diff(A.indptr)[at[:, 0]] <= SETTINGS.max_head_entries]
            heads, tails = np.repeat(at[:, 0], cone.length - 1), at[:, 1:].ravel()
            for sign in (1.0, -1.0):
                chosen.append(np.stack([heads, tails, tails], axis=1))
                signs.append(np.tile([1.0, sign, 0.0], (tails.size, 1)))
        elif isinstance(cone, Exponential) and not isinstance(cone, Power):
            chosen.append(at)
            signs.append(np.tile([-1.0, -1.0, 1.0], (len(at), 1)))
    return row_sums(A, program.b, np.concatenate(chosen), np.concatenate(signs))


def row_sums(A: sp.csr_array, b: Array, chosen: Index, signs: Array) -> tuple[sp.csr_array, Array]:
    """Return the sums of three rows times signs, where all coefficients are exact by Knuth's TwoSum."""
    total, exact = sp.csr_array(A[chosen[:, 0]] * signs[:, :1]), np.ones(len(chosen), dtype=bool)
    for rows, sign in zip(chosen.T[1:], signs.T[1:], strict=True):
        if not sign.any():
            break
        before, added = total, sp.csr_array(A[rows] * sign[:, None])
        total = sp.csr_array(before + added)
        part = total - before
        error = abs(before - (total - part)) + abs(added - part)
        exact &= np.asarray(error.sum(axis=1)).ravel() == 0
    total.eliminate_zeros()
    return total[exact], Ball(b[chosen] * signs).sum(axis=1).above[exact]


def by_objective(program: ConeProgram, x: Box, objective_bound: float) -> Box:
    """Return the bounds that c'x + 1/2 x'Px + offset <= objective_bound implies.

    With P - D semidefinite and D diagonal, the objective is at least offset + sum_j (c_j x_j + 1/2 d_j
    x_j^2). The term of one column is therefore at most objective_bound - offset minus the minima of the
    other terms over their boxes.
    """
    c, d = program.c, program.curvature
    minima = column_minima(program, 0.0, Ball(c), x)
    finite = np.isfinite(minima)
    if np.sum(~finite) > 1:
        return x
    own = Ball(np.where(finite, minima, 0.0))
    rest = own - own.sum() + objective_bound - program.offset
    rest = Ball(np.where(finite & ~finite.all(), np.inf, rest.above))  # of the term of each column
    bound, square = rest / Ball(c), d > 0
    upper = np.where((c > 0) & (d == 0), bound.above, np.inf)
    lower = np.where((c < 0) & (d == 0), bound.below, -np.inf)
    if square.any():  # d/2 (x + c/d)^2 <= rest + c^2 / (2d)
        centre = Ball(-c) / Ball(d)
        radius = (rest * 2.0 / Ball(d) + centre * centre).power(0.5)
        upper = np.where(square, (centre + radius).above, upper)
        lower = np.where(square, (centre - radius).below, lower)
    return Box(np.maximum(x.lower, lower), np.minimum(x.upper, upper))
