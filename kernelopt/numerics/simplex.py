"""The projection on a weighted simplex."""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array


def on_simplex(values: Array, total: float | None, weights: Array | None = None) -> tuple[Array, float]:
    """Return the projection of `values` on {x >= 0, r'x = total}, and theta; r = `weights` > 0, default one.

    It is (values - theta r)_+, where theta solves r'(values - theta r)_+ = total; theta = 0 where total is
    None. theta is found by sorting values / r (Held, Wolfe, Crowder, Math. Programming 6 (1974)). Differences
    from the largest ratio are used, so that nothing cancels where all values are large.
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
