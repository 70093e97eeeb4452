"""A Newton step on the weights: the second derivatives of the risk, and the way back from a bad step."""

from __future__ import annotations

import numpy as np

from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.numerics.factors import bordered_solution
from kernelopt.validation import Array

# Relative to the unit of the block: above the error of its numbers, and for points that coincide.
RIDGE = {"float32": 1e-6, "float64": 1e-12}


def second_derivatives(M: Array, unit: float, images: Array, diagonal: Array, bias: bool) -> Array:
    """Return the Hessian of the value of the learning problem as a function of the weights, shape (m, m).

    With F the samples whose alpha is inside its bounds, it is G_F' P G_F. There the columns of G_F are the
    images (K_m alpha)_F, and P is the inverse of unit M + diag(diagonal), with a border of ones if there is
    an intercept. M is K_w[F, F] / unit, and is overwritten. The diagonal has one over the second derivative
    of the loss at each sample, and a ridge.
    """
    m, size = images.shape
    if size <= bias:
        return np.zeros((m, m))
    M[np.diag_indices(size)] += diagonal / unit
    solution = bordered_solution(M, images.T, bias)
    return np.zeros((m, m)) if solution is None else images @ solution[0] / unit


def way_back(before: float, after: float) -> float:
    """Return the share of a step that is kept where a convex function rises at its end.

    `before` and `after` are the derivatives along the step at its two ends. The secant through them has its
    zero there.
    """
    zero = before / (before - after) if after > 0 > before else SETTINGS.shortest_back
    return min(max(zero, SETTINGS.shortest_back), SETTINGS.longest_back)
