"""Bounds of the columns of a cone program by interval propagation through its rows and its objective.

This is the feasibility-based bound tightening of presolvers (Savelsbergh, ORSA J. Comput. 6 (1994)), for
cones and with outward rounding. The activity of row i is sum_j a_ij x_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.numerics.rounding import UNIT, gamma
from kernelopt.validation import Array, Index, Mask

SWEEPS = 30  # at most: bounds may converge without ever being final
STALLED_SWEEPS = 2  # sweeps without a new finite bound that end the propagation
MAX_HEAD_ENTRIES = 8  # a longer first row of a second-order cone is not added to the other rows
SQRT_TWO = 1.4142135623731  # rounded up: the scale of off-diagonal entries of semidefinite blocks
INVERSE_E = 0.36788  # rounded up: max over t of t exp(-t)


class Interval(NamedTuple):
    """Lower and upper bounds, entry by entry."""

    lower: Array
    upper: Array

    @property
    def bounded(self) -> Mask:
        """Whether both bounds are finite."""
        found: Mask = np.isfinite(self.lower) & np.isfinite(self.upper)
        return found

    @property
    def max_abs(self) -> Array:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))


def tightened(program: ConeProgram, box: Interval, objective_bound: float = np.inf) -> Interval:
    """Return bounds of the columns for all feasible x in `box` with an objective up to `objective_bound`.

    In each row of s = b - Ax, every column is bounded by the bounds of the other columns and of s. The bounds
    of s follow from its cones: s = 0, s >= 0, |s_i| <= s_0 in a second-order cone, s_ij^2 <= s_ii s_jj in a
    semidefinite one. Rows that are sums of other rows are added (`implied_rows`). All bounds are rounded
    outward. Where no such x exists every bound is valid; the returned ones have lower <= upper.
    """
    rows = Rows(program)
    x = Interval(box.lower.copy(), box.upper.copy())
    s = rows.cone_bounds(Interval(np.full(rows.b.size, -np.inf), np.full(rows.b.size, np.inf)))
    stalled = 0
    with np.errstate(all="ignore"):
        for _ in range(SWEEPS):
            before, (x, s) = x, rows.sweep(x, s)
            if np.isfinite(objective_bound):
                x = by_objective(program, x, objective_bound)
            crossed = x.lower > x.upper
            if crossed.any():  # no such x exists: return the earlier bounds, or the crossed ones exchanged
                lower = np.where(np.isfinite(before.lower), before.lower, np.minimum(x.lower, x.upper))
                upper = np.where(np.isfinite(before.upper), before.upper, np.maximum(x.lower, x.upper))
                return Interval(np.where(crossed, lower, x.lower), np.where(crossed, upper, x.upper))
            stalled = 0 if finite_sides(x) > finite_sides(before) else stalled + 1
            if stalled > STALLED_SWEEPS:
                break
    return x


def finite_sides(x: Interval) -> int:
    """Return the number of finite bounds of both kinds."""
    return int(np.isfinite(x.lower).sum() + np.isfinite(x.upper).sum())


class Rows:
    """The rows s = b - Ax of a cone program and the implied ones, with the entries of A in three arrays."""

    def __init__(self, program: ConeProgram) -> None:
        extra, right = implied_rows(program)
        A = sp.csc_array(sp.vstack([program.A, extra], format="csc")) if right.size else program.A.copy()
        A.eliminate_zeros()
        self.program, self.b = program, np.concatenate([program.b, right])
        self.row, self.value = A.indices, A.data
        self.column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        self.present = np.flatnonzero(np.diff(A.indptr))
        self.starts = A.indptr[self.present]
        counts = np.bincount(self.row, minlength=self.b.size)
        self.rate = 1.1 * gamma(counts + 6)
        self.implied = slice(program.b.size, self.b.size)

    def sums(self, terms: Array) -> tuple[Array, Array, Index]:
        """Return for every row the sum of its finite terms, its error, and the number of infinite terms."""
        n, finite = self.b.size, np.isfinite(terms)
        finite_terms = np.where(finite, terms, 0.0)
        total: Array = np.bincount(self.row, weights=finite_terms, minlength=n).astype(float)
        error = self.rate * (
            np.bincount(self.row, weights=np.abs(finite_terms), minlength=n) + np.abs(self.b)
        )
        return total, error, np.bincount(self.row[~finite], minlength=n)

    def sweep(self, x: Interval, s: Interval) -> tuple[Interval, Interval]:
        """Return the bounds of x and s after one propagation through all rows."""
        a, i = self.value, self.row
        min_terms = np.where(a > 0, a * x.lower[self.column], a * x.upper[self.column])
        max_terms = np.where(a > 0, a * x.upper[self.column], a * x.lower[self.column])
        min_activity, min_error, min_infinite = self.sums(min_terms)
        max_activity, max_error, max_infinite = self.sums(max_terms)
        s = self.cone_bounds(
            Interval(
                np.fmax(s.lower, np.where(max_infinite == 0, self.b - max_activity - max_error, -np.inf)),
                np.fmin(s.upper, np.where(min_infinite == 0, self.b - min_activity + min_error, np.inf)),
            )
        )
        # a_ij x_j = b_i - s_i - (the other terms of row i)
        size = 4 * UNIT * (np.abs(self.b) + np.where(np.isfinite(s.lower), np.abs(s.lower), 0.0))
        above = self.b - s.lower + size + min_error
        others = others_sum(min_terms, min_activity[i], min_infinite[i])
        upper = outward(above[i] - others, np.abs(above[i]) + np.abs(min_activity[i]) + np.abs(others), 1)
        size = 4 * UNIT * (np.abs(self.b) + np.where(np.isfinite(s.upper), np.abs(s.upper), 0.0))
        below = self.b - s.upper - size - max_error
        others = others_sum(max_terms, max_activity[i], max_infinite[i])
        lower = outward(below[i] - others, np.abs(below[i]) + np.abs(max_activity[i]) + np.abs(others), -1)
        ends = lower / a, upper / a
        implied_lower, implied_upper = np.where(a > 0, ends[0], ends[1]), np.where(a > 0, ends[1], ends[0])
        # NaN and overflow give no bound.
        implied_lower = np.where(
            implied_lower < np.inf, implied_lower - 2 * UNIT * np.abs(implied_lower), -np.inf
        )
        implied_upper = np.where(
            implied_upper > -np.inf, implied_upper + 2 * UNIT * np.abs(implied_upper), np.inf
        )
        implied_lower = np.where(np.isnan(implied_lower), -np.inf, implied_lower)
        implied_upper = np.where(np.isnan(implied_upper), np.inf, implied_upper)
        lower_bounds, upper_bounds = x.lower.copy(), x.upper.copy()
        if self.present.size:
            at = self.present
            lower_bounds[at] = np.maximum(lower_bounds[at], np.maximum.reduceat(implied_lower, self.starts))
            upper_bounds[at] = np.minimum(upper_bounds[at], np.minimum.reduceat(implied_upper, self.starts))
        return Interval(lower_bounds, upper_bounds), s

    def cone_bounds(self, s: Interval) -> Interval:
        """Return s with the bounds that follow from its cones."""
        lower, upper = s.lower.copy(), s.upper.copy()
        lower[self.implied] = np.maximum(lower[self.implied], 0.0)
        for kind, rows, parameter in self.program.blocks():
            if kind == "zero":
                lower[rows] = upper[rows] = 0.0
            elif kind == "nonneg":
                lower[rows] = np.maximum(lower[rows], 0.0)
            elif kind == "soc":
                lower[rows.start] = max(lower[rows.start], 0.0)
                tail, bound = slice(rows.start + 1, rows.stop), upper[rows.start]
                lower[tail] = np.maximum(lower[tail], -bound)
                upper[tail] = np.minimum(upper[tail], bound)
            elif kind == "psd":
                first, second = self.program.triangle(parameter)
                diagonal = np.empty(parameter, dtype=int)
                diagonal[first[first == second]] = rows.start + np.flatnonzero(first == second)
                lower[diagonal] = np.maximum(lower[diagonal], 0.0)
                roots = np.sqrt(np.maximum(upper[diagonal], 0.0))
                bound = SQRT_TWO * roots[first] * roots[second]
                bound = np.where(np.isnan(bound), np.inf, bound)
                lower[rows] = np.where(first == second, lower[rows], np.maximum(lower[rows], -bound))
                upper[rows] = np.where(first == second, upper[rows], np.minimum(upper[rows], bound))
            elif kind == "exp":  # y exp(x / y) <= z, so that x <= y log(z / y) <= z / e
                at = rows.start
                lower[at + 1], lower[at + 2] = max(lower[at + 1], 0.0), max(lower[at + 2], 0.0)
                upper[at] = min(upper[at], INVERSE_E * max(upper[at + 2], 0.0))
            elif kind == "power":  # |z| <= x^a y^(1 - a)
                at = rows.start
                lower[at], lower[at + 1] = max(lower[at], 0.0), max(lower[at + 1], 0.0)
                bound = max(upper[at], upper[at + 1], 0.0)
                lower[at + 2], upper[at + 2] = max(lower[at + 2], -bound), min(upper[at + 2], bound)
        return Interval(lower, upper)


def others_sum(entry: Array, total: Array, infinite: Index) -> Array:
    """Return the sum of the other terms of each entry's row, NaN where one of them is infinite."""
    finite = np.isfinite(entry)
    rest: Array = np.where(infinite > ~finite, np.nan, np.where(finite, total - entry, total))
    return rest


