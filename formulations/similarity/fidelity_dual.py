"""The part of a dual that is the same for all formulations of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.similarity.similarity_data import SimilarityData
from kernelopt.extend import Array


class FidelityDual:
    """The terms of a dual in alpha and U: l(alpha), and the conjugates of the fidelities.

    Attributes
    ----------
    data : SimilarityData
    alpha : variable of shape (n,), signed
    z : alpha with zeros at the unlabelled points, shape (N,)
    U : variables, one per similarity, of the shapes of `S`; none where rho = 0
    value : l(alpha) - rho sum_i (<U_i, S_i> + L*(U_i))
    constraints : the domains of l and of the conjugates
    """

    def __init__(self, data: SimilarityData, S: Sequence[Array]) -> None:
        if not isinstance(data.fidelity, ko.Fidelity):
            raise ko.InputError(
                "the dual by hand needs the conjugate of the fidelity, got a function. Use one of "
                f"{', '.join(map(repr, ko.fidelities.FIDELITIES))} or a class of Fidelity, or read the bound "
                "of `solve`."
            )
        self.data = data
        self.alpha = cp.Variable(data.n, name="alpha")
        self.z = cp.hstack([self.alpha, np.zeros(data.N - data.n)]) if data.n < data.N else self.alpha
        self.value, self.constraints = data.loss.dual_expression(self.alpha, data.y)
        if data.loss.default_bias:
            self.constraints = [*self.constraints, (cp.sum(self.alpha) == 0).set_label("bias")]
        self.U: list[cp.Variable] = []
        for i, target in enumerate(S if data.rho > 0 else ()):
            U = cp.Variable(target.shape, symmetric=target.ndim == 2, name=f"U{i}")
            stated = data.fidelity.conjugate_expression(U)
            if stated is None:
                raise ko.InputError(
                    "the dual by hand needs the conjugate as an expression, got none from "
                    f"{data.fidelity!r}. State `conjugate_expression` in its class, or read the bound of "
                    "`solve`."
                )
            conjugate, domain = stated
            self.value = self.value - data.rho * (cp.sum(cp.multiply(U, target)) + conjugate)
            self.constraints += domain
            self.U.append(U)

    def trace_multiplier(self, i: int) -> cp.Expression:
        """Return the multiplier sigma_i of the trace, and add tau sigma_i to the value; 0 without a trace."""
        if self.data.trace is None:
            return cp.Constant(0.0)
        sigma = cp.Variable(name=f"sigma{i}")
        self.value = self.value + self.data.trace * sigma
        return sigma

    def add_matrix_inequality(
        self, U: cp.Expression | float, sigma: cp.Expression, share: cp.Expression | float
    ) -> None:
        """Add rho U - zz' / (2 share) >= sigma I as a matrix inequality of order N + 1."""
        N = self.data.N
        column = cp.reshape(self.z, (N, 1), order="F")
        corner = cp.reshape(2 * share, (1, 1), order="F")
        matrix = self.data.rho * U - sigma * np.eye(N)
        lmi = cp.bmat([[matrix, column], [column.T, corner]]) >> 0
        self.constraints = [*self.constraints, lmi.set_label("least eigenvalue")]

    def shares(self, count: int) -> list[cp.Expression]:
        """Return gamma_i >= 0 of sum at most one, and 1 where there is one kernel."""
        if count == 1:
            return [cp.Constant(1.0)]
        shares = cp.Variable(count, nonneg=True, name="gamma")
        self.constraints = [*self.constraints, (cp.sum(shares) <= 1).set_label("shares")]
        return [shares[i] for i in range(count)]

    def problem(self) -> cp.Problem:
        """Return the maximisation."""
        return cp.Problem(cp.Maximize(self.value), self.constraints)
