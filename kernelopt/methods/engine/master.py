"""The quadratic model of the risk as a function of the weights, minimised over the l_p ball."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.numerics.matrix_inequality import linear_step
from kernelopt.numerics.norms import length_of_positive
from kernelopt.validation import Array


def minimum_on_ball(gradient: Array, hessian: Array, w: Array, p: float) -> Array:
    """Return the minimiser over d of g'd + 1/2 d'Hd with v = w + d >= 0 and |v|_p <= 1, as v.

    Few entries of a minimiser are positive if p = 1. Where there are many entries, all others are held at
    zero, and entries with z < 0 in the optimality conditions of `interior_minimum` are added until there is
    none.

    Parameters
    ----------
    gradient : array g of shape (m,)
    hessian : array H of shape (m, m), positive semidefinite
    w : array of shape (m,), the point of the model, with w >= 0 and |w|_p <= 1
    p : float in [1, inf]
    """
    if p > 1 or w.size < SETTINGS.many_entries:
        return interior_minimum(gradient, hessian, w, p)
    lowest = np.argsort(gradient, kind="stable")[: SETTINGS.added_entries]
    some = np.union1d(np.flatnonzero(w), lowest)
    tolerance = SETTINGS.done**0.75 * float(max(np.abs(gradient).max(), np.abs(hessian @ w).max()))
    while True:
        v = np.zeros(w.size)
        v[some] = interior_minimum(gradient[some], hessian[np.ix_(some, some)], w[some], p)
        slope = gradient + hessian[:, some] @ (v - w)[some]
        lam = max(0.0, -float(slope[some].min()))
        z = slope + lam
        z[some] = 0.0
        missing = np.flatnonzero(z < -tolerance)
        if not missing.size:
            return v
        some = np.union1d(some, missing[np.argsort(z[missing], kind="stable")[: SETTINGS.added_entries]])


def interior_minimum(gradient: Array, hessian: Array, w: Array, p: float) -> Array:
    """Return the minimiser of `minimum_on_ball` by an interior-point method on all entries.

    It is a primal-dual method for the constraints v >= 0 and |v|_p + s = 1, s >= 0. For p = inf the slack s
    is a vector, and v + s = 1. With the derivatives A of the constraints, the multipliers z of v and lam of s
    satisfy at the end

        g + H(v - w) + A'lam - z = 0,    z v = 0,    lam s = 0.
    """
    size = float(max(np.abs(gradient).max(), np.abs(hessian @ w).max()))
    if not 0 < size < np.inf:
        return w
    g, H, m, box = gradient / size, hessian / size, w.size, bool(np.isinf(p))

    def unmet(v: Array, s: Array) -> Array:
        return s + (v if box else length_of_positive(v, p)) - 1

    v = SETTINGS.inside * ((1 - SETTINGS.even) * w + SETTINGS.even * m ** (-1 / p))
    s = -unmet(v, np.zeros(m if box else 1))
    z, lam = np.ones(m), np.ones(s.size)
    for _ in range(SETTINGS.model_steps):
        length, excess = length_of_positive(v, p), unmet(v, s)
        A = np.eye(m) if box else (v / length)[None] ** (p - 1)  # the derivatives of the constraints
        residual = g + H @ (v - w) + lam @ A - z
        complementarity = float(z @ v + lam @ s) / (m + s.size)
        if (
            complementarity <= SETTINGS.done * np.abs(g).max()
            and max(np.abs(residual).max(), np.abs(excess).max()) <= SETTINGS.done**0.75
        ):
            break
        target = SETTINGS.centred * complementarity
        # Eliminating the changes of s, z and lam leaves a system for the change of v.
        W = H + (A.T * (lam / s)) @ A
        W.flat[:: m + 1] += z / v
        if 1 < p < np.inf:  # the curvature of the norm
            bend = lam[0] * (p - 1) / length
            W -= bend * A.T @ A
            W.flat[:: m + 1] += bend * (v / length) ** (p - 2)
        dv = scaled_solution(W, target / v - residual - z - ((target + lam * excess) / s - lam) @ A)
        if dv is None:
            break
        dz, ds = (target - z * dv) / v - z, -excess - A @ dv
        dlam = (target - lam * ds) / s - lam
        step = min(linear_step(x, dx) for x, dx in ((v, dv), (s, ds), (z, dz), (lam, dlam)))
        # The curvature of the ball may move the point out of its equation, but not too far.
        while (
            step > SETTINGS.shortest
            and (
                np.abs(unmet(v + step * dv, s + step * ds))
                > np.maximum(SETTINGS.curved * (s + step * ds), np.abs(excess))
            ).any()
        ):
            step /= 2
        v, s, z, lam = v + step * dv, s + step * ds, z + step * dz, lam + step * dlam
    v = np.where((v < z) & (v < SETTINGS.zero * v.max()), 0.0, v) if p == 1 else v
    return v / max(1.0, length_of_positive(v, p))


def scaled_solution(W: Array, right: Array) -> Array | None:
    """Return W^-1 right after scaling W to a unit diagonal; None if W is not positive definite."""
    with np.errstate(all="ignore"):
        root = np.sqrt(W.diagonal())
        scaled = W / (root[:, None] * root)
        _, solved, failed = dposv(scaled, right / root, overwrite_a=True)
        dv: Array = solved / root
    return None if failed or not np.isfinite(dv).all() else dv
