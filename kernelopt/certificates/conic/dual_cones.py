"""The dual cones of a cone program: an interior point, and verified points near a given one."""

from __future__ import annotations

import math

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.semidefinite import verified_semidefinite
from kernelopt.numerics.rounding import TINY, UNIT, norm_above
from kernelopt.validation import Array

MAX_EXPONENT = 50.0  # of a multiplier of an exponential cone: exp(50) is 5e21
MIN_EXPONENT = -700.0  # exp of it is still a normal number
DOUBLINGS = 12  # of the shift of a semidefinite block, from its rounding error on
RELATIVE_MINIMUM = 1e-14  # of u, v in a power cone: both must be positive where w is not zero


def interior_point(program: ConeProgram) -> Array:
    """Return a point e in the interior of the dual cone, zero in the free part."""
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


def into_dual_cone(program: ConeProgram, z: Array, radius: Array | None = None) -> Array | None:
    """Return a point of the dual cone near z, None where a semidefinite block cannot be verified.

    A multiple of an interior point is added to every block. It is about the smallest multiple for which
    floating point shows that the sum is in the cone of the block. With `radius`, all points within
    `radius` of the returned one, entry by entry, are in the dual cone as well.
    """
    z = z.copy()
    for kind, rows, parameter in program.blocks():
        if kind == "zero":
            continue
        v, radii = z[rows], np.zeros(0) if radius is None else radius[rows]
        if kind == "nonneg":
            np.maximum(v, radii if radius is not None else 0.0, out=v)
        elif kind == "soc":
            norm = norm_above(v[1:])
            if radii.any():
                norm = (norm + norm_above(radii[1:]) + float(radii[0])) * (1 + 4 * UNIT)
            v[0] = max(v[0], norm)
        elif kind == "psd":
            shifted = shifted_semidefinite(program, v, parameter, radii)
            if shifted is None:
                return None
            z[rows] = shifted
        elif radii.any():
            return None
        elif kind == "exp":
            z[rows] = into_exponential(v)
        elif kind == "power":
            z[rows] = into_power(v, parameter)
    return z


def shifted_semidefinite(program: ConeProgram, v: Array, order: int, radii: Array) -> Array | None:
    """Return v plus a multiple of the identity that is verified to be PSD, None where none is.

    The multiple is about the smallest one for which all points within `radii` are PSD too. Rows and columns
    of zeros are left out, and stay zero.
    """
    M, radius = program.matrix(v, order), 0.0
    used = M.any(axis=1)
    if radii.any():
        used, radius = used | program.matrix(radii, order).any(axis=1), norm_above(radii)
    submatrix, identity = np.ix_(used, used), program.vectorized(np.diag(used.astype(float)))
    if verified_semidefinite(M[submatrix], radius):
        return v
    try:
        smallest = float(np.linalg.eigvalsh(M[submatrix])[0])
    except np.linalg.LinAlgError:
        return None
    extra = max(4 * order * UNIT * float(np.abs(np.diag(M)).sum()), TINY)
    for _ in range(DOUBLINGS):
        shifted = v + (max(radius - smallest, 0.0) + extra) * identity
        if verified_semidefinite(program.matrix(shifted, order)[submatrix], radius):
            return shifted
        extra *= 2
    return None


def into_exponential(v: Array) -> Array:
    """Return a point (u, v, w) of the dual exponential cone near one.

    The cone consists of u < 0, w >= -u exp(v / u - 1), and of u = 0, v, w >= 0. The exponent is limited, and
    w is raised by the rounding errors of the right-hand side.
    """
    u, y, w = (float(entry) for entry in v)
    if u >= 0.0:
        return np.array([0.0, max(y, 0.0), max(w, 0.0)])
    if y / u - 1 > MAX_EXPONENT:
        y = (MAX_EXPONENT + 1) * u
    exponent = max(y / u - 1, MIN_EXPONENT)
    needed = -u * math.exp(exponent) * (1 + 8 * UNIT * (abs(exponent) + 4)) + TINY
    return np.array([u, y, max(w, needed)])


def into_power(v: Array, a: float) -> Array:
    """Return a point (u, v, w) of the dual power cone near one.

    The cone is (u / a)^a (v / (1 - a))^(1 - a) >= |w|, u, v >= 0. Both sides are compared by their
    logarithms, and u, v are multiplied by the ratio where it exceeds one.
    """
    u, y, w = max(float(v[0]), 0.0), max(float(v[1]), 0.0), float(v[2])
    if w == 0.0:
        return np.array([u, y, 0.0])
    smallest = RELATIVE_MINIMUM * max(u, y, abs(w))
    u, y = max(u, smallest), max(y, smallest)
    logs = a * math.log(u / a), (1 - a) * math.log(y / (1 - a))
    margin = 16 * UNIT * (4 + abs(logs[0]) + abs(logs[1]) + abs(math.log(abs(w))))
    deficit = math.log(abs(w)) - logs[0] - logs[1] + margin
    factor = math.exp(deficit) * (1 + 8 * UNIT) if deficit > 0 else 1.0
    return np.array([u * factor, y * factor, w])
