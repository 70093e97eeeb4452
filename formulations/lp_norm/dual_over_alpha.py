"""The part of a dual that is the same for all regularisers of the paper."""

from __future__ import annotations

import cvxpy as cp

from formulations.lp_norm.multiple_kernel_data import MultipleKernelData


class DualOverAlpha:
    """The part of a dual that all regularisers share: alpha, l(alpha) and its domain.

    Attributes
    ----------
    alpha : variable of shape (n,), signed
    gain : l(alpha)
    domain : constraints, the last one "bias" where there is an intercept
    """

    def __init__(self, data: MultipleKernelData) -> None:
        self.data = data
        self.alpha = cp.Variable(data.n, name="alpha")
        self.gain, self.domain = data.loss.dual_expression(self.alpha, data.y)
        if data.bias:
            self.domain = [*self.domain, (cp.sum(self.alpha) == 0).set_label("bias")]

    def forms(self, name: str = "s") -> tuple[cp.Variable, list[cp.Constraint]]:
        """Return a variable s >= 0 and the constraints |L_m' alpha|^2 <= s_m."""
        s = cp.Variable(self.data.M, nonneg=True, name=name)
        caps = [
            (cp.sum_squares(L.T @ self.alpha) <= s[m]).set_label(self.data.grams.names[m])
            for m, L in enumerate(self.data.factors)
            if L.shape[1]
        ]
        return s, caps

    def lengths(self) -> cp.Expression:
        """Return the vector of |L_m' alpha| = sqrt(s_m)."""
        return cp.hstack(
            [cp.norm2(L.T @ self.alpha) if L.shape[1] else cp.Constant(0.0) for L in self.data.factors]
        )

    def maximize(self, objective: cp.Expression, constraints: list[cp.Constraint]) -> cp.Problem:
        """Return the problem over the domain and the other constraints."""
        return cp.Problem(cp.Maximize(objective), [*self.domain, *constraints])
