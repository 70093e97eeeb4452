"""Conjugates of logarithms, exponentials and their sums: entropies."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import spread
from kernelopt.duality.conjugates.table import Conjugate, New, conjugate, slices


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
def log_determinant(g: Any, u: cp.Expression, new: New) -> Conjugate:
    """-log det X: -Z with the cost -u log det(Z / u) - n u.

    For a multiplier u it is sum_i u log(u / L_ii) - n u, with a lower triangular L and
    [[Diag(diag(L)), L'], [L, Z]] >> 0, which says that prod_i L_ii <= det Z.
    """
    X, n = g.args[0], g.args[0].shape[0]
    Z = new(X.shape, "Z", PSD=True)
    if u.is_constant():
        c = float(u.value)
        return Conjugate([(-Z, X)], -c * cp.log_det(Z) + c * n * (np.log(c) - 1))
    L = new((n, n), "L")
    d, zeros = cp.diag(L), [cp.upper_tri(L) == 0] if n > 1 else []
    cone = cp.bmat([[cp.diag(d), L.T], [L, Z]]) >> 0
    return Conjugate([(-Z, X)], cp.sum(cp.rel_entr(spread(u, (n,)), d)) - n * u, [cone, *zeros])
