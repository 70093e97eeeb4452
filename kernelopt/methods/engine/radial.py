"""`Radial`: the provider of kernels that are functions of one distance, by tables of these functions.

A table is indexed by the leading bits of a float32 distance: it has 512 cells for each factor of two. Within
a cell a function is interpolated linearly. Distances are scaled by a power of two such that all are below
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.grams import Grams
from kernelopt.grams.caching import pieces
from kernelopt.grams.evaluated import FEW_COLUMNS
from kernelopt.grams.interpolation import Interpolation
from kernelopt.grams.storage import Points
from kernelopt.grams.sweeps import (
    CELL_BITS,
    SHIFT,
    Place,
    Placed,
    Predictions,
    Single,
    look_up,
    positions,
    predictions,
    table_sums,
)
from kernelopt.kernels import Profile
from kernelopt.methods.engine.family import Family
from kernelopt.methods.engine.panels import keep_panels, mirror, passes_of_rows
from kernelopt.methods.engine.provider import Provider, kept_positions
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.triangle import gather_pairs, look_up_rows, put_rows
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array, Index


class Radial(Provider):
    """Kernels that are functions of one distance, from the points. No matrix of order n is stored.

    The distances within the working set are kept in float32, each once, or computed again where that takes no
    longer, see `keeps_distances`. A combination of the kernels is one function of the distance, which is read
    from a table, so that its cost does not depend on m. The images
    under all kernels are computed from few sums over the distances, see `Interpolation`. Single precision
    serves the search only: `exact_images` evaluates the kernels themselves in float64.

    Parameters
    ----------
    family : Family
        The kernels of `grams`.
    grams : Grams
        On N >= n points; the first n points are labelled.
    reach : array of shape (m,)
    n : int
    exact : bool
        Whether predictions and the images of a new working set come from the kernels in float64, which takes
        longer.
    """

    name = "radial"

    def __init__(self, family: Family, grams: Grams, reach: Array, n: int, exact: bool = False) -> None:
        super().__init__(grams, reach, n)
        self.family, self.refined = family, exact
        if family.located is not None:
            family.located[0].check_labels(n)
        self.placed, self._scale, self._radius = placed(family, n)
        self.tables = Tables(family.profiles, self._scale)
        u, d = float(np.finfo(np.float32).eps) / 2, self.placed.width
        if family.metric == "sqeuclidean":
            # For |x| <= R, in units of u R^2: 8.1 since points are rounded, 2 for the squares of lengths,
            # 2.02 for each rounding that an addend of 2 x'z meets, and 6 for the sums of the three.
            roundings = min(d, SETTINGS.features) + max(0, math.ceil(d / SETTINGS.features) - 1)
            delta = (16.1 + 2.02 * roundings) * u * self._radius**2
        else:
            delta = 4.1 * u * self._radius
        # The value, the difference, their product and the sum are rounded.
        self._errors = self.tables.errors + self.tables.moduli(delta) + 4 * u
        self._sums = Interpolation(self.tables.at, self._sample())
        self._points: Index = np.empty(0, dtype=np.intp)
        self._X: tuple[Single, Single] = np.empty((0, 0), np.float32), np.empty(0, np.float32)
        self._keeps = keeps_distances(family)
        self._D: Single = np.empty(0, np.float32)  # of the points i and j <= i at i (i + 1) / 2 + j
        self._block: Single = np.empty((0, 0), np.float32)

    def _points_at(self, numbers: Index) -> tuple[Single, Single]:
        """Return some points in float32, and the squares of their lengths."""
        if self.family.located is None:
            return np.zeros((numbers.size, 0), np.float32), np.zeros(numbers.size, np.float32)
        return self.placed(self.family.located[0].take(numbers))

    def _sample(self) -> Single:
        """Return the distances of some points."""
        chosen = np.random.default_rng(0).permutation(self.n)[: SETTINGS.sampled_points]
        points = self._points_at(chosen)
        return self.placed.between(points, points)[np.triu_indices(chosen.size, 1)]

    def memory(self, size: int) -> float:
        return radial_bytes(self.family, size, *self.grams.shape[:2])

    def activate(self, points: Index) -> None:
        kept = kept_positions(self._points, points)
        size, k = points.size, kept.size
        self._last, self._block = None, np.empty((0, 0), np.float32)  # its memory is free for the distances
        self.passes += (size - k) * size / self.n**2
        self._points, self._X = points, self._points_at(points)
        if not self._keeps:
            return
        compiled(keep_panels, k * (k + 1) // 2)(1, kept, self._D)
        D = np.empty(size * (size + 1) // 2, np.float32)
        D[: k * (k + 1) // 2] = self._D[: k * (k + 1) // 2]
        for part in pieces(size - k, size, SETTINGS.pairs):
            first = k + part.start
            P = self._between(slice(first, k + part.stop), slice(k + part.stop))
            compiled(put_rows, P.size)(P, first, D)
        self._D = D

    def _between(self, rows: Points, columns: Points) -> Single:
        """Compute the distances at all pairs of positions of the working set."""
        X, squares = self._X
        return self.placed.between((X[rows], squares[rows]), (X[columns], squares[columns]))

    def combined(self, w: Array) -> Single:
        size = self._points.size
        if len(self._block) != size:
            self._block = np.empty((size, size), np.float32)
        value, slope, own = self._table(w)
        if self._keeps:
            read = compiled(look_up_rows, passes_of_rows(len(self._block), self._D.size))
            read(self._D.view(np.int32), self.tables.base, value, slope, self._block)
        else:
            for part in pieces(size, size, SETTINGS.pairs):
                before = slice(part.stop)
                self._block[part, before] = self._looked_up(self._between(part, before), value, slope)
        np.fill_diagonal(self._block, own)
        compiled(mirror, passes_of_rows(len(self._block), self._block.size))(self._block, 0)
        return self._block

    def _looked_up(self, D: Single, value: Single, slope: Single) -> Single:
        """Return the entries of a table at distances."""
        K = np.empty_like(D)
        compiled(look_up, 2 * D.size)(D.view(np.int32), self.tables.base, value, slope, K)
        return K

    def entries(self, w: Array, chosen: Index, numbers: Any = float) -> Array:
        if chosen.size < SETTINGS.many_free:
            return super().entries(w, chosen, numbers)
        # The combined matrix and many of its entries would be the largest part of all memory.
        self._last, self._block = None, np.empty((0, 0), np.float32)
        found = np.empty((chosen.size, chosen.size), numbers)
        value, slope, own = self._table(w)
        for part in pieces(chosen.size, chosen.size, SETTINGS.pairs):
            found[part] = self._looked_up(self._distances(chosen[part], chosen), value, slope)
        np.fill_diagonal(found, own)
        return found

    def _distances(self, rows: Index, columns: Index) -> Single:
        """Return the distances at all pairs of positions of the working set."""
        if not self._keeps:
            found, place = self._between(rows, columns), np.full(self._points.size, -1)
            place[columns] = np.arange(columns.size)
            same = np.flatnonzero(place[rows] >= 0)
            found[same, place[rows[same]]] = 0.0  # of a point and itself: they may be rounding errors
            return found
        found = np.empty((rows.size, columns.size), np.float32)
        compiled(gather_pairs, passes_of_rows(len(found), found.size))(self._D, rows, columns, found)
        return found

    def _table(self, w: Array) -> tuple[Single, Single, float]:
        """Return the table of the combined kernel, and its diagonal, in units of `unit(w)`."""
        weights = w * self.sizes / self.unit(w)
        return *self.tables.combined(weights), float(weights.sum())

    def images(self, c: Array, chosen: Index) -> Array:
        support, found = np.flatnonzero(c), np.empty((self.m, chosen.size))
        for part in pieces(chosen.size, support.size, SETTINGS.pairs):
            D = self._distances(chosen[part], support)
            moments = self._sums.moments(len(D))
            found[:, part] = self._sums.add(D, c[support], moments)
            found[:, part] += self._sums.sums(moments)
        own = np.where(self.sizes > 0, 1.0, 0.0) - self.tables.origin
        return np.asarray(self.sizes[:, None] * (found + np.outer(own, c[chosen])))

    def prediction_error(self, w: Array) -> float:
        return 0.0 if self.refined else float((w * self.sizes) @ self._errors)

    def predict(self, w: Array, support: Index, c: Array, points: Index) -> Array:
        if self.refined:
            return super().predict(w, support, c, points)
        order, f = np.argsort(support), np.empty(points.size)
        support, c = support[order], c[order]
        value, slope, own = self._table(w)
        columns = self._positions(support, self._points)
        rows = self._positions(points, self._points) if (columns >= 0).all() else np.full(points.size, -1)
        known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        self.passes += support.size * new.size / self.n**2
        payload = Predictions(
            self.placed,
            support,
            self._points_at(support),
            c,
            self.tables.base,
            value,
            slope,
            own,
            SETTINGS.looked_up,
        )
        place = positions(points, support)
        for piece in pieces(known.size, support.size, SETTINGS.looked_up):
            part = known[piece]
            f[part] = table_sums(self._distances(rows[part], columns), place[part], payload)
        if self.family.located is None:
            f[new], same = 0.0, new[place[new] >= 0]
            f[same] = own * c[place[same]]
        elif new.size:
            for at, found in self.family.located[0].each(predictions, payload, points[new]):
                f[new[at]] = found
        return self.unit(w) * f

    def _positions(self, points: Index, among: Index) -> Index:
        """Return the positions of points in another array of points, -1 where they are not in it."""
        place = np.full(self.n, -1)
        place[among] = np.arange(among.size)
        return place[points]


def radial_bytes(family: Family, size: int, m: int, n_points: int) -> float:
    """Return about the bytes of m kernels of one distance, for a working set of so many points.

    They are the combined matrix in float32, 4 bytes a pair, and the distances, 2 bytes a pair where they are
    kept, where at other times a matrix of the free samples is in the place of the first, in float64 at most;
    the images of the set; and the points, if they are in memory, with the vectors of all points.
    """
    columns = family.located[0].columns_in_memory if family.located else 0
    pair = 8.0 if keeps_distances(family) else 6.0
    return pair * size**2 + 32.0 * m * size + (8.0 * columns + 400.0) * n_points


def keeps_distances(family: Family) -> bool:
    """Whether distances take longer to compute than to read: all but squared ones of few columns do."""
    if family.located is None or family.metric != "sqeuclidean":
        return True
    rows, place = family.located
    return (rows.shape[1] if place.columns is None else place.columns.size) > FEW_COLUMNS


def placed(family: Family, n: int) -> tuple[Placed, float, float]:
    """Return the map of points to float32, in a unit in which the distances of the first n are below one.

    The other results are the unit of the distances, and the largest length of a point in the first unit.
    """
    if family.located is None:
        return Placed(Place(np.zeros(0)), 1.0, None, SETTINGS.features), 1.0, 0.0
    order, power = (2, 2) if family.metric == "sqeuclidean" else (1, 1)
    rows, place = family.located
    longest = rows.length(place, order, n)
    unit = math.ldexp(1.0, math.frexp(2 * longest)[1] if longest > 0 else 0)
    return Placed(place, unit, family.metric, SETTINGS.features), unit**power, longest / unit


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

    def combined(self, weights: Array) -> tuple[Single, Single]:
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
