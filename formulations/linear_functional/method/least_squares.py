"""The second stage as a problem with bounds of its own, and least squares as a method for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.linear_functional.method.certificate import stage_certificate
from formulations.linear_functional.method.combination import RCOND, Combination
from kernelopt.extend import DEFAULT_TOL, Array, BoundedProblem, Cost, Method, Outcome, register_method

RCONDS = (RCOND, 1e-12, 1e-14)  # tried in turn: a direction that is dropped may be needed for the targets


class SecondStage(BoundedProblem):
    """min over c in a set of |v - X c|^2 / n + lambda |c|^2.

    Attributes
    ----------
    stage : Combination
    c : cp.Variable
    """

    def __init__(
        self,
        objective: cp.Minimize,
        constraints: list[cp.Constraint],
        stage: Combination,
        c: cp.Variable,
    ) -> None:
        super().__init__(objective, constraints)
        self.stage, self.c = stage, c

    def bounds(self, values: dict[int, Any], multipliers: dict[str, Any]) -> ko.Certificate:
        given = values.get(self.c.id)
        c = self.stage.feasible(np.zeros(self.c.size) if given is None else np.ravel(given))
        return replace(stage_certificate(self.stage, c), point={self.c: c})


@dataclass(frozen=True)
class LeastSquares(Method):
    """Solves the second stage for free weights by a singular value decomposition of the columns."""

    name = "least-squares"

    def match(self, structure: ko.Structure) -> SecondStage | str:
        """Take the second stage of a linear functional strategy with free weights."""
        problem = structure.problem
        if not isinstance(problem, SecondStage):
            return "it is for the second stage of linear_functional.functional_strategy"
        free = problem.stage.weights == "free"
        return problem if free else f'it takes weights="free", got {problem.stage.weights!r}'

    def cost(self, match: SecondStage) -> Cost:
        n, M = match.stage.X.shape  # a call takes 1e-3 s, and each of the n M min(n, M) operations 1e-9 s
        return Cost(1e-3 + 1e-9 * n * M * min(n, M))

    def run(self, match: SecondStage, control: Any) -> Outcome:
        tried = 0
        c: Array = np.zeros(match.c.size)
        smallest = np.inf
        for rcond in RCONDS:
            tried += 1
            found = match.stage.directly("svd", rcond)[0]
            gap = match.bounds({match.c.id: found}, {}).gap
            if gap < smallest or tried == 1:
                c, smallest = found, gap
            if gap <= DEFAULT_TOL / 10:
                break
        return Outcome({match.c.id: c}, solver="svd", iterations=tried)


register_method(LeastSquares())
