"""The proof by a factorisation that a matrix is positive semidefinite up to a margin."""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.decompositions import lower_factor
from kernelopt.numerics.rounding import TINY, gamma
from kernelopt.validation import Array


def semidefinite_beyond(X: Array, margin: float) -> bool:
    """Whether it is proved that the least eigenvalue of a symmetric matrix is at least minus `margin`.

    The margin may have either sign. A Cholesky factorisation in floating-point numbers that ends proves that
    M + t I is semidefinite, where t = gamma(n + 2) / (1 - gamma(n + 2)) tr M bounds the rounding of the
    factorisation (S. M. Rump, BIT 46 (2006)). Here M is X + s I, and s is what is left of `margin` beside t.
    The factorisation takes a tenth of the time of an eigendecomposition.
    """
    n = len(X)
    share = gamma(n + 2) / (1 - gamma(n + 2))
    diagonal = X.diagonal()
    s = margin - share * float(np.abs(diagonal).sum()) - n * TINY
    s /= 1 + np.copysign(share * n, s)
    s -= gamma(2) * (abs(s) + float(np.abs(diagonal).max(initial=0.0)))  # the rounding of the sums X_jj + s
    shifted = X.copy()
    shifted.flat[:: n + 1] += s
    try:
        return bool(np.isfinite(lower_factor(shifted)).all())  # NaN may end no factorisation
    except np.linalg.LinAlgError:
        return False
