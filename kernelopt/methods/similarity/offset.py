"""The one-dimensional dual of a separable quadratic problem on a box with the constraint sum a = 0.

The Lagrange multiplier nu of the constraint minimises the convex function

    g(nu) = max over lower <= a <= upper of  sum_k (linear_k - nu) a_k - curvature_k a_k^2 / 2.

It is used twice. In a proximal step nu is the multiplier of sum alpha = 0. In the primal value nu is the
intercept b: if `linear` is the linear coefficient of l less the predictions f, then g(b) = loss(f + b).
"""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.compiling import any_order
from kernelopt.validation import Array

EPS = float(np.finfo(float).eps)
MAX_ITERATIONS = 200  # a safeguard: the search ends earlier, at a small g' or an empty bracket


@any_order
def box_maximum(
    nu: float, linear: Array, curvature: Array, lower: Array, upper: Array
) -> tuple[float, float, float, float]:
    """Return g(nu), and at its maximiser a: sum a = -g'(nu), g''(nu), and sum |a|.

    g'' is the sum of 1 / curvature_k over the a_k that are not clipped to a bound.
    """
    value, total, rate, size = 0.0, 0.0, 0.0, 0.0
    for k in range(linear.size):
        slope = linear[k] - nu
        if curvature[k] > 0:
            a = slope / curvature[k]
            if a < lower[k]:
                a = lower[k]
            elif a > upper[k]:
                a = upper[k]
            else:
                rate += 1 / curvature[k]
        else:
            a = upper[k] if slope > 0 else lower[k]
        value += (slope - curvature[k] * a / 2) * a
        total += a
        size += abs(a)
    return value, total, rate, size


def minimize_offset(
    linear: Array, curvature: Array, lower: Array, upper: Array, start: float, slack: float
) -> tuple[float, float]:
    """Return nu with g(nu) <= min g + slack, and g(nu); where slack < 0, nu with g'(nu) = 0 to rounding.

    This is Newton's method on g', safeguarded by a bracket of the minimiser. As a = 0 is in the box, all
    entries of the maximiser are non-negative for nu < min linear, and non-positive for nu > max linear. Where
    g'' = 0, or where a Newton step leaves the bracket, the next point is the intersection of the tangents of
    g at both ends. By convexity g is nowhere below the height of this intersection: the search ends where the
    lowest g is within `slack` of it. At least every eighth iteration halves the bracket.
    """
    size = np.abs(linear).max()
    low, high = linear.min() - size, linear.max() + size
    g_low, s_low = box_maximum(low, linear, curvature, lower, upper)[:2]
    g_high, s_high = box_maximum(high, linear, curvature, lower, upper)[:2]
    nu = best = min(max(start, low), high)
    lowest = np.inf
    for iteration in range(MAX_ITERATIONS):
        value, total, rate, size = box_maximum(nu, linear, curvature, lower, upper)
        if value <= lowest or slack < 0:
            best, lowest = nu, value
        if abs(total) <= 4 * EPS * size:  # rounding of the sum
            break
        if total > 0:
            low, g_low, s_low = nu, value, total
        else:
            high, g_high, s_high = nu, value, total
        crossing = (g_low - g_high - s_high * (high - low)) / (s_low - s_high)
        if lowest - (g_low - s_low * crossing) <= slack:
            break
        new = nu + total / rate if rate > 0 else low + crossing
        if not low < new < high:
            new = low + crossing
        if iteration % 8 == 7 or not low < new < high:
            new = (low + high) / 2
            if not low < new < high:
                break
        nu = new
    return best, lowest


def box_maximiser(
    nu: float, linear: Array, curvature: Array, lower: Array, upper: Array, balanced: bool, out: Array
) -> None:
    """Set out_k = (linear_k - nu) / curvature_k, clipped to its bounds; all curvatures are positive.

    Where `balanced`, nu is the minimiser and sum a = 0 but for its error. One Newton step on the entries
    strictly between their bounds then reduces the sum to rounding.
    """
    excess, rate = 0.0, 0.0
    for k in range(linear.size):
        out[k] = min(max((linear[k] - nu) / curvature[k], lower[k]), upper[k])
        excess += out[k]
        if lower[k] < out[k] < upper[k]:
            rate += 1 / curvature[k]
    if balanced and rate > 0:
        for k in range(linear.size):
            if lower[k] < out[k] < upper[k]:
                out[k] = min(max(out[k] - excess / (rate * curvature[k]), lower[k]), upper[k])
