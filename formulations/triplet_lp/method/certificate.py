"""Bounds of the linear programme in closed form, from any weights and multipliers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.interior import interior_weights, numbers
from formulations.triplet_lp.method.multipliers import best_multipliers
from formulations.triplet_lp.method.statement import Source
from kernelopt.extend import Array

ROUND_OFF = 1e-13  # what sums of up to some hundred terms are wrong by, relative to the terms
ZERO_OPTIMAL = 1e-6  # relative to the cost of zero weights: a lower bound this near it proves them optimal
LOOSE = 1e-6  # a gap above this, a tenth of the default tolerance, is worth a general certificate
NEARLY_ZERO = (1e-9, 1e-6, 1e-4)  # shares of the largest weight that noise of a solver stays below, in turn
LARGE = 1e7  # margins: terms of K_ii above this have a round-off above 1e-6 of the margin, and are not used


def triplet_certificate(
    problem: cp.Problem,
    data: ComparisonData,
    gamma1: float,
    given: dict[int, Any],
    multipliers: dict[str, Any],
) -> ko.Certificate:
    """Bound the optimum of the programme of checked data, at values and multipliers of its constraints.

    Both bounds are moved outward by their rounding errors.

    * upper: the objective at the given weights plus a multiple of weights in the interior of the cone, which
      makes them feasible; or at zero weights, where these are as good.
    * lower: `best_multipliers`. For "psd" it may be far from the optimum where prices are near zero; then
      the general rules of `ko.certify` give another one, and the larger is kept.
    """
    variables = {v.name(): v for v in problem.variables()}
    lower, best = best_multipliers(data, gamma1, multipliers)
    alpha = in_cone(data, numbers(given.get(variables["alpha"].id), data.m))
    if not data.scale(alpha) <= LARGE * data.margin:  # round-off would decide
        alpha = np.zeros(data.m)
    upper, at_zero = data.value(alpha, gamma1), data.margin * data.T
    is_zero = at_zero - lower <= ZERO_OPTIMAL * at_zero
    if is_zero or not upper < at_zero:
        alpha, upper = np.zeros(data.m), at_zero
    if is_zero:
        warnings.warn(ko.ConditionWarning(zero_is_optimal(data, gamma1)), stacklevel=2)
    values = data.point(alpha)
    point = {variable: values[name] for name, variable in variables.items()}
    stated: Any = Source(data, gamma1, best) if data.cone != "psd" else "its cone is semidefinite"
    # A bound of the rounding errors of the sums, and of what the violations of constraints that are within
    # round-off can save. Zero weights cost T margins, exactly, and the optimum is not negative.
    lost = ROUND_OFF * (at_zero + data.T * data.scale(alpha))
    found = ko.Certificate(
        max(lower - lost, 0.0),
        upper + lost if alpha.any() else ko.rounding.rounded_up(Fraction(data.margin) * data.T),
        "closed",
        feasible=True,
        point=point,
        floor=ko.FLOOR_SHARE * at_zero,
        source=stated,
    )
    if data.cone != "psd" or found.gap <= LOOSE:
        return found
    other = ko.certify(cp.Problem(problem.objective, problem.constraints), point)  # by the general rules
    return replace(found, lower=other.lower, route=other.route) if other.lower > found.lower else found


def in_cone(data: ComparisonData, alpha: Array) -> Array:
    """Return weights in the cone near `alpha`; zero where none are found."""
    if data.cone == "nonnegative":
        return np.maximum(alpha, 0.0)
    short = data.depth(alpha)
    if short.min() >= -ROUND_OFF * data.scale(alpha):
        return alpha
    e = interior_weights(data)
    depth = data.depth(e)
    if depth.min() > 0:  # depths are concave and homogeneous: depth(alpha + t e) >= depth(alpha) + t depth(e)
        return alpha + float(np.max(-short / depth)) * e
    for near in without_small_weights(alpha):
        if data.depth(near).min() >= -ROUND_OFF * data.scale(near):
            return near
    return np.zeros(data.m)


def without_small_weights(alpha: Array) -> Iterator[Array]:
    """Yield the weights without the smallest ones, then the positive parts of these.

    A cone without interior holds only weights with exact zeros, which a solver misses by its noise.
    """
    largest = float(np.abs(alpha).max())
    for smallest in (-np.inf, 0.0):
        for share in NEARLY_ZERO:
            yield np.where(np.abs(alpha) > share * largest, np.maximum(alpha, smallest), 0.0)


def zero_is_optimal(data: ComparisonData, gamma1: float) -> str:
    """Return the text of the warning that zero weights are optimal, with the remedies."""
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
