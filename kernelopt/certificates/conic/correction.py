"""A change of a multiplier that balances unbounded columns exactly: it exists, and its size is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import pushed
from kernelopt.numerics.rounding import TINY, Enclosure, gamma, norm_above
from kernelopt.validation import Array, Index

MOST_WORK = 1e9  # multiplications that the choice of the rows may cost
CONTRACTION = 0.5
AMPLE = 2.0**20


class Balance(NamedTuple):
    """A square system A_F' Delta = w in chosen rows, M y = scale w with Delta = power y, and R near M^-1.

    The scales are powers of two, so that the entries of M are those of A, exactly scaled.
    """

    columns: Index
    rows: Index
    power: Array
    scale: Array
    R: Array
    rest: Array  # an upper bound of |I - RM|, entry by entry

    def step(self, z: Array, wanted: Array) -> Array:
        """Return z + Delta, computed in floating point."""
        z = z.copy()
        z[self.rows] += self.power * (self.R @ (self.scale * wanted[self.columns]))
        return z

    def bound(self, size: Array, entries: int) -> Array | None:
        """Return a bound of |Delta|, entry by entry, for all w with |w| <= size; None if there is none.

        With |I - RM| v <= q v, q < 1 and |R w| <= v, M is regular and |M^-1 w| <= v / (1 - q).
        """
        k = self.columns.size
        grow = 1 + 4 * gamma(k + 4)
        near = (np.abs(self.R) @ (self.scale * size[self.columns])) * grow + k * TINY
        v = near + 4 * (self.rest @ near)
        q = float(((self.rest @ v) / v).max()) * grow
        if not q <= CONTRACTION:
            return None
        room = np.zeros(entries)
        room[self.rows] = self.power * v * (grow / (1 - q)) + TINY
        return room if np.isfinite(room).all() else None


def balance(program: ConeProgram, z: Array, columns: Index, wanted: float) -> Balance | None:
    """Return a well-conditioned system in these columns, in rows where z has room; None if there is none.

    Rows with much more room than a change of size `wanted` takes are as good as each other.
    """
    weights = np.minimum(slack(program, z), AMPLE * wanted)
    rows = np.flatnonzero(weights > 0)
    k = columns.size
    if not k or k > rows.size or float(k) ** 2 * rows.size > MOST_WORK:
        return None
    with np.errstate(all="ignore"):
        power = powers_of_two(weights[rows])
        entries = sp.csr_array(program.A[:, columns])[rows].T.toarray()
        scale = powers_of_two(1 / np.abs(entries * power).max(axis=1))
        M = entries * power * scale[:, None]
        if not np.array_equal(M / scale[:, None] / power, entries):  # it has overflowed, or underflowed
            return None
        try:
            chosen = scipy.linalg.qr(M, mode="r", pivoting=True)[1][:k]
            M = M[:, chosen]
            R = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return None
        rest = np.abs(np.eye(k) - R @ M) + 1.02 * gamma(k + 4) * (np.abs(R) @ np.abs(M) + np.eye(k)) + TINY
    return Balance(columns, rows[chosen], power[chosen], scale, R, rest) if np.isfinite(rest).all() else None


def corrected(
    program: ConeProgram, system: Balance, z: Array, r: Enclosure, unpaid: Index
) -> tuple[Enclosure, float] | None:
    """Return the slopes at z + Delta and the most that b'Delta can be, None where Delta may leave the cone.

    In the unpaid columns the slope is then zero, in the other columns of the system it is as before.
    """
    size = np.zeros(r.value.size)
    size[unpaid] = (np.abs(r.value[unpaid]) + r.error[unpaid]) * (1 + 1e-15)
    with np.errstate(all="ignore"):
        room = system.bound(size, z.size)
        if room is None:
            return None
        held = pushed(program, z, room)
        if held is None or not np.array_equal(held, z):
            return None
        terms = np.diff(program.A.indptr)
        change = (abs(program.A).T @ room) * (1 + 4 * gamma(terms + 4)) + TINY * terms
        change[system.columns] = 0.0
        value, error = r.value.copy(), (r.error + change) * (1 + 1e-15)
        value[unpaid] = error[unpaid] = 0.0
        product = float(np.abs(program.b) @ room) * (1 + 4 * gamma(room.size + 4))
    return Enclosure(value, error), math.nextafter(product + TINY * room.size, math.inf)


def slack(program: ConeProgram, z: Array) -> Array:
    """Return about how far every entry of z may move in the dual cone; zero where nothing is known."""
    room = np.zeros(z.size)
    for kind, rows, parameter in program.blocks():
        v = z[rows]
        if kind == "zero":
            room[rows] = max(float(np.abs(z).max(initial=0.0)), 1.0)
        elif kind == "nonneg":
            room[rows] = v
        elif kind == "soc":
            room[rows] = max(float(v[0]) - norm_above(v[1:]), 0.0)
        elif kind == "psd":
            try:
                room[rows] = max(float(np.linalg.eigvalsh(program.matrix(v, parameter))[0]), 0.0)
            except np.linalg.LinAlgError:
                continue
    return room


def powers_of_two(numbers: Array) -> Array:
    """Return the powers of two at positive numbers or below them; one where a number is not finite."""
    usable = np.where(np.isfinite(numbers) & (numbers > 0), numbers, 1.0)
    powers: Array = np.ldexp(1.0, np.frexp(usable)[1] - 1)
    return powers
