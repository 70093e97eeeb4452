"""The vector of quadratic forms (alpha'K_m alpha)_m as a convex expression."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import Wrap
from cvxpy.constraints import PSD

from kernelopt.grams import Grams


class Noted(Wrap):  # type: ignore[misc]
    """An expression with a note of what it is made of, by which it prints."""

    def __init__(self, expression: cp.Expression, what: Any) -> None:
        self.what = what
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.what]


class KernelProducts(Noted):
    """The expression (<K_m, W>)_m, the adjoint of sum_m weights_m K_m at a matrix W; `what` is the stack."""

    @property
    def matrix(self) -> cp.Expression:
        """W, which is read from the expression, since a rule may have replaced it there."""
        return self.args[0].args[1].args[0]


class QuadraticForms(Noted):
    """The expression (alpha'K_m alpha / gamma)_m with K_m = L_m L_m', one entry for each matrix of a stack.

    It is |L_m'alpha|^2 / gamma, and zero for a zero matrix. `what` is (alpha, the stack, gamma).
    """


class PositivePart(Wrap):  # type: ignore[misc]
    """The expression |(G)_+|_F^2 of a symmetric G, made by `positive_part_of`."""

    @property
    def G(self) -> cp.Expression:
        """The matrix, which is read from the expression, since a rule may have replaced variables in it."""
        return self.args[0].args[1].args[0].args[1]

    @property
    def P(self) -> cp.Variable:
        """The variable P of the value |P|_F^2."""
        return self.args[0].args[0].args[0]


def positive_part_of(G: cp.Expression, name: str) -> tuple[PositivePart, PSD]:
    """Return |(G)_+|_F^2 as the minimum of |P|_F^2 over P >> G, and that constraint.

    The expression has 0 G as a term, so that G stays a part of it.
    """
    P = cp.Variable(G.shape, name=name, symmetric=True)
    return PositivePart(cp.sum_squares(P) + cp.sum(cp.multiply(np.zeros(G.shape), G))), PSD(P - G)


def quadratic_forms(alpha: cp.Expression, grams: Grams, gamma: cp.Expression | None = None) -> QuadraticForms:
    """Return the vector of the forms alpha'K_m alpha / gamma on the points of alpha."""
    entries = []
    for m in range(len(grams)):
        L = grams.factor(m)
        image = cp.Constant(L.T, name=f"L{m}'") @ alpha
        entries.append(
            cp.quad_over_lin(image, 1 if gamma is None else gamma) if L.shape[1] else cp.Constant(0.0)
        )
    return QuadraticForms(cp.hstack(entries), (alpha, grams, gamma))
