"""The dual of a piecewise quadratic loss at a fixed kernel by SMO, from any starting point.

The inner loops are `compiled`.

References
----------
.. [1] J. Platt, Sequential minimal optimization, Microsoft Research MSR-TR-98-14 (1998).
.. [2] Fan, Chen, Lin, Working set selection using second order information, JMLR 6 (2005).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.learner.settings import SETTINGS
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.numerics.compiling import affordable, compiled, compiled_as
from kernelopt.running import check
from kernelopt.validation import Array

SMALLEST_CURVATURE = 1e-12  # replaces a zero curvature in a Newton step, as in LIBSVM


def smo_points(K: Array, y: Array, loss: Loss, bias: bool, alpha: Array) -> Iterator[Array]:
    """Yield points that converge to the maximiser of l(alpha) - 1/2 alpha'K alpha, starting at `alpha`.

    Sequential minimal optimisation changes two entries at a time, or one without an intercept. After each
    point the tolerance of the optimality conditions is divided by five.
    """
    curve = loss.curve(y)
    a = np.ascontiguousarray(loss.project(alpha, y, bias))
    K = np.ascontiguousarray(K, dtype=float)
    g = K @ a + curve.curvature * a - curve.linear
    for reached in smo_rounds(K, curve, bias, a, g):
        yield a.copy()
        if reached:
            g[:] = K @ a + curve.curvature * a - curve.linear


def smo_rounds(
    K: NDArray[Any], curve: Curve, bias: bool, a: Array, g: Array
) -> Generator[bool, float | None, None]:
    """Change a and g = K a + curvature a - linear by SMO; yield in turn whether a tolerance is met.

    The gap of a machine is about proportional to the violation of the optimality conditions. A caller that
    needs a smaller gap sends the ratio of the two: the next tolerance falls by it, if that is more than
    usual.
    """
    loop = smo_pairs if bias else coordinate_steps
    scale = float(np.abs(curve.linear).max(initial=0.0) + curve.l1.max(initial=0.0)) or 1.0
    tol = SETTINGS.first_tolerance * scale
    portion, passes = max(1, int(SETTINGS.entries_per_call / a.size)), passes_of_a_step(a.size)
    for _ in range(SETTINGS.rounds):
        left, violation = SETTINGS.steps_per_point * a.size, np.inf
        while left > 0 and violation > tol:
            check()
            steps = affordable(loop, min(portion, left), passes)
            violation = compiled(loop, passes * steps)(K, *curve[1:], a, g, tol, steps)
            left -= steps
        ratio, last = (yield violation <= tol), SETTINGS.last_tolerance * scale
        if violation <= tol:
            met = min(tol, max(violation, last))
            tol = met / SETTINGS.reduction
            if ratio is not None:
                tol = min(tol, max(ratio * met, last))
        if tol < last:
            return


def passes_of_a_step(n: int) -> float:
    """Return about the passes of a loop that take as long as a step by numpy."""
    return 80 + n / 20


def pairs_loop(
    K: Array,
    curvature: Array,
    l1: Array,
    lower: Array,
    upper: Array,
    a: Array,
    g: Array,
    tol: float,
    max_steps: int,
) -> float:
    """Do what `smo_pairs` does, to the same bits."""
    n = a.size
    violation = np.inf
    for _ in range(max_steps):
        i, steepest = -1, np.inf
        for k in range(n):
            if a[k] < upper[k]:
                slope = g[k] + (l1[k] if a[k] >= 0 else -l1[k])
                if slope < steepest:
                    i, steepest = k, slope
        if i < 0:
            return 0.0
        j, largest, violation, newton = -1, 0.0, 0.0, 0.0
        for k in range(n):
            if a[k] > lower[k]:
                excess = g[k] + (l1[k] if a[k] > 0 else -l1[k]) - steepest
                if excess > 0:
                    violation = max(violation, excess)
                    bend = K[i, i] + K[k, k] - 2 * K[i, k] + curvature[i] + curvature[k]
                    step = excess / max(bend, SMALLEST_CURVATURE)
                    if excess * step > largest:
                        j, largest, newton = k, excess * step, step
        if j < 0 or violation <= tol:
            return violation
        step = move_pair(i, j, newton, l1, lower, upper, a)
        for k in range(n):
            g[k] += step * (K[i, k] - K[j, k])
        g[i] += step * curvature[i]
        g[j] -= step * curvature[j]
    return violation


@compiled_as(pairs_loop)
def smo_pairs(
    K: Array,
    curvature: Array,
    l1: Array,
    lower: Array,
    upper: Array,
    a: Array,
    g: Array,
    tol: float,
    max_steps: int,
) -> float:
    """Minimise 1/2 a'(K + D)a - l'a + l1'|a| over a box with sum a fixed, in place; g = (K + D)a - l.

    Each step moves a_i up and a_j down by the same amount. The working set (i, j) is chosen by second-order
    information [2]_: i has the smallest derivative in the direction +e_i, and j the largest decrease of the
    quadratic model with that i. The loop ends when the violation of the optimality conditions is at most
    `tol`, or after `max_steps` steps. The last violation is returned.
    """
    violation = np.inf
    for _ in range(max_steps):
        slopes = np.where(a < upper, g + np.where(a >= 0, l1, -l1), np.inf)
        i = int(slopes.argmin())
        if slopes[i] == np.inf:
            return 0.0
        excess = np.where(a > lower, g + np.where(a > 0, l1, -l1) - slopes[i], 0.0)
        bends = K[i, i] + K.diagonal() - 2 * K[i] + curvature[i] + curvature
        steps = excess / np.maximum(bends, SMALLEST_CURVATURE)
        decreases = np.where(excess > 0, excess * steps, 0.0)
        j, violation = int(decreases.argmax()), max(float(excess.max()), 0.0)
        if violation <= tol or decreases[j] == 0:
            return violation
        step = move_pair(i, j, steps[j], l1, lower, upper, a)
        g += step * (K[i] - K[j])
        g[i] += step * curvature[i]
        g[j] -= step * curvature[j]
    return violation


def move_pair(i: int, j: int, newton: float, l1: Array, lower: Array, upper: Array, a: Array) -> float:
    """Move a_i up and a_j down by a Newton step, or as far as bounds and zeros allow; return the step.

    Bounds and zeros are assigned exactly: an entry off its bound by rounding is selected for ever.
    """
    step = min(newton, upper[i] - a[i], a[j] - lower[j])
    if l1[i] > 0 and a[i] < 0:
        step = min(step, -a[i])
    if l1[j] > 0 and a[j] > 0:
        step = min(step, a[j])
    a[i] = upper[i] if step == upper[i] - a[i] else (0.0 if step == -a[i] else a[i] + step)
    a[j] = lower[j] if step == a[j] - lower[j] else (0.0 if step == a[j] else a[j] - step)
    return float(step)


def coordinates_loop(
    K: Array,
    curvature: Array,
    l1: Array,
    lower: Array,
    upper: Array,
    a: Array,
    g: Array,
    tol: float,
    max_steps: int,
) -> float:
    """Do what `coordinate_steps` does."""
    n = a.size
    violation = np.inf
    for _ in range(max_steps):
        i, largest, violation, step = -1, 0.0, 0.0, 0.0
        for k in range(n):
            up = -(g[k] + (l1[k] if a[k] >= 0 else -l1[k])) if a[k] < upper[k] else 0.0
            down = g[k] + (l1[k] if a[k] > 0 else -l1[k]) if a[k] > lower[k] else 0.0
            size = max(up, down)
            if size > 0:
                violation = max(violation, size)
                decrease = size * size / max(K[k, k] + curvature[k], SMALLEST_CURVATURE)
                if decrease > largest:
                    i, largest, step = k, decrease, (up if up > down else -down)
        if i < 0 or violation <= tol:
            return violation
        target = a[i] + step / max(K[i, i] + curvature[i], SMALLEST_CURVATURE)
        target = min(max(target, lower[i]), upper[i])
        if l1[i] > 0 and a[i] * target < 0:
            target = 0.0
        step = target - a[i]
        a[i] = target
        for k in range(n):
            g[k] += step * K[i, k]
        g[i] += step * curvature[i]
    return violation


@compiled_as(coordinates_loop)
def coordinate_steps(
    K: Array,
    curvature: Array,
    l1: Array,
    lower: Array,
    upper: Array,
    a: Array,
    g: Array,
    tol: float,
    max_steps: int,
) -> float:
    """Minimise as `smo_pairs`, but without the constraint on the sum: greedy coordinate descent."""
    bends, violation = np.maximum(K.diagonal() + curvature, SMALLEST_CURVATURE), np.inf
    for _ in range(max_steps):
        up = np.where(a < upper, -(g + np.where(a >= 0, l1, -l1)), 0.0)
        down = np.where(a > lower, g + np.where(a > 0, l1, -l1), 0.0)
        sizes = np.maximum(np.maximum(up, down), 0.0)
        decreases = sizes * sizes / bends
        i, violation = int(decreases.argmax()), float(sizes.max())
        if violation <= tol or decreases[i] == 0:
            return violation
        target = a[i] + (up[i] if up[i] > down[i] else -down[i]) / bends[i]
        target = min(max(target, lower[i]), upper[i])
        if l1[i] > 0 and a[i] * target < 0:
            target = 0.0
        step = target - a[i]
        a[i] = target
        g += step * K[i]
        g[i] += step * curvature[i]
    return violation


def combined_block(rows: Array, slots: Array, columns: Array, weights: Array) -> Array:
    """Return sum_m weights_m rows[m][slots][:, columns] without copying rows."""
    block = np.zeros((slots.size, columns.size))
    for m in range(rows.shape[0]):
        if weights[m] != 0:
            for i in range(slots.size):
                for j in range(columns.size):
                    block[i, j] += weights[m] * rows[m, slots[i], columns[j]]
    return block
