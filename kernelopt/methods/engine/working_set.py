"""The points on which the learning problem is solved, the first and the next ones, and its loss there."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from kernelopt.errors import InputError
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve, piecewise_intercept
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.validation import Array, Index


def first_points(n: int, labels: Sequence[Array], seed: int) -> Index:
    """Return random points, with points of each label of every risk; all points if they are few.

    They are n / 12, within limits: memory grows with the square of the working set, and a larger set meets
    the other points in parts.
    """
    size = min(max(SETTINGS.fewest, n // SETTINGS.first_part), SETTINGS.most_first)
    if n <= SETTINGS.small or size >= SETTINGS.everything * n:
        return np.arange(n)
    return with_each_label(np.random.default_rng(seed).permutation(n), labels, size)


def with_each_label(order: Index, labels: Sequence[Array], size: int) -> Index:
    """Return the first `size` points of an order and the first of each label of every risk, ascending."""
    chosen = [order[:size]]
    for each in labels:
        chosen += [order[each[order] == label][: SETTINGS.smallest_class] for label in np.unique(each)]
    return np.unique(np.concatenate(chosen))


def excess(curve: Curve, t: Array) -> Array:
    """Return by how much a prediction is outside the interval in which alpha = 0 is optimal.

    It is negative inside. For the hinge loss it is 1 - y t.
    """
    up = np.where(curve.upper > 0, curve.linear - t - curve.l1, -np.inf)
    down = np.where(curve.lower < 0, t - curve.linear - curve.l1, -np.inf)
    return np.maximum(up, down)


def next_points(curves: Sequence[Curve], t: Array, alpha: Array, points: Index) -> Index:
    """Return the working set after a check of all predictions t: the points that remain come first.

    Points whose alpha is zero and that are clearly inside the interval are dropped, if that is so for every
    risk. The points outside it are added, those farthest outside first. Distances are in units of the mean
    distance of predictions from the targets. `t` and `alpha` have one row for each risk.
    """
    n, pairs = t.shape[1], list(zip(curves, t, strict=True))
    sizes = [float(np.mean(np.abs(curve.linear - row))) or 1.0 for curve, row in pairs]
    outside = np.max([excess(*pair) / size for pair, size in zip(pairs, sizes, strict=True)], axis=0)
    kept = points[(alpha[:, points] != 0).any(axis=0) | (outside[points] > -SETTINGS.dropped)]
    others = np.setdiff1d(np.arange(n), points)
    violating = others[outside[others] > SETTINGS.added]
    most = max(SETTINGS.growth * points.size, SETTINGS.smallest_growth)
    if violating.size > most:
        violating = violating[np.argsort(-outside[violating], kind="stable")[:most]]
    if not violating.size:
        return points
    if kept.size + violating.size > SETTINGS.everything * n:
        kept, violating = points, others
    return np.concatenate([kept, np.sort(violating)])


class RestrictedLoss(Loss):
    """The loss of some samples, defined by the part of the curve of a piecewise quadratic loss.

    Its methods take arrays of these samples. The labels that they ask for are not used.
    """

    def __init__(self, curve: Curve, samples: Index) -> None:
        self.part = curve.at(samples)
        self._respond, self._steps = self.part.responder(), self.part.steps()

    def curve(self, y: Array) -> Curve:
        return self.part

    def response(self, t: Array, y: Array) -> Array:
        return self._respond(t)

    def intercept(self, f: Array, y: Array) -> float:
        return piecewise_intercept(self.part, f, self._respond, self._steps)

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        raise InputError("a restricted loss has numbers only, got a cvxpy expression. Use the whole loss.")


def is_sparse(loss: Loss, curve: Curve) -> bool:
    """Whether a dual variable is zero on an interval of predictions, so that points can be left out.

    That is known of a piecewise quadratic loss whose entries of alpha have a bound at zero or an l1 term. A
    loss with a value of its own, such as the hard margin, is not the one of its curve.
    """
    own = any(
        getattr(type(loss), name) is not getattr(Loss, name) for name in ("value", "primal", "response")
    )
    at_zero = (curve.lower == 0) | (curve.upper == 0) | (curve.l1 > 0)
    return loss.quadratic and not own and bool(at_zero.all())
