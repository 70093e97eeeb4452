"""Statements of problems over combinations of kernels: a risk or an alignment over a trace or a ball."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from cvxpy.constraints.zero import Equality
from scipy.optimize import lsq_linear

from kernelopt.certificates.statements.columns import (
    Cone,
    Source,
    matrices_by_column,
    read_columns,
    read_cone,
)
from kernelopt.certificates.statements.lifting import (
    DEPENDENT,
    interior_witness,
    linear_over_cone,
    set_multiplier,
)
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    SLACKS,
    checker,
    exact_seconds,
    fractions,
    into_ball,
    on_dyadic_grid,
    verified_factor,
    verified_length,
)
from kernelopt.grams import Grams, join
from kernelopt.language.measures import FrobeniusNorm
from kernelopt.losses import Loss, hard_margin
from kernelopt.losses.base import project_zero_sum
from kernelopt.structure.ball import kernels_by_variable, read_kernels
from kernelopt.structure.learning import weighted_risks
from kernelopt.structure.powers import LpBall
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array, Mask


@dataclass(frozen=True, eq=False)
class Trace:
    """The constraint row'x == total or row'x <= total on the weights x, with row > 0."""

    name: str
    row: Array
    total: float
    equal: bool

    def state(self, statement: Statement) -> None:
        """Add the constraint."""
        statement.row(self.name, range(self.row.size), self.row.tolist(), self.total, self.equal)

    def cover(self, statement: Statement, v: Array, signed: Mask) -> Array:
        """Set the multiplier u for which u row is near v, and return u row.

        It is at least v in the columns with a sign, exactly so for v in fractions.
        """
        row, free = fractions(self.row), ~signed
        least = [*(v / row)[signed], *([] if self.equal else [0])]
        if free.any():
            least.append(float(row[free] @ v[free] / (row[free] @ row[free])))
        statement.u[0] = Fraction(max(least))
        return np.asarray(statement.u[0] * row)

    def constraints(self, x: Any) -> list[cp.Constraint]:
        """Return the constraint on an expression x."""
        return [self.row @ x == self.total if self.equal else self.row @ x <= self.total]

    def centre(self, size: int) -> Array:
        """Return equal weights in the set."""
        return np.full(size, self.total / self.row.sum())

    def inside(self, statement: Statement, x: Array) -> Any:
        """Return a point near x that is exactly in the set, in fractions."""
        point = fractions(x)
        size = point @ fractions(self.row)
        return point * (Fraction(self.total) / size) if self.equal or size > self.total else point


@dataclass(frozen=True, eq=False)
class Ball:
    """The ball |x|_p <= radius, or |sum_j x_j K_j|_F <= radius for some kernels, where p is 2."""

    radius: float
    p: float = 2.0
    kernels: Grams | None = None

    def matrix(self, size: int) -> Array:
        """Return B in |B x|_p <= radius: the identity, or the kernels as columns."""
        return np.eye(size) if self.kernels is None else np.asarray(self.kernels).reshape(size, -1).T

    def state(self, statement: Statement) -> None:
        """Add the constraint."""
        statement.ball(self.matrix(len(statement.columns)), self.radius, self.p)

    def cover(self, statement: Statement, v: Array, signed: Mask) -> Array:
        """Set the multiplier y of least norm for which B'y is near v, and return B'y.

        It is at least v in the columns with a sign, exactly so for v in fractions.
        """
        B, w = statement.arrays["B0"], v.astype(float)
        if self.kernels is None:
            y = np.where(signed, np.maximum(w, 0.0), w)
        elif signed.any():  # min |root nu|^2 / 2 - w'nu over nu >= 0, as least squares
            root: Any = np.linalg.qr(B, mode="r")
            y = B @ lsq_linear(root, np.linalg.lstsq(root.T, w)[0], (0.0, np.inf), method="bvls").x
        else:
            y = B @ np.linalg.lstsq(B.T @ B, w, rcond=DEPENDENT)[0]
        for slack in (0.0, *SLACKS):
            nearby = y * (1 + slack)
            values = checker().product(B.T, nearby) if v.dtype == object else B.T @ nearby
            if (values >= v)[signed].all():
                break
        statement.set_witness(0, y=nearby)
        return np.asarray(values)

    def constraints(self, x: Any) -> list[cp.Constraint]:
        """Return the constraint on an expression x."""
        B = self.matrix(x.size)
        root: Any = B if self.kernels is None else np.linalg.qr(B, mode="r")
        return [cp.norm(root @ x, self.p) <= self.radius]

    def centre(self, size: int) -> Array:
        """Return equal weights in the set."""
        return np.full(size, self.radius / np.linalg.norm(self.matrix(size).sum(axis=1), self.p))

    def inside(self, statement: Statement, x: Array) -> Any:
        """Return a point near x that is exactly in the set, in fractions, and set its witness."""
        nearby, s = into_ball(x, statement.arrays["B0"], self.radius, statement.balls[0]["p"])
        statement.set_witness(0, s=s)
        return fractions(nearby)


@dataclass(frozen=True, eq=False)
class PricedRisk:
    """The function price * risk(sum_j x_j K_j), with the kernels on the labelled points."""

    kernels: Grams
    y: Array
    loss: Loss
    bias: bool
    price: float

    def state(self, statement: Statement) -> None:
        """Add the risk."""
        linear, curvature, l1, low, high = self.loss.curve(self.y)
        curve, ends = np.array([linear, curvature, l1]), np.array([low, high])
        K = np.asarray(self.kernels)
        statement.risk(K, range(len(K)), curve, ends, self.price, self.bias)

    def forms(self, statement: Statement, alpha: Array) -> Any:
        """Set an exactly feasible alpha near a given one, and return price alpha'K_j alpha / 2 exactly."""
        low, high = statement.arrays["ends0"]
        nearby = project_zero_sum(alpha, low, high) if self.bias else np.clip(alpha, low, high)
        alpha = on_dyadic_grid(nearby, low, high, self.bias)
        statement.set_witness(0, alpha=alpha)
        return (
            Fraction(self.price) * (checker().product(statement.arrays["K0"], alpha) @ fractions(alpha)) / 2
        )

    def prove(self, statement: Statement, point: Any, beta: Array) -> None:
        """Set the witness of the risk at a point: a factor of the kernel, and a machine near beta.

        For a hard margin the machine is scaled until every margin is at least one in exact arithmetic.
        """
        exact_matrix = checker().product(point, statement.arrays["K0"])
        M = np.array(exact_matrix, dtype=float)
        verified = verified_factor((M + M.T) / 2, exact_matrix)
        if verified is None:
            return
        ridge, L = verified
        f = M @ beta + ridge * beta
        b = self.loss.intercept(f, self.y) if self.bias else 0.0
        statement.set_witness(0, ridge=ridge, L=L, beta=beta, b=b)
        least_margin = float((self.y * (f + b)).min())
        if isinstance(self.loss, hard_margin) and least_margin > 0:
            for slack in SLACKS:
                scale = (1 + slack) / least_margin
                statement.set_witness(0, beta=beta * scale, b=b * scale)
                if statement.bounds()[1] < np.inf:
                    return