def outward(bound: Array, size: Array, side: int) -> Array:
    """Return a bound moved outward by 8u size, more than the errors of a few operations on such numbers."""
    return bound + side * 8 * UNIT * size


def implied_rows(program: ConeProgram) -> tuple[sp.csr_array, Array]:
    """Return rows (A, b) of b - Ax >= 0 that are sums of rows and have exact coefficients.

    They are s_0 +- s_i >= 0 for second-order cones, z - x - y >= 0 for exponential ones, where
    z >= y exp(x / y) >= y + x, and s_i + s_k >= 0 for two rows t - u >= 0 and t + u >= 0.
    """
    A = sp.csr_array(program.A)
    first, second, third = [], [], []
    for kind, rows, _ in program.blocks():
        if kind == "soc" and A.indptr[rows.start + 1] - A.indptr[rows.start] <= MAX_HEAD_ENTRIES:
            tail = np.arange(rows.start + 1, rows.stop)
            first += [np.repeat(rows.start, 2 * tail.size)]
            second += [tail, ~tail]
        elif kind == "exp":
            third.append((rows.start + 2, ~rows.start, ~(rows.start + 1)))
    pairs = opposite_rows(program)
    blocks = [np.concatenate([*first, pairs[0]]), np.concatenate([*second, pairs[1]])]
    A2, b2 = row_sums(A, program.b, blocks)
    A3, b3 = row_sums(A, program.b, list(np.array(third, dtype=int).reshape(-1, 3).T))
    return sp.csr_array(sp.vstack([A2, A3])), np.concatenate([b2, b3])


