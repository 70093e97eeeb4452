"""A risk as its primal problem, in given units of the kernel, the targets and the value."""

from __future__ import annotations

from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.grams import join
from kernelopt.language.combination import combine
from kernelopt.language.faces import penalty_on_range
from kernelopt.language.penalty import Penalty, penalty, weighted
from kernelopt.language.risk import Risk
from kernelopt.learner import half_square
from kernelopt.losses import Loss
from kernelopt.structure.affine import affine
from kernelopt.structure.trees import replaced, times
from kernelopt.structure.units import RiskUnits, size_at
from kernelopt.validation import Array


class ExplicitRisk(NamedTuple):
    """The primal of a risk in units: square_unit * square + loss(predictions, y).

    `hidden` pairs the variables inside the original risk with their values in terms of the new variables.
    """

    predictions: cp.Expression
    square: cp.Expression
    square_unit: float
    loss: Loss
    y: Array
    hidden: list[tuple[cp.Variable, cp.Expression]]


def explicit_risk(node: Risk, unit: RiskUnits, substitutes: dict[int, Any]) -> ExplicitRisk:
    """Return the primal of a risk in units, with semidefinite kernels reduced to their joint range."""
    learner = node.learner
    # f = L u and f = t f', with K = k K' and hence L = sqrt(k) L', give u = (t / sqrt(k)) u'.
    coordinate_unit = unit.targets / np.sqrt(unit.kernel)
    parts: list[Penalty] = []
    hidden: list[tuple[cp.Variable, cp.Expression]] = []
    for before, K in zip(learner.penalties, learner.kernels, strict=True):
        K, sizes = in_kernel_unit(replaced(K, substitutes), before, unit, learner.n)
        part, f = penalty_on_range(penalty(K, learner.n, ""), K, learner.n)
        parts.append(part)
        if before.form == "semidefinite":
            hidden.append((before.f, times(unit.targets, part.f if f is None else f)))
            continue
        for inner, here, size in zip(before.f.variables(), part.f.variables(), sizes, strict=True):
            hidden.append((inner, cp.multiply(coordinate_unit * size, here)))
    predictions = cp.sum([part.f for part in parts])
    if learner.bias is not None:
        b = cp.Variable(name="b")
        predictions = predictions + b
        hidden.append((learner.bias, times(unit.targets, b)))
    dilated = learner.loss.dilated(unit.targets) if unit.targets != 1 else None
    loss = learner.loss if dilated is None else dilated
    square = half_square([part.square for part in parts], [part.length for part in parts], learner.norm)
    return ExplicitRisk(
        predictions, square, unit.targets**2 / unit.kernel, loss, learner.y / unit.targets, hidden
    )


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
        read = affine(weights)
        size = np.ones(len(grams)) if read is None else size_at(read, {})
        size = np.where(size > 0, size, 1.0)
        block = grams.block(slice(0, n)) if n < grams.n_points else grams
        summands.append(combine(times(1 / size, weights), join([(size / unit.kernel, block)])))
        if any(block.rank_bounds):
            sizes.append(np.repeat(np.sqrt(size), block.rank_bounds))
    return cp.sum(summands) if len(summands) > 1 else summands[0], sizes


def loss_variables(summed: cp.Expression, fit: cp.Expression) -> list[cp.Variable]:
    """Return the auxiliary variables of a summed loss: those that do not occur in its predictions."""
    return [v for v in summed.variables() if not any(v is w for w in fit.variables())]
