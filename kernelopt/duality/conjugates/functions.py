"""Conjugates of the convex functions of textbooks: entropies, powers, norms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import in_shape, spread, uniform, value_of
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, residual, slices, whole
from kernelopt.validation import Array


@conjugate("exp")
def exponential(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Y log(y / u) - y, with y >= 0."""
    y = new(g.shape, "p", nonneg=True)
    return Conjugate([(y, g.args[0])], cp.rel_entr(y, u) - y)


@conjugate("log", "log1p")
def logarithm(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """-log x: -z with the cost u log(u / z) - u."""
    z, x = new(g.shape, "z", nonneg=True), g.args[0]
    cost = -cp.log(z) - 1 if u.is_constant() else cp.rel_entr(u, z) - u
    return Conjugate([(-z, 1 + x if type(g).__name__ == "log1p" else x)], cost)


@conjugate("entr")
def entropy(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """X log x: exp(y - 1), of a multiplier a cone block."""
    if not u.is_constant():
        return None
    y = new(g.shape)
    return Conjugate([(y, g.args[0])], cp.exp(y - 1))


@conjugate("log_sum_exp")
def entropy_on_simplex(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """sum_i y_i log(y_i / u) over y >= 0 with the sum u."""
    y = new(g.args[0].shape, "p", nonneg=True)
    cost = slices(g, cp.sum, cp.rel_entr(y, spread(u, y.shape, g.axis)), u)
    return Conjugate([(y, g.args[0])], cost, [slices(g, cp.sum, y, u) == u])


@conjugate("logistic")
def binary_entropy(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Y log(y / u) + (u - y) log((u - y) / u)."""
    y = new(g.shape, "p", nonneg=True)
    return Conjugate([(y, g.args[0])], cp.rel_entr(y, u) + cp.rel_entr(u - y, u))


@conjugate("log_det", numbers=True)
def log_determinant(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """-log det X: -Z with the cost -u log det(Z / u) - n u, of a multiplier a cone block."""
    if not u.is_constant():
        return None
    X, c = g.args[0], float(u.value)
    Z = new(X.shape, "Z", PSD=True)
    return Conjugate([(-Z, X)], -c * cp.log_det(Z) + c * X.shape[0] * (np.log(c) - 1))


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


LARGEST_NUMERATOR = 8  # of a simple fraction a/b: |x|_(a/b) takes at most four second-order cones an entry
SAME = 1e-12  # relative: an exponent p / (p - 1) in doubles is this near to its fraction


def conic_norm(x: cp.Expression, p: float, axis: Any = None) -> cp.Expression:
    """Return |x|_p by second-order cones where p is a simple fraction, else by power cones.

    Interior-point methods are less accurate on power cones: the dual of l_p learning ends in an error there.
    cvxpy's `pnorm` with approx=True is exact for a fraction.
    """
    if axis is None and x.ndim == 2:  # cvxpy's norm2 of a matrix is the spectral norm
        x = cp.vec(x, order="F")
    if p in (1, 2, np.inf):
        return cp.norm(x, p, axis=axis)
    near = 1 / Fraction(1 / p).limit_denominator(LARGEST_NUMERATOR)
    return cp.pnorm(x, p, axis=axis, approx=abs(float(near) - p) <= SAME * abs(p))


def exponents(g: Any) -> Callable[..., cp.Expression]:
    """Return |y|_q with 1/p + 1/q = 1, of |x|_p; for p < 1 too."""
    q = {"norm1": np.inf, "norm_inf": 1.0}.get(type(g).__name__)
    return partial(conic_norm, p=q or float(g.p / (g.p - 1)))


def mean(g: Any) -> Callable[..., cp.Expression] | None:
    """Return prod_i (z_i / p_i)^p_i, of prod_i x_i^p_i."""
    p = np.array([float(v) for v in g.w])
    if p.size != g.args[0].size:  # of one slice, or without the weights of zero
        return None
    return lambda z, axis=None: cp.geo_mean(cp.multiply(1 / p, z), p)


POLARS: dict[str, Callable[[Any], Callable[..., cp.Expression] | None]] = {
    **dict.fromkeys(("norm1", "norm_inf", "Pnorm", "PnormApprox"), exponents),
    **dict.fromkeys(("GeoMean", "GeoMeanApprox"), mean),
    "abs": lambda g: cp.abs, "sigma_max": lambda g: cp.normNuc, "normNuc": lambda g: cp.sigma_max,
}  # fmt: skip


@conjugate(*POLARS, support=True)
def gauge(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """polar(y) <= u; of a concave gauge it is y = -z with z >= 0 and polar(z) >= u."""
    x, polar = whole(g), POLARS[type(g).__name__](g)
    if polar is None:
        return None
    if g.is_atom_convex():
        y = new.like(g, x, u)
        return Conjugate([(y, x)], 0, [slices(g, polar, y, u) <= u])
    z = new(x.shape, nonneg=True)
    return Conjugate([(-z, x)], 0, [slices(g, polar, z, u) >= u])


@conjugate("MatrixFrac", "tr_inv", numbers=True)
def inverse_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'P^-1 x: <y, x> - <Z, P> with [[Z, y / 2], [y' / 2, u]] >> 0; the trace of P^-1 is that of x = I."""
    x, P = (cp.Constant(np.eye(g.args[0].shape[0])), *g.args)[-2:]
    value = value_of(P)
    if value is not None:
        return form(x, np.linalg.inv(value), u, new)
    y, Z = new(x.shape), new(P.shape, "Z", symmetric=True)
    half = in_shape(y, (P.shape[0], x.size // P.shape[0])) / 2
    return Conjugate([(y, x), (-Z, P)], 0, [cp.bmat([[Z, half], [half.T, u * np.eye(half.shape[1])]]) >> 0])
