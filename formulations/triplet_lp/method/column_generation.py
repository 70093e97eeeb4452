"""Column generation as a method for the linear programmes of relative comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelopt as ko
from formulations.triplet_lp.method.columns import Columns
from formulations.triplet_lp.method.multipliers import Multipliers, cut, value
from formulations.triplet_lp.method.problem import (
    TripletProgramme,
    point_and_multipliers,
)
from kernelopt.extend import Cost, Method, Outcome, register_method


@dataclass(frozen=True)
class ColumnGeneration(Method):
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

    def cost(self, match: TripletProgramme) -> Cost:
        data = match.data
        n = data.points.size
        # The seconds of a simplex method on m rows and, for dominance, of the search for violated rows in all
        # n^2 entries of the m kernels, in every round.
        rows = 3e-7 * data.m * n**2 if data.cone == "dominant" else 0.0
        return Cost(0.01 + 2e-8 * data.m**2 * (data.T + 10 * n) + rows)

    def run(self, match: TripletProgramme, control: Any) -> Outcome | None:
        data, columns = match.data, Columns(match.data, match.gamma1)
        columns.restore(control.resumed)
        columns.highs.setOptionValue("time_limit", control.remaining)
        inside = data.deepest

        def ended() -> bool:
            """Report the bounds of a round. A small gap ends nothing: the last round has a vertex."""
            alpha, proof = columns.weights(), Multipliers(*columns.multipliers())
            near = data.moved_inside(alpha, inside) if data.depths.max() > 0 else np.zeros(data.m)
            upper = min(data.value(near, match.gamma1), data.margin * data.T)
            lower = value(data, match.gamma1, cut(data, proof))
            control.report(lower, upper, point=alpha, proof=proof, state=columns.state)
            return bool(control.stopped)

        with control:
            columns.solve(ended)
        if control.best is None:
            return None
        # A solve that the clock has ended leaves no point in HiGHS: the best of the earlier rounds is taken.
        alpha, proof = control.best, control.proof
        if not control.stopped:
            alpha, proof = columns.weights(), columns.multipliers()
        found = point_and_multipliers(match, data, alpha, *proof)
        return Outcome(found[0], multipliers=found[1], solver="HIGHS", iterations=columns.rounds)


register_method(ColumnGeneration())
