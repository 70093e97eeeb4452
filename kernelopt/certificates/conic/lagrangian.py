"""The lower bound that a multiplier proves, reduced by bounds of all rounding errors.

These are the rigorous bounds of Jansson (SIAM J. Optim. 14 (2004)) and of Jansson, Chaykin and Keil (SIAM J.
Numer. Anal. 46 (2007)), for cone programs with a quadratic objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram, Interval
from kernelopt.certificates.conic.correction import corrected, correction_system
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import dots
from kernelopt.validation import Array, Index, Mask


def slopes(program: ConeProgram, x: Array, z: Array, box: Interval) -> Ball:
    """Return r = c + Px + A'z.

    In linear columns with an infinite bound the sign of r_j decides whether a minimum exists. Where it is in
    doubt, r_j is computed again by dot products that are rounded once.
    """
    c, A = gradient(program, x), program.A
    r: Ball = c + A.T @ Ball(z)
    open_sides = ~box.bounded & (program.curvature <= 0)
    for j in np.flatnonzero(open_sides & (np.abs(r.mid) <= 4 * r.rad) & (r.rad > 0)):
        rows = slice(A.indptr[j], A.indptr[j + 1])
        again = Ball(*dots(A.data[rows][None], z[A.indices[rows]], c.mid[j : j + 1])) + Ball(0.0, c[j].rad)
        r.mid[j], r.rad[j] = again.mid[0], again.rad[0]
    return r


def gradient(program: ConeProgram, x: Array) -> Ball:
    """Return c + (P + P')x / 2; it is c exactly where P is zero."""
    c, P = Ball(program.c), program.P
    return c + (P @ Ball(x) + P.T @ Ball(x)) * 0.5 if P.nnz else c


def column_minima(program: ConeProgram, x: Array | float, r: Ball, box: Interval) -> Array:
    """Return for every column a lower bound of r_j y + 1/2 d_j (y - x_j)^2 over y in [lo_j, hi_j].

    It holds for all slopes in r_j, and is -inf where there is none. For d_j < 0 the function is concave, and
    for d_j >= 0 it is at least r_j y: both have their minimum at an end. An infinite end towards which the
    term is known to increase is none. For d_j > 0 the bound may also be the minimum over all y,
    r_j x_j - r_j^2 / (2 d_j).
    """
    d = program.curvature
    curved, convex = d.any(), d >= 0

    def at(end: Array, grows: Mask) -> Array:
        step = Ball(end) - x
        value = r * end + step * step * np.minimum(d / 2, 0.0) if curved else r * end
        return np.where(np.isfinite(end), value.below, np.where(grows & convex, np.inf, -np.inf))

    with np.errstate(all="ignore"):
        ends = np.minimum(at(box.lower, r.above <= 0), at(box.upper, r.below >= 0))
        linear = np.where(r.is_zero & convex, 0.0, ends)
        if not curved:
            return linear
        everywhere = (r * x - r * r / Ball(2 * d)).below
    return np.where(d > 0, np.maximum(everywhere, linear), linear)


class DualValue(NamedTuple):
    """A lower bound and its parts.

    `loss` is -sum_j of the minima of the columns, plus the bound of |b'Delta| of a correction, and z the
    given multiplier. Where `value` is -inf, `unbounded_slopes` holds |r_j| of the columns without a finite
    minimum, and zero elsewhere.
    """

    value: float
    loss: float
    z: Array
    unbounded_slopes: Array


def dual_value(program: ConeProgram, x: Array, z: Array, box: Interval) -> DualValue:
    """Return a lower bound of the optimum from z in the dual cone and any x.

    With r = c + Px + A'z, the objective at y is

        offset - b'z - 1/2 x'Px + r'y + 1/2 (y - x)'P(y - x) + z'(b - Ay).

    The last term is not negative for feasible y. With a diagonal D for which P - D is semidefinite, the term
    before it is at least 1/2 sum_j d_j (y_j - x_j)^2, so that every column is minimised over its box by
    itself. Where a column has no finite minimum z is corrected (`corrected_exactly`); where that fails the
    bound is -inf.
    """
    r = slopes(program, x, z, box)
    used, minima, deduction = z, column_minima(program, x, r, box), 0.0
    unbounded = np.flatnonzero(~np.isfinite(minima))
    open_sides = np.flatnonzero(~box.bounded & (program.curvature <= 0))
    for columns in (unbounded, open_sides) if unbounded.size else ():
        found = corrected_exactly(program, x, z, r, box, unbounded, columns)
        if found is not None:
            used, minima, deduction = found
            break
    else:
        if unbounded.size:
            lengths = np.zeros(minima.size)
            lengths[unbounded] = np.nextafter(np.abs(r.mid[unbounded]), np.inf)
            return DualValue(-np.inf, np.inf, z, lengths)
    P = program.P
    square = (Ball(x[P.indices] / 2) * P.data * np.repeat(x, np.diff(P.indptr))).sum()
    value = Ball(minima).sum() + program.offset - Ball(*dots(program.b[None], used))[0] - square - deduction
    return DualValue(float(value.below), deduction - float(minima.sum()), z, np.zeros(0))


def corrected_exactly(
    program: ConeProgram, x: Array, z: Array, r: Ball, box: Interval, unbounded: Index, columns: Index
) -> tuple[Array, Array, float] | None:
    """Return a changed z, the column minima at z + Delta and an upper bound of |b'Delta|.

    z is first changed by a step in floating point that makes the slopes of the `unbounded` columns zero up to
    rounding. Delta, which exists and is bounded (`correction.corrected`), then makes them exactly zero and
    leaves the slopes of the other `columns` unchanged. None where no Delta is shown to exist, or where
    another column has no finite minimum afterwards.
    """
    system = correction_system(program, z, columns, float(r[unbounded].size.max()))
    if system is None:
        return None
    step = np.zeros(r.mid.size)
    step[unbounded] = -r.mid[unbounded]
    changed = system.step(z, step)
    at_changed = slopes(program, x, changed, box)
    # By the rounding of the first step, other columns with one infinite bound may have lost their minimum.
    lost = np.flatnonzero(~np.isfinite(column_minima(program, x, at_changed, box)))
    found = corrected(program, system, changed, at_changed, np.intersect1d([*unbounded, *lost], columns))
    if found is None:
        return None
    minima = column_minima(program, x, found[0], box)
    return (changed, minima, found[1]) if np.isfinite(minima).all() else None
