"""Conjugates of squares and powers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import along, spread, uniform, value_of
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, in_shape, residual, vector, whole

NEGLIGIBLE = 1e-12  # relative: eigenvalues of a quadratic form below this count as zero


def square_over(y: cp.Expression, u: cp.Expression, new: New) -> tuple[cp.Expression, list[Any]]:
    """Return y^2 / u, entry by entry or its sum where u is one expression, with its cones; y = 0 at u = 0."""
    value = value_of(u)
    if value is not None:
        if np.ptp(value) or new.entrywise:
            return cp.multiply(1 / np.broadcast_to(value, y.shape), cp.square(y)), []
        square = cp.sum_squares(y)
        k = 1 / float(value.flat[0])
        return (square if k == 1 else k * square), []
    w = uniform(u)
    if w is not None:
        return cp.quad_over_lin(y, w), []
    t = new(y.shape, "t", nonneg=True)
    rows = cp.vstack([vector(2 * y), vector(t - u)])
    return t, [cp.SOC(vector(t + u), rows, axis=0)]


@conjugate("quad_over_lin")
def square_over_linear(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """|y|^2 t / (4 u) for a constant denominator t, else <y, x> - s t with |y|^2 / (4 u) <= s."""
    x, t = whole(g), g.args[1]
    axis, value = getattr(g, "axis", None), value_of(t)
    if value is not None:
        r, y = residual(g, x, u, new)
        if axis is None and (c := value_of(u)) is not None:  # r is the residual: 2 c r'(b - a) - c |r|^2
            k = float(c.flat[0]) / float(value.flat[0])
            return Conjugate(
                [(y if k == 0.5 else 2 * k * y, x)], cp.sum_squares(r) if k == 1 else k * cp.sum_squares(r)
            )
        u = 4 / float(value.flat[0]) * u
        if axis is None:
            cost, cones = square_over(r, u, new)
            return Conjugate([(y, x)], cost, cones)
        cost, cones = square_over(r, along(axis, u, r.shape), new)
        return Conjugate([(y, x)], in_shape(cp.sum(cost, axis=axis), g.shape) if cost.shape else cost, cones)
    if axis is not None:
        return None
    y, s = new(x.shape), new(g.shape, "s", nonneg=True)
    cone = cp.SOC(s + u, cp.hstack([vector(y), s - u]))
    return Conjugate([(y, x), (-s, spread(t, g.shape))], 0, [cone])


@conjugate("QuadForm")
def quadratic_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'RR'x: y = R z with the cost |z|^2 / (4 u)."""
    x, P = g.args
    sign = 1 if g.is_atom_convex() else -1
    values, vectors = np.linalg.eigh(sign * value_of(P))
    keep = values > NEGLIGIBLE * max(values.max(), np.finfo(float).tiny)
    if not keep.any():
        return Conjugate([])
    root = cp.Constant(vectors[:, keep] * np.sqrt(values[keep]), name="R")
    z = new((int(keep.sum()),), "z")
    cost, cones = square_over(z, 4 * u, new)
    return Conjugate([(root @ z, in_shape(x, (x.size,)))], cost, cones)


@conjugate("huber")
def huber(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """|y|^2 / (4 u) on |y| <= 2 M u."""
    M = value_of(g.M)
    if M is None:
        return None
    r, y = residual(g, g.args[0], u, new)
    cost, cones = square_over(r, 4 * u, new)
    return Conjugate([(y, g.args[0])], cost, [*cones, cp.abs(r) <= 2 * float(M.flat[0]) * spread(u, r.shape)])


@conjugate("Power", "PowerApprox")
def power(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """The power |y|^q u^(1 - q) with 1/p + 1/q = 1, times a constant.

    For an even p and for 2 all y are allowed. For another p > 1 the domain is x >= 0, and y may be above the
    argument of the power. For p < 1 it is -y with y >= 0.
    """
    p, x = value_of(g.p), g.args[0]
    if p is None or float(p) in (0.0, 1.0):
        return None
    p = float(p)
    if p == 2:
        r, y = residual(g, g.args[0], u, new)
        cost, cones = square_over(r, 4 * u, new)
        return Conjugate([(y, x)], cost, cones)
    q, size = p / (p - 1), abs(p)
    if p > 1:
        y, factor = new(x.shape), (p - 1) * p ** (-q)
        if p % 2 == 0:
            cost, cones = power_over(y, u, q, new)
            return Conjugate([(y, x)], factor * cost, cones)
        above = new(x.shape, "v", nonneg=True)
        cost, cones = power_over(above, u, q, new)
        return Conjugate([(y, x)], factor * cost, [*cones, y <= above])
    y = new(x.shape, nonneg=True)
    cost, cones = power_over(y, u, q, new)
    return Conjugate([(-y, x)], abs(1 - p) * size ** (-q) * cost, cones)


def power_over(y: cp.Expression, u: cp.Expression, q: float, new: New) -> tuple[cp.Expression, list[Any]]:
    """Return |y|^q u^(1 - q) for q > 1, y^q u^(1 - q) for q < 0, minus it for 0 < q < 1, with its cones."""
    sign, value = (-1 if 0 < q < 1 else 1), value_of(u)
    if value is not None and (is_simple(q) or y.is_nonneg()):
        base = y if y.is_nonneg() else cp.abs(y)
        return sign * cp.multiply(value ** (1 - q), cp.power(base, q, approx=is_simple(q))), []
    t = new(y.shape, "t", nonneg=True)
    y, u, bound = vector(y), vector(spread(u, y.shape)), vector(t)
    if q > 1:
        return t, [cp.PowCone3D(bound, u, y, 1 / q)]
    return (-t, [cp.PowCone3D(y, u, bound, q)]) if q > 0 else (t, [cp.PowCone3D(bound, y, u, 1 / (1 - q))])


def is_simple(q: float) -> bool:
    """Whether cvxpy's approximation of a power by fractions is exact, with few cones."""
    return float(Fraction(q).limit_denominator(8)) == q
