"""The distances within a working set, each pair once: those of i and j <= i at i (i + 1) / 2 + j.

They take half of the memory of a matrix. The functions are to be `compiled`.
"""

from __future__ import annotations

import numpy as np

from kernelopt.grams.sweeps import FRACTION, SHIFT
from kernelopt.numerics.compiling import compiled_as
from kernelopt.validation import Array, Index


def put_rows(P: Array, first: int, D: Array) -> None:
    """Write the distances of the positions first, first + 1, ... to those before them; zero to themselves."""
    for a in range(P.shape[0]):
        i, row = first + a, P[a]
        to = D[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        for j in range(i):
            to[j] = row[j]
        to[i] = 0.0


def gather_pairs_loop(D: Array, rows: Index, columns: Index, found: Array) -> None:
    """Do what `gather_pairs` does, the pairs above the diagonal column by column."""
    for a in range(rows.size):
        i, to = rows[a], found[a]
        row = D[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        for b in range(columns.size):
            if columns[b] <= i:
                to[b] = row[columns[b]]
    for b in range(columns.size):
        j = columns[b]
        row = D[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2]
        for a in range(rows.size):
            if rows[a] < j:
                found[a, b] = row[rows[a]]


@compiled_as(gather_pairs_loop)
def gather_pairs(D: Array, rows: Index, columns: Index, found: Array) -> None:
    """Write the distances at all pairs of positions."""
    for i, to in zip(rows, found, strict=True):
        last = np.maximum(i, columns)
        to[:] = D[last * (last + 1) // 2 + np.minimum(i, columns)]


def look_up_rows_loop(bits: Array, base: int, value: Array, slope: Array, out: Array) -> None:
    """Do what `look_up_rows` does."""
    low, high = np.int32(base << SHIFT), np.int32(((base + value.size) << SHIFT) - 1)
    mask, unit, start = np.int32((1 << SHIFT) - 1), np.float32(FRACTION), np.int32(base)
    for i in range(out.shape[0]):
        row, to = bits[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2], out[i, : i + 1]
        for j in range(row.size):
            b = max(low, min(row[j], high))
            k = (b >> np.int32(SHIFT)) - start
            to[j] = value[k] + np.float32(b & mask) * unit * slope[k]


@compiled_as(look_up_rows_loop)
def look_up_rows(bits: Array, base: int, value: Array, slope: Array, out: Array) -> None:
    """Write the entries of a table, as of `look_up`, left of the diagonal of `out` and on it."""
    ends, mask = (base << SHIFT, ((base + value.size) << SHIFT) - 1), (1 << SHIFT) - 1
    unit = np.float32(FRACTION)
    for i in range(out.shape[0]):
        b = bits[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2].clip(*ends)
        k = (b >> SHIFT) - base
        out[i, : i + 1] = value[k] + (b & mask).astype(np.float32) * unit * slope[k]
