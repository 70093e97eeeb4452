"""The vector of quadratic forms (alpha'K_m alpha)_m as a convex expression."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.grams import Grams


class QuadraticForms(Wrap):  # type: ignore[misc]
    """The expression (alpha'K_m alpha / gamma)_m with K_m = L_m L_m', one entry for each matrix of a stack.

    It is |L_m'alpha|^2 / gamma, and zero for a zero matrix.
    """

    def __init__(self, expression: cp.Expression, what: tuple[Any, ...]) -> None:
        self.what = what
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.what]

    @property
    def alpha(self) -> cp.Expression:
        """The vector alpha."""
        return self.what[0]

    @property
    def gamma(self) -> cp.Expression | None:
        """The divisor, None where it is one."""
        return self.what[2]

    def name(self) -> str:
        alpha, _, gamma = self.what
        short = alpha.name()
        return f"({short}' K_m {short}{'' if gamma is None else f' / {gamma.name()}'})_m"


def quadratic_forms(alpha: cp.Expression, grams: Grams, gamma: cp.Expression | None = None) -> QuadraticForms:
    """Return the vector of the forms alpha'K_m alpha / gamma on the points of alpha."""
    entries = []
    for m in range(len(grams)):
        L = grams.factor(m)
        if not L.shape[1]:
            entries.append(cp.Constant(0.0))
            continue
        image = cp.Constant(L.T, name=f"L{m}'") @ alpha
        entries.append(cp.sum_squares(image) if gamma is None else cp.quad_over_lin(image, gamma))
    return QuadraticForms(cp.hstack(entries), (alpha, grams, gamma))
