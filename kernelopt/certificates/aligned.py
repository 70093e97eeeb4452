"""The statement of an alignment: a linear objective over kernels of bounded Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints import Inequality

from kernelopt.certificates.learning import Cone, Variables, column_names, combined, padded, read_cone, words
from kernelopt.certificates.lifting import give_multiplier, held, linear_over_cone
from kernelopt.certificates.statement import Statement
from kernelopt.certificates.witness import fractions, in_ball, long_enough, slacks
from kernelopt.grams import Grams
from kernelopt.language.measures import FrobeniusNorm
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
            values = {variable.id: value for variable, value in certificate.point.items()}
            x = np.concatenate([np.ravel(values[id_]) for id_, *_ in self.variables])
            self.prove(stated, x)
        return stated

    def prove(self, stated: Statement, x: Array) -> None:
        """Shrink the point into the set, and give the ball and the cone their multipliers.

        The multiplier of the ball is U = sum_j nu_j K_j: for signs the best multiple of the kernel at x
        with <U, K_j> >= gain_j, else the least with <U, K_j> = gain_j + <Y, G_j>.
        """
        B = stated.arrays["B0"]
        S = B.T @ B
        if not self.cone:
            x = np.maximum(x, 0.0)
            forms = S @ x
            wanted = self.gain > 0
            if (forms[wanted] > 0).all():
                scale = float((self.gain[wanted] / forms[wanted]).max(initial=0.0))
                self.pay(stated, B @ x * scale)
        else:
            G = stated.arrays["G0"]
            root = np.linalg.qr(B, mode="r")
            found = linear_over_cone(-self.gain, G, lambda z: [cp.norm2(root @ z) <= self.radius])
            if found is not None:
                forms = np.array([float((g * found[1]).sum()) for g in G])
                U = B @ np.linalg.lstsq(S, self.gain + forms, rcond=1e-14)[0]
                h, t = long_enough(-U, "2")
                stated.give(0, y=-U, h=h, t=t)
                paid = fractions(B.T) @ fractions(U) - fractions(self.gain)
                give_multiplier(stated, 0, found[1], np.ones(x.size, dtype=bool), lambda forms: -paid * -1)
            inner = held(G, x, None, lambda z: [cp.norm2(root @ z) <= self.radius])
            if inner is None:
                return
            x, T = inner
            stated.give(0, T=T)
        x, s = in_ball(x, B, self.radius, "2")
        stated.x = fractions(x).tolist()
        stated.give(0, s=s)

    def pay(self, stated: Statement, U: Array) -> None:
        """Give the ball the multiplier -U, moved up until <U, K_j> >= gain_j for all j."""
        gain, columns = fractions(self.gain), fractions(stated.arrays["B0"].T)
        for slack in slacks():
            y = -U * (1 + slack)
            if (columns @ fractions(-y) >= gain).all():
                h, t = long_enough(y, "2")
                stated.give(0, y=y, h=h, t=t)
                return
