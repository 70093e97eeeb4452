"""Conjugates of norms, maxima and other support functions: the cost is zero, and y is in u times a set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import along, spread, uniform, value_of
from kernelopt.duality.conjugates.powers import form
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, in_shape, slices, vector, whole
from kernelopt.structure.trees import times

LARGEST_NUMERATOR = 8  # of a simple fraction a/b: |x|_(a/b) takes at most four second-order cones an entry
SAME = 1e-12  # relative: an exponent p / (p - 1) in doubles is this near to its fraction


def conic_norm(x: cp.Expression, p: float, axis: Any = None) -> cp.Expression:
    """Return |x|_p by second-order cones where p is a simple fraction, else by power cones.

    Interior-point methods are less accurate on power cones: the dual of l_p learning ends in an error there.
    cvxpy's `pnorm` with approx=True is exact for a fraction.
    """
    if axis is None and x.ndim == 2:  # cvxpy's norm2 of a matrix is the spectral norm
        x = vector(x)
    if p in (1, 2, np.inf):
        return cp.norm(x, p, axis=axis)
    near = 1 / Fraction(1 / p).limit_denominator(LARGEST_NUMERATOR)
    return cp.pnorm(x, p, axis=axis, approx=abs(float(near) - p) <= SAME * abs(p))


def ball(dual_norm: Callable[..., cp.Expression]) -> Callable[..., Conjugate]:
    """Return the entry of a norm: |y|_* <= u."""

    def entry(g: Any, u: cp.Expression, new: New) -> Conjugate:
        y = new.like(g, whole(g), u)
        return Conjugate([(y, whole(g))], 0, [slices(g, dual_norm, y, u) <= u])

    return entry


conjugate("norm1", support=True)(ball(cp.norm_inf))
conjugate("norm_inf", support=True)(ball(cp.norm1))
conjugate("abs", support=True)(ball(cp.abs))
conjugate("sigma_max", support=True)(ball(cp.normNuc))
conjugate("normNuc", support=True)(ball(cp.sigma_max))


@conjugate("Pnorm", "PnormApprox", support=True)
def p_norm(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """|y|_q <= u with 1/p + 1/q = 1; for the concave |x|_p, p < 1: y = -z with z >= 0 and |z|_q >= u."""
    p = float(g.p)
    q = p / (p - 1)
    if p > 1:
        return ball(partial(conic_norm, p=q))(g, u, new)
    z = new(g.args[0].shape, nonneg=True)
    return Conjugate([(-z, g.args[0])], 0, [slices(g, partial(cp.pnorm, p=q, approx=False), z, u) >= u])


@conjugate("GeoMean", "GeoMeanApprox", support=True)
def geometric_mean(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """Y = -z with z >= 0 and prod_i (z_i / p_i)^p_i >= u."""
    p = np.array([float(v) for v in g.w])
    axis = getattr(g, "axis", None)  # from cvxpy 1.9 on
    if p.size != g.args[0].size or not p.all() or axis is not None:  # cvxpy drops weights of zero
        return None
    z = new(g.args[0].shape, nonneg=True)
    return Conjugate([(-z, g.args[0])], 0, [cp.geo_mean(cp.multiply(1 / p, z), p) >= u])


@conjugate("max", "min", "sum_largest", support=True)
def largest_entries(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y >= 0 with the sum u, of the k largest entries 0 <= y <= u with the sum k u."""
    y, sign = new(g.args[0].shape, "v", nonneg=True), 1 if g.is_atom_convex() else -1
    at_most = [y <= along(getattr(g, "axis", None), u, y.shape)] if hasattr(g, "k") else []
    total = slices(g, cp.sum, y, u) == times(getattr(g, "k", 1), u)
    return Conjugate([(sign * y, g.args[0])], 0, [*at_most, total])


@conjugate("maximum", "minimum", support=True)
def largest_argument(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y_k >= 0 with the sum u; the weight of a constant zero is the rest of u."""
    args = [a for a in g.args if (value := value_of(a)) is None or value.any()]
    shares = [new(g.shape, "v", nonneg=True) for _ in args]
    sign = 1 if g.is_atom_convex() else -1
    pairs = [(sign * y, spread(a, g.shape)) for y, a in zip(shares, args, strict=True)]
    total = sum(shares[1:], shares[0]) if shares else cp.Constant(np.zeros(g.shape))
    return Conjugate(pairs, 0, [total <= u if len(args) < len(g.args) else total == u])


@conjugate("dotsort", support=True)
def sorted_product(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """Y in u times the permutations of w: its k largest entries have at most the sum of those of w."""
    x, w = g.args[0], value_of(g.args[1])
    if w is None:
        return None
    y = new(x.shape, "v")
    w = np.cumsum(np.sort(np.pad(w.ravel(), (0, y.size - w.size)))[::-1])
    parts = [cp.sum_largest(y, k) <= float(w[k - 1]) * u for k in range(1, y.size)]
    return Conjugate([(y, x)], 0, [*parts, cp.sum(y) == float(w[-1]) * u])


@conjugate("lambda_max", "lambda_sum_largest", support=True)
def largest_eigenvalues(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Y >> 0 with the trace u, of the k largest eigenvalues 0 << Y << u I with the trace k u."""
    Y = new(g.args[0].shape, "Y", PSD=True)
    at_most = [u * np.eye(Y.shape[0]) - Y >> 0] if hasattr(g, "k") else []
    return Conjugate([(Y, g.args[0])], 0, [*at_most, cp.trace(Y) == times(getattr(g, "k", 1), u)])


@conjugate("rel_entr", "kl_div", support=True)
def relative_entropy(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """(a, b) with u exp(a / u - 1) <= -b for x log(x / y); kl_div has - x + y in addition."""
    shift = float(type(g).__name__ == "kl_div")
    a, b = new(g.shape), new(g.shape, "v")
    pairs = [(w, spread(arg, g.shape)) for w, arg in zip((a, b), g.args, strict=True)]
    return Conjugate(pairs, 0, [cp.ExpCone(a - (1 - shift) * u, u, shift * u - b)])


@conjugate("MatrixFrac", numbers=True)
def inverse_form(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """x'P^-1 x: <y, x> - <Z, P> with [[Z, y / 2], [y' / 2, u]] >> 0."""
    x, P = g.args
    value = value_of(P)
    if value is not None:
        return form(x, np.linalg.inv(np.linalg.cholesky(value)).T, u, new)
    y, Z = new(x.shape), new(P.shape, "Z", symmetric=True)
    half = in_shape(y, (P.shape[0], x.size // P.shape[0])) / 2
    corner: Any = uniform(u)
    block = cp.bmat([[Z, half], [half.T, corner * np.eye(half.shape[1])]])
    return Conjugate([(y, x), (-Z, P)], 0, [block >> 0])
