"""The statement of an alignment: a linear objective over kernels of bounded Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality
from scipy.optimize import lsq_linear

from kernelopt.certificates.statements.learning import (
    Cone,
    Variables,
    column_names,
    combined,
    padded,
    read_cone,
    read_variables,
    words,
)
from kernelopt.certificates.statements.lifting import give_multiplier, held, linear_over_cone
from kernelopt.certificates.statements.statement import Statement
from kernelopt.certificates.statements.witness import fractions, in_ball, long_enough, slacks
from kernelopt.grams import Grams, join
from kernelopt.language.measures import FrobeniusNorm
from kernelopt.language.terms import terms
from kernelopt.structure.structure import Structure, once
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Alignment:
    """max gain'x over |sum_j x_j K_j|_F <= radius, with signs or sum_j x_j G_j >> 0; plus a constant."""

    words: str
    variables: Variables
    kernels: Grams
    cone: Cone
    gain: Array
    constant: float
    radius: float

    def statement(self, certificate: Any) -> Statement:
        """Return the problem with a witness near the point of a certificate."""
        columns, signs = column_names(self.variables)
        stated = Statement(self.words, columns, signs, sense=-1, offset=-self.constant)
        stated.cost = -self.gain
        K = np.asarray(self.kernels)
        stated.ball(K.reshape(len(K), -1).T, self.radius, 2.0)
        if self.cone:
            stated.cone(padded(self.cone, len(K)))
        if certificate.feasible:
            x = np.concatenate([np.ravel(value) for value in certificate.point.values()])
            self.prove(stated, x)
        return stated

    def prove(self, stated: Statement, x: Array) -> None:
        """Shrink the point into the set, and give the ball and the cone their multipliers.

        The multiplier of the ball is U = sum_j nu_j K_j: for signs the best multiple of the kernel at x
        with <U, K_j> >= gain_j, else the least with <U, K_j> = gain_j + <Y, G_j>.
        """
        B = stated.arrays["B0"]
        root: Any = np.linalg.qr(B, mode="r")
        if self.cone:
            inner = self.prove_with_cone(stated, B, root, x)
            if inner is None:
                return
            x, T = inner
            stated.give(0, T=T)
        else:
            x = np.maximum(x, 0.0)
            # min |root nu|^2 / 2 - gain'nu over nu >= 0, as least squares.
            nu = lsq_linear(root, np.linalg.lstsq(root.T, self.gain)[0], (0.0, np.inf), method="bvls").x
            self.pay(stated, B @ nu)
        x, s = in_ball(x, B, self.radius, "2")
        stated.x = fractions(x).tolist()
        stated.give(0, s=s)

    def prove_with_cone(
        self, stated: Statement, B: Array, root: Array, x: Array
    ) -> tuple[Array, Array] | None:
        """Give the multipliers, and return the point inside the cone with what shows it."""
        G = stated.arrays["G0"]

        def sides(z: Any) -> list[cp.Constraint]:
            return [cp.norm2(root @ z) <= self.radius]

        def wanted(forms: Any) -> Any:
            right = self.gain + np.array(forms, dtype=float)
            U = B @ np.linalg.lstsq(B.T @ B, right, rcond=1e-14)[0]
            stated.give(0, y=U)
            if not isinstance(forms, list):  # doubles, on the way to a multiplier
                return B.T @ U - self.gain
            return (fractions(B.T) @ fractions(U) - fractions(self.gain)).tolist()

        found = linear_over_cone(-self.gain, G, sides)
        if found is not None:
            give_multiplier(stated, 0, found[1], np.ones(x.size, dtype=bool), wanted)
            h, t = long_enough(stated.arrays["y0"], "2")
            stated.give(0, h=h, t=t)
        return held(G, x, None, sides)

    def pay(self, stated: Statement, U: Array) -> None:
        """Give the ball the multiplier U, moved up until <U, K_j> >= gain_j for all j."""
        gain, columns = fractions(self.gain), fractions(stated.arrays["B0"].T)
        for slack in slacks():
            y = U * (1 + slack)
            if (columns @ fractions(y) >= gain).all():
                h, t = long_enough(y, "2")
                stated.give(0, y=y, h=h, t=t)
                return


@once
def read_alignment(structure: Structure) -> Alignment | str:
    """Read the maximisation of an alignment, or say what stands in the way."""
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
    found = combined(terms(norm.kernel))
    by_id = {v.id: grams for v, grams in (found or {}).items()}
    if set(by_id) != {v.id for v in structure.variables} or not radius.is_constant() or not radius.value > 0:
        return "its kernel must be a combination whose weights are the entries of its variables"
    cone = read_cone(structure)
    if isinstance(cone, str):
        return cone
    if not cone and not all(v.is_nonneg() for v in structure.variables):
        return "weights of free sign need the constraint K >> 0"
    if cone and len(cone) != sum(v.size for v in structure.variables):
        return "all its weights must stand in K >> 0"
    gain = -np.concatenate([structure.rest.gradient(v) for v in structure.variables])
    return Alignment(
        words(structure),
        read_variables(structure),
        join([(1.0, by_id[v.id]) for v in structure.variables]),
        cone,
        gain,
        -float(structure.rest.constant[0]),
        float(radius.value),
    )
