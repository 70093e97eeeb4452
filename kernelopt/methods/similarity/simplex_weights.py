"""The weights gamma of kernels whose norms are summed: the point of the simplex where the norms are equal.

For fixed alpha, d(gamma) = sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|^2 ] is concave, with
the derivatives q_i / (2 gamma_i^2), q_i = z'K_i z at the best K_i. On the simplex it is largest where these
are equal, that is where all norms sqrt(q_i) / gamma_i have one common level. The equations are solved by a
secant method: each q_i is replaced by a power of gamma_i, and the level is found by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.methods.similarity.settings import ASCENT
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array


class GammaBracket(NamedTuple):
    """What is known of the optimal gamma and of the common level.

    `last` has shape (2, m), with the rows gamma_i and q_i, nan where there is no such point.
    """

    last: Array  # the last point
    below: Array  # the largest gamma_i known to be below the optimal one
    above: Array  # the smallest gamma_i known to be above it
    level: Array  # lower and upper bound of the common level


@compiled
def empty_bracket(m: int) -> GammaBracket:
    """Return the bracket before any point is evaluated."""
    return GammaBracket(np.full((2, m), np.nan), np.zeros(m), np.ones(m), np.array([0.0, np.inf]))


@compiled
def gamma_is_optimal(gamma: Array, forms: Array, tol: float) -> bool:
    """Whether d(gamma) is within `tol` of its maximum over gamma, and within 1e-3 of sum_i q_i / (2 gamma_i).

    d is concave with the gradient g_i = q_i / (2 gamma_i^2). On the simplex it exceeds its present value by
    at most max_i g_i - sum_i g_i gamma_i = max_i q_i / (2 gamma_i^2) - sum_i q_i / (2 gamma_i).
    """
    slopes = forms / (2 * gamma**2)
    now = np.dot(slopes, gamma)
    return gamma.size == 1 or slopes.max() - now <= min(tol, ASCENT.relative_gap * now)


@compiled
def update_gamma(gamma: Array, forms: Array, elasticities: Array, bracket: GammaBracket) -> None:
    """Replace gamma by the next estimate of the point with equal norms sqrt(q_i) / gamma_i.

    Each norm decreases in its gamma_i, and the gamma_i sum to one at every point: the common level is
    between the smallest and the largest norm. gamma_i is below the optimal one if its norm is at least the
    upper bound of the level, and above it if its norm is at most the lower bound. Each q_i is replaced by a
    power of gamma_i, with the elasticity -dlog q_i / dlog gamma_i between the last two points. Then the
    norm of gamma_i is the level at gamma_i (norm_i / level)^(1 / (1 + elasticity / 2)), clipped to the
    bracket of gamma_i, and the level at which these sum to one is found by bisection.
    """
    norms = np.sqrt(forms) / gamma
    largest, smallest = norms.max(), norms.min()
    bracket.level[0], bracket.level[1] = max(bracket.level[0], smallest), min(bracket.level[1], largest)
    for i in range(gamma.size):
        if norms[i] >= bracket.level[1]:
            bracket.below[i] = max(bracket.below[i], gamma[i])
        if norms[i] <= bracket.level[0]:
            bracket.above[i] = min(bracket.above[i], gamma[i])
        increase = np.log(gamma[i] / bracket.last[0, i])
        if abs(increase) > ASCENT.same_point:  # it is nan at the first point
            decrease = np.log(max(bracket.last[1, i], 1e-300) / max(forms[i], 1e-300))
            elasticities[i] = min(max(decrease / increase, 0.0), ASCENT.most_elasticity)
        bracket.last[0, i], bracket.last[1, i] = gamma[i], forms[i]
    norms = np.maximum(norms, ASCENT.norm_floor * largest)
    # The bisection is in the logarithm of the level, and needs a positive lower end where a norm is zero.
    low, high = (
        np.log(max(bracket.level[0], ASCENT.norm_floor**4 * bracket.level[1])),
        np.log(bracket.level[1]),
    )
    new, least = gamma, np.maximum(bracket.below, ASCENT.least_gamma)
    for _ in range(ASCENT.bisections):
        level = (low + high) / 2
        new = gamma * (norms / np.exp(level)) ** (1 / (1 + elasticities / 2))
        new = np.minimum(np.maximum(new, least), bracket.above)
        if new.sum() > 1:
            low = level
        else:
            high = level
    gamma[:] = new / new.sum()
