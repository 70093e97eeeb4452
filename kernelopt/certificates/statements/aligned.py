"""Statements of alignments: a linear objective over combinations of bounded Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from scipy.optimize import lsq_linear

from kernelopt.certificates.statements.columns import (
    KernelSource,
    column_names,
    matrices_by_column,
    read_cone,
    read_variables,
)
from kernelopt.certificates.statements.lifting import (
    DEPENDENT,
    interior_witness,
    linear_over_cone,
    set_multiplier,
)
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import (
    checker,
    fractions,
    into_ball,
    slacks,
    verified_length,
)
from kernelopt.grams import join
from kernelopt.language.measures import FrobeniusNorm
from kernelopt.language.terms import terms
from kernelopt.structure.ball import kernels_by_variable
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Alignment(KernelSource):
    """max gain'x + constant over |sum_j x_j K_j|_F <= radius and x >= 0 or sum_j x_j G_j >> 0."""

    gain: Array
    constant: float
    radius: float

    def statement(self) -> Statement:
        """Return the statement of the problem, without a witness."""
        columns, signs = column_names(self.variables)
        statement = Statement(columns, signs, sense=-1, offset=-self.constant)
        statement.cost = -self.gain
        K = np.asarray(self.kernels)
        statement.ball(K.reshape(len(K), -1).T, self.radius, 2.0)
        if self.cone:
            statement.cone(matrices_by_column(self.cone, len(K)))
        return statement

    def prove(self, statement: Statement, certificate: Any) -> None:
        """Set the witnesses of both bounds: multipliers of the ball and the cone, and a feasible point.

        The point is near the point of the certificate. The multiplier of the ball is the U = sum_j nu_j K_j
        of least norm with <U, K_j> >= gain_j for x >= 0, and with <U, K_j> = gain_j + <Y, G_j> for a cone
        with the multiplier Y.
        """
        if not certificate.feasible:
            return
        x = np.concatenate([np.ravel(value) for value in certificate.point.values()])
        B = statement.arrays["B0"]
        root: Any = np.linalg.qr(B, mode="r")
        if self.cone:
            witness = self.prove_with_cone(statement, B, root, x)
            if witness is None:
                return
            x, T = witness
            statement.set_witness(0, T=T)
        else:
            x = np.maximum(x, 0.0)
            # min |root nu|^2 / 2 - gain'nu over nu >= 0, as least squares.
            nu = lsq_linear(root, np.linalg.lstsq(root.T, self.gain)[0], (0.0, np.inf), method="bvls").x
            self.set_ball_multiplier(statement, B @ nu)
        x, s = into_ball(x, B, self.radius, "2")
        statement.x = fractions(x).tolist()
        statement.set_witness(0, s=s)

    def prove_with_cone(
        self, statement: Statement, B: Array, root: Array, x: Array
    ) -> tuple[Array, Array] | None:
        """Set the multipliers, and return (x, T) where T proves that x is in the cone."""
        G = statement.arrays["G0"]

        def constraints(z: Any) -> list[cp.Constraint]:
            return [cp.norm2(root @ z) <= self.radius]

        def target(forms: Any) -> Any:
            right = self.gain + np.array(forms, dtype=float)
            U = B @ np.linalg.lstsq(B.T @ B, right, rcond=DEPENDENT)[0]
            statement.set_witness(0, y=U)
            if not isinstance(forms, list):  # doubles, during the projections
                return B.T @ U - self.gain
            return (checker().product(B.T, U) - fractions(self.gain)).tolist()

        found = linear_over_cone(-self.gain, G, constraints)
        if found is not None:
            set_multiplier(statement, 0, found[1], np.ones(x.size, dtype=bool), target)
            h, t = verified_length(statement.arrays["y0"], "2")
            statement.set_witness(0, h=h, t=t)
        return interior_witness(G, x, None, constraints)

    def set_ball_multiplier(self, statement: Statement, U: Array) -> None:
        """Set the multiplier of the ball to U, scaled up until <U, K_j> >= gain_j holds exactly for all j."""
        gain, columns = fractions(self.gain), statement.arrays["B0"].T
        for slack in slacks():
            y = U * (1 + slack)
            if (checker().product(columns, y) >= gain).all():
                h, t = verified_length(y, "2")
                statement.set_witness(0, y=y, h=h, t=t)
                return


@kept_in_structure
def read_alignment(structure: Structure) -> Alignment | str:
    """Read the maximisation of an alignment, or return the reason why it cannot be stated."""
    if structure.risks or not structure.maximize or structure.unset or structure.rest is None:
        return "it maximises no affine objective"
    balls = [structure.lifted.constraints[i] for i in structure.active]
    balls = [c for c in balls if not isinstance(c, cp.constraints.PSD)]
    if (
        len(balls) != 1
        or not isinstance(balls[0], Inequality)
        or not isinstance(balls[0].args[0], FrobeniusNorm)
    ):
        return "it needs one constraint frobenius(K) <= radius"
    norm, radius = balls[0].args
    found = kernels_by_variable(terms(norm.kernel))
    by_id = {v.id: grams for v, grams in (found or {}).items()}
    if set(by_id) != {v.id for v in structure.variables} or not radius.is_constant() or not radius.value > 0:
        return "its kernel must be a combination whose weights are the entries of its variables"
    cone = read_cone(structure)
    if isinstance(cone, str):
        return cone
    if not cone and not all(v.is_nonneg() for v in structure.variables):
        return "weights of free sign need the constraint K >> 0"
    if cone and len(cone) != sum(v.size for v in structure.variables):
        return "all its weights must occur in K >> 0"
    gain = -np.concatenate([structure.rest.gradient(v) for v in structure.variables])
    return Alignment(
        read_variables(structure),
        join([(1.0, by_id[v.id]) for v in structure.variables]),
        cone,
        gain,
        -float(structure.rest.constant[0]),
        float(radius.value),
    )
