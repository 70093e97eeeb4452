"""The bound that a multiplier proves, with every rounding error paid."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.correction import balance, corrected
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


class Payment(NamedTuple):
    """Lower bounds of what the columns add to the Lagrangian, and those columns that have none."""

    least: Array
    unpaid: Index


def slopes(program: ConeProgram, x: Array, z: Array, box: Interval) -> Enclosure:
    """Return r = c + Px + A'z, more accurately in the columns where its sign matters."""
    c = gradient(program, x)
    sums = column_sums(c.value, program.A, z)
    r = Enclosure(sums.value, sums.error + c.error)
    open_sides = ~box.bounded & (program.curvature <= 0)
    doubtful = np.flatnonzero(open_sides & (np.abs(r.value) <= 4 * r.error) & (r.error > 0))
    if doubtful.size:
        better = refined(c.value, program.A, z, doubtful, sums)
        error = sums.error.copy()
        error[doubtful] = better.error[doubtful]
        r = Enclosure(better.value, error + c.error)
    return r


def gradient(program: ConeProgram, x: Array) -> Enclosure:
    """Return c + Px, of P's symmetric part; exactly c where P is zero."""
    P = program.P
    if not P.nnz:
        return Enclosure(program.c, np.zeros(program.c.size))
    terms = np.diff(P.indptr) + np.bincount(P.indices, minlength=program.c.size)
    size = np.abs(program.c) + (abs(P) @ np.abs(x) + abs(P).T @ np.abs(x)) / 2
    error = np.where(terms > 0, 1.01 * gamma(terms + 4) * size + TINY * terms, 0.0)
    return Enclosure(program.c + (P @ x + P.T @ x) / 2, error)


def payment(program: ConeProgram, x: Array, r: Enclosure, box: Interval) -> Payment:
    """Return for every column a lower bound of r_j y + 1/2 d_j (y - x_j)^2 over y in its box.

    The slope is anywhere within its error. Where d_j > 0 no box is needed: the least value over all y is
    r_j x_j - r_j^2 / (2 d_j).
    """
    d, value, error = program.curvature, r.value, r.error
    with np.errstate(all="ignore"):
        low, high = box
        ends = np.minimum(value * low, value * high) - error * box.reach
        size = np.maximum(np.abs(value), error) * box.reach
        concave = d < 0
        if concave.any():
            far = np.maximum(np.abs(low - x), np.abs(high - x))
            sag = np.where(concave, -0.5 * d * far**2, 0.0)
            ends, size = ends - sag, size + sag
        linear = ends - 8 * UNIT * size
        # One open side costs nothing where the slope is known to point away from it.
        for side, bound, away in ((high, low, value - error >= 0), (low, high, value + error <= 0)):
            fits = ~np.isfinite(side) & np.isfinite(bound) & away & (d >= 0)
            cost = value * bound - (error + 4 * UNIT * np.abs(value)) * np.abs(bound)
            linear = np.where(fits, cost, linear)
        linear = np.where((value == 0) & (error == 0) & (d >= 0), 0.0, linear)
        linear = np.where(np.isfinite(linear), linear - TINY, -np.inf)
        steepest = (np.abs(value) + error) * (1 + 2 * UNIT)
        square = steepest**2 / (2 * d)
        curved = value * x - error * np.abs(x) - square
        curved = curved - 8 * UNIT * ((np.abs(value) + error) * np.abs(x) + square) - TINY
        best = np.where(d > 0, np.fmax(curved, linear), linear)
    return Payment(best, np.flatnonzero(~np.isfinite(best)))


def quadratic_part(program: ConeProgram, x: Array) -> tuple[float, float]:
    """Return 1/2 x'Px and a bound of its error."""
    P = program.P
    if not P.nnz:
        return 0.0, 0.0
    terms = x[P.indices] * P.data * np.repeat(x, np.diff(P.indptr)) / 2
    total = exact_sum(terms)
    return total, 8 * UNIT * float(np.abs(terms).sum()) * (1 + gamma(terms.size)) + TINY * terms.size


class DualValue(NamedTuple):
    """A lower bound, what of it the columns take away, and the slopes of columns that prevent a bound."""

    value: float
    price: float
    open_slopes: Array


def dual_value(program: ConeProgram, x: Array, z: Array, box: Interval) -> DualValue:
    """Return a true lower bound from z in the dual cone and any x.

    With r = c + Px + A'z and P - D semidefinite, D diagonal, every feasible y has the objective

        offset - b'z - 1/2 x'Px + r'y + 1/2 (y - x)'P(y - x) + z'(b - Ay)

    at least, where the last term is not negative: so each column is minimised over its box alone. Where
    one has no finite minimum, z is corrected, else the bound is -inf.
    """
    r = slopes(program, x, z, box)
    paid, less = payment(program, x, r, box), 0.0
    open_sides = np.flatnonzero(~box.bounded & (program.curvature <= 0))
    for columns in (paid.unpaid, open_sides) if paid.unpaid.size else ():
        found = balanced(program, x, z, r, box, paid.unpaid, columns)
        if found is not None:
            z, paid, less = found
            break
    if paid.unpaid.size:
        open_slopes = np.zeros(r.value.size)
        open_slopes[paid.unpaid] = np.abs(r.value[paid.unpaid]) + TINY
        return DualValue(-math.inf, math.inf, open_slopes)
    price = less - float(paid.least.sum())
    return DualValue(total(program, x, z, paid.least, less), price, np.zeros(0))


def balanced(
    program: ConeProgram, x: Array, z: Array, r: Enclosure, box: Interval, unpaid: Index, columns: Index
) -> tuple[Array, Payment, float] | None:
    """Return z corrected by a known step, and what the columns and a further step within a bound cost.

    The second step balances the unpaid columns exactly, and leaves the others of `columns` as they are.
    None where no such step is found, or where it spoils another column.
    """
    system = balance(program, z, columns, float((np.abs(r.value) + r.error)[unpaid].max()))
    if system is None:
        return None
    step = np.zeros(r.value.size)
    step[unpaid] = -r.value[unpaid]
    moved = system.step(z, step)
    at_moved = slopes(program, x, moved, box)
    # The first step has rounded: a slope with one open side may now point to it.
    unpaid = np.intersect1d(np.union1d(unpaid, payment(program, x, at_moved, box).unpaid), columns)
    found = corrected(program, system, moved, at_moved, unpaid)
    if found is None:
        return None
    paid = payment(program, x, found[0], box)
    return None if paid.unpaid.size else (moved, paid, found[1])


def total(program: ConeProgram, x: Array, z: Array, least: Array, less: float = 0.0) -> float:
    """Return offset - b'z - 1/2 x'Px + sum(least) - less, rounded down; -inf where it overflows."""
    high, low = two_products(program.b, z)
    square, error = quadratic_part(program, x)
    rounding = TINY * high.size + error
    value = exact_sum(np.concatenate([[program.offset, -square, -rounding, -less], -high, -low, least]))
    return -math.inf if not math.isfinite(value) else math.nextafter(value - abs(value) * UNIT, -math.inf)
