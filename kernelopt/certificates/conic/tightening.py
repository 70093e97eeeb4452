"""Bounds of the columns of a cone program, by propagation of intervals through its rows and its objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.numerics.rounding import UNIT, gamma
from kernelopt.validation import Array, Index, Mask

SWEEPS = 30
SETTLED = 2  # sweeps without a new finite bound that end the propagation
WIDE = 8  # entries of the first row of a second-order cone that is added to the others


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
    def reach(self) -> Array:
        """The largest absolute value."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))


def tightened(program: ConeProgram, box: Interval, most: float = np.inf) -> Interval:
    """Return bounds of the columns for all feasible x in `box` with an objective of `most` or less.

    Rounding moves every bound outward. In each row of s = b - Ax, one column is bounded by the bounds of
    the others and of s: s = 0, s >= 0, |s_i| <= s_0 in a second-order cone, s_ij^2 <= s_ii s_jj in a
    semidefinite one. Rows that the cones imply are added, as `implied_rows` says. Where no such x
    exists the bounds are of no meaning, and any are right.
    """
    rows = Rows(program)
    x = Interval(box.lower.copy(), box.upper.copy())
    s = rows.cone_bounds(Interval(np.full(rows.b.size, -np.inf), np.full(rows.b.size, np.inf)))
    settled = 0
    with np.errstate(all="ignore"):
        for _ in range(SWEEPS):
            before, (x, s) = x, rows.sweep(x, s)
            if np.isfinite(most):
                x = by_objective(program, x, most)
            crossed = x.lower > x.upper
            if crossed.any():  # there is no such x: whatever holds for none holds in the old box, or between
                lower = np.where(np.isfinite(before.lower), before.lower, np.minimum(x.lower, x.upper))
                upper = np.where(np.isfinite(before.upper), before.upper, np.maximum(x.lower, x.upper))
                return Interval(np.where(crossed, lower, x.lower), np.where(crossed, upper, x.upper))
            settled = 0 if finite_sides(x) > finite_sides(before) else settled + 1
            if settled > SETTLED:
                break
    return x


def finite_sides(x: Interval) -> int:
    """Return the number of finite bounds."""
    return int(np.isfinite(x.lower).sum() + np.isfinite(x.upper).sum())


