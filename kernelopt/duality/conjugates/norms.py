"""Conjugates of norms, maxima and other support functions: the cost is zero, and y is in u times a set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import along, spread, uniform, value_of
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, in_shape, vector, whole

LARGEST_NUMERATOR = 8  # of a simple fraction a/b: |x|_(a/b) takes at most four second-order cones an entry
SAME = 1e-12  # relative: an exponent p / (p - 1) in doubles is this near to its fraction


def conic_norm(x: cp.Expression, p: float, axis: Any = None) -> cp.Expression:
    """Return |x|_p by second-order cones where p is a simple fraction, else by power cones.

    Interior-point methods are less accurate on power cones: the dual of l_p learning ends in an error there.
    cvxpy's `pnorm` with approx=True is exact for a fraction.
    """
    if axis is None and x.ndim == 2:  # cvxpy's norm2 of a matrix is the spectral norm
        x = vector(x)
    if p == 1:
        return cp.norm1(x, axis=axis)
    if np.isinf(p):
        return cp.norm_inf(x, axis=axis)
    if p == 2:
        return cp.norm2(x, axis=axis)
    near = 1 / Fraction(1 / p).limit_denominator(LARGEST_NUMERATOR)
    return cp.pnorm(x, p, axis=axis, approx=abs(float(near) - p) <= SAME * abs(p))


def ball(
    dual_norm: Callable[[Any, cp.Expression], cp.Expression], kind: str = "entries"
) -> Callable[..., Conjugate]:
    """Return the entry of a norm: |y|_* <= u. A norm of the entries may have them as a matrix or a list."""

    def entry(g: Any, u: cp.Expression, new: New) -> Conjugate:
        a = whole(g) if kind == "entries" else g.args[0]
        y = new.like(g, a, u)
        return Conjugate([(y, a)], 0, [in_shape(dual_norm(g, y), u.shape) <= u])

    return entry


conjugate("norm1", support=True)(ball(lambda g, y: cp.norm_inf(y, axis=g.axis)))
conjugate("norm_inf", support=True)(ball(lambda g, y: cp.norm1(y, axis=g.axis)))
conjugate("abs", support=True)(ball(lambda g, y: cp.abs(y), "each"))
conjugate("sigma_max", support=True)(ball(lambda g, y: cp.normNuc(y), "matrix"))
conjugate("normNuc", support=True)(ball(lambda g, y: cp.sigma_max(y), "matrix"))


@conjugate("Pnorm", "PnormApprox", support=True)
def p_norm(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """|y|_q <= u with 1/p + 1/q = 1; for the concave |x|_p, p < 1: y = -z with z >= 0 and |z|_q >= u."""
    p, x = float(g.p), g.args[0]
    q = p / (p - 1)
    if p > 1:
        return ball(lambda g, y: conic_norm(y, q, g.axis))(g, u, new)
    z = new(x.shape, nonneg=True)
    return Conjugate([(-z, x)], 0, [in_shape(cp.pnorm(z, q, axis=g.axis, approx=False), u.shape) >= u])


@conjugate("GeoMean", "GeoMeanApprox", support=True)
def geometric_mean(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """Y = -z with z >= 0 and prod_i (z_i / p_i)^p_i >= u."""
    p = np.array([float(v) for v in g.w])
    axis = getattr(g, "axis", None)  # from cvxpy 1.9 on
    if p.size != g.args[0].size or not p.all() or axis is not None:  # cvxpy drops weights of zero
        return None
    z = new(g.args[0].shape, nonneg=True)
    return Conjugate([(-z, g.args[0])], 0, [cp.geo_mean(cp.multiply(1 / p, z), p) >= u])


@conjugate("max", "min", support=True)
def largest_entry(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y >= 0 with the sum u."""
    y, sign = new(g.args[0].shape, "v", nonneg=True), 1 if g.is_atom_convex() else -1
    return Conjugate([(sign * y, g.args[0])], 0, [in_shape(cp.sum(y, axis=g.axis), u.shape) == u])


