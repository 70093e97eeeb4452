"""The programme of relative comparisons as a problem with bounds of its own."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.numbers import numbers
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.multipliers import TOLERANCES, best_multipliers
from formulations.triplet_lp.method.statement import Source
from kernelopt.errors import Stopped
from kernelopt.extend import FLOOR_SHARE, Array, BoundedProblem


def triplet_certificate(
    problem: cp.Problem,
    data: ComparisonData,
    gamma1: float,
    given: dict[int, Any],
    multipliers: dict[str, Any],
) -> ko.Certificate:
    """Bound the optimum of the programme of checked data, at values and multipliers of its constraints.

    * The upper bound is the objective at feasible weights: `in_cone` of the given weights, or zero
      weights if their objective is not larger.
    * The lower bound is from `best_multipliers`. For "psd" it may be much below the optimum if gamma1 or
      gamma2 is near zero. If the gap is then large, `ko.certify` computes another lower bound, and the larger
      one is returned.

    Both bounds are moved outward by bounds of their rounding errors.
    """
    variables = {v.name(): v for v in problem.variables()}
    alpha = in_cone(data, numbers(given.get(variables["alpha"].id), data.m))
    if not data.scale(alpha) <= TOLERANCES.largest_terms * data.margin:  # round-off would decide
        alpha = np.zeros(data.m)
    upper, at_zero = data.value(alpha, gamma1), data.margin * data.T
    lower, best = best_multipliers(data, gamma1, multipliers, min(upper, at_zero))
    is_zero = at_zero - lower <= TOLERANCES.loose * at_zero
    if is_zero or not upper < at_zero:
        alpha, upper = np.zeros(data.m), at_zero
    if is_zero:
        warnings.warn(ko.errors.ConditionWarning(zero_is_optimal(data, gamma1)), stacklevel=2)
    values = data.point(alpha)
    point = {variable: values[name] for name, variable in variables.items()}
    stated: Any = Source(data, gamma1, best) if data.cone != "psd" else "its cone is semidefinite"
    # `lost` bounds two errors: the rounding errors of the sums in the objective, and the amount by which
    # weights that violate constraints within `cone_round_off` can lower the objective. No such error is at
    # zero weights, whose objective is T times the margin. The optimum is not negative, and neither is the
    # lower bound.
    lost = TOLERANCES.cone_round_off * (at_zero + data.T * data.scale(alpha))
    short = Fraction(at_zero) < Fraction(data.margin) * data.T  # by the rounding of the product
    found = ko.Certificate(
        max(lower - lost, 0.0),
        upper + lost if alpha.any() else float(np.nextafter(at_zero, np.inf)) if short else at_zero,
        "closed",
        feasible=True,
        point=point,
        floor=FLOOR_SHARE * at_zero,
        source=stated,
    )
    if data.cone != "psd" or found.gap <= TOLERANCES.loose:
        return found
    with suppress(Stopped):  # at the time limit the bound in closed form stands
        other = ko.certify(cp.Problem(problem.objective, problem.constraints), point)  # by the general rules
        return replace(found, lower=other.lower, route=other.route) if other.lower > found.lower else found
    return found


def in_cone(data: ComparisonData, alpha: Array) -> Array:
    """Return weights in the cone near `alpha`, or zero weights if none are found."""
    if data.cone == "nonnegative":
        return np.maximum(alpha, 0.0)
    if data.depth(alpha).min() >= -TOLERANCES.cone_round_off * data.scale(alpha):
        return alpha
    with suppress(Stopped):
        e = data.interior_weights()
        if data.depth(e).min() > 0:
            return data.moved_inside(alpha, e)
    # A cone has no interior if its constraints imply an equation for the weights. The equations may be
    # alpha_p = 0 for some weights, which a solver returns as small numbers: setting them to zero, and then
    # negative ones too, can give a point of the cone. For other equations, such as alpha_1 = alpha_2, it may
    # fail.
    sizes = np.abs(alpha)
    for smallest in (-np.inf, 0.0):
        for share in TOLERANCES.nearly_zero:
            near = np.where(sizes > share * sizes.max(), np.maximum(alpha, smallest), 0.0)
            if data.depth(near).min() >= -TOLERANCES.cone_round_off * data.scale(near):
                return near
    return np.zeros(data.m)


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


class TripletProgramme(BoundedProblem):
    """The programme of checked data, at the price gamma1 of the weights.

    Attributes
    ----------
    data : ComparisonData
    price : float or cp.Parameter
    """

    def __init__(
        self, objective: cp.Minimize, constraints: list[cp.Constraint], data: ComparisonData, price: Any
    ) -> None:
        super().__init__(objective, constraints)
        self.data, self.price = data, price

    @property
    def gamma1(self) -> float:
        """The price as a number."""
        return float(self.price.value) if isinstance(self.price, cp.Parameter) else float(self.price)

    def bounds(self, values: dict[int, Any], multipliers: dict[str, Any]) -> ko.Certificate:
        return triplet_certificate(self, self.data, self.gamma1, values, multipliers)


def point_and_multipliers(
    problem: cp.Problem, data: ComparisonData, alpha: Array, u: Array, cone: Array
) -> tuple[dict[int, Array], list[list[Array]]]:
    """Return the values of the variables, by id, and the multipliers of the constraints.

    `u` are the multipliers of the triplets, and `cone` of the cone: (v, w) in one vector, vec Z, or
    none.
    """
    n, values = data.points.size, data.point(alpha)
    z = data.D.T @ u + data.cone_entries.T @ cone - data.gamma2 * data.q
    prices = {"comparisons": u, "group above": np.maximum(z, 0.0), "group below": np.maximum(-z, 0.0)}
    if data.cone == "psd":
        prices["K >> 0"] = cone.reshape(n, n)
    elif data.cone == "dominant":
        v, w = cone[:n], cone[n:]
        reach = v[data.first] + v[data.second]
        prices |= {"dominance": v, "above": (reach - w) / 2, "below": (reach + w) / 2}
    point = {variable.id: values[variable.name()] for variable in problem.variables()}
    return point, [[prices[constraint.label]] for constraint in problem.constraints]
