"""Tables of kernels that are functions of one distance, indexed by the leading bits of a float32 distance.

A table has 512 cells for each factor of two of the distance. Within a cell a function is interpolated
linearly. Distances are scaled by a power of two such that all are below one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelopt.kernels import Profile
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.validation import Array

CELL_BITS = 9  # of the mantissa: 512 cells an octave, where a Gaussian is interpolated to 2.6e-7
SHIFT = 23 - CELL_BITS  # the other bits of the mantissa say where in the cell a distance is
FRACTION = 2.0**-SHIFT


class Tables:
    """Functions f_m on 0 <= d < `scale`, each divided by its value own_m, at the knots of a table.

    Attributes
    ----------
    scale : float
        A power of two. The tables take d / scale, as float32.
    base, cells : int
        The leading bits of the first knot, and the number of cells.
    values : array of shape (m, cells + 1)
        The functions at the knots, relative to their own_m.
    errors : array of shape (m,)
        Proved bounds of the errors of interpolation.
    """

    def __init__(self, profiles: Sequence[Profile], scale: float) -> None:
        self.scale = scale
        self.own = np.array([p.own for p in profiles])
        size = np.where(self.own > 0, self.own, 1.0)

        def at(d: Array) -> Array:
            return np.stack([p.function(scale * d) / s for p, s in zip(profiles, size, strict=True)])

        origin, octaves = at(np.zeros(1)), 1
        while (
            octaves < SETTINGS.most_octaves
            and (origin - at(np.array([2.0**-octaves]))).max() > SETTINGS.first_drop
        ):
            octaves += 4
        first = np.float32(2.0**-octaves)
        self.base, self.cells = int(first.view(np.int32)) >> SHIFT, octaves << CELL_BITS
        bits = np.arange(self.base, self.base + self.cells + 1, dtype=np.int32) << SHIFT
        knots = bits.view(np.float32).astype(float)
        self.values = at(knots)
        self.errors = np.maximum(convex_errors(knots, self.values), origin[:, 0] - self.values[:, 0])
        self.origin = origin[:, 0]
        self.at = at

    def combined(self, weights: Array) -> tuple[Array, Array]:
        """Return values and differences of sum_m weights_m f_m / own_m at the cells, in float32."""
        total = weights @ self.values
        return total[:-1].astype(np.float32), np.diff(total).astype(np.float32)

    def moduli(self, delta: float) -> Array:
        """Return bounds of the change of each f_m / own_m where the scaled distance changes by delta.

        The largest change of a decreasing convex function is the one at zero.
        """
        return np.asarray(self.origin - self.at(np.array([delta]))[:, 0])


def convex_errors(knots: Array, values: Array) -> Array:
    """Return the largest errors of linear interpolation of convex functions, one in each row of values.

    On a cell of width h the function is below its chord, of slope s, and above the chords of the two cells
    beside it, of slopes r <= s <= t. Hence the error is at most h (s - r)(t - s) / (t - r). On the first cell
    and the last one it is at most h (t - s) and h (s - r).
    """
    h = np.diff(knots)
    return np.array([convex_error(h, row) for row in values])  # the arrays of one function fit into the cache


def convex_error(h: Array, values: Array) -> float:
    """Return the error of one function at knots with differences h."""
    bends = np.maximum(np.diff(np.diff(values) / h), 0.0)
    left, right = bends[:-1], bends[1:]
    total = left + right
    inner = np.divide(left * right, total, out=np.zeros_like(total), where=total > 0)
    return float(max((inner * h[1:-1]).max(), bends[0] * h[0], bends[-1] * h[-1]))


def to_distances(P: Array, left: Array, right: Array) -> None:
    """Replace inner products x_i'z_j by |x_i|^2 + |z_j|^2 - 2 x_i'z_j, at least 0, in float32."""
    two, zero = np.float32(2.0), np.float32(0.0)
    for i in range(P.shape[0]):
        row, s = P[i], left[i]
        for j in range(row.size):
            row[j] = max(s + right[j] - two * row[j], zero)


def look_up(bits: Array, base: int, value: Array, slope: Array, out: Array) -> None:
    """Write the entries of a table, interpolated in float32, at distances given by their bits."""
    low, high = np.int32(base << SHIFT), np.int32(((base + value.size) << SHIFT) - 1)
    mask, unit, start = np.int32((1 << SHIFT) - 1), np.float32(FRACTION), np.int32(base)
    for i in range(bits.shape[0]):
        row, to = bits[i], out[i]
        for j in range(row.size):
            b = max(low, min(row[j], high))
            k = (b >> np.int32(SHIFT)) - start
            to[j] = value[k] + np.float32(b & mask) * unit * slope[k]
