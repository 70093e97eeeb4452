"""The dual of a piecewise quadratic loss at a fixed kernel: Clarabel, then an active-set step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

from kernelopt.losses import Loss
from kernelopt.losses.base import Curve
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.threads import Watch, watched
from kernelopt.validation import Array

SHORT = 200  # points, up to which Clarabel takes less than a watch would wait: 20 ms
BOUNDARIES = (1e-3, 1e-5, 1e-7, 1e-9)


def proposals(K: Array, y: Array, loss: Loss, bias: bool, watch: Watch | None = None) -> Iterator[Array]:
    """Yield points near the maximiser of l(alpha) - 1/2 alpha'K alpha, until the caller is content.

    The problem is scaled to a mean diagonal of one, solved with K itself and then with its factor (which
    is better at low rank and large C), each followed by active-set steps. A `watch` is called between these,
    and while Clarabel works; what it raises goes on.
    """
    curve = loss.curve(y)
    size = float(np.mean(np.diag(K) + curve.curvature))
    scale = 1 / size if size > 0 else 1.0
    unit = Curve(curve.linear, scale * curve.curvature, curve.l1, curve.lower / scale, curve.upper / scale)
    for factored in (False, True):
        beta = interior_point(scale * K, unit, bias, factored, watch)
        if beta is not None:
            yield scale * beta
            for boundary in BOUNDARIES:
                if watch is not None:
                    watch()
                mended = active_set(scale * K, unit, bias, beta, boundary)
                if mended is not None:
                    yield scale * mended


def interior_point(
    K: Array, curve: Curve, bias: bool, factored: bool, watch: Watch | None = None
) -> Array | None:
    """Return Clarabel's point, in the variables (a) or (a, w = L'a), with |a| <= t where there is a l1."""
    n = curve.linear.size
    eye = sp.eye_array(n, format="csc")
    rows: list[Any] = []
    equal: list[float] = []
    if factored:
        L = pivoted_cholesky(K, "the kernel")
        extra = L.shape[1]
        P = sp.block_diag([sp.diags_array(curve.curvature), sp.eye_array(extra)], format="csc")
        rows.append(sp.hstack([sp.csc_array(L.T), -sp.eye_array(extra)]))
        equal += [0.0] * extra
    else:
        extra = 0
        P = sp.csc_array(np.triu(K + np.diag(curve.curvature)))
    if bias:
        rows.append(sp.csc_array(np.concatenate([np.ones(n), np.zeros(extra)])[None]))
        equal.append(0.0)
    above, below = np.isfinite(curve.upper), np.isfinite(curve.lower)
    pad = sp.csc_array((n, extra))
    bounds = [sp.hstack([eye, pad], format="csc")[above], sp.hstack([-eye, pad], format="csc")[below]]
    limits = [curve.upper[above], -curve.lower[below]]
    q = np.concatenate([-curve.linear, np.zeros(extra)])
    if curve.l1.any():
        P = sp.block_diag([P, sp.csc_array((n, n))], format="csc")
        q = np.concatenate([q, curve.l1])
        rows = [sp.hstack([row, sp.csc_array((row.shape[0], n))]) for row in rows]
        bounds = [sp.hstack([row, sp.csc_array((row.shape[0], n))]) for row in bounds]
        bounds += [sp.hstack([eye, pad, -eye]), sp.hstack([-eye, pad, -eye])]
        limits.append(np.zeros(2 * n))
    b = np.concatenate([equal, *limits])
    if not b.size:  # squared loss without intercept: a linear system
        return np.asarray(np.linalg.lstsq(K + np.diag(curve.curvature), curve.linear, rcond=None)[0])
    cones = [clarabel.ZeroConeT(len(equal))] if equal else []
    cones += [clarabel.NonnegativeConeT(b.size - len(equal))] if b.size > len(equal) else []
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.vstack([*rows, *bounds], format="csc")
    solver = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, cones, settings)
    found = solver.solve() if watch is None or n <= SHORT else stoppable(solver, watch)
    a = np.asarray(found.x, dtype=float)[:n]
    return a if a.size == n and np.isfinite(a).all() else None


def stoppable(solver: Any, watch: Watch) -> Any:
    """Return what Clarabel finds in a thread of its own, which ends where the watch raises."""
    ended = threading.Event()
    if hasattr(solver, "set_termination_callback"):  # from 0.11 on; an older one is left behind
        solver.set_termination_callback(lambda info: ended.is_set())
    return watched(solver.solve, watch, ended.set)


def active_set(K: Array, curve: Curve, bias: bool, a: Array, boundary: float) -> Array | None:
    """Return the solution of the linear system of the free entries, the others being at their bounds."""
    near = boundary * float(np.abs(a).max(initial=0.0))
    low = np.isfinite(curve.lower) & (a - curve.lower <= near)
    high = np.isfinite(curve.upper) & (curve.upper - a <= near)
    flat = (curve.l1 > 0) & (np.abs(a) <= near)
    free = ~(low | high | flat)
    if not free.any():
        return None
    x = np.where(high, curve.upper, np.where(low, curve.lower, 0.0))
    x[free | flat] = 0.0
    M = K[np.ix_(free, free)] + np.diag(curve.curvature[free])
    right = (curve.linear - curve.l1 * np.sign(a) - K @ x)[free]
    if bias:
        ones = np.ones((len(M), 1))
        M = np.block([[M, ones], [ones.T, np.zeros((1, 1))]])
        right = np.append(right, -x.sum())
    x[free] = np.linalg.lstsq(M, right, rcond=1e-13)[0][: int(free.sum())]
    return x if np.isfinite(x).all() else None
