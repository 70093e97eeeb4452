"""The explicit problem behind one with risks: every risk written out as its primal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.language.faces import faced, faced_penalty
from kernelopt.language.risk import Risk, half_square
from kernelopt.structure.gate import check_problem
from kernelopt.structure.trees import coefficient, copied_constraint, nodes, number, replaced, risks
from kernelopt.validation import Array


@dataclass(frozen=True)
class ExpandedRisk:
    """One risk written out: its fit constraint, and where its weight in the optimum stands."""

    risk: Risk
    fit: cp.Constraint
    bound: cp.Constraint | None  # t >= risk, where the risk does not enter linearly
    coefficient: Any

    def weight(self) -> float:
        """Return the weight of the risk at the solution: its coefficient or its multiplier."""
        if self.bound is None:
            return number(self.coefficient)
        return float(np.ravel(self.bound.dual_value)[0])

    def alpha(self) -> Array | None:
        """Return alpha = multiplier of the fit / weight, None where the risk is inactive."""
        if self.bound is not None and self.bound.dual_value is None:
            return None
        weight = self.weight()
        if self.fit.dual_value is None or not weight > 1e-7:
            return None
        alpha = np.ravel(self.fit.dual_value) / weight
        return alpha if np.isfinite(alpha).all() else None


@dataclass(frozen=True)
class Copied:
    """A constraint of the user, its copy in the explicit problem, and the face it was restricted to."""

    original: cp.Constraint
    copy: cp.Constraint
    basis: Array | None = None

    def bring_back(self) -> None:
        """Give the original the multiplier of the copy."""
        for variable, dual in zip(self.original.dual_variables, self.copy.dual_variables, strict=True):
            value = dual.value
            if self.basis is not None and value is not None and np.isfinite(value).all():
                value = self.basis @ value @ self.basis.T
            variable.save_value(value)


@dataclass(frozen=True)
class Expansion:
    """The explicit problem behind one with risks, sharing its variables."""

    problem: cp.Problem
    risks: tuple[ExpandedRisk, ...]
    constraints: tuple[Copied, ...]
    hidden: tuple[tuple[cp.Variable, cp.Expression], ...]  # variables inside the risks, and their values here

    def bring_back(self) -> None:
        """Give the user's constraints their multipliers, and the risks' own variables their values."""
        for copied in self.constraints:
            copied.bring_back()
        with np.errstate(all="ignore"):  # a failed solver may have left anything
            for variable, here in self.hidden:
                variable.save_value(here.value)


def expand(problem: cp.Problem) -> Expansion:
    """Write every risk of a problem out as its explicit primal.

    Each risk becomes 1/2 |f|_K^2 + loss(z) with a constraint `z == f + b` labelled "fit" (numbered
    where there are several). A risk that enters the objective with a constant coefficient is
    substituted; any other becomes a variable t with `t >= 1/2 |f|_K^2 + loss(z)`, labelled "risk".

    Parameters
    ----------
    problem : cp.Problem

    Returns
    -------
    Expansion
        `.problem` is an ordinary `cp.Problem`; `.risks[k].alpha()` is, after a solve, the multiplier
        of the k-th fit divided by the weight of that risk; `.bring_back()` gives the user's constraints
        their multipliers.
    """
    check_problem(problem)
    found = risks(problem)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    substitutes: dict[int, Any] = {}
    added: list[cp.Constraint] = []
    written: list[ExpandedRisk] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for k, node in enumerate(found):
        suffix = f" {k + 1}" if len(found) > 1 else ""
        learner = node.learner
        z = cp.Variable(learner.n, name=f"z{suffix}".replace(" ", ""))
        predictions, square, ranges = on_faces(node)
        fit = (z == predictions).set_label("fit" + suffix)
        # Written anew and not copied: cvxpy's indicator, which the hard margin needs, cannot be copied.
        summed = learner.loss.expression(z, learner.y)
        hidden += ranges
        hidden += zip(
            loss_variables(learner.summed_loss, learner.fit), loss_variables(summed, z), strict=True
        )
        explicit = square + summed
        inside = any(inner is node for c in problem.constraints for inner in nodes(c))
        share = None if inside else coefficient(problem.objective.args[0], node)
        bound = None
        if share is None:
            t = cp.Variable(name=f"t{suffix}".replace(" ", ""), nonneg=True)
            bound = (t >= explicit).set_label("risk" + suffix)
            added.append(bound)
            substitutes[id(node)] = t
        else:
            substitutes[id(node)] = explicit
        added.append(fit)
        written.append(ExpandedRisk(node, fit, bound, None if share is None else sign * share))
    copies = [copied(c, substitutes) for c in problem.constraints]
    if not found and all(c.basis is None for c in copies):
        return Expansion(problem, (), tuple(Copied(c, c) for c in problem.constraints), ())
    objective = type(problem.objective)(replaced(problem.objective.args[0], substitutes))
    explicit_problem = cp.Problem(objective, [c.copy for c in copies] + added)
    return Expansion(explicit_problem, tuple(written), tuple(copies), tuple(hidden))


def on_faces(node: Risk) -> tuple[cp.Expression, cp.Expression, list[tuple[cp.Variable, cp.Expression]]]:
    """Return the predictions and 1/2 |f|^2 of a risk, kernels of low rank on their ranges."""
    learner = node.learner
    faces = [faced_penalty(p, K, learner.n) for p, K in zip(learner.penalties, learner.kernels, strict=True)]
    moved = [(p.f, f) for p, (_, f) in zip(learner.penalties, faces, strict=True) if f is not None]
    if not moved:
        return learner.fit, learner.half_square, []
    predictions = cp.sum([part.f for part, _ in faces])
    if learner.bias is not None:
        predictions = predictions + learner.bias
    return predictions, half_square(tuple(part for part, _ in faces), learner.norm), moved


def loss_variables(summed: cp.Expression, fit: cp.Expression) -> list[cp.Variable]:
    """Return the variables of a summed loss that are not those of its predictions."""
    return [v for v in summed.variables() if not any(v is w for w in fit.variables())]


def copied(constraint: cp.Constraint, substitutes: dict[int, Any]) -> Copied:
    """Copy a constraint with nodes replaced, on its face and with its label."""
    smaller, basis = faced(constraint)
    copy = copied_constraint(smaller, substitutes)
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return Copied(constraint, copy, basis)
