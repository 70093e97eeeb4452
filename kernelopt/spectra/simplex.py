"""The projection on the simplex, in numpy."""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array


def on_simplex(values: Array, total: float | None) -> tuple[Array, float]:
    """Return the projection of `values` on {x >= 0, sum x = total}, and the shift theta.

    (values - theta)_+, with theta = 0 where there is no total.
    """
    if total is None:
        return np.maximum(values, 0.0), 0.0
    top = float(values.max())
    drops = np.sort(top - values)
    heights = (total + np.cumsum(drops)) / np.arange(1, values.size + 1)  # top - theta, of the k largest
    height = float(heights[np.flatnonzero(drops < heights)[-1]])
    projected = np.maximum(height - (top - values), 0.0)
    return projected * (total / projected.sum()), top - height
