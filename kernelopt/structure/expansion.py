"""The explicit problem behind one with risks: every risk written out as its primal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.grams import join
from kernelopt.language.combination import combine
from kernelopt.language.faces import faced_penalty, facial_reduction
from kernelopt.language.penalty import Penalty, penalty, weighted
from kernelopt.language.risk import Risk, half_square
from kernelopt.losses import Loss
from kernelopt.structure.affine import affine
from kernelopt.structure.gate import check_problem
from kernelopt.structure.sizes import read_sphere
from kernelopt.structure.trees import (
    coefficient,
    copied_constraint,
    nodes,
    number,
    replaced,
    risks,
    visible_variables,
)
from kernelopt.structure.units import HOMOGENEOUS, RiskUnits, Units, reached
from kernelopt.validation import Array

INACTIVE = 1e-7  # a share of the objective, below which a risk has no multiplier


@dataclass(frozen=True)
class ExpandedRisk:
    """One risk written out: its fit constraint, and where its weight in the optimum stands.

    The multipliers of both are in units: that of `fit` times `fit_unit`, that of `bound` times `bound_unit`
    are those of the problem without units.
    """

    risk: Risk
    fit: cp.Constraint
    bound: cp.Constraint | None  # t >= risk, where the risk does not enter linearly
    coefficient: Any
    fit_unit: float = 1.0
    bound_unit: float = 1.0

    def weight(self) -> float:
        """Return the weight of the risk at the solution: its coefficient or its multiplier."""
        if self.bound is None:
            return number(self.coefficient)
        return self.bound_unit * float(np.ravel(self.bound.dual_value)[0])

    def alpha(self) -> Array | None:
        """Return alpha = multiplier of the fit / weight, None where the risk is inactive."""
        if self.bound is not None and self.bound.dual_value is None:
            return None
        weight = self.weight()
        if self.fit.dual_value is None or not weight > INACTIVE * self.bound_unit:
            return None
        alpha = self.fit_unit * np.ravel(self.fit.dual_value) / weight
        return alpha if np.isfinite(alpha).all() else None


@dataclass(frozen=True)
class Copied:
    """A constraint of the user, its copy in the explicit problem, and the face it was restricted to.

    The multipliers of the copy times `unit` are those of the original.
    """

    original: cp.Constraint
    copy: cp.Constraint
    basis: Array | None = None
    unit: float = 1.0

    def bring_back(self) -> None:
        """Give the original the multiplier of the copy."""
        for variable, dual in zip(self.original.dual_variables, self.copy.dual_variables, strict=True):
            value = dual.value
            if self.unit != 1 and value is not None:
                value = self.unit * np.asarray(value)
            if self.basis is not None and value is not None and np.isfinite(value).all():
                value = self.basis @ value @ self.basis.T
            variable.save_value(value)


@dataclass(frozen=True)
class Expansion:
    """The explicit problem behind one with risks, sharing its variables where there are no units."""

    problem: cp.Problem
    risks: tuple[ExpandedRisk, ...]
    constraints: tuple[Copied, ...]
    hidden: tuple[tuple[cp.Variable, cp.Expression], ...]  # variables inside the risks, and their values here
    measured: tuple[tuple[cp.Variable, cp.Expression], ...] = ()  # variables with units, likewise

    def bring_back(self) -> None:
        """Give the user's variables and constraints their values, and the risks' own variables theirs."""
        for copied in self.constraints:
            copied.bring_back()
        with np.errstate(all="ignore"):  # a failed solver may have left anything
            for variable, here in (*self.measured, *self.hidden):
                variable.save_value(here.value)


def expand(problem: cp.Problem, units: Units | None = None) -> Expansion:
    """Write every risk of a problem out as its explicit primal.

    Each risk becomes 1/2 |f|_K^2 + loss(z) with a constraint `z == f + b` labelled "fit" (numbered
    where there are several). A risk that enters the objective with a constant coefficient is
    substituted; any other becomes a variable t with `t >= 1/2 |f|_K^2 + loss(z)`, labelled "risk".

    Parameters
    ----------
    problem : cp.Problem
    units : Units, optional
        The explicit problem is written in these units. It then has variables of its own, with the ids of
        the problem's.

    Returns
    -------
    Expansion
        `.problem` is an ordinary `cp.Problem`; `.risks[k].alpha()` is, after a solve, the multiplier
        of the k-th fit divided by the weight of that risk; `.bring_back()` gives the user's constraints
        their multipliers, and the user's variables their values where there are units.
    """
    check_problem(problem)
    own = Units() if units is None else units
    found = risks(problem)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    leaves = {v: leaf(v, own.of(v)) for v in visible_variables(problem) if (own.of(v) != 1).any()}
    measured = [(v, times(own.of(v), here)) for v, here in leaves.items()]
    substitutes: dict[int, Any] = {id(v): here for v, here in measured}
    added: list[cp.Constraint] = []
    written: list[ExpandedRisk] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for k, node in enumerate(found):
        suffix = f" {k + 1}" if len(found) > 1 else ""
        unit = own.of_risk(k)
        part = explicit_risk(node, unit, own, substitutes)
        z = cp.Variable(node.learner.n, name=f"z{suffix}".replace(" ", ""))
        fit = (z == part.predictions).set_label("fit" + suffix)
        # Written anew and not copied: cvxpy's indicator, which the hard margin needs, cannot be copied.
        summed = part.loss.expression(z, part.y)
        hidden += part.hidden
        hidden += zip(
            loss_variables(node.learner.summed_loss, node.learner.fit),
            loss_variables(summed, z),
            strict=True,
        )
        explicit = times(part.square_unit / unit.value, part.square) + times(1 / unit.value, summed)
        inside = any(inner is node for c in problem.constraints for inner in nodes(c))
        share = None if inside else coefficient(problem.objective.args[0], node)
        bound = None
        if share is None:
            t = cp.Variable(name=f"t{suffix}".replace(" ", ""), nonneg=True)
            bound = (t >= explicit).set_label("risk" + suffix)
            added.append(bound)
            substitutes[id(node)] = times(unit.value, t)
        else:
            substitutes[id(node)] = times(unit.value, explicit)
        added.append(fit)
        written.append(
            ExpandedRisk(
                node,
                fit,
                bound,
                None if share is None else sign * share,
                own.objective / unit.targets,
                own.objective / unit.value,
            )
        )
    copies = [
        ball(c, leaves, own) or copied(c, substitutes, own, i) for i, c in enumerate(problem.constraints)
    ]
    if units is None and not found and all(c.basis is None for c in copies):
        return Expansion(problem, (), tuple(Copied(c, c) for c in problem.constraints), ())
    objective = times(1 / own.objective, replaced(problem.objective.args[0], substitutes))
    explicit_problem = cp.Problem(type(problem.objective)(objective), [c.copy for c in copies] + added)
    return Expansion(explicit_problem, tuple(written), tuple(copies), tuple(hidden), tuple(measured))


class ExplicitRisk(NamedTuple):
    """The parts of a risk in units: it is square_unit * square + loss(predictions, y)."""

    predictions: cp.Expression
    square: cp.Expression
    square_unit: float
    loss: Loss
    y: Array
    hidden: list[tuple[cp.Variable, cp.Expression]]  # the risk's own variables that have others here


def explicit_risk(node: Risk, unit: RiskUnits, own: Units, substitutes: dict[int, Any]) -> ExplicitRisk:
    """Return the predictions and 1/2 |f|^2 of a risk in units, kernels of low rank on their ranges."""
    learner = node.learner
    root = unit.targets / np.sqrt(unit.kernel)  # f = L u with L = sqrt(kernel) L'
    parts: list[Penalty] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for before, K in zip(learner.penalties, learner.kernels, strict=True):
        K, sizes = in_kernel_unit(replaced(K, substitutes), before, unit, learner.n)
        part, f = faced_penalty(penalty(K, learner.n, ""), K, learner.n)
        parts.append(part)
        if before.form == "semidefinite":
            hidden.append((before.f, times(unit.targets, part.f if f is None else f)))
            continue
        for inner, here, size in zip(before.f.variables(), part.f.variables(), sizes, strict=True):
            hidden.append((inner, cp.multiply(root * size, here)))
    predictions = cp.sum([part.f for part in parts])
    if learner.bias is not None:
        b = cp.Variable(name="b")
        predictions = predictions + b
        hidden.append((learner.bias, times(unit.targets, b)))
    dilated = learner.loss.dilated(unit.targets) if unit.targets != 1 else None
    loss = learner.loss if dilated is None else dilated
    square = half_square(tuple(parts), learner.norm)
    return ExplicitRisk(
        predictions, square, unit.targets**2 / unit.kernel, loss, learner.y / unit.targets, hidden
    )


def in_kernel_unit(
    K: cp.Expression, part: Penalty, unit: RiskUnits, n: int
) -> tuple[cp.Expression, list[Any]]:
    """Return a kernel in its unit, and what the coordinates u of each of its spans are multiples of.

    The weights of a combination are divided by their sizes, and its matrices multiplied by them.
    """
    parts = weighted(K) if part.form == "second-order cone" else None
    if parts is None:
        return times(1 / unit.kernel, K), [1.0]
    summands, sizes = [], []
    for weights, grams in parts:
        read = affine(weights)
        size = np.ones(len(grams)) if read is None else reached(read, {})
        size = np.where(size > 0, size, 1.0)
        block = grams.block(slice(0, n)) if n < grams.n_points else grams
        summands.append(combine(times(1 / size, weights), join([(size / unit.kernel, block)])))
        if any(block.rank_bounds):
            sizes.append(np.repeat(np.sqrt(size), block.rank_bounds))
    return cp.sum(summands) if len(summands) > 1 else summands[0], sizes


def loss_variables(summed: cp.Expression, fit: cp.Expression) -> list[cp.Variable]:
    """Return the variables of a summed loss that are not those of its predictions."""
    return [v for v in summed.variables() if not any(v is w for w in fit.variables())]


def copied(constraint: cp.Constraint, substitutes: dict[int, Any], own: Units, place: int) -> Copied:
    """Copy a constraint with nodes replaced, on its face, in its unit and with its label."""
    smaller, basis = facial_reduction(constraint)
    unit = own.of_constraint(place)
    copy = copied_constraint(smaller, substitutes)
    if unit != 1 and isinstance(copy, HOMOGENEOUS):
        copy = copy.copy([times(1 / unit, arg) for arg in copy.args])
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return Copied(constraint, copy, basis, own.objective / unit)


def ball(constraint: cp.Constraint, leaves: dict[cp.Variable, cp.Variable], own: Units) -> Copied | None:
    """Copy |x|_p <= R as |x'|_p <= R / unit, where x = unit * x' with one number; None for others.

    Left to itself cvxpy gives |unit * x'|_p a variable of its own, which is in no unit.
    """
    sphere = read_sphere(constraint)
    if sphere is None or sphere.variable not in leaves or np.ptp(own.of(sphere.variable)):
        return None
    unit = float(np.ravel(own.of(sphere.variable))[0])
    norm, radius = constraint.args
    copy = constraint.copy([norm.copy([leaves[sphere.variable]]), radius / unit])
    if constraint.label is not None:
        copy.set_label(constraint.label)
    return Copied(constraint, copy, None, own.objective / unit)


def leaf(variable: cp.Variable, unit: Array) -> cp.Variable:
    """Return x' with x = unit * x', of the same id, name and attributes."""
    attributes = {k: v for k, v in variable.attributes.items() if v is not None and v is not False}
    if "bounds" in attributes:
        attributes["bounds"] = [np.broadcast_to(side, variable.shape) / unit for side in attributes["bounds"]]
    return cp.Variable(variable.shape, name=variable.name(), var_id=variable.id, **attributes)


def times(factor: Any, expression: cp.Expression) -> cp.Expression:
    """Return a positive number, or one per entry, times an expression; by one it is left as it is."""
    if (np.asarray(factor) == 1).all():
        return expression
    return cp.multiply(factor, expression) if np.ndim(factor) else factor * expression
