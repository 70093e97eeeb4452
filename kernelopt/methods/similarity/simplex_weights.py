"""The weights gamma of kernels whose norms are summed: the point of the simplex where the norms are equal.

For fixed alpha, d(gamma) = sum_i min over K_i [ -z'K_i z / (2 gamma_i) + W_i |K_i - B_i|^2 ] is concave, with
the derivatives q_i / (2 gamma_i^2), q_i = z'K_i z at the best K_i. On the simplex it is largest where these
are equal, that is where all norms sqrt(q_i) / gamma_i have one common level. The equations are solved by a
secant method: each q_i is replaced by a power of gamma_i, and the level is found by bisection.
"""

from __future__ import annotations

import numpy as np

from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.validation import Array

# The arrays last, below, above and levels: what is known of the optimal gamma and of the common level. The
# rows of `last` are the gamma_i and the q_i of the last point, nan where there is none. `below` holds the
# largest gamma_i that are known to be below the optimal ones, `above` the smallest ones known to be above,
# and `levels` a lower and an upper bound of the level.
GammaBracket = tuple[Array, Array, Array, Array]


def empty_bracket(m: int) -> GammaBracket:
    """Return last, below, above and levels before any point is evaluated."""
    return np.full((2, m), np.nan), np.zeros(m), np.ones(m), np.array([0.0, np.inf])


def gamma_is_optimal(gamma: Array, forms: Array, tol: float) -> bool:
    """Whether d(gamma) is within `tol` of its maximum over gamma, and within 1e-3 of sum_i q_i / (2 gamma_i).

    d is concave with the gradient g_i = q_i / (2 gamma_i^2). On the simplex it exceeds its present value by
    at most max_i g_i - sum_i g_i gamma_i = max_i q_i / (2 gamma_i^2) - sum_i q_i / (2 gamma_i).
    """
    slopes = forms / (2 * gamma**2)
    now = np.dot(slopes, gamma)
    return gamma.size == 1 or slopes.max() - now <= min(tol, SETTINGS.relative_gap * now)


def update_gamma(gamma: Array, forms: Array, elasticities: Array, bracket: GammaBracket) -> None:
    """Replace gamma by the next estimate of the point with equal norms sqrt(q_i) / gamma_i.

    Each norm decreases in its gamma_i, and the gamma_i sum to one at every point: the common level is
    between the smallest and the largest norm. gamma_i is below the optimal one if its norm is at least the
    upper bound of the level, and above it if its norm is at most the lower bound. Each q_i is replaced by a
    power of gamma_i, with the elasticity -dlog q_i / dlog gamma_i between the last two points. Then the
    norm of gamma_i is the level at gamma_i (norm_i / level)^(1 / (1 + elasticity / 2)), clipped to the
    bracket of gamma_i, and the level at which these sum to one is found by bisection.
    """
    last, below, above, levels = bracket
    norms = np.sqrt(forms) / gamma
    largest, smallest = norms.max(), norms.min()
    levels[0], levels[1] = max(levels[0], smallest), min(levels[1], largest)
    for i in range(gamma.size):
        if norms[i] >= levels[1]:
            below[i] = max(below[i], gamma[i])
        if norms[i] <= levels[0]:
            above[i] = min(above[i], gamma[i])
        increase = np.log(gamma[i] / last[0, i])
        if abs(increase) > SETTINGS.same_point:  # it is nan at the first point
            decrease = np.log(max(last[1, i], 1e-300) / max(forms[i], 1e-300))
            elasticities[i] = min(max(decrease / increase, 0.0), SETTINGS.most_elasticity)
        last[0, i], last[1, i] = gamma[i], forms[i]
    norms = np.maximum(norms, SETTINGS.norm_floor * largest)
    # The bisection is in the logarithm of the level, and needs a positive lower end where a norm is zero.
    low, high = np.log(max(levels[0], SETTINGS.norm_floor**4 * levels[1])), np.log(levels[1])
    new, least = gamma, np.maximum(below, SETTINGS.least_gamma)
    for _ in range(SETTINGS.bisections):
        level = (low + high) / 2
        new = gamma * (norms / np.exp(level)) ** (1 / (1 + elasticities / 2))
        new = np.minimum(np.maximum(new, least), above)
        if new.sum() > 1:
            low = level
        else:
            high = level
    gamma[:] = new / new.sum()
