"""The dual of a piecewise quadratic loss at a fixed kernel: an interior point, then active-set steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.numerics.factors import pivoted_cholesky
from kernelopt.running import check, running_call
from kernelopt.threads import interruptible
from kernelopt.validation import Array

SMALL = 200  # points up to which Clarabel takes less than 20 ms, and is not interrupted
BOUND_TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9)  # relative distances at which an entry counts as at its bound
CLARABEL_TOLERANCE = (
    1e-11  # of gap and feasibility: tighter than the default 1e-8, to identify the active set
)
SINGULAR = 1e-13  # relative singular values of the linear system below this count as zero


def interior_points(K: Array, y: Array, loss: Loss, bias: bool) -> Iterator[Array]:
    """Yield points near the maximiser of l(alpha) - 1/2 alpha'K alpha.

    The problem is scaled to a mean diagonal of one and solved by Clarabel, first with K itself and then with
    its factor K = LL', which is more accurate at low rank and for large C. Active-set steps follow each
    solve.
    """
    curve = loss.curve(y)
    size = float(np.mean(np.diag(K) + curve.curvature))
    scale = 1 / size if size > 0 else 1.0
    unit = Curve(curve.linear, scale * curve.curvature, curve.l1, curve.lower / scale, curve.upper / scale)
    for factored in (False, True):
        beta = interior_point_solution(scale * K, unit, bias, factored)
        if beta is not None:
            yield scale * beta
            for boundary in BOUND_TOLERANCES:
                check()
                polished = active_set(scale * K, unit, bias, beta, boundary)
                if polished is not None:
                    yield scale * polished


def interior_point_solution(K: Array, curve: Curve, bias: bool, factored: bool) -> Array | None:
    """Return Clarabel's solution in the variables a, or (a, w = L'a) if `factored`.

    Variables t with |a| <= t are added where the loss has an l1 term. None is returned without a finite
    point.
    """
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
    import clarabel  # here, since importing kernelopt should be quick

    cones = [clarabel.ZeroConeT(len(equal))] if equal else []
    cones += [clarabel.NonnegativeConeT(b.size - len(equal))] if b.size > len(equal) else []
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_TOLERANCE
    A = sp.vstack([*rows, *bounds], format="csc")
    solver = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, cones, settings)
    found = solver.solve() if running_call() is None or n <= SMALL else interruptible_solve(solver)
    a = np.asarray(found.x, dtype=float)[:n]
    return a if a.size == n and np.isfinite(a).all() else None


def interruptible_solve(solver: Any) -> Any:
    """Return the result of Clarabel, run in a thread that ends with the running call."""
    ended = threading.Event()
    if hasattr(solver, "set_termination_callback"):  # from Clarabel 0.11 on; older versions run to their end
        solver.set_termination_callback(lambda info: ended.is_set())
    return interruptible(solver.solve, ended.set)


def active_set(K: Array, curve: Curve, bias: bool, a: Array, boundary: float) -> Array | None:
    """Return the maximiser over the free entries, with the other entries fixed at their bounds or at zero.

    An entry is fixed if it is within boundary * max |a| of a bound, or of zero where it has an l1 term. None
    is returned without a free entry, or if the linear system has no finite solution.
    """
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
    x[free] = np.linalg.lstsq(M, right, rcond=SINGULAR)[0][: int(free.sum())]
    return x if np.isfinite(x).all() else None
