"""The growth of the working set over all points, a part of them at a time.

A check of all points against the first, bad model costs as much as one against the last, and finds violators
that a better model would not. So points are looked at in parts, each as large as all before it together, and
every part is compared with a model of the points before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernelopt.losses.curve import Curve
from kernelopt.methods.engine.working_set import excess
from kernelopt.validation import Array, Index

KEPT = 0.05  # a point with alpha = 0 is kept if it is at most this far inside, relative to the targets


class Model(NamedTuple):
    """A machine on a working set: alpha, and the predictions there, with the intercept."""

    alpha: Array
    predictions: Array


def grow(
    curve: Curve,
    first: Index,
    seed: int,
    solve: Callable[[Index], Model],
    predict: Callable[[Index], Array],
) -> Index:
    """Return a working set that has met every point once.

    It holds the points with alpha != 0 or near the interval in which alpha = 0 is optimal, and those of the
    last part that are outside of it. Points that remain come first, in their order.

    Parameters
    ----------
    curve : Curve
        Of the loss, on all n points.
    first : array of int
        The first working set.
    seed : int
        Of the order of the other points.
    solve : function of a working set
        It solves the problem on the set loosely, from its last solution, and returns the model.
    predict : function of an array of points
        It returns the predictions of the last model, with the intercept.
    """
    n = curve.linear.size
    others = np.setdiff1d(np.arange(n), first)
    others = np.random.default_rng(seed).permutation(others)
    points, seen = first, 0
    while seen < others.size:
        model = solve(points)
        inside = -excess(at(curve, points), model.predictions)
        size = float(np.mean(np.abs(curve.linear[points]))) or 1.0
        kept = points[(model.alpha != 0) | (inside < KEPT * size)]
        part = others[seen : 2 * seen + first.size]
        seen += part.size
        new = part[excess(at(curve, part), predict(part)) > 0]
        points = np.concatenate([kept, np.sort(new)])
    return points


def at(curve: Curve, points: Index) -> Curve:
    """Return the curve of some points."""
    return Curve(*(np.ascontiguousarray(of[points]) for of in curve))
