"""The programme of relative comparisons as a problem with bounds of its own."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.certificate import triplet_certificate
from kernelopt.extend import Array, BoundedProblem


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

    `u` are the multipliers of the triplets, and `cone` those of the cone: (v, w) in one vector, vec Z, or
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
