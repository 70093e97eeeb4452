"""l_p norms of vectors, computed without overflow and underflow, and conjugate exponents."""

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

    Raises
    ------
    ParameterError, ShapeError
        If p is below 1, or v is not a vector of real numbers.
    """
    p = exponent(p)
    sizes: Array = np.abs(numeric(v, "v"))
    if sizes.ndim != 1:
        raise ShapeError(
            f"v must have shape (m,), got {sizes.shape}. Pass v.ravel() for the entries of a matrix."
        )
    largest = float(sizes.max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.linalg.norm(sizes / largest, p))


def conjugate_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1, for p in [1, inf].

    Raises
    ------
    ParameterError
        If p is not in [1, inf].
    """
    p = exponent(p)
    if p == 1:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1)
