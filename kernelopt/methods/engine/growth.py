"""The growth of the working set over all points, a part of them at a time.

A check of all points against the first, bad model costs as much as one against the last, and finds violators
that a better model would not. So points are looked at in parts, each as large as all before it together, and
every part is compared with a model of the points before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kernelopt.losses.curve import Curve
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.working_set import excess
from kernelopt.validation import Array, Index


class Model(NamedTuple):
    """Machines on a working set: alpha, and predictions with the intercept, in a row for each risk."""

    alpha: Array
    predictions: Array


def grow(
    curves: Sequence[Curve],
    first: Index,
    seed: int,
    solve: Callable[[Index], Model],
    predict: Callable[[Index], Array],
) -> Index:
    """Return a working set that has met every point once.

    It holds the points with alpha != 0 or near the interval in which alpha = 0 is optimal, and those of the
    last part that are outside of it, for one of the risks. Points that remain come first, in their order.

    Parameters
    ----------
    curves : sequence of Curve
        Of the loss of each risk, on all n points.
    first : array of int
        The first working set.
    seed : int
        Of the order of the other points.
    solve : function of a working set
        It solves the problem on the set loosely, from its last solution, and returns the model.
    predict : function of an array of points
        It returns the predictions of the last model, with the intercept, in a row for each risk.
    """
    n = curves[0].linear.size
    others = np.setdiff1d(np.arange(n), first)
    others = np.random.default_rng(seed).permutation(others)
    points, seen = first, 0
    while seen < others.size:
        model = solve(points)
        near = np.zeros(points.size, dtype=bool)
        for curve, alpha, t in zip(curves, model.alpha, model.predictions, strict=True):
            size = float(np.mean(np.abs(curve.linear[points]))) or 1.0
            near |= (alpha != 0) | (excess(at(curve, points), t) > -SETTINGS.kept * size)
        kept = points[near]
        part = others[seen : 2 * seen + first.size]
        seen += part.size
        each = zip(curves, predict(part), strict=True)
        new = part[np.any([excess(at(curve, part), t) > 0 for curve, t in each], axis=0)]
        points = np.concatenate([kept, np.sort(new)])
    return points


def at(curve: Curve, points: Index) -> Curve:
    """Return the curve of some points."""
    return Curve(*(np.ascontiguousarray(of[points]) for of in curve))
