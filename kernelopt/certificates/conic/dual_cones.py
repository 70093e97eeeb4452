"""The cones of a cone program: bounds of their points, and verified points of their dual cones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates.conic.cones import ROOT_TWO, ConeProgram, verified_semidefinite
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Mask

MAX_EXPONENT = 50.0  # of a multiplier of an exponential cone: exp(50) is 5e21
DOUBLINGS = 12  # of the shift of a semidefinite block, from its rounding error on
RELATIVE_MINIMUM = 1e-14  # of u, v in a power cone: both must be positive where w is not zero
INVERSE_E = 0.36788  # rounded up: max over t of t exp(-t)


@dataclass(frozen=True, eq=False)
class Cone:
    """Equal cones in consecutive rows; its own methods are right for zero cones, whose duals are free.

    Arrays have one row for every cone. `parameter` is the order of a semidefinite block, the length of
    second-order cones, or the exponents of power cones.
    """

    program: ConeProgram
    rows: slice
    parameter: Any

    @property
    def length(self) -> int:
        """The number of rows of the program in one cone."""
        return 1

    def of(self, a: Any) -> Any:
        """Return the entries of these rows of the program, one row for every cone."""
        return a[self.rows].reshape(-1, self.length)

    def interior(self) -> Any:
        """Return a point in the interior of one dual cone; zero in a free part."""
        return 0.0

    def inside(self, v: Ball) -> Array | None:
        """Return points near v with all points within `v.rad` in the dual cones; None where none are found.

        About the smallest multiple of an interior point is added for which this is shown in floating point.
        """
        return np.asarray(v.mid)

    def depth(self, v: Array, reach: float) -> Any:
        """Return about the change of each entry that keeps v in the dual cones, zero where none is known."""
        return reach

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return bounds of the points of the cones (not the dual ones) that have the given bounds."""
        return np.zeros_like(low), np.zeros_like(high)

    def significant(self, v: Array, threshold: float) -> Any:
        """Return which entries of v >= 0 belong to cones whose largest entry exceeds `threshold`."""
        return True


class Orthant(Cone):
    """Non-negative rows."""

    def interior(self) -> Any:
        return 1.0

    def inside(self, v: Ball) -> Array | None:
        return np.asarray(np.maximum(v.mid, v.rad))

    def depth(self, v: Array, reach: float) -> Array:
        return v

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        return np.maximum(low, 0.0), high

    def significant(self, v: Array, threshold: float) -> Mask:
        return np.asarray(v.max(axis=1, keepdims=True) > threshold)


class SecondOrder(Orthant):
    """s_0 >= |s_1:|."""

    @property
    def length(self) -> int:
        return int(self.parameter)

    def interior(self) -> Any:
        return np.eye(self.length)[0]

    def inside(self, v: Ball) -> Array | None:
        least = v[:, 1:].norm(2, axis=1, keepdims=True) + v[:, :1].rad
        return np.hstack([np.maximum(v.mid[:, :1], least.above), v.mid[:, 1:]])

    def depth(self, v: Array, reach: float) -> Array:
        return np.maximum((Ball(v[:, :1]) - Ball(v[:, 1:]).norm(2, axis=1, keepdims=True)).below, 0.0)

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        head = high[:, :1]
        return np.maximum(low, np.where(self.interior() > 0, 0.0, -head)), np.minimum(high, head)


class Semidefinite(Orthant):
    """A symmetric block, its scaled triangle in the rows."""

    @property
    def length(self) -> int:
        return int(self.parameter) * (int(self.parameter) + 1) // 2

    def interior(self) -> Any:
        return self.program.vectorized(np.eye(self.parameter))

    def inside(self, v: Ball) -> Array | None:
        """Rows and columns of zeros stay zero."""
        v, order = v[0], self.parameter
        room = float(Ball(v.rad).norm(2).above)
        used = self.program.matrix(np.abs(v.mid) + v.rad, order).mid.any(axis=1)
        identity, shift, first, smallest = self.program.vectorized(np.diag(used.astype(float))), 0.0, 0.0, 0.0
        for k in range(DOUBLINGS + 1):
            found = v.mid + shift * identity
            M = self.program.matrix(found, order)[np.ix_(used, used)]
            if verified_semidefinite(M, room):
                return np.asarray(found)
            if k == 0:
                try:
                    smallest = float(np.linalg.eigvalsh(M.mid)[0])
                except np.linalg.LinAlgError:
                    return None
                first = 2 * order * float(np.spacing(np.abs(np.diag(M.mid)).sum()))
            shift = max(room - smallest, 0.0) + first * 2**k
        return None

    def depth(self, v: Array, reach: float) -> Any:
        try:
            return max(float(np.linalg.eigvalsh(self.program.matrix(v[0], self.parameter).mid)[0]), 0.0)
        except np.linalg.LinAlgError:
            return 0.0

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """As s_ij^2 <= s_ii s_jj."""
        first, second = self.program.triangle(self.parameter)
        roots = Ball(np.zeros(self.parameter))
        roots.mid[first[first == second]] = high[0, first == second]
        roots = roots.power(0.5)
        bound = np.where(first == second, np.inf, (ROOT_TWO * roots[first] * roots[second]).above)
        return np.maximum(low, np.where(first == second, 0.0, -bound)), np.minimum(high, bound)

    def significant(self, v: Array, threshold: float) -> Mask:
        """The rows and columns whose diagonal entry exceeds the threshold."""
        first, second = self.program.triangle(self.parameter)
        chosen = np.zeros(self.parameter, dtype=bool)
        chosen[first[first == second]] = v[0, first == second] > threshold
        return np.asarray(chosen[first] & chosen[second])