class Rows:
    """The rows s = b - Ax of a cone program with those that its cones imply, entry by entry."""

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

    def sums(self, low: Array) -> tuple[Array, Array, Index]:
        """Return for every row the sum of the finite entries, its error, and the number of infinite ones."""
        n, finite = self.b.size, np.isfinite(low)
        kept = np.where(finite, low, 0.0)
        total: Array = np.bincount(self.row, weights=kept, minlength=n).astype(float)
        error = self.rate * (np.bincount(self.row, weights=np.abs(kept), minlength=n) + np.abs(self.b))
        return total, error, np.bincount(self.row[~finite], minlength=n)

    def sweep(self, x: Interval, s: Interval) -> tuple[Interval, Interval]:
        """Return the bounds after one propagation through all rows."""
        a, i = self.value, self.row
        low = np.where(a > 0, a * x.lower[self.column], a * x.upper[self.column])
        high = np.where(a > 0, a * x.upper[self.column], a * x.lower[self.column])
        least, least_error, least_open = self.sums(low)
        most, most_error, most_open = self.sums(high)
        s = self.cone_bounds(
            Interval(
                np.fmax(s.lower, np.where(most_open == 0, self.b - most - most_error, -np.inf)),
                np.fmin(s.upper, np.where(least_open == 0, self.b - least + least_error, np.inf)),
            )
        )
        # a_ij x_j = b_i - s_i - (the other entries of row i)
        size = 4 * UNIT * (np.abs(self.b) + np.where(np.isfinite(s.lower), np.abs(s.lower), 0.0))
        above = self.b - s.lower + size + least_error
        others = without(low, least[i], least_open[i])
        upper = outward(above[i] - others, np.abs(above[i]) + np.abs(least[i]) + np.abs(others), 1)
        size = 4 * UNIT * (np.abs(self.b) + np.where(np.isfinite(s.upper), np.abs(s.upper), 0.0))
        below = self.b - s.upper - size - most_error
        others = without(high, most[i], most_open[i])
        lower = outward(below[i] - others, np.abs(below[i]) + np.abs(most[i]) + np.abs(others), -1)
        ends = lower / a, upper / a
        new_lower, new_upper = np.where(a > 0, ends[0], ends[1]), np.where(a > 0, ends[1], ends[0])
        # What is no number or has overflowed bounds nothing.
        new_lower = np.where(new_lower < np.inf, new_lower - 2 * UNIT * np.abs(new_lower), -np.inf)
        new_upper = np.where(new_upper > -np.inf, new_upper + 2 * UNIT * np.abs(new_upper), np.inf)
        new_lower = np.where(np.isnan(new_lower), -np.inf, new_lower)
        new_upper = np.where(np.isnan(new_upper), np.inf, new_upper)
        lowest, highest = x.lower.copy(), x.upper.copy()
        if self.present.size:
            at = self.present
            lowest[at] = np.maximum(lowest[at], np.maximum.reduceat(new_lower, self.starts))
            highest[at] = np.minimum(highest[at], np.minimum.reduceat(new_upper, self.starts))
        return Interval(lowest, highest), s

    def cone_bounds(self, s: Interval) -> Interval:
        """Return the bounds of s that its cones imply."""
        lower, upper = s.lower.copy(), s.upper.copy()
        lower[self.implied] = np.maximum(lower[self.implied], 0.0)
        for kind, rows, parameter in self.program.blocks():
            if kind == "zero":
                lower[rows] = upper[rows] = 0.0
            elif kind == "nonneg":
                lower[rows] = np.maximum(lower[rows], 0.0)
            elif kind == "soc":
                lower[rows.start] = max(lower[rows.start], 0.0)
                tail, reach = slice(rows.start + 1, rows.stop), upper[rows.start]
                lower[tail] = np.maximum(lower[tail], -reach)
                upper[tail] = np.minimum(upper[tail], reach)
            elif kind == "psd":
                first, second = self.program.triangle(parameter)
                diagonal = np.empty(parameter, dtype=int)
                diagonal[first[first == second]] = rows.start + np.flatnonzero(first == second)
                lower[diagonal] = np.maximum(lower[diagonal], 0.0)
                roots = np.sqrt(np.maximum(upper[diagonal], 0.0))
                reach = 1.4142135623731 * roots[first] * roots[second]
                reach = np.where(np.isnan(reach), np.inf, reach)
                lower[rows] = np.where(first == second, lower[rows], np.maximum(lower[rows], -reach))
                upper[rows] = np.where(first == second, upper[rows], np.minimum(upper[rows], reach))
            elif kind == "exp":  # y exp(x / y) <= z, so that x <= y log(z / y) <= z / e
                at = rows.start
                lower[at + 1], lower[at + 2] = max(lower[at + 1], 0.0), max(lower[at + 2], 0.0)
                upper[at] = min(upper[at], 0.36788 * max(upper[at + 2], 0.0))
            elif kind == "power":  # |z| <= x^a y^(1 - a)
                at = rows.start
                lower[at], lower[at + 1] = max(lower[at], 0.0), max(lower[at + 1], 0.0)
                reach = max(upper[at], upper[at + 1], 0.0)
                lower[at + 2], upper[at + 2] = max(lower[at + 2], -reach), min(upper[at + 2], reach)
        return Interval(lower, upper)


def without(entry: Array, total: Array, infinite: Index) -> Array:
    """Return the sum of the other entries of the row of a bound, NaN where one of them is infinite."""
    finite = np.isfinite(entry)
    rest: Array = np.where(infinite > ~finite, np.nan, np.where(finite, total - entry, total))
    return rest


def outward(bound: Array, size: Array, side: int) -> Array:
    """Return a bound moved by the rounding of the few operations on numbers of this size."""
    return bound + side * 8 * UNIT * size


def implied_rows(program: ConeProgram) -> tuple[sp.csr_array, Array]:
    """Return rows A, b with b - Ax >= 0 that are sums of rows, where floating point adds exactly.

    They are s_0 +- s_i >= 0 in second-order cones, z - x - y >= 0 in exponential ones, as
    z >= y exp(x / y) >= y + x, and s_i + s_k >= 0 of the two rows of an absolute value, t >= +-u.
    """
    A = sp.csr_array(program.A)
    first, second, third = [], [], []
    for kind, rows, _ in program.blocks():
        if kind == "soc" and A.indptr[rows.start + 1] - A.indptr[rows.start] <= WIDE:
            tail = np.arange(rows.start + 1, rows.stop)
            first += [np.repeat(rows.start, 2 * tail.size)]
            second += [tail, ~tail]
        elif kind == "exp":
            third.append((rows.start + 2, ~rows.start, ~(rows.start + 1)))
    pairs = opposite_rows(program)
    blocks = [np.concatenate([*first, pairs[0]]), np.concatenate([*second, pairs[1]])]
    A2, b2 = summed(A, program.b, blocks)
    A3, b3 = summed(A, program.b, list(np.array(third, dtype=int).reshape(-1, 3).T))
    return sp.csr_array(sp.vstack([A2, A3])), np.concatenate([b2, b3])


