"""Exponential and power cones: bounds of their points, and verified points of their dual cones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.symmetric_cones import Orthant
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.validation import Array

MAX_EXPONENT = 50.0  # of a multiplier of an exponential cone: exp(50) is 5e21
RELATIVE_MINIMUM = 1e-14  # of u, v in a power cone: both must be positive where w is not zero
INVERSE_E = 0.36788  # rounded up: max over t of t exp(-t)
LEAST_DISTANCE = 1e-12  # from the boundary, relative to the largest entry, at which a Hessian is formed
LEAST_SHARE = 1e-7  # as LEAST_DISTANCE, of a power cone, where the inverse is computed


class Exponential(Orthant):
    """y exp(x / y) <= z. In the dual cone u < 0 and w >= -u exp(v / u - 1), or u = 0 and v, w >= 0."""

    @property
    def length(self) -> int:
        return 3

    def interior(self) -> Any:
        return np.array([-1.0, 1.0, 1.0])

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

    def polar(self, s: Array) -> Any:
        return self.interior()

    def scaled(self, v: Array, V: Array) -> Any:
        return np.einsum("kij,kj->ki", self.inverse_hessians(v), V)

    def gram(self, v: Array, A: sp.csr_array) -> sp.csc_array:
        every = np.arange(v.shape[0] + 1)
        H = sp.bsr_array((self.inverse_hessians(v), every[:-1], every), shape=(v.size, v.size))
        return sp.csc_array(A.T @ (H @ A))

    def inverse_hessians(self, v: Array) -> Array:
        """Return the inverse Hessian of the barrier of each dual cone, for a point at the boundary one near.

        In x = u - v, y = -u and z = w the dual cone is the cone itself, whose barrier is
        -log psi - log y - log z with psi = y log(z / y) - x (Nesterov, Math. Program. 131 (2012)). In the
        coordinates (psi, y, z) the Hessian is diag(1 / psi^2, Q), where Q has the inverse
        D - D g g'D / (psi y + 2 y^2), D = diag(y^2, z^2) and g = (1, -y / z).
        """
        size = np.abs(v).max(axis=1)
        least = np.maximum(LEAST_DISTANCE * size, SMALLEST_DIVISOR)
        y, z = np.maximum(-v[:, 0], least), np.maximum(v[:, 2], least)
        psi = np.maximum(y * np.log(z / y) - (v[:, 0] - v[:, 1]), least)
        found = np.zeros((size.size, 3, 3))
        found[:, 0, 0] = psi**2
        Dg = np.stack([y**2, -y * z], axis=1)
        found[:, 1, 1], found[:, 2, 2] = y**2, z**2
        found[:, 1:, 1:] -= Dg[:, :, None] * Dg[:, None] / (psi * y + 2 * y**2)[:, None, None]
        one, zero = np.ones(size.size), np.zeros(size.size)
        slope = np.log(z / y) - 1.0  # of psi in y
        # u = -y, v = u - x and x = y log(z / y) - psi, in differentials
        map_back = np.array([[zero, -one, zero], [one, -1.0 - slope, -y / z], [zero, zero, one]])
        M = map_back.transpose(2, 0, 1)
        return np.asarray(M @ found @ M.transpose(0, 2, 1))

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

    def inverse_hessians(self, v: Array) -> Array:
        """As for the exponential cone.

        In x = u / a, y = v / b, b = 1 - a, and phi = x^(2a) y^(2b), the barrier is
        -log(phi - w^2) - b log x - a log y (Chares, thesis, Louvain (2009), section 3.1.2). Its Hessian is
        formed for changes relative to x, y and the root of phi, with q = 1 - w^2 / phi.
        """
        size, a = np.abs(v).max(axis=1), self.parameter
        least = np.maximum(LEAST_DISTANCE * size, SMALLEST_DIVISOR)
        u, y, b = np.maximum(v[:, 0], least), np.maximum(v[:, 1], least), 1.0 - a
        root = np.exp(a * np.log(u / a) + b * np.log(y / b))
        s = np.clip(v[:, 2] / root, LEAST_SHARE - 1.0, 1.0 - LEAST_SHARE)
        q = (1.0 - s * s)[:, None, None]
        zero, two = np.zeros(size.size), np.full(size.size, 2.0)
        slope, power = np.stack([2 * a, 2 * b, -2 * s], axis=1), np.stack([2 * a, 2 * b, zero], axis=1)
        every, F = np.arange(3), slope[:, :, None] * slope[:, None] / q**2
        F -= power[:, :, None] * power[:, None] / q
        F[:, every, every] += np.stack([2 * a, 2 * b, two], axis=1) / q[:, 0] + np.stack([b, a, zero], axis=1)
        scale = np.stack([u, y, root], axis=1)
        return np.asarray(scale[:, :, None] * np.linalg.inv(F) * scale[:, None])
