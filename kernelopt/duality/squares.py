"""The vector of quadratic forms (alpha'K_m alpha)_m as a convex expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
from cvxpy.atoms.affine.wraps import Wrap

from kernelopt.duality.products import positive_factor
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


class QuadraticLengths(QuadraticForms):
    """The expression (sqrt(alpha'K_m alpha))_m, which is |L_m'alpha|."""


class ProductRoots(Wrap):  # type: ignore[misc]
    """The expression (sqrt(a_i b_i))_i, which is concave in a >= 0 and b >= 0."""

    def __init__(self, expression: cp.Expression, what: tuple[Any, ...]) -> None:
        self.what = what
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        return [self.what]


def product_roots(a: cp.Expression, b: cp.Expression) -> ProductRoots:
    """Return (sqrt(a_i b_i))_i of two expressions of one size."""
    one, other = (cp.vec(part, order="F") for part in (a, b))
    pairs = [cp.geo_mean(cp.hstack([one[i], other[i]])) for i in range(one.size)]
    return ProductRoots(cp.hstack(pairs), (a, b))


def quadratic_forms(alpha: cp.Expression, grams: Grams, gamma: cp.Expression | None = None) -> QuadraticForms:
    """Return the vector of the forms alpha'K_m alpha / gamma on the points of alpha."""
    square = cp.sum_squares if gamma is None else lambda image: cp.quad_over_lin(image, gamma)
    return QuadraticForms(images(alpha, grams, square), (alpha, grams, gamma))


def quadratic_lengths(alpha: cp.Expression, grams: Grams) -> QuadraticLengths:
    """Return the vector of the lengths sqrt(alpha'K_m alpha) on the points of alpha."""
    return QuadraticLengths(images(alpha, grams, cp.norm2), (alpha, grams, None))


def images(
    alpha: cp.Expression, grams: Grams, size: Callable[[cp.Expression], cp.Expression]
) -> cp.Expression:
    """Return the vector of the sizes of the L_m'alpha, zero for a zero matrix."""
    entries = []
    for m in range(len(grams)):
        L = grams.factor(m)
        entries.append(size(cp.Constant(L.T, name=f"L{m}'") @ alpha) if L.shape[1] else cp.Constant(0.0))
    return cp.hstack(entries)


def lengths(expression: cp.Expression) -> tuple[float, QuadraticLengths] | None:
    """Return (k, e) for (k alpha'K_m alpha)_m with e = (sqrt(alpha'K_m alpha))_m, None for any other."""
    k, forms = positive_factor(expression)
    if type(forms) is not QuadraticForms or forms.gamma is not None:
        return None
    return k, quadratic_lengths(forms.alpha, forms.what[1])
