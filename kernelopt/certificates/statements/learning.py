"""Statements of problems over combinations of kernels: a risk or an alignment over a set of weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.certificates.statements.columns import (
    Ball,
    Cone,
    Source,
    Trace,
    matrices_by_column,
    read_columns,
    read_cone,
    read_weight_set,
)
from kernelopt.certificates.statements.lifting import interior_witness, linear_over_cone, set_multiplier
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    SLACKS,
    checker,
    exact_seconds,
    fractions,
    on_dyadic_grid,
    verified_factor,
    verified_length,
)
from kernelopt.grams import Grams
from kernelopt.losses import Loss, hard_margin
from kernelopt.losses.base import project_zero_sum
from kernelopt.structure.ball import read_kernels
from kernelopt.structure.learning import weighted_risks
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array


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
    labelled = kernels.block(slice(0, learner.n))
    return PricedRisk(labelled, learner.y, loss, learner.has_intercept, read.factor)
