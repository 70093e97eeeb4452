"""Conjugates of norms, maxima and other support functions: the cost is zero, and y is in u times a set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import in_shape, spread, value_of
from kernelopt.duality.conjugates.powers import form
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, slices, vector, whole
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


def exponents(g: Any) -> Callable[..., cp.Expression]:
    """Return |y|_q with 1/p + 1/q = 1, of |x|_p; for p < 1 too."""
    p = {"norm1": 1.0, "norm_inf": np.inf}.get(type(g).__name__) or float(g.p)
    return partial(conic_norm, p=np.inf if p == 1 else 1 / (1 - 1 / p))


def mean(g: Any) -> Callable[..., cp.Expression] | None:
    """Return prod_i (z_i / p_i)^p_i, of prod_i x_i^p_i."""
    p = np.array([float(v) for v in g.w])
    if p.size != g.args[0].size or not p.all() or getattr(g, "axis", None) is not None:
        return None  # cvxpy drops weights of zero, and has the axis from 1.9 on
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


@conjugate("max", "min", "sum_largest", "lambda_max", "lambda_sum_largest", support=True)
def largest(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y >= 0 with the sum u, of the k largest entries 0 <= y <= u with the sum k u.

    Of the largest eigenvalues they are Y >> 0 with the trace u, and 0 << Y << u I with the trace k u.
    """
    x, k, axis = g.args[0], getattr(g, "k", None), getattr(g, "axis", None)
    if type(g).__name__.startswith("lambda"):
        y = new(x.shape, "Y", PSD=True)
        total, at_most = cp.trace(y), u * np.eye(x.shape[0]) - y >> 0
    else:
        y = new(x.shape, "v", nonneg=True)
        total, at_most = slices(g, cp.sum, y, u), y <= spread(u, y.shape, axis)
    domain = [at_most] * (k is not None) + [total == times(k or 1, u)]
    return Conjugate([(y if g.is_atom_convex() else -y, x)], 0, domain)


@conjugate("maximum", "minimum", support=True)
def largest_argument(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """Weights y_k >= 0 with the sum u; the weight of a constant zero is the rest of u."""
    args = [a for a in g.args if not a.is_zero()]
    shares = [new(g.shape, "v", nonneg=True) for _ in args]
    sign, total = 1 if g.is_atom_convex() else -1, sum(shares, cp.Constant(np.zeros(g.shape)))
    pairs = [(sign * y, spread(a, g.shape)) for y, a in zip(shares, args, strict=True)]
    return Conjugate(pairs, 0, [total <= u if len(args) < len(g.args) else total == u])


@conjugate("dotsort", support=True)
def sorted_product(g: Any, u: cp.Expression, new: New) -> Conjugate | None:
    """Y in u times the permutations of w: its k largest entries have at most the sum of those of w."""
    x, w = g.args[0], value_of(g.args[1])
    if w is None:
        return None
    y = new(x.shape, "v")
    sums = np.cumsum(np.sort(np.append(w, np.zeros(y.size - w.size)))[::-1])
    parts = [cp.sum_largest(y, k) <= float(c) * u for k, c in enumerate(sums[:-1], 1)]
    return Conjugate([(y, x)], 0, [*parts, cp.sum(y) == float(sums[-1]) * u])


@conjugate("rel_entr", "kl_div", support=True)
def relative_entropy(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """(a, b) with u exp(a / u - 1) <= -b for x log(x / y); kl_div has - x + y in addition."""
    shift = float(type(g).__name__ == "kl_div")
    a, b = new(g.shape), new(g.shape, "v")
    pairs = [(w, spread(arg, g.shape)) for w, arg in zip((a, b), g.args, strict=True)]
    return Conjugate(pairs, 0, [cp.ExpCone(a - (1 - shift) * u, u, shift * u - b)])


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
