"""What a solver has left in a variable or a multiplier, as finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.extend import Array

LARGEST = 1e100  # larger numbers of a solver mean that it diverged; their squares would overflow


def numbers(values: Any, size: int) -> Array:
    """Return the values as a vector, zero where they are missing, not finite or too large."""
    if values is None or np.size(values) != size:
        return np.zeros(size)
    flat = np.asarray(values, dtype=float).ravel()
    return np.where(np.abs(flat) < LARGEST, flat, 0.0)