def opposite_rows(program: ConeProgram) -> tuple[Index, Index]:
    """Return pairs of non-negative rows that share a column with two negative entries, equal ones."""
    dims = program.dims
    part = sp.csr_array(program.A)[dims.zero : dims.zero + dims.nonneg]
    below = sp.csc_array(part.multiply(part < 0))
    below.eliminate_zeros()
    below.sort_indices()
    starts = below.indptr[:-1][np.diff(below.indptr) == 2]
    starts = starts[below.data[starts] == below.data[starts + 1]]
    return dims.zero + below.indices[starts], dims.zero + below.indices[starts + 1]


def summed(A: sp.csr_array, b: Array, chosen: list[Index]) -> tuple[sp.csr_array, Array]:
    """Return sums of rows, one of each list, a row ~i being less row i; those that are exact in A."""
    count = chosen[0].size
    total = sp.csr_array((count, A.shape[1]))
    right, size, exact = np.zeros(count), np.zeros(count), np.ones(count, dtype=bool)
    for rows in chosen if count else ():
        sign, at = np.where(rows < 0, -1.0, 1.0), np.where(rows < 0, ~rows, rows)
        right, size = right + sign * b[at], size + np.abs(b[at])
        total, fits = exactly_added(total, sp.csr_array(A[at] * sign[:, None]))
        exact = exact & fits
    total.eliminate_zeros()
    return total[exact], (right + 4 * UNIT * size)[exact]


def exactly_added(A: sp.csr_array, B: sp.csr_array) -> tuple[sp.csr_array, Mask]:
    """Return A + B and whether each row of it is exact, by Knuth's formula for the error of a sum."""
    A, B = sp.csr_array(A), sp.csr_array(B)
    total = sp.csr_array(A + B)
    part = sp.csr_array(total - A)
    error = sp.csr_array(abs(A - (total - part)) + abs(B - part))
    exact: Mask = np.asarray(error.sum(axis=1)).ravel() == 0
    return total, exact


def by_objective(program: ConeProgram, x: Interval, most: float) -> Interval:
    """Return the bounds that c'x + 1/2 x'Px + offset <= most implies.

    With P - D semidefinite and D diagonal, every column has a least value of c_j x_j + 1/2 d_j x_j^2 in its
    box: what is left to one column is `most` less the others' least values.
    """
    c, d = program.c, program.curvature
    square = d > 0
    least = np.where(c == 0, 0.0, np.where(c > 0, c * x.lower, c * x.upper))
    least = np.where(d < 0, least + 0.5 * d * x.reach**2, least)
    least[square] = -(c[square] ** 2) / (2 * d[square])
    finite = np.isfinite(least)
    open_ends = np.flatnonzero(~finite)
    if open_ends.size > 1:
        return x
    kept = np.where(finite, least, 0.0)
    size = float(np.abs(kept).sum() + abs(most) + abs(program.offset))
    room = most - program.offset - (kept.sum() - kept) + 2 * gamma(c.size + 8) * size
    if open_ends.size:
        room[np.arange(c.size) != open_ends[0]] = np.inf
    bound = (room + 8 * UNIT * np.abs(room)) / c
    bound = bound + np.where(c > 0, 1, -1) * 4 * UNIT * np.abs(bound)
    upper = np.where((c > 0) & (d == 0), np.fmin(x.upper, bound), x.upper)
    lower = np.where((c < 0) & (d == 0), np.fmax(x.lower, bound), x.lower)
    # d/2 (x + c/d)^2 <= room + c^2 / (2d)
    centre = -c[square] / d[square]
    radius = np.sqrt(np.maximum(2 * room[square] / d[square] + centre**2, 0.0))
    radius = radius * (1 + 16 * UNIT) + 16 * UNIT * np.abs(centre)
    upper[square] = np.fmin(upper[square], centre + radius)
    lower[square] = np.fmax(lower[square], centre - radius)
    return Interval(lower, upper)