def opposite_rows(program: ConeProgram) -> tuple[Index, Index]:
    """Return pairs of non-negative rows with a column whose negative entries are these two, and equal."""
    dims = program.dims
    part = sp.csr_array(program.A)[dims.zero : dims.zero + dims.nonneg]
    below = sp.csc_array(part.multiply(part < 0))
    below.eliminate_zeros()
    below.sort_indices()
    starts = below.indptr[:-1][np.diff(below.indptr) == 2]
    starts = starts[below.data[starts] == below.data[starts + 1]]
    return dims.zero + below.indices[starts], dims.zero + below.indices[starts + 1]


def row_sums(A: sp.csr_array, b: Array, chosen: list[Index]) -> tuple[sp.csr_array, Array]:
    """Return the sums of one row of each list, where ~i stands for minus row i.

    Sums whose coefficients are not exact in doubles are left out.
    """
    count = chosen[0].size
    total = sp.csr_array((count, A.shape[1]))
    right, size, exact = np.zeros(count), np.zeros(count), np.ones(count, dtype=bool)
    for rows in chosen if count else ():
        sign, at = np.where(rows < 0, -1.0, 1.0), np.where(rows < 0, ~rows, rows)
        right, size = right + sign * b[at], size + np.abs(b[at])
        total, exact_row = exactly_added(total, sp.csr_array(A[at] * sign[:, None]))
        exact = exact & exact_row
    total.eliminate_zeros()
    return total[exact], (right + 4 * UNIT * size)[exact]


def exactly_added(A: sp.csr_array, B: sp.csr_array) -> tuple[sp.csr_array, Mask]:
    """Return A + B and whether each of its rows is exact, by Knuth's TwoSum."""
    A, B = sp.csr_array(A), sp.csr_array(B)
    total = sp.csr_array(A + B)
    part = sp.csr_array(total - A)
    error = sp.csr_array(abs(A - (total - part)) + abs(B - part))
    exact: Mask = np.asarray(error.sum(axis=1)).ravel() == 0
    return total, exact


def by_objective(program: ConeProgram, x: Interval, objective_bound: float) -> Interval:
    """Return the bounds that c'x + 1/2 x'Px + offset <= objective_bound implies.

    With P - D semidefinite and D diagonal, the objective is at least offset + sum_j (c_j x_j + 1/2 d_j
    x_j^2). The term of one column is therefore at most objective_bound - offset minus the minima of the
    other terms over their boxes. For d_j > 0 the minimum -c_j^2 / (2 d_j) over all x_j is taken.
    """
    c, d = program.c, program.curvature
    square = d > 0
    minima = np.where(c == 0, 0.0, np.where(c > 0, c * x.lower, c * x.upper))
    minima = np.where(d < 0, minima + 0.5 * d * x.max_abs**2, minima)
    minima[square] = -(c[square] ** 2) / (2 * d[square])
    finite = np.isfinite(minima)
    infinite = np.flatnonzero(~finite)
    if infinite.size > 1:
        return x
    finite_minima = np.where(finite, minima, 0.0)
    size = float(np.abs(finite_minima).sum() + abs(objective_bound) + abs(program.offset))
    residual = (
        objective_bound
        - program.offset
        - (finite_minima.sum() - finite_minima)
        + 2 * gamma(c.size + 8) * size
    )
    if infinite.size:
        residual[np.arange(c.size) != infinite[0]] = np.inf
    bound = (residual + 8 * UNIT * np.abs(residual)) / c
    bound = bound + np.where(c > 0, 1, -1) * 4 * UNIT * np.abs(bound)
    upper = np.where((c > 0) & (d == 0), np.fmin(x.upper, bound), x.upper)
    lower = np.where((c < 0) & (d == 0), np.fmax(x.lower, bound), x.lower)
    # d/2 (x + c/d)^2 <= residual + c^2 / (2d)
    centre = -c[square] / d[square]
    radius = np.sqrt(np.maximum(2 * residual[square] / d[square] + centre**2, 0.0))
    radius = radius * (1 + 16 * UNIT) + 16 * UNIT * np.abs(centre)
    upper[square] = np.fmin(upper[square], centre + radius)
    lower[square] = np.fmax(lower[square], centre - radius)
    return Interval(lower, upper)
