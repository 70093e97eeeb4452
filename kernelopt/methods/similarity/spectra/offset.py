"""The one number that balances a piecewise linear response: the intercept, and the price of sum a = 0."""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.compiling import compiled, summed
from kernelopt.validation import Array

EPS = float(np.finfo(float).eps)
ROUNDS = 200


@summed
def response(
    nu: float, linear: Array, curvature: Array, lower: Array, upper: Array
) -> tuple[float, float, float, float]:
    """Return g(nu) = max over lower <= a <= upper of sum (linear - nu) a - curvature/2 a^2.

    And of the maximiser a: sum a = -g'(nu), the rate at which that falls, and sum |a|.
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


@compiled
def offset(
    linear: Array, curvature: Array, lower: Array, upper: Array, start: float, slack: float
) -> tuple[float, float]:
    """Return a minimiser nu of g, to `slack` in g, and g(nu); where `slack` < 0, to rounding in g'.

    Newton's method on g' inside a bracket. Where g is linear, or the step leaves the bracket, the next
    point is where the tangents at its ends meet: no value of g is below that of the tangents there.
    """
    low, high, g_low, g_high, s_low, s_high = -np.inf, np.inf, np.inf, np.inf, 0.0, 0.0
    nu, best, lowest = start, start, np.inf
    reach = EPS * abs(start) + 1e-300
    for k in range(linear.size):
        reach = max(reach, 1e-3 * abs(linear[k]))
    for rounds in range(ROUNDS):
        value, total, rate, size = response(nu, linear, curvature, lower, upper)
        if value <= lowest or slack < 0:
            best, lowest = nu, value
        if abs(total) <= 4 * EPS * size:
            break
        if total > 0:
            low, g_low, s_low = nu, value, total
        else:
            high, g_high, s_high = nu, value, total
        if low == -np.inf or high == np.inf:
            guess = nu + reach if total > 0 else nu - reach
            reach *= 4
        else:
            width = high - low
            across = (g_low - g_high - s_high * width) / (s_low - s_high)
            if lowest - (g_low - s_low * across) <= slack:
                break
            guess = low + across
        new = nu + total / rate if rate > 0 else guess
        if not low < new < high:
            new = guess
        if high - low < np.inf and (rounds % 8 == 7 or not low < new < high):
            new = (low + high) / 2
            if not low < new < high:
                break
        nu = new
    return best, lowest


@compiled
def respond(
    nu: float, linear: Array, curvature: Array, lower: Array, upper: Array, balanced: bool, out: Array
) -> None:
    """Fill in the response to nu, all being stiff; where `balanced`, of sum zero but for rounding."""
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