@dataclass(frozen=True, eq=False)
class KernelProblem(Source):
    """min offset + cost'x + the risk over weights x in a set, and a cone for free signs; or a maximisation.

    Attributes
    ----------
    columns, signs : lists
        As in `Statement`.
    sense, offset : float
    cost : array
    risk : PricedRisk or None
    weights : Trace or Ball
    cone : tuple
        The matrices G_j of sum_j x_j G_j >> 0 on all points, empty where there is no cone.
    """

    columns: list[str]
    signs: list[bool]
    sense: int
    offset: float
    cost: Array
    risk: PricedRisk | None
    weights: Trace | Ball
    cone: Cone

    @property
    def seconds(self) -> float:
        stacks = [grams for _, grams in self.cone] + ([] if self.risk is None else [self.risk.kernels])
        if isinstance(self.weights, Ball) and self.weights.kernels is not None:
            stacks.append(self.weights.kernels)
        return sum(exact_seconds(len(grams), grams.n_points) for grams in stacks)

    def statement(self) -> Statement:
        """Return the statement of the problem, without a witness."""
        statement = Statement(self.columns, self.signs, self.sense, self.offset)
        statement.cost = self.cost
        if self.risk is not None:
            self.risk.state(statement)
        self.weights.state(statement)
        if self.cone:
            statement.cone(matrices_by_column(self.cone, len(self.columns)))
        return statement

    def constraints(self, x: Any) -> list[cp.Constraint]:
        """Return the constraints other than the cone, as a function of the weights."""
        signed = np.flatnonzero(self.signs)
        return self.weights.constraints(x) + ([x[signed] >= 0] if signed.size else [])

    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set a witness near the point, alpha and machine of a certificate."""
        if self.risk is None or certificate.alphas:
            self.prove_dual(statement, certificate.alphas)
        if certificate.feasible and (self.risk is None or certificate.machines):
            x = np.concatenate([np.ravel(value) for value in certificate.point.values()])
            self.prove_primal(statement, x, certificate.machines)

    def prove_dual(self, statement: Statement, alphas: Any) -> None:
        """Set exact multipliers, and an exactly feasible alpha.

        With v_j = price alpha'K_j alpha / 2 - cost_j, the values w of the multiplier of the weights and the
        multiplier Y of the cone must satisfy w_j - <Y, G_j> >= v_j, with equality for weights of free sign.
        """
        v, signed = -fractions(self.cost), np.array(self.signs)
        if self.risk is not None:
            v = v + self.risk.forms(statement, np.asarray(alphas[0]))
        if not self.cone:
            self.weights.cover(statement, v, signed)
        else:
            found = linear_over_cone(-v.astype(float), statement.arrays["G0"], self.constraints)
            if found is None:
                return

            def target(forms: Array) -> Array:
                needed = v.astype(forms.dtype)
                needed[~signed] += forms
                return np.asarray((self.weights.cover(statement, needed, signed) - v)[~signed])

            set_multiplier(statement, 0, found[1], ~signed, target)
        for k, ball in enumerate(statement.balls):
            h, t = verified_length(statement.arrays[f"y{k}"], checker().conjugate(ball["p"]))
            statement.set_witness(k, h=h, t=t)

    def prove_primal(self, statement: Statement, x: Array, machines: Any) -> None:
        """Set exactly feasible weights near x, and a machine at their kernel."""
        x = np.where(self.signs, np.maximum(x, 0.0), x)
        if self.cone:
            centre = self.weights.centre(x.size)
            witness = interior_witness(statement.arrays["G0"], x, centre, self.constraints)
            if witness is None:
                return
            x, T = witness
            statement.set_witness(0, T=T)
        point = self.weights.inside(statement, x)
        statement.x = point.tolist()
        if self.risk is not None:
            self.risk.prove(statement, point, np.asarray(machines[0].alpha))


@kept_in_structure
def read_kernel_problem(structure: Structure) -> KernelProblem | str:
    """Read a problem of one risk or of an alignment, or return the reason why it cannot be stated."""
    risk: PricedRisk | str | None = structure.unset or None
    if structure.risks:
        risk = read_risk(structure)
    if isinstance(risk, str):
        return risk
    weights, cone, objective = read_weight_set(structure), read_cone(structure), structure.objective
    if isinstance(weights, str):
        return weights
    if isinstance(cone, str):
        return cone
    if objective is None or objective.terms:
        return "its objective is not affine beside the risk"
    columns, signs = read_columns(structure)
    aligned = isinstance(weights, Ball) and weights.kernels is not None
    if aligned and cone and any(signs):
        return "all its weights must occur in K >> 0"
    if risk is None and not aligned:
        return "it needs a risk, or the constraint frobenius(K) <= radius"
    cost = objective.linear.over(structure.variables).toarray()[0]
    return KernelProblem(columns, signs, int(structure.sign), objective.offset, cost, risk, weights, cone)


def read_risk(structure: Structure) -> PricedRisk | str:
    """Return the data of the only risk, or the reason why it cannot be stated."""
    read = weighted_risks(structure)
    if isinstance(read, str):
        return read
    if len(read.risks) > 1:
        return f"it needs one risk, the problem has {len(read.risks)}"
    learner = read.risk.learner
    if not learner.loss.quadratic:
        return f"the conjugate of {learner.loss!r} has no exact value in fractions"
    kernels = read_kernels(read.risk.kernels, structure.variables)
    if isinstance(kernels, str):
        return kernels
    # The present value of a parameter C is kept, since the certificate is saved later.
    has_parameter = any(isinstance(v, cp.Parameter) for v in vars(learner.loss).values())
    loss = learner.loss.scaled(1.0) if has_parameter else learner.loss
    labelled = kernels.block(slice(0, learner.n)) if learner.n < kernels.n_points else kernels
    return PricedRisk(labelled, learner.y, loss, learner.bias is not None, read.factor)


def read_weight_set(structure: Structure) -> Trace | Ball | str:
    """Return the one constraint that bounds the weights, or the reason why there is none."""
    constraints, variables = structure.lifted.constraints, structure.variables
    chosen = [i for i in structure.active if not isinstance(constraints[i], cp.constraints.PSD)]
    if len(chosen) != 1:
        return f"it needs one constraint that bounds the weights, the problem has {len(chosen)}"
    (at,) = chosen
    constraint, read, part = constraints[at], structure.affines[at], structure.sets[at]
    name = constraint.label or short(constraint)
    if isinstance(part, LpBall) and part.is_unit and part.level > 0 and variables == part.variables:
        plain = part.p == 1
        return (
            Trace(name, np.ones(variables[0].size), part.level, False) if plain else Ball(part.level, part.p)
        )
    if isinstance(constraint, Inequality) and isinstance(constraint.args[0], FrobeniusNorm):
        norm, radius = constraint.args
        stacks = {v.id: grams for v, grams in (kernels_by_variable(norm.kernel) or {}).items()}
        if stacks.keys() == {v.id for v in variables} and radius.is_constant() and radius.value > 0:
            return Ball(float(radius.value), kernels=join([(1.0, stacks[v.id]) for v in variables]))
        return "its kernel must be a combination whose weights are the entries of its variables"
    if not isinstance(constraint, Equality | Inequality) or read is None or read.constant.size != 1:
        return f"the constraint {name} is not an l_p ball or a trace"
    row = read.over(variables).toarray()[0]
    total, equal = -float(read.constant[0]), isinstance(constraint, Equality)
    if equal and total < 0:
        row, total = -row, -total
    if not (total > 0 and (row > 0).all()):
        return f"the constraint {name} is not an l_p ball or a trace of all weights"
    return Trace(name, row, total, equal)
