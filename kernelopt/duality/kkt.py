"""`kkt_table`: the conditions of Karush, Kuhn and Tucker at a solution, each with its measured residual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.duality.adjoints import dense
from kernelopt.duality.conditions import Condition, conditions, objective
from kernelopt.duality.dualize import check_treatable, swept
from kernelopt.duality.solving import solved_at
from kernelopt.errors import InputError, KerneloptError
from kernelopt.plain_tables import html_table, text_table
from kernelopt.structure.gate import check_is_problem
from kernelopt.structure.structure import Structure
from kernelopt.structure.trees import risks
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
    def _rows(self) -> list[tuple[str, ...]]:
        rows, last = list[tuple[str, ...]](), ""
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

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = html_table([[note] for note in self._notes]) if self._notes else ""
        return html_table(self._rows, HEADER, "Conditions of optimality", 2) + notes


def kkt_table(solution: Any, problem: cp.Problem | None = None) -> KKT:
    r"""The conditions of Karush, Kuhn and Tucker at a solution, each with its measured residual.

    The point and alpha are those of the solution's certificate. The other multipliers are the best ones for
    that alpha: they maximise the dual function with alpha fixed. The conditions are

    * primal feasibility: the violation of every constraint and of every sign of a variable,
    * dual feasibility: the violation of the domain of the conjugate of every loss, with
      :math:`1'\alpha = 0` ("bias"), and of the dual cones,
    * stationarity: the distance of the gradient of the Lagrangian by a variable from the cone in which it
      must be, zero for a free variable, non-negative for one with x >= 0,
    * complementarity: the inner product of multiplier and slack of a constraint, a bound or an equation x = 0
      that signs imply, and of gradient and x of a variable with a sign,
    * subgradient: :math:`u\, g(a) + \mathrm{cost} - \langle y, a \rangle` of every term u g(a), which
      vanishes where y / u is a subgradient of g at a, by Fenchel and Young's equality; the value of a risk is
      the one of the certificate's machine,
    * the gap: the objective less the dual function. Where the gradient vanishes it is the sum of the products
      and the terms.

    Parameters
    ----------
    solution : Solution, or what `kernelopt.load` returns
        Where the conditions are measured.
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
    largest term of a gradient, and for products the value of the objective. Multipliers of the atoms
    of the problem are named as in `dualize`: "forms" is :math:`s \ge (\alpha'K_m\alpha)_m`.

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
        return KKT(tuple(conditions_at(Structure(problem), certificate)))


def conditions_at(structure: Structure, certificate: Any) -> Iterator[Condition]:
    """Yield the conditions at the point and the alphas of a certificate, with the best other multipliers.

    The problem is swept on the structure's copies of the variables, which get the values of the point.
    """
    point = {variable.id: value for variable, value in certificate.point.items()}
    missing = [v.name() for v in structure.variables if v.id not in point]
    if missing:
        raise InputError(
            f"the solution must have a point of this problem, got none for {', '.join(missing)} in "
            "kkt_table. Pass the problem that was solved, and a solution that is feasible."
        )
    found = swept(Structure(structure.explicit))
    for v in structure.variables:
        v.save_value(dense(point[v.id]))
    nodes = risks(found.primal)
    for node, machine in zip(nodes, certificate.machines, strict=False):
        node.remember(machine)
    dual, why_not = np.nan, ""
    try:
        dual = solved_at(found, dict(zip(map(id, nodes), certificate.alphas, strict=False)))
    except KerneloptError as error:
        why_not = f"no multipliers were found for the alpha of the certificate ({error})"
    seen = list[tuple[Any, ...]]()
    for c in conditions(found, dual, max(abs(objective(found)), certificate.floor), why_not):
        again = f" ({seen.count(c[:2]) + 1})" if c[:2] in seen else ""
        seen.append(c[:2])
        yield c._replace(where=c.where + again)
