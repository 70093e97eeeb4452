"""The projection on the simplex, in numpy."""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array


def on_simplex(values: Array, total: float | None, weights: Array | None = None) -> tuple[Array, float]:
    """Return the projection of `values` on {x >= 0, weights'x = total}, weights > 0, and the shift theta.

    (values - theta weights)_+, with theta = 0 where there is no total; the weights are one by default.
    """
    if total is None:
        return np.maximum(values, 0.0), 0.0
    r = np.ones(values.size) if weights is None else weights
    top = float((values / r).max())
    drops = top - values / r
    order = np.argsort(drops)
    squares = (r * r)[order]
    heights = (total + np.cumsum(squares * drops[order])) / np.cumsum(
        squares
    )  # top - theta, of the k largest
    height = float(heights[np.flatnonzero(drops[order] < heights)[-1]])
    projected = r * np.maximum(height - drops, 0.0)
    return projected * (total / float(r @ projected)), top - height
