"""The lower bound that a multiplier proves, reduced by bounds of all rounding errors.

These are the rigorous bounds of Jansson (SIAM J. Optim. 14 (2004)) and of Jansson, Chaykin and Keil (SIAM J.
Numer. Anal. 46 (2007)), for cone programs with a quadratic objective.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.correction import corrected, correction_system
from kernelopt.certificates.conic.tightening import Interval
from kernelopt.numerics.rounding import (
    TINY,
    UNIT,
    Enclosure,
    column_sums,
    exact_sum,
    gamma,
    refined,
    two_products,
)
from kernelopt.validation import Array, Index


class ColumnMinima(NamedTuple):
    """Lower bounds of the minima of the columns' terms of the Lagrangian, and the columns without one."""

    values: Array
    unbounded: Index


def slopes(program: ConeProgram, x: Array, z: Array, box: Interval) -> Enclosure:
    """Return r = c + Px + A'z with error bounds.

    In linear columns with an infinite bound the sign of r_j decides whether a minimum exists. Where it is in
    doubt, r_j is computed again by dot products that are rounded once.
    """
    c = gradient(program, x)
    sums = column_sums(c.value, program.A, z)
    r = Enclosure(sums.value, sums.error + c.error)
    open_sides = ~box.bounded & (program.curvature <= 0)
    uncertain = np.flatnonzero(open_sides & (np.abs(r.value) <= 4 * r.error) & (r.error > 0))
    if uncertain.size:
        recomputed = refined(c.value, program.A, z, uncertain, sums)
        error = sums.error.copy()
        error[uncertain] = recomputed.error[uncertain]
        r = Enclosure(recomputed.value, error + c.error)
    return r


def gradient(program: ConeProgram, x: Array) -> Enclosure:
    """Return c + (P + P')x / 2 with error bounds; it is c exactly where P is zero."""
    P = program.P
    if not P.nnz:
        return Enclosure(program.c, np.zeros(program.c.size))
    terms = np.diff(P.indptr) + np.bincount(P.indices, minlength=program.c.size)
    size = np.abs(program.c) + (abs(P) @ np.abs(x) + abs(P).T @ np.abs(x)) / 2
    error = np.where(terms > 0, 1.01 * gamma(terms + 4) * size + TINY * terms, 0.0)
    return Enclosure(program.c + (P @ x + P.T @ x) / 2, error)


def column_minima(program: ConeProgram, x: Array, r: Enclosure, box: Interval) -> ColumnMinima:
    """Return for every column a lower bound of r_j y + 1/2 d_j (y - x_j)^2 over y in [lo_j, hi_j].

    It holds for all slopes within the error of r_j. For d_j <= 0 it is
    min(r_j lo_j, r_j hi_j) + 1/2 d_j max(|lo_j - x_j|, |hi_j - x_j|)^2. Where one bound is infinite and the
    term increases towards it, the other bound has the minimum. For d_j > 0 it may also be the minimum over
    all y, r_j x_j - r_j^2 / (2 d_j).
    """
    d, value, error = program.curvature, r.value, r.error
    with np.errstate(all="ignore"):
        low, high = box
        ends = np.minimum(value * low, value * high) - error * box.max_abs
        size = np.maximum(np.abs(value), error) * box.max_abs
        concave = d < 0
        if concave.any():
            farthest = np.maximum(np.abs(low - x), np.abs(high - x))
            decrease = np.where(concave, -0.5 * d * farthest**2, 0.0)
            ends, size = ends - decrease, size + decrease
        linear = ends - 8 * UNIT * size
        # An infinite bound is not attained where the term is known to increase towards it.
        for side, bound, increases in ((high, low, value - error >= 0), (low, high, value + error <= 0)):
            fits = ~np.isfinite(side) & np.isfinite(bound) & increases & (d >= 0)
            cost = value * bound - (error + 4 * UNIT * np.abs(value)) * np.abs(bound)
            linear = np.where(fits, cost, linear)
        linear = np.where((value == 0) & (error == 0) & (d >= 0), 0.0, linear)
        linear = np.where(np.isfinite(linear), linear - TINY, -np.inf)
        largest_slope = (np.abs(value) + error) * (1 + 2 * UNIT)
        square = largest_slope**2 / (2 * d)
        quadratic = value * x - error * np.abs(x) - square
        quadratic = quadratic - 8 * UNIT * ((np.abs(value) + error) * np.abs(x) + square) - TINY
        best = np.where(d > 0, np.fmax(quadratic, linear), linear)
    return ColumnMinima(best, np.flatnonzero(~np.isfinite(best)))


