"""Statements of one risk of a combination of kernels, with weights in a ball or of bounded trace."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality

from kernelopt.certificates.statements.columns import (
    KernelSource,
    column_names,
    matrices_by_column,
    read_cone,
    read_variables,
)
from kernelopt.certificates.statements.lifting import interior_witness, linear_over_cone, set_multiplier
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    checker,
    fractions,
    into_ball,
    on_dyadic_grid,
    slacks,
    verified_factor,
    verified_length,
)
from kernelopt.losses import Loss, hard_margin
from kernelopt.losses.base import project_zero_sum
from kernelopt.structure.ball import read_kernels
from kernelopt.structure.learning import one_risk
from kernelopt.structure.powers import LpBall
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class WeightBound:
    """The constraint row'x == total or row'x <= total, or |x|_p <= total where there is no row."""

    name: str
    total: float
    row: Array | None = None
    equal: bool = False
    p: float = 1.0


@dataclass(frozen=True, eq=False)
class Learning(KernelSource):
    """min price * risk(sum_j x_j K_j) + offset over weights x with a bound, and a cone for free signs."""

    y: Array
    loss: Loss
    bias: bool
    price: float
    offset: float
    bound: WeightBound

    def statement(self) -> Statement:
        """Return the statement of the problem, without a witness."""
        columns, signs = column_names(self.variables)
        statement = Statement(columns, signs, offset=self.offset)
        linear, curvature, l1, low, high = self.loss.curve(self.y)
        K = np.asarray(self.kernels)
        curve, ends = np.array([linear, curvature, l1]), np.array([low, high])
        statement.risk(K, range(len(K)), curve, ends, self.price, self.bias)
        if self.bound.row is None:
            statement.ball(np.eye(len(K)), self.bound.total, self.bound.p)
        else:
            row = self.bound.row.tolist()
            statement.row(self.bound.name, range(len(K)), row, self.bound.total, self.bound.equal)
        if self.cone:
            statement.cone(matrices_by_column(self.cone, len(K)))
        return statement

    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set a witness near the point and alpha of a certificate."""
        if certificate.alphas:
            self.prove_lower(statement, np.asarray(certificate.alphas[0]))
        if certificate.feasible and certificate.machines:
            x = np.concatenate([np.ravel(value) for value in certificate.point.values()])
            self.prove_upper(statement, x, np.asarray(certificate.machines[0].alpha))

    def prove_lower(self, statement: Statement, alpha: Array) -> None:
        """Set the witness of the lower bound: an exactly feasible alpha, and exact multipliers for it.

        With v_j = price alpha'K_j alpha / 2, the multipliers u of row'x and Y of the cone must satisfy
        u row_j - <Y, G_j> >= v_j, with equality for weights of free sign. The multiplier y of a ball must
        satisfy y >= v.
        """
        low, high = statement.arrays["ends0"]
        nearby = project_zero_sum(alpha, low, high) if self.bias else np.clip(alpha, low, high)
        alpha = on_dyadic_grid(nearby, low, high, self.bias)
        statement.set_witness(0, alpha=alpha)
        forms = checker().product(statement.arrays["K0"], alpha) @ fractions(alpha)
        costs = (Fraction(self.price) * forms / 2).tolist()
        if self.bound.row is None:
            y = np.array([np.nextafter(max(float(v), 0.0), np.inf) if v > 0 else 0.0 for v in costs])
            h, t = verified_length(y, checker().conjugate(statement.balls[0]["p"]))
            statement.set_witness(0, y=y, h=h, t=t)
            return
        row = fractions(self.bound.row)
        if not self.cone:
            multiplier = max(v / r for v, r in zip(costs, row, strict=True))
            statement.u[0] = multiplier if self.bound.equal else max(Fraction(0), multiplier)
            return
        free = np.array([not sign for sign in statement.signs])
        found = linear_over_cone(
            -np.array(costs, dtype=float), statement.arrays["G0"], self.constraints(statement)
        )
        if found is None:
            return

        def target(forms: Any) -> Any:
            total = [v + f for v, f in zip(np.array(costs)[free], forms, strict=True)]
            multiplier = float(
                sum(r * v for r, v in zip(row[free], total, strict=True)) / sum(row[free] ** 2)
            )
            needed = [v / r for v, r in zip(np.array(costs)[~free], row[~free], strict=True)]
            statement.u[0] = max([Fraction(multiplier), *needed])
            return [statement.u[0] * r - v for r, v in zip(row[free], np.array(costs)[free], strict=True)]

        set_multiplier(statement, 0, found[1], free, target)

    def constraints(self, statement: Statement) -> Any:
        """Return the constraints other than the cone, as a function of the weights."""
        signed = np.flatnonzero(statement.signs)
        return lambda x: [self.bound.row @ x == self.bound.total, *([x[signed] >= 0] if signed.size else [])]

    def prove_upper(self, statement: Statement, x: Array, beta: Array) -> None:
        """Set the witness of the upper bound: exactly feasible weights, a kernel factor and a machine.

        For a hard margin the machine is scaled until every margin is at least one in exact arithmetic.
        """
        x = np.where(statement.signs, np.maximum(x, 0.0), x)
        if self.cone:
            row = np.asarray(self.bound.row)
            centre = np.full(x.size, self.bound.total / row.sum())
            witness = interior_witness(statement.arrays["G0"], x, centre, self.constraints(statement))
            if witness is None:
                return
            x, T = witness
            statement.set_witness(0, T=T)
        if self.bound.row is None:
            x, s = into_ball(x, statement.arrays["B0"], self.bound.total, statement.balls[0]["p"])
            statement.set_witness(0, s=s)
        point = fractions(x)
        if self.bound.row is not None:
            size = sum(point * fractions(self.bound.row))
            if self.bound.equal or size > self.bound.total:
                point = point * (Fraction(self.bound.total) / size)
        exact_matrix = checker().product(point, statement.arrays["K0"])
        M = np.array(exact_matrix, dtype=float)
        verified = verified_factor((M + M.T) / 2, exact_matrix)
        if verified is None:
            return
        ridge, L = verified
        statement.x = point.tolist()
        f = M @ beta + ridge * beta
        b = self.loss.intercept(f, self.y) if self.bias else 0.0
        statement.set_witness(0, ridge=ridge, L=L, beta=beta, b=b)
        if isinstance(self.loss, hard_margin):
            least_margin = float((self.y * (f + b)).min())
            for slack in slacks():
                scale = (1 + slack) / least_margin if least_margin > 0 else 1.0
                statement.set_witness(0, beta=beta * scale, b=b * scale)
                if least_margin <= 0 or statement.bounds()[1] < np.inf:
                    return


