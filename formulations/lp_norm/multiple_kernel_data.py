"""The checked data of a learning problem with several kernels: its risk, machine, exponents and dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.machines import Explicit, as_loss, written_out
from kernelopt.extend import Array, as_grams, boolean

HINGE = ko.hinge(1.0)
PAPER = "Kloft et al. (2011)"


def block_exponent(p: float) -> float:
    """Return r = 2 p / (p + 1) in [1, 2]: with optimal weights the regulariser is a block norm of this r."""
    return 2.0 if np.isinf(p) else 2 * p / (p + 1)


def ball_exponent(r: float) -> float:
    """Return p = r / (2 - r), the inverse of `block_exponent`."""
    return np.inf if r == 2 else r / (2 - r)


@dataclass(frozen=True, eq=False)
class MultipleKernelData:
    """Checked data of one learning problem.

    Attributes
    ----------
    grams : Grams, the M kernels on N points
    y : array of shape (n,), labels or targets of the first n points
    loss : Loss
    bias : whether there is an intercept
    """

    grams: ko.Grams
    y: Array
    loss: ko.Loss
    bias: bool

    @property
    def n(self) -> int:
        """The number of labelled points."""
        return self.y.size

    @property
    def M(self) -> int:
        """The number of kernels."""
        return len(self.grams)

    def check_psd(self) -> list[Array]:
        """Return factors on all points, or say which kernel is not positive semidefinite."""
        return [self.grams.factor(m) for m in range(self.M)]

    @cached_property
    def factors(self) -> list[Array]:
        """L_m with K_m = L_m L_m' on the labelled points, of shape (n, 0) for a zero kernel."""
        everywhere = self.check_psd()  # a kernel is PSD on all points
        if self.n == self.grams.n_points:
            return everywhere
        labelled = self.grams.block(slice(0, self.n))
        return [labelled.factor(m) for m in range(self.M)]

    @cached_property
    def used(self) -> NDArray[np.intp]:
        """The indices of the kernels that are not zero on the labelled points."""
        return np.flatnonzero([L.shape[1] > 0 for L in self.factors])

    def everywhere(self, values: cp.Expression) -> cp.Expression:
        """Return a vector over all M kernels: the values of the used ones, and zero for the others."""
        return np.eye(self.M)[:, self.used] @ values

    def risk(self, K: Any, norm: float = 2) -> ko.Risk:
        """Return the risk at a kernel, or at a list of kernels with a block norm."""
        return ko.risk(K, self.y, self.loss, self.bias, norm)

    def kernels(self) -> list[ko.Combination]:
        """Return each kernel as a combination of one kernel: a constant matrix c I is read as a ridge."""
        named = zip(self.grams, self.grams.names, strict=True)
        return [ko.combine([1.0], ko.Grams.from_array(K[None], [name])) for K, name in named]

    def machine(self, length: float = 1.0) -> Explicit:
        """Return the machine written out, one weight vector per used kernel, with factors L_m / length."""
        factors = {f"w{m}": self.factors[m] / length for m in self.used}
        return written_out(factors, self.y, self.loss, self.bias)

    def weights(self) -> tuple[cp.Variable, ko.Combination]:
        """Return new weights theta >= 0 and the kernel sum_m theta_m K_m."""
        theta = cp.Variable(self.M, nonneg=True, name="theta")
        return theta, ko.combine(theta, self.grams)


def multiple_kernel_data(
    grams: ko.Grams | ArrayLike, y: ArrayLike | None, loss: ko.Loss, bias: bool | None = None
) -> MultipleKernelData:
    """Return the data of a learning problem after checking them."""
    stack = as_grams(grams)
    loss = as_loss(loss)
    use_bias = loss.default_bias if bias is None else boolean(bias, "bias")
    if use_bias and isinstance(loss, ko.one_class):
        raise ko.errors.ParameterError(
            "one-class learning has no intercept, got bias=True: b = 1 with f = 0 would be optimal. "
            "Leave bias out."
        )
    return MultipleKernelData(stack, loss.targets(y, stack.n_points), loss, use_bias)


def formulation(
    name: str,
    problem: cp.Problem,
    kernel: cp.Expression,
    weights: cp.Expression,
    dual: Callable[[], cp.Problem],
    equation: str,
    **others: Any,
) -> ko.Formulation:
    """Return the formulation of a problem of the paper, whose dual has the same value."""
    reference = f"{PAPER}, {equation}"
    return ko.Formulation(f"lp_norm.{name}", problem, kernel, weights, dual, "equal", reference, **others)


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
