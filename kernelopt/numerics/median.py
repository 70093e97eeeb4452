"""The proximal step of a sum of absolute values around several targets, compiled by numba."""

from __future__ import annotations

import numpy as np

from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array


@compiled
def to_median(V: Array, S: Array, step: float, X: Array) -> float:
    """Set X to the minimiser of step * sum_k |X - S_k| + (X - V)^2 / 2, entry by entry.

    It is the median of S_1, ..., S_m and V + (m - 2 j) step, j = 0, ..., m. Returns sum_k |X - S_k|; all
    arrays are flat, S of shape (m, size).
    """
    m, size = S.shape
    middle = np.empty(2 * m + 1)
    total = 0.0
    for p in range(size):
        v = V[p]
        if m == 1:
            x = v - step if v - step > S[0, p] else (v + step if v + step < S[0, p] else S[0, p])
        elif m == 2:
            low, high = min(S[0, p], S[1, p]), max(S[0, p], S[1, p])
            x = min(max(v, low), high)
            x = max(x, v - 2 * step) if v > high else min(x, v + 2 * step)
        else:
            for j in range(m + 1):  # ascending
                middle[j] = v + (2 * j - m) * step
            for k in range(m):  # insertion: numba would compile numpy's sort for a second
                position = m + 1 + k
                while position > 0 and middle[position - 1] > S[k, p]:
                    middle[position] = middle[position - 1]
                    position -= 1
                middle[position] = S[k, p]
            x = middle[m]
        X[p] = x
        for k in range(m):
            total += abs(x - S[k, p])
    return total
