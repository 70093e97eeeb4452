"""The dual of a piecewise quadratic loss at a fixed kernel: an interior point, then active-set steps."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import numpy as np
import scipy.sparse as sp

from kernelopt.learner.settings import SETTINGS
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.numerics.decompositions import pivoted_cholesky
from kernelopt.running import check
from kernelopt.threads import interruptible
from kernelopt.validation import Array


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
            for boundary in SETTINGS.at_bound:
                check()
                polished = active_set(scale * K, unit, bias, beta, boundary)
                if polished is not None:
                    yield scale * polished


def interior_point_solution(K: Array, curve: Curve, bias: bool, factored: bool) -> Array | None:
    """Return Clarabel's solution in the variables a, or (a, w = L'a) if `factored`.

    Variables t with |a| <= t are added where the loss has an l1 term. None is returned without a finite
    point.
    """
    import clarabel  # here, since importing kernelopt should be quick

    n = curve.linear.size
    k = n if curve.l1.any() else 0
    L = pivoted_cholesky(K, "the kernel") if factored else np.zeros((n, 0))
    square, r = np.diag(curve.curvature) if factored else K + np.diag(curve.curvature), L.shape[1]
    P = sp.block_diag([square, sp.eye_array(r), sp.csc_array((k, k))], format="csc")
    q = np.concatenate([-curve.linear, np.zeros(r), curve.l1[:k]])
    x = sp.eye_array(n + r + k, format="csr")  # all variables, of which these are parts
    a, w, t = x[:n], x[n : n + r], x[n + r :]
    equal = sp.vstack([sp.csr_array(L.T) @ a - w, sp.csr_array(np.ones((int(bias), n))) @ a])
    above, below = np.isfinite(curve.upper), np.isfinite(curve.lower)
    A = sp.vstack([equal, a[above], -a[below], a[:k] - t, -a[:k] - t], format="csc")
    b = np.concatenate([np.zeros(equal.shape[0]), curve.upper[above], -curve.lower[below]])
    b = np.append(b, np.zeros(A.shape[0] - b.size))
    cones = [clarabel.ZeroConeT(equal.shape[0]), clarabel.NonnegativeConeT(b.size - equal.shape[0])]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = SETTINGS.interior_tolerance
    solver, ended = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, cones, settings), Event()
    if hasattr(solver, "set_termination_callback"):  # from Clarabel 0.11 on; older versions run to their end
        solver.set_termination_callback(lambda info: ended.is_set())
    a = np.asarray(interruptible(solver.solve, ended.set).x, dtype=float)[:n]
    return a if a.size == n and np.isfinite(a).all() else None


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
    M = K[np.ix_(free, free)] + np.diag(curve.curvature[free])
    right = (curve.linear - curve.l1 * np.sign(a) - K @ x)[free]
    if bias:
        ones = np.ones((len(M), 1))
        M = np.block([[M, ones], [ones.T, np.zeros((1, 1))]])
        right = np.append(right, -x.sum())
    x[free] = np.linalg.lstsq(M, right, rcond=SETTINGS.singular)[0][: int(free.sum())]
    return x if np.isfinite(x).all() else None
