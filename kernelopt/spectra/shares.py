"""The shares gamma of kernels whose norms are summed: the point of the simplex where the norms are equal."""

from __future__ import annotations

import numpy as np

from kernelopt.spectra.compiling import compiled
from kernelopt.validation import Array

LEAST = 1e-10  # of gamma
STEEP = 200.0  # most of a power


@compiled
def settled(gamma: Array, forms: Array, tol: float) -> bool:
    """Whether gamma is within `tol` of the best for these kernels."""
    if gamma.size == 1:
        return True
    now, most = 0.0, 0.0
    for i in range(gamma.size):
        now += forms[i] / (2 * gamma[i])
        most = max(most, forms[i] / (2 * gamma[i] ** 2))
    return most - now <= min(tol, 1e-3 * now)


@compiled
def share(gamma: Array, forms: Array, powers: Array, before: Array, first: bool) -> None:
    """Move gamma towards equal norms sqrt(forms_i) / gamma_i, which are best.

    A norm is taken to fall as gamma_i^-powers_i, the power being that between the last two points, which
    `before` keeps, both as logarithms.
    """
    m, largest = gamma.size, 0.0
    for i in range(m):
        largest = max(largest, np.sqrt(forms[i]) / gamma[i])
    low, high = np.inf, -np.inf
    for i in range(m):
        # A norm of zero says nothing of how far to go: it is taken to be small, and its gamma falls.
        norm = np.log(max(np.sqrt(forms[i]) / gamma[i], 1e-6 * largest))
        size = np.log(gamma[i])
        fall, moved = before[0, i] - norm, size - before[1, i]
        if not first and abs(moved) > 1e-9:
            powers[i] = min(max(fall / moved, 1.0), STEEP)
        before[0, i], before[1, i] = norm, size
        low, high = min(low, norm), max(high, norm)
    for _ in range(50):
        level, total = (low + high) / 2, 0.0
        for i in range(m):
            total += np.exp(before[1, i] + (before[0, i] - level) / powers[i])
        if total > 1:
            low = level
        else:
            high = level
    total = 0.0
    for i in range(m):
        gamma[i] = max(np.exp(before[1, i] + (before[0, i] - high) / powers[i]), LEAST)
        total += gamma[i]
    for i in range(m):
        gamma[i] /= total
