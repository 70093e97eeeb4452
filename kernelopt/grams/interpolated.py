"""Images and forms of many functions of one distance by sums over its cells, see `Interpolation`.

`images` and `forms` are what a sweep computes of a block, as the functions in `sweeps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelopt.grams.caching import pieces
from kernelopt.grams.interpolation import TILE, Interpolation, values_of
from kernelopt.grams.rows import Rows
from kernelopt.grams.sweeps import Place, positions
from kernelopt.kernels import Profile
from kernelopt.kernels.profile import Metric, distances
from kernelopt.running import Steps, check
from kernelopt.validation import Array, Floats, Index

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
    """Return sum_ij a_i a_j k_m(x_i, x_j), shape (m,), from half of the distances within the support of a.

    Parameters are those of `interpolated_images`. Distances are sums of few cells: neither time nor memory
    depends on m for each pair. The points z_j of a large support are taken in parts. Blocks are added in
    their order, so that a term meets no more than one addition for each point and those of `images`.
    """
    every, place = located
    columns = np.flatnonzero(a)
    c, size = a[columns], columns.size
    few, more = (place(every.take(columns[:: max(1, size // count)])) for count in (SAMPLED, TILE))
    interpolation = Interpolation(partial(values_of, profiles), distances(few, more, metric))
    if tested:
        interpolation.check(tested)
    found, steps, at_all = np.zeros(len(profiles)), Steps(ALL_PAIRS, 1), np.arange(size)
    for part in pieces(size, every.shape[1]):
        points = place(every.take(columns[part]))
        payload = Forms(tuple(profiles), place, metric, columns, points, c, interpolation, part.start)
        for at, form in every.each(forms, payload, columns[: part.stop]):
            found += form
            pairs = float((part.stop - np.maximum(part.start, at_all[at])).sum())
            steps.take(2 * pairs / (size * (size + 1)))
    return found


@dataclass(frozen=True, eq=False)
class Images:
    """The functions f_m of one distance, and the points z_j with the coefficients c_j, of `images`.

    Attributes
    ----------
    profiles : tuple of Profile
    place : Place
    metric : str or None
    columns : array of int
        The numbers of the points z_j, ascending.
    points : array
        Them after `place`.
    c : array
    interpolation : Interpolation
        Of all f_m.
    """

    profiles: tuple[Profile, ...]
    place: Place
    metric: Metric | None
    columns: Index
    points: Array
    c: Array
    interpolation: Interpolation


def images(X: Floats, numbers: Index, payload: Images) -> Array:
    """Return sum_j c_j k_m(x_i, z_j), shape (m, len(X))."""
    sums, columns, c = payload.interpolation, payload.columns, payload.c
    found, excess = np.zeros((len(payload.profiles), len(X))), excesses(payload.profiles)
    for top in range(0, len(X), TILE):
        part = slice(top, top + TILE)
        left, own = payload.place(X[part]), numbers[part]
        moments = sums.moments(len(left))
        for start in range(0, columns.size, TILE):
            check()
            other = slice(start, start + TILE)
            D = distances(left, payload.points[other], payload.metric)
            D[own[:, None] == columns[other]] = 0.0
            found[:, part] += sums.add(D, c[other], moments)
        found[:, part] += sums.sums(moments)
        at = positions(own, columns)
        found[:, part] += np.outer(excess, np.where(at >= 0, c[at], 0.0))
    return found


@dataclass(frozen=True, eq=False)
class Forms(Images):
    """The points of `forms`: `points` has the z_j from position `start` on, `columns` and `c` have all.

    Attributes
    ----------
    start : int
    """

    start: int


def forms(X: Floats, numbers: Index, payload: Forms) -> Array:
    """Return the sum over rows i, some of the z_j, of c_i c_j k_m(x_i, z_j), shape (m,).

    Of two different points the pair with j after i counts twice, and the other one not.
    """
    sums, c, start = payload.interpolation, payload.c, payload.start
    stop, first = start + len(payload.points), int(np.searchsorted(payload.columns, numbers[0]))
    last, found = first + len(X), np.zeros(len(payload.profiles))
    for low, high in ((first, min(start, last)), (max(start, first), last)):
        for top in range(low, high, TILE):
            own = slice(top, min(top + TILE, high))
            left = payload.place(X[own.start - first : own.stop - first])
            moments = sums.moments(len(left))
            for begin in range(max(start, top), stop, TILE):
                check()
                end = min(begin + TILE, stop)
                D = distances(left, payload.points[begin - start : end - start], payload.metric)
                times = np.full(end - begin, 2.0)
                if begin == top:
                    np.fill_diagonal(D, 0.0)
                    times[: len(left)] = 1.0
                found += sums.add(D, times * c[begin:end], moments) @ c[own]
            found += sums.sums((c[own] @ moments.reshape(len(left), -1))[None])[:, 0]
    within = c[max(start, first) : last]
    return found + excesses(payload.profiles) * float(within @ within)


def excesses(profiles: Sequence[Profile]) -> Array:
    """Return k_m(x, x) - f_m(0), shape (m,)."""
    return np.array([p.own for p in profiles]) - values_of(profiles, np.zeros(1))[:, 0]


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
    return found + np.outer(excesses(payload.profiles), c)
