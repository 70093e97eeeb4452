"""Images of many functions of one distance by sums over its cells, see `Interpolation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from kernelopt.grams.interpolation import TILE, Interpolation, values_of
from kernelopt.grams.rows import Rows
from kernelopt.grams.sweeps import Images, Place, images
from kernelopt.kernels import Profile
from kernelopt.kernels.profile import Metric, distances
from kernelopt.running import Steps, check
from kernelopt.validation import Array, Index

ALL_PAIRS = "summing kernels over all pairs of points"  # where it is so, this is most of the time
SAMPLED = 32  # rows whose distances tell where the cells are


def interpolated_images(
    profiles: Sequence[Profile],
    located: tuple[Rows, Place],
    metric: Metric | None,
    points: tuple[Index, Index],
    c: Array,
    tested: Mapping[int, str],
) -> Array:
    """Return sum_j c_j k_m(x_i, x_j) for the points i and j of the numbers `points`, shape (m, count of i).

    Parameters
    ----------
    profiles : sequence of Profile
        Completely monotone functions of one distance.
    located : pair of Rows and Place
        All points, and the map to the columns of the distance, less a common centre.
    metric : str or None
    points : pair of integer arrays
        Different numbers, the second ones ascending.
    c : array
    tested : dict from int to str
        The numbers of the profiles that are completely monotone by their word alone, and their names.

    Raises
    ------
    InputError
        If one of them is not, see `Interpolation.check`.
    """
    (every, place), (rows, columns) = located, points
    right = place(every.take(columns))
    sample = distances(place(every.take(rows[:: max(1, rows.size // SAMPLED)])), right, metric)
    interpolation = Interpolation(partial(values_of, profiles), sample)
    if tested:
        interpolation.check(tested)
    sums = Images(tuple(profiles), place, metric, columns, right, c, interpolation)
    if np.array_equal(rows, columns):
        return own_images(sums)
    found = np.empty((len(profiles), rows.size))
    for at, part in every.each(images, sums, rows):
        found[:, at] = part
    return found


def interpolated_forms(
    profiles: Sequence[Profile],
    located: tuple[Rows, Place],
    metric: Metric | None,
    a: Array,
    tested: Mapping[int, str],
) -> Array:
    """Return sum_ij a_i a_j k_m(x_i, x_j) over all points, shape (m,), from half of the distances.

    Parameters are those of `interpolated_images`. Distances are sums of few cells: neither time nor memory
    depends on m for each pair.
    """
    every, place = located
    n, some = len(every), slice(None, None, max(1, len(every) // TILE))
    sample = distances(place(every.take(slice(0, n, max(1, n // SAMPLED)))), place(every.take(some)), metric)
    sums = Interpolation(partial(values_of, profiles), sample)
    if tested:
        sums.check(tested)
    found, steps = np.zeros(len(profiles)), Steps(ALL_PAIRS, 1)
    for top in range(0, n, TILE):
        rows = slice(top, min(top + TILE, n))
        left, moments = place(every.take(rows)), sums.moments(rows.stop - top)
        for start in range(top, n, TILE):
            columns = slice(start, start + TILE)
            D = distances(left, left if start == top else place(every.take(columns)), metric)
            if start == top:
                np.fill_diagonal(D, 0.0)
            c = a[columns] if start == top else 2 * a[columns]
            found += sums.add(D, c, moments) @ a[rows]
        found += sums.sums((a[rows] @ moments.reshape(len(moments), -1))[None])[:, 0]
        steps.take((2 * n - top - rows.stop) * (rows.stop - top) / n**2)
    excess = np.array([p.own for p in profiles]) - values_of(profiles, np.zeros(1))[:, 0]
    return found + excess * float(a @ a)


def own_images(payload: Images) -> Array:
    """Return the sums at the points z_j themselves, from half of the distances, shape (m, count of j)."""
    points, c, interpolation = payload.points, payload.c, payload.interpolation
    found = np.zeros((len(payload.profiles), len(points)))
    waiting: dict[int, Array] = {}  # moments of later rows, from the columns before them
    for top in range(0, len(points), TILE):
        part = slice(top, top + TILE)
        left = points[part]
        moments = waiting.pop(top) if top in waiting else interpolation.moments(len(left))
        for start in range(top, len(points), TILE):
            check()
            other = slice(start, start + TILE)
            D = distances(left, points[other], payload.metric)
            if start == top:
                np.fill_diagonal(D, 0.0)
            found[:, part] += interpolation.add(D, c[other], moments)
            if start > top:
                D = np.ascontiguousarray(D.T)
                if start not in waiting:
                    waiting[start] = interpolation.moments(len(D))
                found[:, other] += interpolation.add(D, c[part], waiting[start])
        found[:, part] += interpolation.sums(moments)
    excess = np.array([p.own for p in payload.profiles]) - values_of(payload.profiles, np.zeros(1))[:, 0]
    return found + np.outer(excess, c)
