"""Conjugates of squares and powers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import in_shape, spread, uniform, value_of
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, residual, vector, whole
from kernelopt.structure.trees import times
from kernelopt.validation import Array

NEGLIGIBLE = 1e-12  # relative: eigenvalues of a quadratic form below this count as zero
Cost = tuple[cp.Expression, list[Any]]  # with the cones that it is written with


def square_over(y: cp.Expression, u: cp.Expression, new: New) -> Cost:
    """Return y^2 / (4 u), entry by entry or its sum where u is one expression; y = 0 at u = 0."""
    w = uniform(u)
    if new.entrywise:
        return cp.square(y) / (4 * u), []
    if w is not None:
        return cp.quad_over_lin(y, 4 * w), []
    t = new(y.shape, "t", nonneg=True)
    return t, [cp.SOC(vector(t + u), cp.vstack([vector(y), vector(t - u)]), axis=0)]


@conjugate("quad_over_lin", numbers=True)
def square_over_linear(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """|y|^2 t / (4 u) for a constant denominator t, else <y, x> - s t with |y|^2 / (4 u) <= s."""
    x, t = whole(g), g.args[1]
    axis, value = getattr(g, "axis", None), value_of(t)
    if value is None and axis is not None:
        return None
    if value is None:
        y, s = new(x.shape), new(g.shape, "s", nonneg=True)
        return Conjugate([(y, x), (-s, t)], 0, [cp.SOC(s + u, cp.hstack([vector(y), s - u]))])
    r, y = residual(g, x, u, new)
    k, c = 1 / float(value.flat[0]), value_of(u)
    if axis is None and c is not None:  # r is the residual: 2 k r'(b - a) - k |r|^2
        k = float(c.flat[0]) * k
        return Conjugate([(times(2 * k, y), x)], times(k, cp.sum_squares(r)))
    cost, cones = square_over(r, spread(times(k, u), r.shape, axis), new)
    return Conjugate([(y, x)], in_shape(cp.sum(cost, axis), g.shape) if cost.shape else cost, cones)


def form(x: cp.Expression, P: Array, u: cp.Expression, new: New) -> Conjugate:
    """Return the entry of x'Px with P = RR': y = R z with the cost |z|^2 / (4 u)."""
    values, vectors = np.linalg.eigh(P)
    keep = values > NEGLIGIBLE * max(values.max(), np.finfo(float).tiny)
    if not keep.any():
        return Conjugate([])
    z = new((int(keep.sum()), *x.shape[1:]), "z")
    cost, cones = square_over(z, spread(u, z.shape), new)
    R = cp.Constant(vectors[:, keep] * np.sqrt(values[keep]), name="R")
    return Conjugate([(R @ z, x)], cost, cones)


@conjugate("QuadForm", numbers=True)
def quadratic_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'Px, where P or -P is PSD."""
    P = value_of(g.args[1])
    return form(g.args[0], P if g.is_atom_convex() else -P, u, new)


@conjugate("huber", numbers=True)
def huber(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """|y|^2 / (4 u) on |y| <= 2 M u."""
    M = value_of(g.M)
    if M is None:
        return None
    r, y = residual(g, g.args[0], u, new)
    cost, cones = square_over(r, u, new)
    size = r if r.is_nonneg() else cp.abs(r)
    return Conjugate([(y, g.args[0])], cost, [*cones, size <= 2 * float(M.flat[0]) * u])


@conjugate("Power", "PowerApprox", numbers=True)
def power(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """The power |y|^q u^(1 - q) with 1/p + 1/q = 1, times a constant.

    For an even p and for 2 all y are allowed. For another p > 1 the domain is x >= 0, and y may be above the
    argument of the power. For p < 1 it is -y with y >= 0.
    """
    p, x = value_of(g.p), g.args[0]
    if p is None or p in (0, 1):
        return None
    if p == 2:
        r, y = residual(g, x, u, new)
        return Conjugate([(y, x)], *square_over(r, u, new))
    q = float(p / (p - 1))
    y = new(x.shape, nonneg=bool(p < 1))
    z = y if p < 1 or p % 2 == 0 else new(x.shape, "v", nonneg=True)
    cost, cones = power_over(z, u, q, new)
    above = [] if z is y else [y <= z]
    return Conjugate([(-y if p < 1 else y, x)], float(abs(p - 1) * abs(p) ** -q) * cost, [*cones, *above])


def power_over(y: cp.Expression, u: cp.Expression, q: float, new: New) -> Cost:
    """Return |y|^q u^(1 - q) for q > 1, y^q u^(1 - q) for q < 0, minus it for 0 < q < 1, with its cones."""
    sign = -1 if 0 < q < 1 else 1
    if u.is_constant():
        simple = float(Fraction(q).limit_denominator(8)) == q  # cvxpy's approximation by few cones is exact
        base = y if y.is_nonneg() else cp.abs(y)
        return sign * cp.multiply(value_of(u) ** (1 - q), cp.power(base, q, approx=simple)), []
    t = new(y.shape, "t", nonneg=True)
    a, b, c = vector(y), vector(u), vector(t)
    cone = (c, b, a, 1 / q) if q > 1 else (a, b, c, q) if q > 0 else (c, a, b, 1 / (1 - q))
    return sign * t, [cp.PowCone3D(*cone)]
