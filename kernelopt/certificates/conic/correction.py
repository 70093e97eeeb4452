"""Exact corrections of a multiplier: a Delta with A'Delta = w in chosen columns exists and is bounded.

A column without bounds adds a finite minimum to the Lagrangian only where its slope is exactly zero, which
rounding prevents. As in Jansson's rigorous bounds (SIAM J. Optim. 14 (2004)), the correction that makes it
zero is not computed: the verified solution of a square linear system shows that it exists and bounds its
entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import cones, into_dual_cone
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Index

MAX_MULTIPLICATIONS = 1e9  # of the pivoted QR factorisation that chooses the rows: a second or less
CONTRACTION = 0.5  # the largest |I - RM| that is accepted: the bound is then at most doubled
AMPLE_RATIO = 2.0**20  # distances to the boundary beyond this multiple of a change count as equal


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
        v = np.maximum(approximation + 4 * (self.residual @ approximation), np.nextafter(0.0, 1.0))
        q = Ball(float(((self.residual @ Ball(v)) / v).above.max()))
        if not q.mid <= CONTRACTION:
            return None
        radius = np.zeros(entries)
        radius[self.rows] = (Ball(self.power * v) / (Ball(1.0) - q)).above
        return radius if np.isfinite(radius).all() else None


def correction_system(
    program: ConeProgram, z: Array, columns: Index, wanted: float
) -> CorrectionSystem | None:
    """Return a well-conditioned system in these columns, None where none is found.

    Its rows are chosen by QR with column pivoting of A', weighted with the distances of z from the boundary
    of the dual cone: z can change most where it is far inside. Distances are capped at a multiple of
    `wanted`, the size of the wanted change.
    """
    weights = np.minimum(inner_radii(program, z), AMPLE_RATIO * wanted)
    rows = np.flatnonzero(weights > 0)
    k = columns.size
    if not k or k > rows.size or float(k) ** 2 * rows.size > MAX_MULTIPLICATIONS:
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
        try:
            chosen = scipy.linalg.qr(M, mode="r", pivoting=True)[1][:k]
            M = M[:, chosen]
            R = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return None
        residual = (Ball(np.eye(k)) - R @ Ball(M)).size
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
    radius = np.zeros(z.size)
    for cone in cones(program):
        cone.of(radius)[:] = cone.depth(cone.of(z), reach)
    return radius


def powers_of_two_below(numbers: Array) -> Array:
    """Return the largest powers of two up to the numbers, one where these are not positive and finite."""
    usable = np.where(np.isfinite(numbers) & (numbers > 0), numbers, 1.0)
    powers: Array = np.ldexp(1.0, np.frexp(usable)[1] - 1)
    return powers
