"""The dual of a piecewise quadratic loss at a fixed kernel by SMO, from any starting point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.learner.smo import coordinate_steps, smo_pairs
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.numerics.compiling import compiled
from kernelopt.running import check
from kernelopt.validation import Array

STEPS_PER_POINT = 100  # SMO steps per training point, at most, for one yielded point
ENTRIES_PER_CALL = 1e8  # entries of K that the loop reads between two calls of `check`: about 0.1 s
ROUNDS = 60  # yielded points at most
FIRST_TOLERANCE, LAST_TOLERANCE = 1e-2, 1e-12  # of the optimality conditions, relative to their scale
REDUCTION = 5  # of the tolerance, from a point to the next


def smo_points(K: Array, y: Array, loss: Loss, bias: bool, alpha: Array) -> Iterator[Array]:
    """Yield points that converge to the maximiser of l(alpha) - 1/2 alpha'K alpha, starting at `alpha`.

    Sequential minimal optimisation changes two entries at a time, or one without an intercept. After each
    point the tolerance of the optimality conditions is divided by five. Without bounds and l1 terms the
    maximiser is the solution of a linear system.
    """
    curve = loss.curve(y)
    if not (np.isfinite(curve.lower).any() or np.isfinite(curve.upper).any() or curve.l1.any()):
        yield unconstrained_maximiser(K, curve, bias)
        return
    a = np.ascontiguousarray(loss.project(alpha, y, bias))
    K = np.ascontiguousarray(K, dtype=float)
    g = K @ a + curve.curvature * a - curve.linear
    for reached in smo_rounds(K, curve, bias, a, g):
        yield a.copy()
        if reached:
            g[:] = K @ a + curve.curvature * a - curve.linear


def smo_rounds(K: NDArray[Any], curve: Curve, bias: bool, a: Array, g: Array) -> Iterator[bool]:
    """Change a and g = K a + curvature a - linear by SMO; yield in turn whether a tolerance is met."""
    loop = compiled(smo_pairs if bias else coordinate_steps)
    scale = float(np.abs(curve.linear).max(initial=0.0) + curve.l1.max(initial=0.0)) or 1.0
    tol = FIRST_TOLERANCE * scale
    for _ in range(ROUNDS):
        for max_steps in step_counts(a.size):
            check()
            violation = loop(K, curve.curvature, curve.l1, curve.lower, curve.upper, a, g, tol, max_steps)
            if violation <= tol:
                break
        yield violation <= tol
        if violation <= tol:
            tol = min(tol, max(violation, LAST_TOLERANCE * scale)) / REDUCTION
        if tol < LAST_TOLERANCE * scale:
            return


def step_counts(n: int) -> Iterator[int]:
    """Yield the numbers of steps between two calls of `check`; their sum is STEPS_PER_POINT * n."""
    left, portion = STEPS_PER_POINT * n, max(1, int(ENTRIES_PER_CALL / n))
    while left > 0:
        yield min(portion, left)
        left -= portion


def unconstrained_maximiser(K: Array, curve: Curve, bias: bool) -> Array:
    """Return the maximiser where no bounds and no l1 terms restrict alpha, from one linear system."""
    n = curve.linear.size
    M, right = np.zeros((n + bias, n + bias)), np.zeros(n + bias)
    M[:n, :n] = K + np.diag(curve.curvature)
    M[n:, :n], M[:n, n:], right[:n] = 1.0, 1.0, curve.linear
    return np.asarray(np.linalg.solve(M, right)[:n], dtype=float)
