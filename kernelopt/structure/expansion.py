"""The explicit form of a problem with risks: every risk replaced by its primal problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.language.adapter import written_problem
from kernelopt.plain_tables import html_table
from kernelopt.structure.attributes import copied_variable, stated_bounds
from kernelopt.structure.explicit_risk import ExpandedRisk, Pairs, expanded_risk
from kernelopt.structure.gate import check_problem
from kernelopt.structure.powers import NORMS
from kernelopt.structure.relaxed_cones import RelaxedCones, face
from kernelopt.structure.trees import (
    copied_constraint,
    replaced,
    risks,
    short,
    times,
    visible_variables,
)
from kernelopt.structure.units import HOMOGENEOUS, Units
from kernelopt.validation import Array


@dataclass(frozen=True)
class ConstraintCopy:
    """A constraint of the user and its copy in the explicit problem.

    Attributes
    ----------
    original, copy : cp.Constraint
    basis : array of shape (n, r), or None
        Q, where the original is K >> 0 and the copy its facial reduction Q'KQ >> 0.
    unit : float
        The multiplier of the original is `unit` times the multiplier of the copy, mapped by V -> Q V Q'.
    """

    original: cp.Constraint
    copy: cp.Constraint
    basis: Array | None = None
    unit: float = 1.0

    def bring_back(self) -> None:
        """Set the multiplier of the original from the multiplier of the copy."""
        for variable, dual in zip(self.original.dual_variables, self.copy.dual_variables, strict=True):
            value = dual.value
            if self.unit != 1 and value is not None:
                value = self.unit * np.asarray(value)
            if self.basis is not None and value is not None and np.isfinite(value).all():
                value = self.basis @ value @ self.basis.T
            variable.save_value(value)


@dataclass(frozen=True)
class Expansion:
    """The explicit form of a problem with risks. Without units it shares the problem's variables.

    Attributes
    ----------
    problem : cp.Problem
        The explicit problem.
    risks : tuple of ExpandedRisk, in order of appearance
    constraints : tuple of ConstraintCopy, in the order of the problem's constraints
    hidden : tuple of (variable, expression)
        The variables inside the risks of the original problem, with their values in the explicit one.
    scaled : tuple of (variable, expression)
        The original problem's variables that are in another unit here, likewise.
    """

    problem: cp.Problem
    risks: tuple[ExpandedRisk, ...]
    constraints: tuple[ConstraintCopy, ...]
    hidden: Pairs
    scaled: Pairs = ()

    def _repr_html_(self) -> str:
        objective = self.problem.objective
        rows = [[type(objective).__name__.lower(), short(objective.args[0])]]
        rows += [[c.label or "", short(c).removeprefix(f"{c.label}: ")] for c in self.problem.constraints]
        return html_table(rows, ("constraint", "expression"), "The explicit problem")

    def bring_back(self) -> None:
        """Set the variables and multipliers of the original problem from the solution of the explicit one."""
        for constraint in self.constraints:
            constraint.bring_back()
        with np.errstate(all="ignore"):  # the values of a failed solver may be infinite or NaN
            for variable, here in (*self.scaled, *self.hidden):
                variable.save_value(here.value)


def expand(problem: cp.Problem, units: Units | None = None) -> Expansion:
    r"""Return the explicit form of a problem: every risk is replaced by its primal problem.

    The risk :math:`\min_{f, b}\ \tfrac12 \|f\|_K^2 + \mathrm{loss}(f + b)` becomes
    :math:`\tfrac12 \|f\|_K^2 + \mathrm{loss}(z)` with the constraint `z == f + b`, labelled "fit". A risk
    that enters the objective with a constant coefficient is replaced by that expression. Any other risk is
    replaced by a variable t with :math:`t \ge \tfrac12 \|f\|_K^2 + \mathrm{loss}(z)`, labelled "risk". Labels
    are numbered where there are several risks.

    Parameters
    ----------
    problem : cp.Problem
        With risks.
    units : Units, optional
        The units of the explicit problem. With units it has variables of its own, with the ids of the
        problem's variables.

    Returns
    -------
    Expansion
        `.problem` is an ordinary `cp.Problem`. After it is solved, `.risks[k].alpha()` is the multiplier of
        the k-th fit divided by the weight of that risk, and `.bring_back()` sets the multipliers of the
        user's constraints and, where there are units, the values of the user's variables.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, kernelopt as ko
    >>> theta = cp.Variable(2, nonneg=True)
    >>> risk = ko.risk(ko.combine(theta, [np.eye(2), np.ones((2, 2))]), [1, -1], ko.hinge(1.0))
    >>> expansion = ko.expand(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 2)))
    >>> [constraint.label for constraint in expansion.problem.constraints]
    ['ball', 'fit']
    >>> round(float(expansion.problem.solve(solver=cp.CLARABEL)), 4)
    1.0
    """
    check_problem(problem)
    given = Units() if units is None else units
    found = risks(problem)
    leaves = {v: leaf(v, given.of(v)) for v in visible_variables(problem) if (given.of(v) != 1).any()}
    scaled = tuple((v, times(given.of(v), x)) for v, x in leaves.items())
    substitutes: dict[int, Any] = {id(v): x for v, x in scaled}
    expanded: list[ExpandedRisk] = []
    hidden: Pairs = ()
    for k, node in enumerate(found):
        suffix = f" {k}" if len(found) > 1 else ""
        risk, values = expanded_risk(problem, node, given.of_risk(k), given.objective, suffix, substitutes)
        expanded.append(risk)
        hidden += values
    copies = tuple(
        norm_ball_copy(c, leaves, given) or copied_on_face(c, substitutes, given, i)
        for i, c in enumerate(problem.constraints)
    )
    if units is None and not found and all(c.basis is None for c in copies):
        return Expansion(problem, (), tuple(ConstraintCopy(c, c) for c in problem.constraints), ())
    objective = times(1 / given.objective, replaced(problem.objective.args[0], substitutes))
    added = [constraint for risk in expanded for constraint in risk.constraints]
    explicit = written_problem(type(problem.objective)(objective), [c.copy for c in copies] + added)
    return Expansion(explicit, tuple(expanded), copies, hidden, scaled)


def copied_on_face(
    constraint: cp.Constraint,
    substitutes: dict[int, Any],
    units: Units,
    position: int,
    cones: RelaxedCones | None = None,
) -> ConstraintCopy:
    """Return the copy of a constraint with nodes replaced, reduced to its face and divided by its unit.

    The face is the face of `facial_reduction`, or the space of `cones`. The unit is the unit of the
    constraint at `position`.
    """
    smaller, basis = face(constraint, cones)
    unit = units.of_constraint(position)
    copy = copied_constraint(smaller, substitutes)
    if unit != 1 and isinstance(copy, HOMOGENEOUS):
        copy = copy.copy([times(1 / unit, arg) for arg in copy.args])
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return ConstraintCopy(constraint, copy, basis, units.objective / unit)


def norm_ball_copy(
    constraint: Any, leaves: dict[cp.Variable, cp.Variable], units: Units
) -> ConstraintCopy | None:
    """Return |x|_p <= R as |x'|_p <= R / unit, where x = unit * x' with one number; None for others.

    The unit is taken out of the norm because cvxpy introduces an epigraph variable for |unit * x'|_p, and
    that variable would not be scaled.
    """
    norm, radius = constraint.args if isinstance(constraint, Inequality) else (constraint, constraint)
    if not isinstance(norm, NORMS) or norm.args[0] not in leaves or not radius.is_constant():
        return None
    size = units.of(norm.args[0])
    if np.ptp(size):
        return None
    unit = float(np.ravel(size)[0])
    copy = constraint.copy([norm.copy([leaves[norm.args[0]]]), radius / unit])
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return ConstraintCopy(constraint, copy, None, units.objective / unit)


def leaf(variable: cp.Variable, unit: Array) -> cp.Variable:
    """Return the variable x' of x = unit * x', with the id, the name and the attributes of x."""
    bounds = stated_bounds(variable)
    changes = {} if bounds is None else {"bounds": [side / unit for side in bounds]}
    return copied_variable(variable, **changes)
