"""The lower bound that a multiplier proves, reduced by bounds of all rounding errors.

These are the rigorous bounds of Jansson (SIAM J. Optim. 14 (2004)) and of Jansson, Chaykin and Keil (SIAM J.
Numer. Anal. 46 (2007)), for cone programs with a quadratic objective.

A column without bounds adds a finite minimum to the Lagrangian only where its slope is exactly zero, which
rounding prevents. The correction Delta of the multiplier that makes it zero is not computed: the verified
solution of a linear system, A'Delta = w in chosen columns, shows that it exists and bounds its entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kernelopt.certificates.boxes import Box
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import into_dual_cone
from kernelopt.certificates.conic.settings import SETTINGS
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Index, Mask


class CorrectionSystem(NamedTuple):
    """A square system (A_F)'Delta = w, F the chosen rows, with an approximate inverse R.

    Scaled, it is M y = scale * w with Delta = power * y. All factors are powers of two, so that the entries
    of M are exact.
    """

    columns: Index
    rows: Index
    power: Array
    scale: Array
    R: Array
    residual: Array  # an upper bound of |I - R M|, entry by entry

    def step(self, z: Array, wanted: Array) -> Array:
        """Return z + Delta, computed in floating point."""
        z = z.copy()
        z[self.rows] += self.power * (self.R @ (self.scale * wanted[self.columns]))
        return z

    def bound(self, size: Array, entries: int) -> Array | None:
        """Return a bound of |Delta|, entry by entry, for all w with |w| <= size; None where none is shown.

        If |I - RM| v <= q v with q < 1, v > 0, and |R w| <= v, then M is regular and, by the Neumann series
        of M^-1 = (I - (I - RM))^-1 R, |M^-1 w| <= v / (1 - q).
        """
        approximation = (np.abs(self.R) @ Ball(self.scale * size[self.columns])).above
        # Any v > 0 is valid. A multiple of the second term of the series is added to make q small.
        v = np.maximum(approximation + 4 * (self.residual @ approximation), np.finfo(float).tiny)
        q = Ball(float(((self.residual @ Ball(v)) / v).above.max()))
        if not q.mid <= SETTINGS.contraction:
            return None
        radius = np.zeros(entries)
        radius[self.rows] = (Ball(self.power * v) / (Ball(1.0) - q)).above
        return radius if np.isfinite(radius).all() else None


def correction_system(
    program: ConeProgram, z: Array, columns: Index, wanted: Array
) -> CorrectionSystem | None:
    """Return a well-conditioned system in these columns, None where none is found.

    Its rows are the pivots of an LU factorisation of A, weighted with the distances of z from the boundary
    of the dual cone: z can change most where it is far inside. Distances are capped at a multiple of the
    largest of the `wanted` changes, of all columns. There is no system where a wanted change is far beyond
    the changes by these distances.
    """
    radii = inner_radii(program, z)
    if (wanted > SETTINGS.far * (abs(program.A).T @ radii)).any():
        return None
    weights = np.minimum(radii, SETTINGS.ample_ratio * float(wanted.max()))
    rows = np.flatnonzero(weights > 0)
    k = columns.size
    if not k or k > rows.size or float(k) ** 2 * rows.size > SETTINGS.max_multiplications:
        return None
    with np.errstate(all="ignore"):
        power = powers_of_two_below(weights[rows])
        entries = sp.csr_array(program.A[:, columns])[rows].T.toarray()
        scale = powers_of_two_below(1 / np.abs(entries * power).max(axis=1))
        M = entries * power * scale[:, None]
        if not (
            np.isfinite(M).all() and np.array_equal(M / scale[:, None] / power, entries)
        ):  # over-, underflow
            return None
        factors, swaps, singular = scipy.linalg.lapack.dgetrf(M.T)
        if singular:
            return None
        chosen = np.arange(rows.size)
        for first, second in enumerate(swaps):
            chosen[[first, second]] = chosen[[second, first]]
        chosen = chosen[:k]
        R = scipy.linalg.lapack.dgetri(factors[:k], np.arange(k))[0].T
        residual = (Ball(np.eye(k)) - R @ Ball(M[:, chosen])).size
    if not np.isfinite(residual).all():
        return None
    return CorrectionSystem(columns, rows[chosen], power[chosen], scale, R, residual)


def corrected(
    program: ConeProgram, system: CorrectionSystem, z: Array, r: Ball, unbounded: Index
) -> tuple[Ball, float] | None:
    """Return the slopes r = c + Px + A'(z + Delta) and an upper bound of |b'Delta|.

    Delta makes the slope zero in the `unbounded` columns and leaves it unchanged in the other columns of the
    system. None where no bound of Delta is shown, or where z + Delta is not shown to be in the dual cone.
    """
    size = np.zeros(r.mid.size)
    size[unbounded] = r[unbounded].size
    with np.errstate(all="ignore"):
        radius = system.bound(size, z.size)
        moved = None if radius is None else into_dual_cone(program, z, radius)
        if radius is None or moved is None or not np.array_equal(z, moved):
            return None
        change = (abs(program.A).T @ Ball(radius)).above
        change[system.columns] = 0.0
        slope = r + Ball(np.zeros(change.size), change)
        slope.mid[unbounded] = slope.rad[unbounded] = 0.0
        return slope, float((np.abs(program.b) @ Ball(radius)).above)


def inner_radii(program: ConeProgram, z: Array) -> Array:
    """Return for each entry of z about the change that keeps z in the dual cone, zero where none is known.

    The free part is bounded by the largest entry of z, at least one. Second-order cones have
    z_0 - |z_1:|, semidefinite blocks their least eigenvalue.
    """
    reach = max(float(np.abs(z).max(initial=0.0)), 1.0)
    return program.by_cone(lambda cone: cone.depth(cone.of(z), reach))


def powers_of_two_below(numbers: Array) -> Array:
    """Return the largest powers of two up to the numbers, one where these are not positive and finite."""
    usable = np.where(np.isfinite(numbers) & (numbers > 0), numbers, 1.0)
    powers: Array = np.ldexp(1.0, np.frexp(usable)[1] - 1)
    return powers


def slopes(program: ConeProgram, x: Array, z: Array, box: Box) -> Ball:
    """Return r = c + Px + A'z.

    In linear columns with an infinite bound the sign of r_j decides whether a minimum exists. Where it is in
    doubt, r_j is computed again by dot products that are rounded once.
    """
    c, A = gradient(program, x), program.A
    r: Ball = c + A.T @ Ball(z)
    open_sides = ~box.bounded & (program.curvature <= 0)
    doubtful = np.flatnonzero(open_sides & (np.abs(r.mid) <= 4 * r.rad) & (r.rad > 0))
    lengths = np.diff(A.indptr)[doubtful]
    for length in np.unique(lengths):
        j = doubtful[lengths == length]
        entries = A.indptr[j, None] + np.arange(length)
        again = Ball(z[A.indices[entries]]).dots(A.data[entries], c.mid[j]) + Ball(0.0, c[j].rad)
        r.mid[j], r.rad[j] = again.mid, again.rad
    return r


def gradient(program: ConeProgram, x: Array) -> Ball:
    """Return c + (P + P')x / 2; it is c exactly where P is zero."""
    c, P = Ball(program.c), program.P
    return c + (P @ Ball(x) + P.T @ Ball(x)) * 0.5 if P.nnz else c


def column_minima(program: ConeProgram, x: Array | float, r: Ball, box: Box) -> Array:
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


def dual_value(program: ConeProgram, x: Array, z: Array, box: Box) -> DualValue:
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
        if found is None or np.isfinite(minima).all():
            break
    if not np.isfinite(minima).all():
        lengths = np.zeros(minima.size)
        lengths[unbounded] = np.nextafter(np.abs(r.mid[unbounded]), np.inf)
        return DualValue(-np.inf, np.inf, z, lengths)
    P = program.P
    square = (Ball(x[P.indices] / 2) * P.data * np.repeat(x, np.diff(P.indptr))).sum()
    value = Ball(minima).sum() + program.offset - Ball(used).dots(program.b[None])[0] - square - deduction
    return DualValue(float(value.below), deduction - float(minima.sum()), z, np.zeros(0))


def corrected_exactly(
    program: ConeProgram, x: Array, z: Array, r: Ball, box: Box, unbounded: Index, columns: Index
) -> tuple[Array, Array, float] | None:
    """Return a changed z, the column minima at z + Delta and an upper bound of |b'Delta|.

    z is first changed by a step in floating point that makes the slopes of the `unbounded` columns zero up to
    rounding. Delta, which exists and is bounded (`corrected`), then makes them exactly zero and
    leaves the slopes of the other `columns` unchanged. None where no Delta is shown to exist. The minimum of
    a column that is not in `columns` may be -inf afterwards.
    """
    step, wanted = np.zeros((2, r.mid.size))
    step[unbounded], wanted[unbounded] = -r.mid[unbounded], r[unbounded].size
    system = correction_system(program, z, columns, wanted)
    if system is None:
        return None
    changed = system.step(z, step)
    at_changed = slopes(program, x, changed, box)
    # By the rounding of the first step, other columns with one infinite bound may have lost their minimum.
    lost = np.flatnonzero(~np.isfinite(column_minima(program, x, at_changed, box)))
    found = corrected(program, system, changed, at_changed, np.intersect1d([*unbounded, *lost], columns))
    if found is None:
        return None
    return changed, column_minima(program, x, found[0], box), found[1]