class Exponential(Orthant):
    """y exp(x / y) <= z. In the dual cone u < 0 and w >= -u exp(v / u - 1), or u = 0 and v, w >= 0."""

    @property
    def length(self) -> int:
        return 3

    def interior(self) -> Any:
        return np.array([-1.0, 0.0, 1.0])

    def inside(self, v: Ball) -> Array | None:
        """The exponent is limited."""
        if np.any(v.rad):
            return None
        u, y, w = v.mid.T
        with np.errstate(all="ignore"):
            y = np.where(y / u - 1 > MAX_EXPONENT, (MAX_EXPONENT + 1) * u, y)
            least = ((Ball(y) / u - 1.0).monotone(np.exp) * -u).above
        y, least = np.where(u < 0, y, np.maximum(v.mid[:, 1], 0.0)), np.where(u < 0, least, 0.0)
        return np.stack([np.minimum(u, 0.0), y, np.maximum(w, least)], axis=1)

    def depth(self, v: Array, reach: float) -> Any:
        return 0.0

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """As x <= y log(z / y) <= z / e."""
        top = np.minimum(high[:, 0], INVERSE_E * np.maximum(high[:, 2], 0.0))
        return np.maximum(low, [-np.inf, 0.0, 0.0]), np.stack([top, high[:, 1], high[:, 2]], axis=1)


class Power(Exponential):
    """|z| <= x^a y^(1 - a). In the dual cone (u / a)^a (v / (1 - a))^(1 - a) >= |w| and u, v >= 0."""

    def interior(self) -> Any:
        return np.array([1.0, 1.0, 0.0])

    def inside(self, v: Ball) -> Array | None:
        """Where w is not zero, u and v are multiplied by the ratio of both sides if it exceeds one."""
        if np.any(v.rad):
            return None
        u, w, a = np.maximum(v.mid[:, :2], 0.0), np.abs(v.mid[:, 2:]), self.parameter[:, None]
        least = RELATIVE_MINIMUM * np.maximum(u.max(axis=1, keepdims=True), w)
        u, rest = np.where(w > 0, np.maximum(u, least), u), Ball(1.0) - a
        shares = Ball(np.hstack([a, rest.mid]), np.hstack([0 * a, rest.rad]))
        with np.errstate(all="ignore"):
            logs = ((Ball(u) / shares).monotone(np.log) * shares).sum(axis=1, keepdims=True)
            factor = (Ball(w).monotone(np.log) - logs).monotone(np.exp).above
        larger = np.where((w > 0) & (factor > 1), (Ball(u) * factor).above, u)
        return np.hstack([larger, v.mid[:, 2:]])

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        bound = np.maximum(high[:, :2].max(axis=1), 0.0)
        sides = np.stack([np.full(bound.size, np.inf), np.full(bound.size, np.inf), bound], axis=1)
        return np.maximum(low, np.where(self.interior() > 0, 0.0, -sides)), np.minimum(high, sides)


KINDS = {
    "zero": Cone,
    "nonneg": Orthant,
    "soc": SecondOrder,
    "psd": Semidefinite,
    "exp": Exponential,
    "power": Power,
}


def cones(program: ConeProgram) -> list[Cone]:
    """Return the cones of a program in the order of its rows."""
    return [KINDS[kind](program, rows, parameter) for kind, rows, parameter in program.blocks()]


def interior_point(program: ConeProgram) -> Array:
    """Return a point e in the interior of the dual cone, zero in the free part."""
    e = np.zeros(program.b.size)
    for cone in cones(program):
        cone.of(e)[:] = cone.interior()
    return e


def into_dual_cone(program: ConeProgram, z: Array, radius: Array | None = None) -> Array | None:
    """Return a point of the dual cone near z, None where that of a block cannot be verified.

    With `radius` all points within it, entry by entry, are in the dual cone as well.
    """
    found, radius = z.copy(), np.zeros(z.size) if radius is None else radius
    for cone in cones(program):
        v = cone.inside(Ball(cone.of(z), cone.of(radius)))
        if v is None:
            return None
        cone.of(found)[:] = v
    return found
