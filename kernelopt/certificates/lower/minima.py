"""Lower bounds of the minimum of a linear function over one set or price, with all rounding errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.lower.dual_lengths import dual_length
from kernelopt.numerics.decompositions import eigenvalues
from kernelopt.numerics.rounding import (
    EIGENVALUE,
    NORM_ROUNDINGS,
    POWER_ROUNDINGS,
    SMALLEST_DIVISOR,
    UNDERFLOW,
    UNIT,
    exact_sum,
    gamma,
    norm_above,
    upwards,
)
from kernelopt.structure.inverses import Inverses
from kernelopt.structure.powers import Power
from kernelopt.structure.separation import PowerBall
from kernelopt.structure.sizes import Budget, is_trace_multiple
from kernelopt.validation import Array


class Slope(NamedTuple):
    """The coefficients of one variable, flattened by columns, and bounds of their errors."""

    value: Array
    error: Array


Slopes = Mapping[cp.Variable, Slope]


class Minimum(NamedTuple):
    """A lower bound of a minimum, the rounding by which it was lowered, and the multiplier of the set."""

    value: float
    rounding: float = 0.0
    multiplier: float = 0.0


def minimum(part: Any, slopes: Slopes) -> Minimum:
    """Return a lower bound of g'x over a set with x >= 0, or of g'x plus a price over x >= 0.

    * a simplex or spectrahedron, x >= 0 or K PSD, r'x = c: c min_i g_i / r_i or c lambda_min(G); for
      r'x <= c the smaller of this and zero;
    * a ball or an ellipsoid |L x|_p <= R: -R d, where d is the least |w|_q with L'w >= -g;
    * a price c |L x|_p^r: -d^s (c r)^(1 - s) / s with 1/r + 1/s = 1, and for r = 1 zero where d <= c;
    * a sum of c_i / (a_i x_i + b_i), in closed form for each i.
    """
    return MINIMA[type(part)](part, slopes)


def slope_of(variable: cp.Variable, slopes: Slopes) -> Slope:
    """Return the coefficients of a variable, zero where it is absent."""
    zero = np.zeros(variable.size)
    return slopes.get(variable, Slope(zero, zero))


def joined_slopes(variables: tuple[cp.Variable, ...], slopes: Slopes) -> Slope:
    """Return the concatenated coefficients of several variables."""
    found = [slope_of(v, slopes) for v in variables]
    return Slope(np.concatenate([f.value for f in found]), np.concatenate([f.error for f in found]))


def over_signs(variables: set[cp.Variable], slopes: Slopes) -> float:
    """Return the minimum over x >= 0: zero where all coefficients are non-negative, else -inf."""
    nonnegative = all((slope_of(v, slopes).value >= slope_of(v, slopes).error).all() for v in variables)
    return 0.0 if nonnegative else -np.inf


def over_edge(edge: Budget, slopes: Slopes) -> Minimum:
    """Return the bound over {x >= 0 or PSD: sum of <row, x> = total, or <= total}."""
    found = {variable: slope_of(variable, slopes) for variable in edge.rows}
    sigma = min(relative_minimum(*found[v], v, row) for v, row in edge.rows.items())
    multiplier = min(sigma, 0.0) if edge.at_most else sigma
    value = edge.total * multiplier
    error_bound = [norm_above(found[v].error) / float(np.abs(row).max()) for v, row in edge.rows.items()]
    rounding = gamma(4) * abs(value) + UNDERFLOW * (multiplier != 0)
    return Minimum(value - rounding, edge.total * max(error_bound), -edge.sign * multiplier)


def relative_minimum(g: Array, error: Array, variable: cp.Variable, row: Array) -> float:
    """Return about the largest sigma with <g, x> >= sigma <row, x> for all x >= 0 or PSD.

    It holds for all g within `error`. For x >= 0 sigma = min_i g_i / row_i; for PSD x, where row is a
    multiple of the trace, it is the least eigenvalue of G over that multiple, less the error of the
    eigenvalues.
    """
    if is_trace_multiple(variable, row):
        G = g.reshape(variable.shape, order="F")
        if not np.isfinite(G).all():
            return -np.inf
        error_bound = EIGENVALUE * gamma(len(G)) * norm_above(G) + norm_above(error)
        sigma = float(eigenvalues((G + G.T) / 2)[0]) - error_bound
        return (sigma - gamma(4) * abs(sigma)) / float(row[0])
    ratios = (g - error) / row
    return float((ratios - gamma(4) * np.abs(ratios) - UNDERFLOW * (g != error)).min())


def negated_upper(g: Slope) -> Array:
    """Return an upper bound of -g."""
    found = g.error - g.value
    return found + 2 * UNIT * np.abs(found)


def over_ball(ball: PowerBall, slopes: Slopes) -> Minimum:
    """Return the bound over {x >= 0: factor * length^exponent <= level}."""
    power, g = ball.power, joined_slopes(ball.variables, slopes)
    r = power.exponent
    radius = (ball.level / power.factor) ** (1 / r)
    d = dual_length(power.length, negated_upper(g))
    if d == 0:
        return Minimum(0.0)
    # The derivative of factor * length^r at length = radius, for the multiplier.
    slope = power.factor * r * (radius ** (r - 1) if r > 1 else 1.0)
    error_bound = radius * dual_length(power.length, g.error) if g.error.any() else 0.0
    return Minimum(-upwards(radius * d * (1 + gamma(POWER_ROUNDINGS))), error_bound, d / slope)


def of_price(power: Power, slopes: Slopes) -> Minimum:
    """Return the bound of g'x + factor * length^exponent over x >= 0."""
    g = joined_slopes(power.variables, slopes)
    d = dual_length(power.length, negated_upper(g))
    if d == 0:
        return Minimum(0.0)
    r, c = power.exponent, power.factor * (1 - gamma(POWER_ROUNDINGS))
    if r == 1 or not c > 0 or not np.isfinite(d):
        return Minimum(0.0 if d <= c else -np.inf)
    length = (d / (c * r)) ** (1 / (r - 1))  # of the minimiser
    decrease = d * length * (1 - 1 / r)
    error_bound = length * dual_length(power.length, g.error) if g.error.any() else 0.0
    return Minimum(-upwards(decrease * (1 + gamma(NORM_ROUNDINGS / (r - 1) + NORM_ROUNDINGS))), error_bound)


