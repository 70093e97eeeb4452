"""`kkt_table`: the conditions of Karush, Kuhn and Tucker at a solution, each with its measured residual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.conditions import Condition, Measurement
from kernelopt.duality.dualize import check_treatable
from kernelopt.errors import InputError
from kernelopt.plain_tables import html_table, text_table
from kernelopt.structure.gate import check_is_problem
from kernelopt.structure.structure import Structure
from kernelopt.threads import COMPILING, quietly
from kernelopt.validation import shown

HEADER = ("condition", "where", "residual", "relative")
WHERE = 38  # columns of the second column: with the others a row has at most 80


@dataclass(frozen=True, eq=False, repr=False)
class KKT:
    """The conditions of optimality at a solution; made by `kkt_table`.

    Attributes
    ----------
    conditions : tuple of Condition
    """

    conditions: tuple[Condition, ...]

    @property
    def residual(self) -> float:
        """The largest relative residual of the conditions that were measured."""
        return max((c.relative for c in self.conditions if not c.why_not), default=np.nan)

    @property
    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows, last = [], ""
        for c in self.conditions:
            where = c.where if len(c.where) <= WHERE else c.where[: WHERE - 3] + "..."
            numbers = ("-", "-") if c.why_not else (f"{c.residual:.1e}", f"{c.relative:.1e}")
            rows.append(("" if c.kind == last else c.kind, where, *numbers))
            last = c.kind
        return rows

    @property
    def _notes(self) -> list[str]:
        found = dict.fromkeys(c.why_not for c in self.conditions if c.why_not)
        return [f"- not measured: {reason}" for reason in found]

    def __str__(self) -> str:
        return "\n".join([text_table(HEADER, self._rows, 2), *self._notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        notes = html_table([[note] for note in self._notes]) if self._notes else ""
        return html_table(self._rows, HEADER, "Conditions of optimality", 2) + notes


def kkt_table(solution: Any, problem: cp.Problem | None = None) -> KKT:
    """The conditions of Karush, Kuhn and Tucker at a solution, each with its measured residual.

    The point and alpha are those of the solution's certificate. The other multipliers are the best ones for
    that alpha: they maximise the dual function with alpha fixed. The conditions are

    * primal feasibility: the violation of every constraint and of every sign of a variable,
    * dual feasibility: the violation of the domain of the conjugate of every loss, with 1'alpha = 0 ("bias"),
      and of the dual cones,
    * stationarity: the distance of the gradient of the Lagrangian by a variable from the cone in which it
      must be, zero for a free variable, non-negative for one with x >= 0,
    * complementarity: <multiplier, slack> of a constraint, a bound or an equation x = 0 that signs imply,
      <gradient, x> of a variable with a sign, <S - alpha alpha', K> of a kernel and
      <s - (alpha'K_m alpha)_m, theta> of weights of kernels,
    * subgradient: u g(a) + cost - <y, a> of every term u g(a), which vanishes where y / u is a subgradient of
      g at a, by Fenchel and Young's equality,
    * the machine: loss(z) + alpha'z = l(alpha) at its predictions z on the labelled points, and f = K alpha,
      measured as 1/2 f'K^+ f + 1/2 alpha'K alpha - alpha'f,
    * the gap: the objective at the machine less the dual function, which bounds all the others together.

    Parameters
    ----------
    solution : Solution, or what `kernelopt.load` returns
    problem : cp.Problem, optional
        The problem that was solved. It is needed for a solution that was pickled or loaded, which has none.

    Returns
    -------
    KKT
        `conditions` has the rows; `residual` is the largest relative residual. It prints as a table of at
        most 80 columns, and as HTML in a notebook. A condition that cannot be measured has a dash, and a line
        below the table says why.

    Raises
    ------
    InputError
        If `solution` is none, does not know its problem, or has no point of it.
    DualizationError
        As `dualize`.

    Notes
    -----
    The last column is the residual relative to the size of the terms: the larger side of a constraint, the
    largest term of a gradient, and for products the value of the objective or the risk. Multipliers of the
    atoms of the problem are named as in `dualize`: "forms" is s >= (alpha'K_m alpha)_m.

    Examples
    --------
    >>> import cvxpy as cp, kernelopt as ko
    >>> x = cp.Variable(2, nonneg=True, name="x")
    >>> problem = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [(cp.sum(x) >= 1).set_label("total")])
    >>> table = ko.kkt_table(ko.solve(problem))
    >>> for condition in table.conditions:
    ...     print(f"{condition.kind:20} {condition.where:26} {condition.relative < 1e-6}")
    primal feasibility   total                      True
    primal feasibility   x >= 0                     True
    dual feasibility     y[total] >= 0              True
    stationarity         x                          True
    complementarity      total                      True
    complementarity      gradient by x              True
    gap                  objective - dual function  True
    """
    if not hasattr(solution, "certificate"):
        found = getattr(solution, "solution_", None)
        several = isinstance(found, tuple)
        cure = "what solve() returns" if found is None else f"model.solution_{'[0]' if several else ''}"
        raise InputError(f"solution must be a Solution, got {shown(solution)} in kkt_table. Pass {cure}.")
    problem = getattr(solution, "problem", None) if problem is None else problem
    if problem is None:
        raise InputError(
            "the solution must know its problem, got one that was pickled or loaded in kkt_table. Pass "
            "kkt_table(solution, problem)."
        )
    check_is_problem(problem)
    check_treatable(problem)
    certificate = solution.certificate
    if not certificate.point and hasattr(solution, "point_in"):  # it was loaded, without the variables
        certificate = replace(certificate, point=solution.point_in(problem))
    with COMPILING, quietly(), np.errstate(all="ignore"):
        return KKT(tuple(Measurement(Structure(problem), certificate).conditions()))
