"""The size of the conic form of a problem, and what it will cost, known before compiling it."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp

from kernelopt.certificates.bounded import BoundedProblem
from kernelopt.conic.costs import Cones
from kernelopt.language.risk import Risk
from kernelopt.structure.counting import count_user, risk_stacks
from kernelopt.structure.structure import Structure, once

PROPOSALS = 2  # solves behind a bound by multipliers: most problems need one tilt
CLOSED_SECONDS = 0.01  # of a bound in closed form


@dataclass(frozen=True)
class Size:
    """Cones of the explicit problem, and predictions of its cost for one free core.

    They are good to a factor of three in nine cases of ten, but for `first_order_seconds`, which hangs on
    a number of iterations that nobody knows before.
    """

    semidefinite: tuple[int, ...]  # orders
    coordinates: int  # columns of the stacked factors of second-order-cone risks
    nonzeros: int  # of those factors
    variables: int
    cones: Cones  # of the explicit problem
    relaxed: Cones | None  # of the one that bounds it; None where the bound has a closed form

    @property
    def order(self) -> int:
        """The largest semidefinite order, 0 if there is none."""
        return max(self.semidefinite, default=0)

    @property
    def interior_seconds(self) -> float:
        """Predicted time of an interior-point solve, with the compilation."""
        return compilation_seconds(self.cones) + self.cones.interior_seconds

    @property
    def first_order_seconds(self) -> float:
        """Predicted time of a first-order solve, with the compilation; good to a factor of ten."""
        return compilation_seconds(self.cones) + self.cones.first_order_seconds

    @property
    def seconds(self) -> float:
        """Predicted time of the solver that is tried first, with the compilation."""
        return compilation_seconds(self.cones) + self.cones.solve_seconds

    @property
    def certification_seconds(self) -> float:
        """Predicted time of a lower bound: the problem with every risk replaced by an affine function."""
        if self.relaxed is None:
            return CLOSED_SECONDS
        return compilation_seconds(self.relaxed) + PROPOSALS * self.relaxed.solve_seconds

    @property
    def memory(self) -> float:
        """Predicted peak memory in bytes of the solver that is tried first."""
        return self.cones.memory


def compilation_seconds(cones: Cones) -> float:
    """Return the predicted time of cvxpy: some milliseconds for an atom, and the matrices it copies."""
    return 0.025 + 2e-3 * cones.second_order + 8e-7 * cones.nonzeros


@once
def size(structure: Structure) -> Size:
    """Return the size of the explicit form of a problem, without evaluating a kernel."""
    problem, variables = structure.problem, list(structure.user_variables)
    explicit = count_user(problem, variables)
    for term in structure.risks:
        explicit.risk(term.node)
    factors = [columns_rows for term in structure.risks for columns_rows in risk_factors(term.node)]
    return Size(
        tuple(explicit.semidefinite),
        sum(columns for columns, _ in factors),
        sum(columns * rows for columns, rows in factors),
        sum(v.size for v in problem.variables()),
        explicit.cones(),
        relaxed_cones(structure, variables),
    )


def relaxed_cones(structure: Structure, variables: list[cp.Variable]) -> Cones | None:
    """Return the cones of the problem without its risks; None where its minimum has a closed form."""
    if has_closed_form(structure):
        return None
    count = count_user(structure.problem, variables)
    for term in structure.risks:  # the positive part of an affine function of the weights
        count.rows += 2
        count.nonzeros += 2 * sum(v.size for K in term.kernels for v in K.variables())
    for constraint in structure.domains:
        count.constraint(constraint)
    return count.cones()


def has_closed_form(structure: Structure) -> bool:
    """Whether the bound needs no conic solve.

    That is where the problem has bounds of its own, and where the certificate will find a simplex, a ball
    or a spectrahedron under an affine objective.
    """
    if isinstance(structure.problem, BoundedProblem):
        return True
    if structure.unset:  # a price without a value may have either sign
        return False
    rest = structure.objective.rest
    if rest is None or not rest.is_affine() or structure.domains or any(structure.constrained):
        return False
    if len(structure.active) != 1:
        return not structure.variables and not structure.lifted.constraints
    at = structure.active[0]
    return structure.norm_balls[at] is not None or structure.budgets[at] is not None


def risk_factors(risk: Risk) -> list[tuple[int, int]]:
    """Return (columns, rows) of the factors of the kernels that enter by second-order cones."""
    return [(sum(columns for columns, _ in stack), risk.learner.n) for stack in risk_stacks(risk)]
