"""The weights gamma of kernels whose norms are summed: the point of the simplex where the norms are equal.

For fixed alpha, d(gamma) = sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|^2 ] is concave, with
the derivatives q_i / (2 gamma_i^2), q_i = z'K_i z at the best K_i. On the simplex it is largest where these
are equal, that is where all norms sqrt(q_i) / gamma_i have one common level. The equations are solved by a
secant method: each q_i is replaced by a line in gamma_i, and the level is found by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array

MIN_GAMMA = 1e-10  # before normalisation: 1 / gamma stays finite
NORM_FLOOR = 1e-3  # of the largest norm: a smaller norm is raised to it, as the line of q_i = 0 has no root
MAX_ELASTICITY = 1e15  # a bound that keeps the lines finite where q_i falls to zero at once
MAX_RELATIVE_GAP = 1e-3  # of sum_i q_i / (2 gamma_i): the accuracy of gamma for loose tolerances
BISECTIONS = 60  # of the logarithm of the level: more than the 53 bits of a double
TINY = 1e-300  # in the place of a divisor that may be zero
SAME_POINT = 1e-12  # relative: a line through two points that are closer has no reliable slope


class GammaBracket(NamedTuple):
    """What is known of the optimal gamma and of the common level.

    The first three have shape (2, m), with the rows gamma_i and q_i, nan where there is no such point.
    """

    last: Array  # the last point
    below: Array  # the largest gamma_i known to be below the optimal one
    above: Array  # the smallest gamma_i known to be above it
    level: Array  # lower and upper bound of the common level


@compiled
def empty_bracket(m: int) -> GammaBracket:
    """Return the bracket before any point is evaluated."""
    none = np.full((2, m), np.nan)
    return GammaBracket(none, none.copy(), none.copy(), np.array([0.0, np.inf]))


@compiled
def gamma_is_optimal(gamma: Array, forms: Array, tol: float) -> bool:
    """Whether d(gamma) is within `tol` of its maximum over gamma, and within 1e-3 of sum_i q_i / (2 gamma_i).

    d is concave with the gradient g_i = q_i / (2 gamma_i^2). On the simplex it exceeds its present value by
    at most max_i g_i - sum_i g_i gamma_i = max_i q_i / (2 gamma_i^2) - sum_i q_i / (2 gamma_i).
    """
    if gamma.size == 1:
        return True
    now, most = 0.0, 0.0
    for i in range(gamma.size):
        now += forms[i] / (2 * gamma[i])
        most = max(most, forms[i] / (2 * gamma[i] ** 2))
    return most - now <= min(tol, MAX_RELATIVE_GAP * now)


@compiled
def update_gamma(gamma: Array, forms: Array, elasticities: Array, bracket: GammaBracket) -> None:
    """Replace gamma by the next estimate of the point with equal norms sqrt(q_i) / gamma_i.

    Each norm decreases in its gamma_i, and the gamma_i sum to one at every point: the common level is
    between the smallest and the largest norm. Each q_i is replaced by a line in gamma_i (`fit_line`); then
    x_i(level) solves line_i(x) = (level x)^2, clipped to the bracket of gamma_i, and the level with
    sum_i x_i(level) = 1 is found by bisection. `elasticities` holds -dlog q_i / dlog gamma_i of the lines,
    for the next call.
    """
    m, largest, smallest = gamma.size, 0.0, np.inf
    for i in range(m):
        norm = np.sqrt(forms[i]) / gamma[i]
        largest, smallest = max(largest, norm), min(smallest, norm)
    bracket.level[0], bracket.level[1] = max(bracket.level[0], smallest), min(bracket.level[1], largest)
    slopes, constants, bisected, on_lines, widest = np.empty(m), np.empty(m), np.zeros(m), 0, 0
    for i in range(m):
        fit_line(
            i, gamma[i], forms[i], NORM_FLOOR * largest, slopes, constants, bisected, elasticities, bracket
        )
        on_lines += bisected[i] == 0
        widest = i if gamma[i] > gamma[widest] else widest
    if on_lines == 0:
        bisected[widest] = 0.0  # one gamma_i must depend on the level, or they could not sum to one
    # The bisection is in the logarithm of the level, and needs a positive lower end where a norm is zero.
    lowest = max(bracket.level[0], NORM_FLOOR**4 * bracket.level[1])
    low, high = np.log(lowest), np.log(bracket.level[1])
    for _ in range(BISECTIONS):
        level, total = (low + high) / 2, 0.0
        for i in range(m):
            total += gamma_at_level(i, np.exp(level), slopes, constants, bisected, bracket)
        if total > 1:
            low = level
        else:
            high = level
    total = 0.0
    for i in range(m):
        gamma[i] = max(gamma_at_level(i, np.exp(high), slopes, constants, bisected, bracket), MIN_GAMMA)
        total += gamma[i]
    for i in range(m):
        gamma[i] /= total


@compiled
def fit_line(
    i: int,
    gamma: float,
    form: float,
    floor: float,
    slopes: Array,
    constants: Array,
    bisected: Array,
    elasticities: Array,
    bracket: GammaBracket,
) -> None:
    """Fit the line constants_i - slopes_i x to q_i through (gamma, form) and an earlier point.

    The norm decreases in gamma_i. So gamma is below the optimal gamma_i if the norm is at least the upper
    bound of the level, and above it if the norm is at most the lower bound. The earlier point is the last one
    on the same side, if there is one: q_i has a kink where an eigenvalue of K_i becomes positive, and a
    secant across it is a poor model. Otherwise it is the last point. The new point then replaces it. For the
    line, `form` is raised to at least (floor gamma)^2.

    Where the root of the line at a middle level is outside of the bracket of gamma_i, bisected_i is set to
    the geometric mean of the bracket, and used in the place of the line.
    """
    norm, below, above = np.sqrt(form) / gamma, bracket.below, bracket.above
    same_side = bracket.last
    if norm >= bracket.level[1]:
        same_side = below
    elif norm <= bracket.level[0]:
        same_side = above
    has_side = norm >= bracket.level[1] or norm <= bracket.level[0]
    earlier = bracket.last if np.isnan(same_side[0, i]) else same_side
    increase, decrease = gamma - earlier[0, i], earlier[1, i] - form  # of gamma_i, and of q_i
    if abs(increase) > SAME_POINT * gamma:
        elasticity = max(decrease / increase, 0.0) * gamma / max(form, TINY)
        elasticities[i] = min(elasticity, MAX_ELASTICITY)
    slopes[i] = elasticities[i] * form / gamma
    constants[i] = max(form, (floor * gamma) ** 2) + slopes[i] * gamma
    middle = np.sqrt(max(bracket.level[0], NORM_FLOOR**2 * bracket.level[1]) * bracket.level[1])
    bracket.last[0, i], bracket.last[1, i] = gamma, form
    same_side[0, i], same_side[1, i] = gamma, form
    if has_side and not (np.isnan(below[0, i]) or np.isnan(above[0, i])):
        new = positive_root(slopes[i], constants[i], middle)
        if not below[0, i] < new < above[0, i]:
            bisected[i] = np.sqrt(below[0, i] * above[0, i])


@compiled
def positive_root(slope: float, constant: float, level: float) -> float:
    """Return the x > 0 at which constant - slope x = (level x)^2."""
    return float(2 * constant / (slope + np.sqrt(slope * slope + 4 * level * level * constant)))


@compiled
def gamma_at_level(
    i: int, level: float, slopes: Array, constants: Array, bisected: Array, bracket: GammaBracket
) -> float:
    """Return bisected_i where it is positive, else the x of this level on line i, clipped to the bracket."""
    if bisected[i] > 0:
        return float(bisected[i])
    new = positive_root(slopes[i], constants[i], level)
    if new < bracket.below[0, i]:
        new = bracket.below[0, i]
    if new > bracket.above[0, i]:
        new = bracket.above[0, i]
    return float(new)
