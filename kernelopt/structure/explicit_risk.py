"""A risk as its primal problem, in given units of the kernel, the targets and the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.grams import join
from kernelopt.language.combination import combine
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.penalty import Penalty, penalty, weighted
from kernelopt.language.risk import Risk
from kernelopt.learner import half_square
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.trees import linear_factor, nodes, replaced, times
from kernelopt.structure.units import RiskUnits
from kernelopt.validation import Array

INACTIVE = 1e-7  # weight of a risk relative to the objective, below which its multiplier is only rounding

Pairs = tuple[tuple[cp.Variable, cp.Expression], ...]


@dataclass(frozen=True)
class ExpandedRisk:
    """A risk in explicit form: its constraint `fit`, and the weight of the risk in the objective.

    With multipliers taken in the user's units, alpha = (multiplier of `fit`) / (weight of the risk).

    Attributes
    ----------
    risk : Risk
    fit : cp.Constraint
        z == f + b.
    bound : cp.Constraint or None
        t >= 1/2 |f|_K^2 + loss(z), where the risk does not enter the objective linearly.
    objective : cp.Objective
        The objective of the problem, in which the risk has its weight where there is no `bound`.
    fit_unit, bound_unit : float
        The multiplier of `fit` in the user's units is fit_unit times its `dual_value`; likewise of `bound`.
    """

    risk: Risk
    fit: cp.Constraint
    bound: cp.Constraint | None
    objective: Any
    fit_unit: float = 1.0
    bound_unit: float = 1.0

    @property
    def constraints(self) -> tuple[cp.Constraint, ...]:
        """The constraints that the risk adds to the problem."""
        return (self.fit,) if self.bound is None else (self.bound, self.fit)

    def weight(self) -> float:
        """Return the weight of the risk at the solution: its coefficient, or the multiplier of `bound`."""
        if self.bound is None:
            sign = -1.0 if isinstance(self.objective, cp.Maximize) else 1.0
            return sign * (linear_factor(self.objective.args[0], self.risk) or 0.0)
        return self.bound_unit * float(np.ravel(self.bound.dual_value)[0])

    def alpha(self) -> Array | None:
        """Return alpha = (multiplier of `fit`) / weight; None where the weight is zero up to rounding."""
        if self.bound is not None and self.bound.dual_value is None:
            return None
        weight = self.weight()
        if self.fit.dual_value is None or not weight > INACTIVE * self.bound_unit:
            return None
        alpha = self.fit_unit * np.ravel(self.fit.dual_value) / weight
        return alpha if np.isfinite(alpha).all() else None


def expanded_risk(
    problem: cp.Problem,
    node: Risk,
    unit: RiskUnits,
    objective_unit: float,
    suffix: str,
    substitutes: dict[int, Any],
) -> tuple[ExpandedRisk, Pairs]:
    """Return a risk in explicit form, and its hidden variables with their values there.

    Semidefinite kernels are reduced to their joint range. The expression that replaces the risk is added to
    `substitutes`. `suffix` numbers the labels.
    """
    learner, n = node.learner, node.learner.n
    # f = L u and f = t f', with K = k K' and hence L = sqrt(k) L', give u = (t / sqrt(k)) u'.
    coordinate_unit = unit.targets / np.sqrt(unit.kernel)
    parts: list[Penalty] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for before, given in zip(learner.penalties, learner.kernels, strict=True):
        K, sizes = in_kernel_unit(replaced(given, substitutes), before, unit, n)
        part = penalty(K, n, "")
        if before.form == "semidefinite":
            Q = joint_range(K, n)
            if Q is not None:
                g = cp.Variable(Q.shape[1], name="g")
                part = Penalty(Q @ g, cp.matrix_frac(g, restricted_to_range(K, Q)), None, part.form)
            hidden.append((before.f, times(unit.targets, part.f)))
        else:
            for inner, here, size in zip(before.f.variables(), part.f.variables(), sizes, strict=True):
                hidden.append((inner, cp.multiply(coordinate_unit * size, here)))
        parts.append(part)
    predictions = cp.sum([part.f for part in parts])
    if learner.bias is not None:
        b = cp.Variable(name="b")
        predictions = predictions + b
        hidden.append((learner.bias, times(unit.targets, b)))
    square = half_square([part.square for part in parts], [part.length for part in parts], learner.norm)
    z = cp.Variable(n, name=f"z{suffix}".replace(" ", ""))
    fit = (z == predictions).set_label("fit" + suffix)
    # The loss is written anew: a hard margin is cvxpy's indicator, which cannot be copied.
    loss = (learner.loss.dilated(unit.targets) if unit.targets != 1 else None) or learner.loss
    summed = loss.expression(z, learner.y / unit.targets)
    pairs = (learner.summed_loss, learner.fit), (summed, z)
    hidden += zip(*(loss_variables(*pair) for pair in pairs), strict=True)
    square_unit = unit.targets**2 / unit.kernel
    value = times(square_unit / unit.value, square) + times(1 / unit.value, summed)
    constrained = any(inner is node for c in problem.constraints for inner in nodes(c))
    bound = None
    if constrained or linear_factor(problem.objective.args[0], node) is None:
        t = cp.Variable(name=f"t{suffix}".replace(" ", ""), nonneg=True)
        bound = (t >= value).set_label("risk" + suffix)
        value = t
    substitutes[id(node)] = times(unit.value, value)
    fit_unit, bound_unit = objective_unit / unit.targets, objective_unit / unit.value
    return ExpandedRisk(node, fit, bound, problem.objective, fit_unit, bound_unit), tuple(hidden)


def in_kernel_unit(
    K: cp.Expression, part: Penalty, unit: RiskUnits, n: int
) -> tuple[cp.Expression, list[Any]]:
    """Return a kernel divided by its unit, and the factors of the coordinates u of each of its stacks.

    A combination sum_i w_i K_i is written with w_i / s_i and s_i K_i, where s_i is the size of the weight
    w_i. Then f_i = L_i u_i = (sqrt(s_i) L_i) (u_i / sqrt(s_i)), so the factor of u_i is sqrt(s_i).
    """
    parts = weighted(K) if part.form == "second-order cone" else None
    if parts is None:
        return times(1 / unit.kernel, K), [1.0]
    summands, sizes = [], []
    for weights, grams in parts:
        read = affine(weights) or Affine(np.ones(len(grams)), {})
        size = np.abs(read.constant) + sum(abs(A).sum(axis=1) for A in read.matrices.values())
        size = np.where(size > 0, size, 1.0)
        block = grams.block(slice(0, n))
        summands.append(combine(times(1 / size, weights), join([(size / unit.kernel, block)])))
        if any(block.rank_bounds):
            sizes.append(np.repeat(np.sqrt(size), block.rank_bounds))
    return cp.sum(summands) if len(summands) > 1 else summands[0], sizes


def loss_variables(summed: cp.Expression, fit: cp.Expression) -> list[cp.Variable]:
    """Return the auxiliary variables of a summed loss: those that do not occur in its predictions."""
    return [v for v in summed.variables() if not any(v is w for w in fit.variables())]
