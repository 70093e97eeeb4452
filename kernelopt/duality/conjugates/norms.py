"""Conjugates of norms, maxima and other support functions: the cost is zero, and y is in u times a set."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import in_shape, value_of
from kernelopt.duality.conjugates.powers import form
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, slices, whole

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
