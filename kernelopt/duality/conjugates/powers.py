"""Conjugates of squares and powers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import uniform, value_of
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, residual, whole
from kernelopt.validation import Array

NEGLIGIBLE = 1e-12  # relative: eigenvalues of a quadratic form below this count as zero


@conjugate("quad_over_lin", numbers=True)
def square_over_linear(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """|y|^2 t / (4 u) for a constant denominator t, else <y, x> - s t with |y|^2 / (4 u) <= s."""
    x, t, weight = whole(g), g.args[1], value_of(u)
    value = value_of(t)
    if getattr(g, "axis", None) is not None:
        return None
    if value is None:
        y, s = new(x.shape), new(g.shape, "s", nonneg=True)
        return Conjugate([(y, x), (-s, t)], 0, [cp.SOC(s + u, cp.hstack([cp.vec(y, order="F"), s - u]))])
    r, y = residual(g, x, u, new)
    if weight is None:
        return Conjugate([(y, x)], cp.quad_over_lin(r, 4 / float(value) * u))
    k = float(weight / value)  # r is the residual: 2 k r'(b - a) - k |r|^2
    return Conjugate([(2 * k * y, x)], k * cp.sum_squares(r))


def form(x: cp.Expression, P: Array, u: cp.Expression, new: New) -> Conjugate:
    """Return the entry of x'Px with P = RR': y = R z with the cost |z|^2 / (4 u)."""
    values, vectors = np.linalg.eigh(P)
    keep = values > NEGLIGIBLE * max(values.max(), np.finfo(float).tiny)
    if not keep.any():
        return Conjugate([])
    z = new((int(keep.sum()), *x.shape[1:]), "z")
    R = cp.Constant(vectors[:, keep] * np.sqrt(values[keep]), name="R")
    return Conjugate([(R @ z, x)], cp.quad_over_lin(z, 4 * u))


@conjugate("QuadForm", numbers=True)
def quadratic_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'Px, where P or -P is PSD."""
    P = value_of(g.args[1])
    return form(g.args[0], P if g.is_atom_convex() else -P, u, new)


@conjugate("huber", numbers=True)
def squares(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """y^2 / (4 u), of huber on |y| <= 2 M u; y = 0 at u = 0."""
    w = uniform(u)
    if w is None and not new.entrywise:
        return None
    r, y = residual(g, g.args[0], u, new)
    cost = cp.square(r) / 4 if w is None or new.entrywise else cp.quad_over_lin(r, 4 * w)
    bounds = [(r if r.is_nonneg() else cp.abs(r)) <= 2 * g.M * u] if hasattr(g, "M") else []
    return Conjugate([(y, g.args[0])], cost, bounds)


@conjugate("Power", "PowerApprox", numbers=True)
def power(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """The power |y|^q u^(1 - q) with 1/p + 1/q = 1, times a constant.

    For an even p and for 2 all y are allowed. For another p > 1 the domain is x >= 0, and y may be above the
    argument of the power. For p < 1 it is -y with y >= 0.
    """
    p, x, weight = value_of(g.p), g.args[0], value_of(u)
    if p == 2:
        return squares(g, u, new)
    if p is None or p in (0, 1) or weight is None:
        return None
    p, even = float(p), p > 1 and p % 2 == 0
    q = p / (p - 1)
    simple = float(Fraction(q).limit_denominator(8)) == q  # cvxpy's approximation by few cones is exact
    y = z = new(x.shape, nonneg=p < 1)
    if p > 1 and not even:
        z = new(x.shape, "v", nonneg=True)
    size = cp.multiply(weight ** (1 - q), cp.power(cp.abs(z) if even else z, q, approx=simple))
    k = abs(p - 1) * abs(p) ** -q * (-1 if p < 0 else 1)
    return Conjugate([(-y if p < 1 else y, x)], k * size, [] if z is y else [y <= z])
