"""The dual cones of a cone program: interior points, and points near a given one that are verified inside."""

from __future__ import annotations

import math

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.semidefinite import semidefinite
from kernelopt.numerics.rounding import TINY, UNIT, norm_above
from kernelopt.validation import Array

STEEPEST = 50.0  # the largest exponent in a multiplier of an exponential cone
ATTEMPTS = 12  # the shift of a semidefinite block is doubled at most so often


def interior(program: ConeProgram) -> Array:
    """Return a point e in the interior of the dual cone (zero in the free part)."""
    e = np.zeros(program.b.size)
    for kind, rows, parameter in program.blocks():
        if kind == "nonneg":
            e[rows] = 1.0
        elif kind == "soc":
            e[rows.start] = 1.0
        elif kind == "psd":
            e[rows] = program.vectorized(np.eye(parameter))
        elif kind == "exp":
            e[rows] = (-1.0, 0.0, 1.0)
        elif kind == "power":
            e[rows] = (1.0, 1.0, 0.0)
    return e


def pushed(program: ConeProgram, z: Array, room: Array | None = None) -> Array | None:
    """Return a point of the dual cone near z, None where a semidefinite block cannot be verified.

    Every block is moved by about the least multiple of an interior point that lets floating point show
    that it is inside. With `room`, so are all points within `room` of it, entry by entry.
    """
    z = z.copy()
    for kind, rows, parameter in program.blocks():
        if kind == "zero":
            continue
        v, around = z[rows], np.zeros(0) if room is None else room[rows]
        if kind == "nonneg":
            np.maximum(v, around if room is not None else 0.0, out=v)
        elif kind == "soc":
            reach = norm_above(v[1:])
            if around.any():
                reach = (reach + norm_above(around[1:]) + float(around[0])) * (1 + 4 * UNIT)
            v[0] = max(v[0], reach)
        elif kind == "psd":
            moved = lifted(program, v, parameter, around)
            if moved is None:
                return None
            z[rows] = moved
        elif around.any():
            return None
        elif kind == "exp":
            z[rows] = exponential(v)
        elif kind == "power":
            z[rows] = power(v, parameter)
    return z


def lifted(program: ConeProgram, v: Array, order: int, around: Array) -> Array | None:
    """Return v plus a multiple of the identity that is verified to be PSD, with all points around it.

    Rows of zeros take no part, and stay as they are.
    """
    M, room = program.matrix(v, order), 0.0
    used = M.any(axis=1)
    if around.any():
        used, room = used | program.matrix(around, order).any(axis=1), norm_above(around)
    inner, one = np.ix_(used, used), program.vectorized(np.diag(used.astype(float)))
    if semidefinite(M[inner], room):
        return v
    try:
        least = float(np.linalg.eigvalsh(M[inner])[0])
    except np.linalg.LinAlgError:
        return None
    extra = max(4 * order * UNIT * float(np.abs(np.diag(M)).sum()), TINY)
    for _ in range(ATTEMPTS):
        moved = v + (max(room - least, 0.0) + extra) * one
        if semidefinite(program.matrix(moved, order)[inner], room):
            return moved
        extra *= 2
    return None


def exponential(v: Array) -> Array:
    """Return a point (u, v, w) with u < 0 and w >= -u exp(v / u - 1), or u = 0 and v, w >= 0."""
    u, y, w = (float(entry) for entry in v)
    if u >= 0.0:
        return np.array([0.0, max(y, 0.0), max(w, 0.0)])
    if y / u - 1 > STEEPEST:
        y = (STEEPEST + 1) * u
    exponent = max(y / u - 1, -700.0)
    needed = -u * math.exp(exponent) * (1 + 8 * UNIT * (abs(exponent) + 4)) + TINY
    return np.array([u, y, max(w, needed)])


def power(v: Array, a: float) -> Array:
    """Return a point (u, v, w) with u, v >= 0 and (u / a)^a (v / (1 - a))^(1 - a) >= |w|."""
    u, y, w = max(float(v[0]), 0.0), max(float(v[1]), 0.0), float(v[2])
    if w == 0.0:
        return np.array([u, y, 0.0])
    least = 1e-14 * max(u, y, abs(w))
    u, y = max(u, least), max(y, least)
    logs = a * math.log(u / a), (1 - a) * math.log(y / (1 - a))
    margin = 16 * UNIT * (4 + abs(logs[0]) + abs(logs[1]) + abs(math.log(abs(w))))
    short = math.log(abs(w)) - logs[0] - logs[1] + margin
    factor = math.exp(short) * (1 + 8 * UNIT) if short > 0 else 1.0
    return np.array([u * factor, y * factor, w])
