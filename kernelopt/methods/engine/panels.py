"""The kernels on the working set in float32, one triangle of each: the loops that fill and read it.

The rows of the lower triangles lie one after the other. Row i of all kernels is a panel of m (i + 1) entries,
kernel by kernel, which starts at m i (i + 1) / 2. A new point appends a panel, and the panels of the points
that remain move towards the start when others are dropped.
"""

from __future__ import annotations

import numpy as np

from kernelopt.validation import Array, Index

TILE = 32  # rows and columns of a tile that is transposed at a time: 8 KB, which fit into the first cache


def fill_panels(K: Array, points: Index, first: int, scales: Array, panels: Array) -> None:
    """Write the panels of points[first:], the entries scales_m K_m[points_i, points_j] for j <= i."""
    m = K.shape[0]
    for k in range(m):
        scale = scales[k]
        for i in range(first, points.size):
            row, at = K[k, points[i]], m * (i * (i + 1) // 2) + k * (i + 1)
            to = panels[at : at + i + 1]
            for j in range(i + 1):
                to[j] = scale * row[np.uint64(points[j])]  # numba looks for a sign of other indices


def gather_rows(K: Array, rows: Index, columns: Index, scales: Array, found: Array) -> None:
    """Write the entries scales_m K_m[rows_i, columns_j] to `found`, shape (m, rows, columns)."""
    for k in range(K.shape[0]):
        scale = scales[k]
        for i in range(rows.size):
            row, to = K[k, rows[i]], found[k, i]
            for j in range(columns.size):
                to[j] = scale * row[np.uint64(columns[j])]


def put_panels(B: Array, first: int, panels: Array) -> None:
    """Write the panels of B, shape (r, rows, columns): row i is that of the position first + i."""
    r = B.shape[0]
    for i in range(B.shape[1]):
        width = first + i + 1
        for k in range(r):
            row, at = B[k, i], r * (width * (width - 1) // 2) + k * width
            for j in range(width):
                panels[at + j] = row[j]


def keep_panels(m: int, kept: Index, panels: Array) -> None:
    """Move the entries of the positions `kept`, in increasing order, to the first panels."""
    for i in range(kept.size):
        old = kept[i]
        start, source = m * (i * (i + 1) // 2), m * (old * (old + 1) // 2)
        for k in range(m):
            at, taken = start + k * (i + 1), source + k * (old + 1)
            for j in range(i + 1):
                panels[at + j] = panels[taken + kept[j]]


def combine_panels(panels: Array, m: int, active: Index, weights: Array, block: Array) -> None:
    """Write sum_k weights_k K_active_k to the square matrix `block`; sums are rounded once, from float64."""
    size = block.shape[0]
    total = np.empty(size)
    for i in range(size):
        start, width, row = m * (i * (i + 1) // 2), i + 1, total[: i + 1]
        row[:] = 0.0
        for k in range(active.size):  # one after the other: the panel is read from its start to its end
            at, weight = start + active[k] * width, weights[k]
            entries = panels[at : at + width]
            for j in range(width):
                row[j] += weight * entries[j]
        to = block[i, :width]
        for j in range(width):
            to[j] = row[j]
    for top in range(0, size, TILE):
        for left in range(top, size, TILE):
            for i in range(top, min(size, top + TILE)):
                for j in range(max(left, i + 1), min(size, left + TILE)):
                    block[i, j] = block[j, i]


def panel_images(panels: Array, m: int, c: Array, wanted: Array, images: Array) -> None:
    """Add the images of c under all kernels to `images`, shape (m, size), at the positions `wanted`.

    The panel of a position that is not wanted and has c = 0 is not read.
    """
    for i in range(c.size):
        if c[i] == 0 and not wanted[i]:
            continue
        start = m * (i * (i + 1) // 2)
        for k in range(m):
            at, total, ci, image = start + k * (i + 1), 0.0, c[i], images[k]
            for j in range(i):
                entry = np.float64(panels[at + j])
                total += entry * c[j]
                image[j] += entry * ci
            image[i] += total + np.float64(panels[at + i]) * ci


def sweep_rows(K: Array, rows: Index, c: Array, active: Index, weights: Array, f: Array) -> None:
    """Add sum_k weights_k K_active_k[:, rows] c to f, reading whole rows, four at a time."""
    n = f.size
    for k in range(active.size):
        matrix, weight, i = K[active[k]], weights[k], 0
        while i + 3 < rows.size:
            p, q, r, s = matrix[rows[i]], matrix[rows[i + 1]], matrix[rows[i + 2]], matrix[rows[i + 3]]
            a, b, d, e = weight * c[i], weight * c[i + 1], weight * c[i + 2], weight * c[i + 3]
            for j in range(n):
                f[j] += a * p[j] + b * q[j] + d * r[j] + e * s[j]
            i += 4
        while i < rows.size:
            p, a = matrix[rows[i]], weight * c[i]
            for j in range(n):
                f[j] += a * p[j]
            i += 1
