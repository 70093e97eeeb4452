"""Bounds of the linear programme in closed form, from whatever weights and multipliers a solver left."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.triplet_lp.method.interior import deep, numbers
from formulations.triplet_lp.method.multipliers import best_multipliers
from formulations.triplet_lp.method.statement import Source
from formulations.triplet_lp.setting import Array, Setting

ROUND_OFF = 1e-13  # what sums of up to some hundred terms are wrong by, relative to the terms
COLLAPSED = 1e-6  # relative to the cost of zero weights: a lower bound this near it proves them optimal
LOOSE = 1e-6  # a gap above this, a tenth of the default tolerance, is worth a general certificate
NEARLY_ZERO = (1e-9, 1e-6, 1e-4)  # shares of the largest weight that noise of a solver stays below, in turn
LARGE = 1e7  # terms of K_ii this much above the margin leave less than 1e-6 of it after round-off


def certificate(
    problem: cp.Problem, data: Setting, gamma1: float, given: dict[int, Any], multipliers: dict[str, Any]
) -> ko.Certificate:
    """Bound the optimum of the programme of checked data, at values and multipliers of its constraints.

    Both bounds are moved outward by their rounding errors.

    * upper: the weights are moved into the cone along weights deep inside it, and the objective
      evaluated there; zero weights are taken where they are as good;
    * lower: `best_multipliers`. For "psd" with prices near zero it may say little: then `ko.certify` is
      asked.
    """
    variables = {v.name(): v for v in problem.variables()}
    lower, paid = best_multipliers(data, gamma1, multipliers)
    alpha = inside(data, numbers(given.get(variables["alpha"].id), data.m))
    if not data.scale(alpha) <= LARGE * data.margin:  # round-off would decide
        alpha = np.zeros(data.m)
    upper, nothing = data.value(alpha, gamma1), data.margin * data.T
    collapsed = nothing - lower <= COLLAPSED * nothing
    if collapsed or not upper < nothing:
        alpha, upper = np.zeros(data.m), nothing
    if collapsed:
        warnings.warn(ko.ConditionWarning(collapse(data, gamma1)), stacklevel=2)
    values = data.point(alpha)
    point = {variable: values[name] for name, variable in variables.items()}
    stated: Any = Source(data, gamma1, paid) if data.cone != "psd" else "its cone is semidefinite"
    # What sums of T terms of this size are wrong by, and what constraints may be violated by. The zero
    # weights cost T margins, and no weights less than nothing.
    lost = ROUND_OFF * (nothing + data.T * data.scale(alpha))
    found = ko.Certificate(
        max(lower - lost, 0.0),
        upper + lost if alpha.any() else ko.rounding.rounded_up(Fraction(data.margin) * data.T),
        "closed",
        feasible=True,
        point=point,
        floor=ko.FLOOR_SHARE * nothing,
        source=stated,
    )
    if data.cone != "psd" or found.gap <= LOOSE:
        return found
    other = ko.certify(problem, point)
    return replace(found, lower=other.lower, route=other.route) if other.lower > found.lower else found


def inside(data: Setting, alpha: Array) -> Array:
    """Return weights in the cone near `alpha`: zero where no weights are deep inside."""
    if data.cone == "nonnegative":
        return np.maximum(alpha, 0.0)
    short = data.depth(alpha)
    if short.min() >= -ROUND_OFF * data.scale(alpha):
        return alpha
    e = deep(data)
    room = data.depth(e)
    if room.min() > 0:
        return alpha + float(np.max(-short / room)) * e
    for near in snapped(alpha):
        if data.depth(near).min() >= -ROUND_OFF * data.scale(near):
            return near
    return np.zeros(data.m)


def snapped(alpha: Array) -> Iterator[Array]:
    """Yield weights without the smallest ones, then positive parts: noise may leave a cone without inside."""
    for sign in (-np.inf, 0.0):
        for least in NEARLY_ZERO:
            yield np.where(np.abs(alpha) > least * float(np.abs(alpha).max()), np.maximum(alpha, sign), 0.0)


def collapse(data: Setting, gamma1: float) -> str:
    """Say that zero weights are optimal, and what helps."""
    causes = f"gamma1 = {gamma1:g} and gamma2 = {data.gamma2:g}"
    text = (
        f"zero weights are optimal for these {data.T} triplets with {causes}: no kernel is worth its price. "
    )
    if data.cone == "dominant":
        text += (
            f"Diagonal dominance on {data.points.size} points is severe: add the identity kernel "
            "(ko.identity(), in a group of its own) or very narrow Gaussians, "
        )
    return text + ("lower gamma1 below gamma1_max(...), or " if gamma1 > 0 else "or ") + "lower gamma2."
