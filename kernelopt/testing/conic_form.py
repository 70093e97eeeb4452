"""The conic problem that a solver is given in place of a learning problem."""

from __future__ import annotations

from typing import Any, Literal

import cvxpy as cp

from kernelopt.methods.exact.programme import Programme
from kernelopt.structure.expansion import Expansion, expand
from kernelopt.structure.structure import Structure
from kernelopt.testing.residuals import finite
from kernelopt.validation import Array

Claim = Literal["value", "infeasible", "unbounded", "none"]
INFEASIBLE = (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE)
UNBOUNDED = (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE)


class ConicForm:
    """A conic problem with the optimum of a learning problem: a programme of its paper, or its explicit form.

    Parameters
    ----------
    problem : cp.Problem
        The learning problem.
    programme : Programme, optional
        By default the conic problem is `expand(problem)`, the learning problem with its risks written out.
    """

    def __init__(self, problem: cp.Problem, programme: Programme | None = None) -> None:
        self.problem, self.programme = problem, programme
        self.expansion: Expansion | None = None
        if programme is None:
            self.expansion = expand(problem)
            self.conic = self.expansion.problem
        else:
            self.conic = programme.problem

    @property
    def is_dual(self) -> bool:
        """Whether the conic problem maximises and the learning problem minimises, or the reverse."""
        return type(self.conic.objective) is not type(self.problem.objective)

    def claim(self, status: str) -> Claim:
        """Return what a status of the conic problem says of the learning problem.

        By weak duality a learning problem is infeasible if its dual is unbounded.
        """
        if status in INFEASIBLE or status in UNBOUNDED:
            return "infeasible" if (status in INFEASIBLE) != self.is_dual else "unbounded"
        return "none" if status in ("failed", cp.SOLVER_ERROR) else "value"

    def clear(self) -> None:
        """Delete all values and multipliers, so that none of an earlier solve is taken for an answer."""
        for variable in (*self.conic.variables(), *self.problem.variables()):
            variable.save_value(None)
        for constraint in self.conic.constraints:
            for dual in constraint.dual_variables:
                dual.save_value(None)

    def proposed(self) -> tuple[dict[cp.Variable, Any] | None, list[Array] | None]:
        """Return the point of the learning problem and one alpha per risk, None where they are not finite."""
        if not finite([v.value for v in self.conic.variables()]):
            return None, None
        if self.programme is not None:
            point, alphas = self.programme.recover()
        else:
            written = [risk.alpha() for risk in self.expansion.risks] if self.expansion is not None else []
            alphas = [alpha for alpha in written if alpha is not None]
            alphas = alphas if len(alphas) == len(written) else []
            point = {v: v.value for v in Structure(self.problem).user_variables}
        usable = finite(point.values())
        return (dict(point) if usable else None), (list(alphas) if alphas and finite(alphas) else None)