@kept_in_structure
def read_learning(structure: Structure) -> Learning | str:
    """Read a problem of one risk, or return the reason why it cannot be stated."""
    single = one_risk(structure)
    if isinstance(single, str):
        return single
    risk, learner = single.risk, single.risk.learner
    if not learner.loss.quadratic:
        return f"the conjugate of {learner.loss!r} has no exact value in fractions"
    kernels = read_kernels(risk, structure.variables)
    if isinstance(kernels, str):
        return kernels
    bound = read_weight_bound(structure)
    if isinstance(bound, str):
        return bound
    cone = read_cone(structure)
    if isinstance(cone, str):
        return cone
    variables = structure.variables
    if not all(v.is_nonneg() for v in variables) and not cone:
        return "weights of free sign need the constraint K >> 0"
    if cone and (bound.row is None or not bound.equal):
        return "weights of free sign need a trace, r'x == c"
    # The present value of a parameter C is kept, since the certificate is saved later.
    has_parameter = any(isinstance(v, cp.Parameter) for v in vars(learner.loss).values())
    loss = learner.loss.scaled(1.0) if has_parameter else learner.loss
    return Learning(
        read_variables(structure),
        kernels.block(slice(0, learner.n)) if learner.n < kernels.n_points else kernels,
        cone,
        learner.y,
        loss,
        learner.bias is not None,
        single.factor,
        single.offset,
        bound,
    )


def read_weight_bound(structure: Structure) -> WeightBound | str:
    """Return the one constraint that bounds the weights, or the reason why there is none."""
    constraints = structure.lifted.constraints
    chosen = [i for i in structure.active if not isinstance(constraints[i], cp.constraints.PSD)]
    if len(chosen) != 1:
        return f"it needs one constraint that bounds the weights, the problem has {len(chosen)}"
    constraint, read = constraints[chosen[0]], structure.affines[chosen[0]]
    name = constraint.label or short(constraint)
    ball = structure.sets[chosen[0]]
    if isinstance(ball, LpBall) and ball.is_unit and ball.level > 0 and structure.variables == ball.variables:
        row = None if ball.p > 1 else np.ones(ball.variables[0].size)
        return WeightBound(name, ball.level, row, p=ball.p)
    if not isinstance(constraint, Equality | Inequality) or read is None or read.constant.size != 1:
        return f"the constraint {name} is not an l_p ball or a trace"
    row = np.concatenate([read.gradient(v) for v in structure.variables])
    total, equal = -float(read.constant[0]), isinstance(constraint, Equality)
    if equal and total < 0:
        row, total = -row, -total
    if not (total > 0 and (row > 0).all()):
        return f"the constraint {name} is not an l_p ball or a trace of all weights"
    return WeightBound(name, total, row, equal)