def of_inverses(part: Inverses, slopes: Slopes) -> Minimum:
    """Return the bound of g'x + sum_i c_i / (a_i x_i + b_i) over x >= 0.

    For every s >= 0 and u > 0, c / u >= 2 sqrt(c s) - s u. Where s_i a_i <= g_i, therefore, g_i x_i + c_i /
    (a_i x_i + b_i) >= 2 sqrt(c_i s_i) - s_i b_i. The best s_i is g_i / a_i, or c_i / b_i^2 where the
    minimum is at x_i = 0.
    """
    g = slope_of(part.variable, slopes)
    others = np.ones(g.value.size, dtype=bool)
    others[part.entries] = False
    below = g.value - g.error
    if (below[others] < 0).any():
        return Minimum(-np.inf)
    g_low = (below - 2 * UNIT * np.abs(below))[part.entries]
    a, b, c = part.a, part.b, part.c
    ratio = g_low / a
    ratio -= np.sign(a) * gamma(2) * np.abs(ratio)  # rounded down where a > 0, up where a < 0
    at_zero = np.where(b > 0, c / b**2, np.inf)
    best = np.where(
        a > 0, np.minimum(ratio, at_zero * (1 - gamma(8))), np.maximum(ratio, at_zero * (1 + gamma(8)))
    )
    if not (best >= 0).all():
        return Minimum(-np.inf)
    gains, losses = 2 * np.sqrt(c * best), best * b
    size = float(gains.sum() + losses.sum())
    value = exact_sum(np.concatenate([gains, -losses]))
    derivatives = np.abs(np.sqrt(c / np.maximum(best, SMALLEST_DIVISOR)) - b) / np.abs(a)
    slope_errors = float((g.error[part.entries] * derivatives).sum())
    return Minimum(value - gamma(16) * size, slope_errors)


MINIMA: dict[type, Callable[[Any, Slopes], Minimum]] = {
    Budget: over_edge,
    PowerBall: over_ball,
    Power: of_price,
    Inverses: of_inverses,
}