def quadratic_part(program: ConeProgram, x: Array) -> tuple[float, float]:
    """Return 1/2 x'Px and a bound of its rounding error."""
    P = program.P
    if not P.nnz:
        return 0.0, 0.0
    terms = x[P.indices] * P.data * np.repeat(x, np.diff(P.indptr)) / 2
    bound_value = exact_sum(terms)
    return bound_value, 8 * UNIT * float(np.abs(terms).sum()) * (1 + gamma(terms.size)) + TINY * terms.size


class DualValue(NamedTuple):
    """A lower bound and its parts.

    `loss` is -sum_j of the minima of the columns, plus the bound of |b'Delta| of a correction. Where `value`
    is -inf, `unbounded_slopes` holds |r_j| of the columns without a finite minimum, and zero elsewhere.
    """

    value: float
    loss: float
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
    minima, deduction = column_minima(program, x, r, box), 0.0
    open_sides = np.flatnonzero(~box.bounded & (program.curvature <= 0))
    for columns in (minima.unbounded, open_sides) if minima.unbounded.size else ():
        found = corrected_exactly(program, x, z, r, box, minima.unbounded, columns)
        if found is not None:
            z, minima, deduction = found
            break
    if minima.unbounded.size:
        unbounded_slopes = np.zeros(r.value.size)
        unbounded_slopes[minima.unbounded] = np.abs(r.value[minima.unbounded]) + TINY
        return DualValue(-math.inf, math.inf, unbounded_slopes)
    loss = deduction - float(minima.values.sum())
    return DualValue(bound_value(program, x, z, minima.values, deduction), loss, np.zeros(0))


def corrected_exactly(
    program: ConeProgram, x: Array, z: Array, r: Enclosure, box: Interval, unbounded: Index, columns: Index
) -> tuple[Array, ColumnMinima, float] | None:
    """Return a changed z, the column minima at z + Delta and an upper bound of |b'Delta|.

    z is first changed by a step in floating point that makes the slopes of the `unbounded` columns zero up to
    rounding. Delta, which exists and is bounded (`correction.corrected`), then makes them exactly zero and
    leaves the slopes of the other `columns` unchanged. None where no Delta is shown to exist, or where
    another column has no finite minimum afterwards.
    """
    system = correction_system(program, z, columns, float((np.abs(r.value) + r.error)[unbounded].max()))
    if system is None:
        return None
    step = np.zeros(r.value.size)
    step[unbounded] = -r.value[unbounded]
    changed = system.step(z, step)
    at_changed = slopes(program, x, changed, box)
    # By the rounding of the first step, other columns with one infinite bound may have lost their minimum.
    unbounded = np.union1d(unbounded, column_minima(program, x, at_changed, box).unbounded)
    unbounded = np.intersect1d(unbounded, columns)
    found = corrected(program, system, changed, at_changed, unbounded)
    if found is None:
        return None
    minima = column_minima(program, x, found[0], box)
    return None if minima.unbounded.size else (changed, minima, found[1])


def bound_value(program: ConeProgram, x: Array, z: Array, values: Array, deduction: float = 0.0) -> float:
    """Return offset - b'z - 1/2 x'Px + sum(values) - deduction, rounded down; -inf where it overflows."""
    high, low = two_products(program.b, z)
    square, error = quadratic_part(program, x)
    rounding = TINY * high.size + error
    value = exact_sum(np.concatenate([[program.offset, -square, -rounding, -deduction], -high, -low, values]))
    return -math.inf if not math.isfinite(value) else math.nextafter(value - abs(value) * UNIT, -math.inf)
