"""l_p norms of vectors that neither overflow nor underflow, and conjugate exponents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelopt.validation import Array


def lp_length(v: ArrayLike, p: float) -> float:
    """Return |v|_p for p in [1, inf], scaled by the largest entry: powers of large p would underflow."""
    sizes: Array = np.abs(np.asarray(v, dtype=float))
    largest = float(sizes.max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.linalg.norm(sizes / largest, p))


def conjugate_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1."""
    if p == 1:
        return np.inf
    return 1.0 if np.isinf(p) else p / (p - 1)
