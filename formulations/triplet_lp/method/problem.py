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
from formulations.triplet_lp.method.multipliers import best_multipliers
from formulations.triplet_lp.method.settings import SETTINGS
from formulations.triplet_lp.method.statement import Source
from kernelopt.errors import Stopped
from kernelopt.extend import FLOOR_SHARE, Array, BoundedProblem, Outcome


def in_cone(data: ComparisonData, alpha: Array) -> Array:
    """Return weights in the cone near `alpha`, or zero weights if none are found."""
    if data.cone == "nonnegative":
        return np.maximum(alpha, 0.0)
    if data.depth(alpha).min() >= -SETTINGS.cone_round_off * data.scale(alpha):
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
        for share in SETTINGS.nearly_zero:
            near = np.where(sizes > share * sizes.max(), np.maximum(alpha, smallest), 0.0)
            if data.depth(near).min() >= -SETTINGS.cone_round_off * data.scale(near):
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
        """Bound the optimum at values and multipliers of its constraints.

        * The upper bound is the objective at feasible weights: `in_cone` of the given weights, or zero
          weights if their objective is not larger.
        * The lower bound is from `best_multipliers`. For "psd" it may be much below the optimum if gamma1 or
          gamma2 is near zero. If the gap is then large, `ko.certify` computes another lower bound, and the
          larger one is returned.

        Both bounds are moved outward by bounds of their rounding errors.
        """
        data, gamma1 = self.data, self.gamma1
        variables = {v.name(): v for v in self.variables()}
        alpha = in_cone(data, numbers(values.get(variables["alpha"].id), data.m))
        if not data.scale(alpha) <= SETTINGS.largest_terms * data.margin:  # round-off would decide
            alpha = np.zeros(data.m)
        upper, at_zero = data.value(alpha, gamma1), data.margin * data.T
        lower, y = best_multipliers(data, gamma1, multipliers, min(upper, at_zero))
        is_zero = at_zero - lower <= SETTINGS.loose * at_zero
        if is_zero or not upper < at_zero:
            alpha, upper = np.zeros(data.m), at_zero
        if is_zero:
            warnings.warn(ko.errors.ConditionWarning(zero_is_optimal(data, gamma1)), stacklevel=3)
        best = self.values(alpha)
        point = {variable: best[variable.id] for variable in variables.values()}
        stated: Any = Source(data, gamma1, y) if data.cone != "psd" else "its cone is semidefinite"
        # `lost` bounds two errors: the rounding errors of the sums in the objective, and the amount by which
        # weights that violate constraints within `cone_round_off` can lower the objective. No such error is
        # at zero weights, whose objective is T times the margin. The optimum is not negative, and neither is
        # the lower bound.
        lost = SETTINGS.cone_round_off * (at_zero + data.T * data.scale(alpha))
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
        if data.cone != "psd" or found.gap <= SETTINGS.loose:
            return found
        with suppress(Stopped):  # at the time limit the bound in closed form stands
            other = ko.certify(cp.Problem(self.objective, self.constraints), point)  # by the general rules
            if other.lower > found.lower:
                return replace(found, lower=other.lower, route=other.route)
        return found

    def values(self, alpha: Array) -> dict[int, Array]:
        """Return the best values of the variables at the weights, by id."""
        best = self.data.point(alpha)
        return {variable.id: best[variable.name()] for variable in self.variables()}

    def prices(self, y: Array) -> dict[str, Array]:
        """Return the multipliers of the constraints, by label, for multipliers y as in `multipliers`."""
        data, n = self.data, self.data.points.size
        u, z, cone = y[: data.T], data.z(y), y[data.T :]
        prices = {"comparisons": u, "group above": np.maximum(z, 0.0), "group below": np.maximum(-z, 0.0)}
        if data.cone == "psd":
            prices["K >> 0"] = cone.reshape(n, n)
        elif data.cone == "dominant":
            v, w = cone[:n], cone[n:]
            reach = data.incidence.T @ v
            prices |= {"dominance": v, "above": (reach - w) / 2, "below": (reach + w) / 2}
        return prices

    def outcome(self, alpha: Array, y: Array, solver: str, iterations: int) -> Outcome:
        """Return the outcome of a method at the weights and the multipliers y."""
        prices = self.prices(y)
        duals = [[prices[constraint.label]] for constraint in self.constraints]
        return Outcome(self.values(alpha), multipliers=duals, solver=solver, iterations=iterations)


def matched(structure: ko.Structure) -> TripletProgramme | str:
    """Return the programme of a structure, or why it is none."""
    problem = structure.problem
    if not isinstance(problem, TripletProgramme):
        return "it is for the programmes of triplet_lp.kernel_design and feature_selection"
    return structure.unset or problem
