"""Entries of symmetric matrices, and sums of their rows: the products K a for vectors a of few entries."""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array, Index


def add_rows(rows: Array, slots: Index, steps: Array, images: Array) -> None:
    """Add sum_i steps_i rows[m, slots_i] to images[m] for every m, four rows at a time.

    The loop is to be `compiled`. Rows in single precision are converted entry by entry, so that products and
    sums are doubles.
    """
    n = rows.shape[2]
    for m in range(rows.shape[0]):
        i = 0
        while i + 3 < slots.size:
            p, q, r, s = slots[i], slots[i + 1], slots[i + 2], slots[i + 3]
            u, v, w, x = steps[i], steps[i + 1], steps[i + 2], steps[i + 3]
            for j in range(n):
                images[m, j] += u * rows[m, p, j] + v * rows[m, q, j] + w * rows[m, r, j] + x * rows[m, s, j]
            i += 4
        while i < slots.size:
            for j in range(n):
                images[m, j] += steps[i] * rows[m, slots[i], j]
            i += 1


def gather(matrices: Array, rows: Index, columns: Index, found: Array) -> None:
    """Write the entries matrices[m, rows_i, columns_j] to `found`. The loop is to be `compiled`."""
    for m in range(matrices.shape[0]):
        for i in range(rows.size):
            row, to = matrices[m, rows[i]], found[m, i]
            for j in range(columns.size):
                to[j] = row[np.uint64(columns[j])]  # numba looks for a sign of other indices
