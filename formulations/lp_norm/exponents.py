"""The exponent of the ball and that of the block norm, which Proposition 2 relates."""

from __future__ import annotations

import numpy as np


def block_exponent(p: float) -> float:
    """Return r = 2 p / (p + 1) in [1, 2]: with optimal weights the regulariser is a block norm of this r."""
    return 2.0 if np.isinf(p) else 2 * p / (p + 1)


def ball_exponent(r: float) -> float:
    """Return p = r / (2 - r), the inverse of `block_exponent`."""
    return np.inf if r == 2 else r / (2 - r)
