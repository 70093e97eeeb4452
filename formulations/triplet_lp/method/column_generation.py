"""The linear programme as a problem with bounds of its own, and column generation as a method for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.certificate import triplet_certificate
from formulations.triplet_lp.method.columns import Columns


class TripletProgramme(ko.BoundedProblem):
    """The linear programme of checked data, at the price gamma1 of the weights.

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


@dataclass(frozen=True)
class ColumnGeneration(ko.Method):
    """Generates the rows of dominance as they are needed, as columns of the dual in HiGHS.

    For the programmes of `kernel_design` and `feature_selection` over the cones "dominant" and
    "nonnegative". The programme with all rows is never built.
    """

    name = "column-generation"

    def match(self, structure: ko.Structure) -> TripletProgramme | str:
        """Match the programmes of this package over the two linear cones."""
        problem = structure.problem
        if not isinstance(problem, TripletProgramme):
            return "it is for the programmes of triplet_lp.kernel_design and feature_selection"
        if structure.unset:
            return structure.unset
        return 'cone="psd" is semidefinite' if problem.data.cone == "psd" else problem

    def cost(self, match: TripletProgramme) -> ko.Cost:
        data = match.data
        n = data.points.size
        # The seconds of a simplex method on m rows and, for dominance, of the search for violated rows in all
        # n^2 entries of the m kernels, in every round.
        rows = 3e-7 * data.m * n**2 if data.cone == "dominant" else 0.0
        return ko.Cost(0.01 + 2e-8 * data.m**2 * (data.T + 10 * n) + rows)

    def run(self, match: TripletProgramme, control: Any) -> ko.Outcome:
        columns = Columns(match.data, match.gamma1)
        columns.highs.setOptionValue("time_limit", control.remaining)
        rounds = columns.solve()
        values, multipliers = columns.found(match)
        return ko.Outcome(values, multipliers=multipliers, solver="HIGHS", iterations=rounds)


ko.register_method(ColumnGeneration())
