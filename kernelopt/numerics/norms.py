"""l_p norms without overflow and underflow, conjugate exponents, and weights in an l_p ball or a simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.errors import ShapeError
from kernelopt.validation import Array, exponent, numeric


def lp_length(v: ArrayLike, p: float) -> float:
    """Return |v|_p, p in [1, inf], as s |v / s|_p with the largest entry s: |v_i|^p alone may underflow.

    Parameters
    ----------
    v : array of shape (m,)
        An infinite entry makes the norm infinite, and a NaN makes it NaN.
    p : float in [1, inf]
        The exponent.

    Raises
    ------
    ParameterError, ShapeError
        If p is below 1, or v is not a vector of real numbers.

    Examples
    --------
    >>> from kernelopt.extend import norms
    >>> norms.lp_length([3.0, -4.0], 2)
    5.0
    """
    p = exponent(p)
    sizes: Array = np.abs(numeric(v, "v"))
    if sizes.ndim != 1:
        raise ShapeError(
            f"v must have shape (m,), got {sizes.shape}. Pass v.ravel() for the entries of a matrix."
        )
    return length_of_positive(sizes, p)


def length_of_positive(v: Array, p: float) -> float:
    """Return `lp_length` of a vector v >= 0 and a p that need no check.

    Parameters
    ----------
    v : array of shape (m,)
        With entries >= 0.
    p : float in [1, inf]
        The exponent.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.extend import norms
    >>> norms.length_of_positive(np.array([3.0, 4.0]), 1)
    7.0
    """
    largest = float(v.max(initial=0.0))
    if not 0 < largest < np.inf or np.isinf(p):
        return largest
    scaled = v / largest
    if p == 1:
        return largest * float(scaled.sum())
    return largest * float((scaled**p).sum() ** (1 / p))


def conjugate_exponent(p: float) -> float:
    """Return q with :math:`1/p + 1/q = 1`, for p in [1, inf].

    Parameters
    ----------
    p : float in [1, inf]
        The exponent.

    Raises
    ------
    ParameterError
        If p is not in [1, inf].

    Examples
    --------
    >>> from kernelopt.extend import norms
    >>> norms.conjugate_exponent(1), norms.conjugate_exponent(4)
    (inf, 1.3333333333333333)
    """
    p = exponent(p)
    if p == 1:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1)


def minimizing_weights(lengths: Array, p: float, floor: float = 0.0) -> Array:
    r"""Return the best weights in the unit l_p ball for given lengths of the parts.

    .. math:: \arg\min_{\theta \ge 0,\ \|\theta\|_p \le 1} \sum_m l_m^2 / \theta_m
        \ \propto\ \big(l_m^{2 / (p + 1)}\big)_m

    with :math:`\|\theta\|_p = 1` up to rounding: [1]_, (17).
    Where all lengths are zero every theta is a minimiser, and equal weights are returned.

    Parameters
    ----------
    lengths : array of shape (m,), with entries >= 0
        Of the parts of f in the spaces of the kernels.
    p : float in [1, inf]
        The exponent of the ball.
    floor : float >= 0, default 0
        Smaller weights are raised to this share of the largest one, before the normalisation.

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.extend import norms
    >>> norms.minimizing_weights(np.array([1.0, 8.0]), p=2).round(4)  # in the ratio 1 to 8^(2/3) = 4
    array([0.2425, 0.9701])
    """
    largest = float(lengths.max(initial=0.0))
    powers = (lengths / largest) ** (2 / (p + 1)) if largest > 0 else np.ones(lengths.size)
    raised: Array = np.maximum(powers, floor)
    return raised / length_of_positive(raised, p)


def on_simplex(values: Array, total: float | None, weights: Array | None = None) -> tuple[Array, float]:
    r"""Return the projection of `values` on a simplex, and its threshold theta.

    .. math:: \arg\min_{x \ge 0,\ r'x = \mathrm{total}} \|x - v\|^2 = (v - \theta r)_+, \qquad
        r'(v - \theta r)_+ = \mathrm{total}

    for the values v; theta = 0 where total is None. theta is found by sorting values / r (Held, Wolfe,
    Crowder, Math. Programming 6 (1974)). Differences from the largest ratio are used, so that nothing cancels
    where all values are large.

    Parameters
    ----------
    values : array of shape (m,)
        The point to project.
    total : float > 0 or None
        The sum r'x, or None for none: then only negative entries are cut off.
    weights : array of shape (m,), optional
        r > 0, by default ones.

    Returns
    -------
    projection : array of shape (m,)
        x.
    theta : float
        The threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.extend import on_simplex
    >>> on_simplex(np.array([0.75, 0.5, -1.0]), 1.0)
    (array([0.625, 0.375, 0.   ]), 0.125)
    """
    if total is None:
        return np.maximum(values, 0.0), 0.0
    r = np.ones(values.size) if weights is None else weights
    top = float((values / r).max())
    drops = top - values / r
    order = np.argsort(drops)
    squares = (r * r)[order]
    # heights_k = top - theta where the k largest ratios are above theta.
    heights = (total + np.cumsum(squares * drops[order])) / np.cumsum(squares)
    height = float(heights[np.flatnonzero(drops[order] < heights)[-1]])
    projected = r * np.maximum(height - drops, 0.0)
    return projected * (total / float(r @ projected)), top - height
