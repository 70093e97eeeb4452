"""The shares gamma of kernels whose norms are summed: the point of the simplex where the norms are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array

LEAST = 1e-10  # of gamma
FAINT = 1e-3  # of the largest norm: a norm of zero says nothing of how far to go
STEEP = 1e15  # most of a fall


class Search(NamedTuple):
    """The points tried so far, a column for each share: gamma and z'Kz, nan where there is none."""

    last: Array
    below: Array  # the nearest that is known to be below the best share
    above: Array
    level: Array  # of the norms; the best is in between


@compiled
def begin(m: int) -> Search:
    """Return what is known before any point is tried."""
    none = np.full((2, m), np.nan)
    return Search(none, none.copy(), none.copy(), np.array([0.0, np.inf]))


@compiled
def balanced(gamma: Array, forms: Array, tol: float) -> bool:
    """Whether gamma is within `tol` of the best for these kernels."""
    if gamma.size == 1:
        return True
    now, most = 0.0, 0.0
    for i in range(gamma.size):
        now += forms[i] / (2 * gamma[i])
        most = max(most, forms[i] / (2 * gamma[i] ** 2))
    return most - now <= min(tol, 1e-3 * now)


@compiled
def share(gamma: Array, forms: Array, falls: Array, search: Search) -> None:
    """Move gamma towards equal norms sqrt(forms_i) / gamma_i, which are best.

    Norms fall as their gamma grows, so at a point of the simplex the best level is between them. Each form
    is replaced by a falling line in gamma, and the level found where the lines make a point of the simplex.
    `falls` keeps the - dlog forms_i / dlog gamma_i of the lines for the next search.
    """
    m, largest, smallest = gamma.size, 0.0, np.inf
    for i in range(m):
        norm = np.sqrt(forms[i]) / gamma[i]
        largest, smallest = max(largest, norm), min(smallest, norm)
    search.level[0], search.level[1] = max(search.level[0], smallest), min(search.level[1], largest)
    slopes, heights, halves, free, biggest = np.empty(m), np.empty(m), np.zeros(m), 0, 0
    for i in range(m):
        fit(i, gamma[i], forms[i], FAINT * largest, slopes, heights, halves, falls, search)
        free += halves[i] == 0
        biggest = i if gamma[i] > gamma[biggest] else biggest
    if free == 0:
        halves[biggest] = 0.0  # one gives way to the others
    low, high = np.log(max(search.level[0], FAINT**4 * search.level[1])), np.log(search.level[1])
    for _ in range(60):
        level, total = (low + high) / 2, 0.0
        for i in range(m):
            total += candidate(i, np.exp(level), slopes, heights, halves, search)
        if total > 1:
            low = level
        else:
            high = level
    total = 0.0
    for i in range(m):
        gamma[i] = max(candidate(i, np.exp(high), slopes, heights, halves, search), LEAST)
        total += gamma[i]
    for i in range(m):
        gamma[i] /= total


@compiled
def fit(
    i: int,
    gamma: float,
    form: float,
    faint: float,
    slopes: Array,
    heights: Array,
    halves: Array,
    falls: Array,
    search: Search,
) -> None:
    """Put a line through a point and the one before, and note the point.

    On the same side of the best, if there is one: the form has a kink where an eigenvalue leaves zero. A
    share whose line misses the gap between the sides is to be halved between them.
    """
    norm, below, above = np.sqrt(form) / gamma, search.below, search.above
    side = search.last
    if norm >= search.level[1]:
        side = below
    elif norm <= search.level[0]:
        side = above
    sided = norm >= search.level[1] or norm <= search.level[0]
    before = search.last if np.isnan(side[0, i]) else side
    moved, fallen = gamma - before[0, i], before[1, i] - form
    if abs(moved) > 1e-12 * gamma:
        falls[i] = min(max(fallen / moved, 0.0) * gamma / max(form, 1e-300), STEEP)
    slopes[i] = falls[i] * form / gamma
    heights[i] = max(form, (faint * gamma) ** 2) + slopes[i] * gamma
    middle = np.sqrt(max(search.level[0], FAINT**2 * search.level[1]) * search.level[1])
    search.last[0, i], search.last[1, i] = gamma, form
    side[0, i], side[1, i] = gamma, form
    if sided and not (np.isnan(below[0, i]) or np.isnan(above[0, i])):
        new = meeting(slopes[i], heights[i], middle)
        if not below[0, i] < new < above[0, i]:
            halves[i] = np.sqrt(below[0, i] * above[0, i])


@compiled
def meeting(slope: float, height: float, level: float) -> float:
    """Return the x > 0 at which height - slope x = (level x)^2."""
    return float(2 * height / (slope + np.sqrt(slope * slope + 4 * level * level * height)))


@compiled
def candidate(i: int, level: float, slopes: Array, heights: Array, halves: Array, search: Search) -> float:
    """Return the share whose norm is at this level, by its line, between what is below and above it."""
    if halves[i] > 0:
        return float(halves[i])
    new = meeting(slopes[i], heights[i], level)
    if new < search.below[0, i]:
        new = search.below[0, i]
    if new > search.above[0, i]:
        new = search.above[0, i]
    return float(new)
