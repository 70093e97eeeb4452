"""The size of the conic form of a problem, and what it will cost, known before compiling it."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp

from kernelopt.conic import LARGEST_INTERIOR_POINT_ORDER
from kernelopt.language.penalty import weighted
from kernelopt.language.risk import Risk
from kernelopt.reading import risks, visible_variables

PATIENCE = 5.0  # seconds, beyond which "auto" prefers an iterative method to an exact solve


@dataclass(frozen=True)
class Size:
    """Cones of the explicit problem, and a prediction for two shared cores, good to a factor of three."""

    semidefinite: tuple[int, ...]  # orders
    coordinates: int  # columns of the stacked factors of second-order-cone risks
    nonzeros: int  # of those factors
    variables: int

    @property
    def order(self) -> int:
        """The largest semidefinite order, 0 if there is none."""
        return max(self.semidefinite, default=0)

    @property
    def seconds(self) -> float:
        """Predicted time of a solve: fitted to Clarabel and SCS runs at orders 50 to 200."""
        if self.order > LARGEST_INTERIOR_POINT_ORDER:
            cones = sum(6e-6 * order**3 for order in self.semidefinite)
        else:
            cones = sum(1.5e-9 * (order * (order + 1) / 2) ** 3 / 3 for order in self.semidefinite)
        points = self.nonzeros / max(self.coordinates, 1)
        return 0.05 + cones + 1e-8 * points * self.nonzeros

    @property
    def memory(self) -> float:
        """Predicted peak memory in bytes."""
        cones = sum(order * (order + 1) / 2 for order in self.semidefinite)
        dense = 16 * cones**2 if self.order <= LARGEST_INTERIOR_POINT_ORDER else 400 * cones
        return 1e8 + dense + 100 * self.nonzeros


def size(problem: cp.Problem) -> Size:
    """Return the size of the explicit form of a problem, without evaluating a kernel."""
    orders = [c.shape[0] for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
    orders += [v.shape[0] for v in visible_variables(problem) if v.attributes["PSD"] or v.attributes["NSD"]]
    coordinates = nonzeros = 0
    for risk in risks(problem):
        for columns, rows in risk_factors(risk):
            coordinates += columns
            nonzeros += columns * rows
        orders += [risk.learner.n + 1 for form in risk.learner.forms if form == "semidefinite"]
    return Size(tuple(orders), coordinates, nonzeros, sum(v.size for v in problem.variables()))


def risk_factors(risk: Risk) -> list[tuple[int, int]]:
    """Return (columns, rows) of the factors of the kernels that enter by second-order cones."""
    n, found = risk.learner.n, []
    for K, form in zip(risk.learner.kernels, risk.learner.forms, strict=True):
        if form == "fixed":
            found.append((n, n))
        elif form == "second-order cone":
            for _, grams in weighted(K) or []:
                found.append((sum(min(bound, n) for bound in grams.rank_bounds), n))
    return found


def large(problem: cp.Problem) -> bool:
    """Whether the conic form is too large to be solved at once, but its risks can be cut off one by one."""
    expected = size(problem)
    return expected.order == 0 and expected.seconds > PATIENCE
