"""Proposition 2: the weights of the l_p ball that are optimal for given functions, in closed form."""

from __future__ import annotations

import numpy as np

import kernelopt as ko
from kernelopt.extend import Array


def block_exponent(p: float) -> float:
    """Return r = 2 p / (p + 1) in [1, 2]: with optimal weights the regulariser is a block norm of this r."""
    return 2.0 if np.isinf(p) else 2 * p / (p + 1)


def ball_exponent(r: float) -> float:
    """Return p = r / (2 - r), the inverse of `block_exponent`."""
    return np.inf if r == 2 else r / (2 - r)


def optimal_weights(lengths: Array, r: float) -> Array:
    r"""Return the minimiser of :math:`\sum_m \|w_m\|^2 / \theta_m` over :math:`\|\theta\|_p = 1`.

    It is :math:`\theta_m = \|w_m\|^{2 / (p + 1)}`, divided by its p-norm, with 2 / (p + 1) = 2 - r. Where all
    lengths are zero, every theta is optimal, and equal weights are returned.

    Parameters
    ----------
    lengths : array of shape (M,), the :math:`\|w_m\|`
    r : float in [1, 2], the `block_exponent` of p
    """
    if r == 2:
        return np.ones(lengths.size)
    powers = (lengths / lengths.max()) ** (2 - r) if lengths.any() else np.ones(lengths.size)
    return np.asarray(powers / ko.lp_length(powers, ball_exponent(r)))
