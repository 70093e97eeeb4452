"""The dual of a piecewise quadratic loss at a fixed kernel by decomposition, from any starting point."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelopt.learner.pivots import compiled, pair_pivots, single_pivots
from kernelopt.losses import Loss
from kernelopt.losses.base import Curve
from kernelopt.threads import Watch
from kernelopt.validation import Array

PIVOTS = 100  # per point, before the gap is looked at again
UNBROKEN = 1e8  # entries that pivots may pass before the watch is called: about a tenth of a second
ROUNDS = 60
FIRST = 1e-2
LEAST = 1e-12


def pivoted(
    K: Array, y: Array, loss: Loss, bias: bool, alpha: Array, watch: Watch | None = None
) -> Iterator[Array]:
    """Yield points ever nearer to the maximiser of l(alpha) - 1/2 alpha'K alpha, starting at `alpha`.

    For losses with a piecewise quadratic dual: decomposition with two entries at a time (one, without an
    intercept), the tolerance on the optimality conditions a fifth from point to point. A `watch` is called
    often; what it raises goes on.
    """
    curve = loss.curve(y)
    if not (np.isfinite(curve.lower).any() or np.isfinite(curve.upper).any() or curve.l1.any()):
        yield stationary(K, curve, bias)
        return
    a = np.ascontiguousarray(loss.project(alpha, y, bias))
    K = np.ascontiguousarray(K, dtype=float)
    g = K @ a + curve.curvature * a - curve.linear
    pivots = compiled(pair_pivots if bias else single_pivots)
    scale = float(np.abs(curve.linear).max(initial=0.0) + curve.l1.max(initial=0.0)) or 1.0
    tol = FIRST * scale
    for _ in range(ROUNDS):
        for most in portions(y.size):
            if watch is not None:
                watch()
            violation = pivots(K, curve.curvature, curve.l1, curve.lower, curve.upper, a, g, tol, most)
            if violation <= tol:
                break
        yield a.copy()
        if violation <= tol:
            tol = min(tol, max(violation, LEAST * scale)) / 5
            g = K @ a + curve.curvature * a - curve.linear
        if tol < LEAST * scale:
            return


def portions(n: int) -> Iterator[int]:
    """Yield numbers of pivots that make PIVOTS * n together, each of few enough entries for a watch."""
    left, portion = PIVOTS * n, max(1, int(UNBROKEN / n))
    while left > 0:
        yield min(portion, left)
        left -= portion


def stationary(K: Array, curve: Curve, bias: bool) -> Array:
    """Return the maximiser where nothing bounds alpha: one linear system."""
    n = curve.linear.size
    M, right = np.zeros((n + bias, n + bias)), np.zeros(n + bias)
    M[:n, :n] = K + np.diag(curve.curvature)
    M[n:, :n], M[:n, n:], right[:n] = 1.0, 1.0, curve.linear
    return np.asarray(np.linalg.solve(M, right)[:n], dtype=float)
