"""Zeros of non-increasing functions: piecewise linear ones, and step functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kernelopt.numerics.rounding import gamma
from kernelopt.validation import Array

Function = Callable[[float], float]


def last_above(total: Function, knots: Array, or_zero: bool = False) -> float:
    """Return sup {b: f(b) > 0}, or sup {b: f(b) >= 0} with `or_zero`, for a non-increasing f = `total`.

    f is linear between neighbouring knots and may jump at them. Binary search finds the piece with the zero,
    and two evaluations there give the zero up to rounding.
    """
    edges = np.unique(knots)
    low = first_not_above(total, edges, 0, edges.size + 1, or_zero)
    for piece in (low - 1, low):
        if 0 <= piece <= edges.size:
            left, right = points_inside(edges, piece)
            start, end = total(left), total(right)
            if start != end:
                zero = left + (right - left) * (start / (start - end))  # no product of two large numbers
                if piece == low - 1 and (low > edges.size or zero < edges[low - 1]):
                    return zero
                if piece == low and (low == 0 or zero > edges[low - 1]):
                    return zero
    return float(edges[min(max(low - 1, 0), edges.size - 1)])


def first_not_above(total: Function, edges: Array, low: int, high: int, or_zero: bool) -> int:
    """Return the first of the pieces low..high - 1 in which f is not above zero; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        value = total(sum(points_inside(edges, middle)) / 2)
        if value > 0 or (or_zero and value == 0):
            low = middle + 1
        else:
            high = middle
    return low


def points_inside(edges: Array, piece: int) -> tuple[float, float]:
    """Return two points inside a piece; piece 0 is below all edges, piece edges.size above them."""
    if piece == 0:
        return float(edges[0]) - 2.0, float(edges[0]) - 1.0
    if piece == edges.size:
        return float(edges[-1]) + 1.0, float(edges[-1]) + 2.0
    left, right = float(edges[piece - 1]), float(edges[piece])
    return left + (right - left) / 4, right - (right - left) / 4


def even_zeros(drops: Array, start: float) -> tuple[int, int] | None:
    """Return the places of the results of `step_zeros` among its knots in order, where all drops are equal.

    They do not depend on the knots: f is start - k drop above k of them. A start that is a multiple of the
    drop up to the rounding errors of sums is taken for it. None where the drops differ.
    """
    if not (drops.size and np.isfinite(start)) or (drops != drops[0]).any():
        return None
    count = start / drops[0]
    whole = round(count)
    if abs(start - whole * drops[0]) <= gamma(drops.size + 2) * (abs(start) + drops[0] * drops.size):
        count = whole
    first, second = math.ceil(count) - 1, math.floor(count)
    return min(max(first, 0), drops.size - 1), min(max(second, 0), drops.size - 1)


def step_zeros(total: Function, knots: Array, drops: Array, start: float) -> tuple[float, float]:
    """Return sup {b: f(b) > 0} and sup {b: f(b) >= 0} for a step function f = `total`.

    f is `start` below all knots, and falls by drops_i > 0 at knots_i. Sums of the drops give its values up
    to a bound of their rounding errors. It is evaluated only on pieces where that bound leaves its sign open.
    """
    order = np.argsort(knots)
    edges, falls = knots[order], np.concatenate([[0.0], np.cumsum(drops[order])])
    values = start - falls
    error = gamma(edges.size + 2) * (abs(start) + float(drops.sum()))
    low, high = int((values > error).sum()), int((values >= -error).sum())
    found = []
    for or_zero in (False, True):
        first = first_not_above(total, edges, low, high, or_zero)
        found.append(float(edges[min(max(first - 1, 0), edges.size - 1)]))
    return found[0], found[1]