@conjugate("maximum", "minimum", support=True)
def largest_argument(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y_k >= 0 with the sum u; the weight of a constant zero is the rest of u."""
    values = [value_of(a) for a in g.args]
    args = [a for a, v in zip(g.args, values, strict=True) if v is None or v.any()]
    sign = 1 if g.is_atom_convex() else -1
    shares = [new(g.shape, "v", nonneg=True) for _ in args]
    pairs = [(sign * y, spread(a, g.shape)) for y, a in zip(shares, args, strict=True)]
    total = sum(shares[1:], shares[0]) if shares else cp.Constant(np.zeros(g.shape))
    return Conjugate(pairs, 0, [total <= u if len(args) < len(g.args) else total == u])


@conjugate("sum_largest", support=True)
def sum_of_largest(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights 0 <= y <= u with the sum k u."""
    y, axis = new(g.args[0].shape, "v", nonneg=True), getattr(g, "axis", None)
    total = in_shape(cp.sum(y, axis=axis), u.shape)
    return Conjugate([(y, g.args[0])], 0, [y <= along(axis, u, y.shape), total == float(g.k) * u])


@conjugate("dotsort", support=True)
def sorted_product(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """Y in u times the permutations of w: its k largest entries have at most the sum of those of w."""
    x, w = g.args
    if (value := value_of(w)) is None:
        return None
    y = new(x.shape, "v")
    w = np.sort(np.concatenate([value.ravel(), np.zeros(max(0, y.size - value.size))]))[::-1]
    parts = [cp.sum_largest(y, k) <= float(w[:k].sum()) * u for k in range(1, y.size)]
    return Conjugate([(y, x)], 0, [*parts, cp.sum(y) == float(w.sum()) * u])


@conjugate("lambda_max", support=True)
def largest_eigenvalue(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Y >> 0 with the trace u."""
    Y = new(g.args[0].shape, "Y", PSD=True)
    return Conjugate([(Y, g.args[0])], 0, [cp.trace(Y) == u])


@conjugate("lambda_sum_largest", support=True)
def sum_of_eigenvalues(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """0 << Y << u I with the trace k u."""
    Y = new(g.args[0].shape, "Y", PSD=True)
    return Conjugate([(Y, g.args[0])], 0, [u * np.eye(Y.shape[0]) - Y >> 0, cp.trace(Y) == float(g.k) * u])


@conjugate("rel_entr", "kl_div", support=True)
def relative_entropy(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """(a, b) with u exp(a / u - 1) <= -b for x log(x / y); kl_div has - x + y in addition."""
    shift = float(type(g).__name__ == "kl_div")
    a, b = new(g.shape), new(g.shape, "v")
    u, args = spread(u, g.shape), [spread(v, g.shape) for v in g.args]
    cone = cp.ExpCone(a - (1 - shift) * u, u, shift * u - b)
    return Conjugate([(a, args[0]), (b, args[1])], 0, [cone])


@conjugate("MatrixFrac")
def inverse_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'P^-1 x: <y, x> - <Z, P> with [[Z, y / 2], [y' / 2, u]] >> 0."""
    x, P = g.args
    value = value_of(P)
    if value is not None and value_of(u) is not None:
        y = new(x.shape, "r")
        root = np.linalg.cholesky(value)
        return Conjugate([(y, x)], cp.sum_squares(root.T @ y) / (4 * float(value_of(u).flat[0])))
    y, Z = new(x.shape), new(P.shape, "Z", symmetric=True)
    m = 1 if x.ndim == 1 else x.shape[1]
    half = in_shape(y, (P.shape[0], m)) / 2
    w: Any = uniform(u)
    block = cp.bmat([[Z, half], [half.T, w * np.eye(m)]])
    return Conjugate([(y, x), (-Z, P)], 0, [block >> 0])
