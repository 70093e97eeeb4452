"""Losses for labels in {-1, +1}."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import cvxpy as cp
import numpy as np
from cvxpy.transforms.indicator import indicator
from scipy.special import expit, logit, xlog1py, xlogy

from kernelopt.losses.base import Loss, Primal, WeightedLoss
from kernelopt.losses.curve import Curve
from kernelopt.losses.weights import per_sample, weighted_sum
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, positive


def signed_box(y: Array, curvature: float | Array, C: float | Array) -> Curve:
    """Return the dual of a margin loss, y'a - curvature/2 a'a with 0 <= y_i a_i <= C_i."""
    reach = np.asarray(C, dtype=float)
    zero = np.zeros(y.size)
    return Curve(y, zero + curvature, zero, np.where(y > 0, 0.0, -reach), np.where(y > 0, reach, 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class hinge(WeightedLoss):
    r"""The hinge loss of the 1-norm soft margin.

    .. math:: \sum_i C_i (1 - y_i t_i)_+

    for predictions t and labels y. Its dual is :math:`\ell(a) = y'a` on :math:`0 \le y_i a_i \le C_i`.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelopt as ko
    >>> ko.hinge(C=2.0).value(np.array([0.5, -3.0]), np.array([1.0, -1.0]))
    1.0
    """

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.pos(1 - cp.multiply(y, fit)))

    def curve(self, y: Array) -> Curve:
        return signed_box(y, 0.0, per_sample(self.C, y.size))


@dataclass(frozen=True, eq=False, repr=False)
class squared_hinge(WeightedLoss):
    r"""The squared hinge loss of the 2-norm soft margin.

    .. math:: \sum_i \tfrac12 C_i (1 - y_i t_i)_+^2

    for predictions t and labels y. Its dual is :math:`\ell(a) = y'a - \sum_i a_i^2 / (2 C_i)` on
    :math:`0 \le y_i a_i`.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    """

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.square(cp.pos(1 - cp.multiply(y, fit)))) / 2

    def curve(self, y: Array) -> Curve:
        return signed_box(y, 1 / per_sample(self.C, y.size), np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class huberized_hinge(WeightedLoss):
    r"""The hinge with a quadratic part, which a ridge of its dual makes.

    .. math:: \sum_i\ \max_{0 \le a \le C_i}\ a (1 - y_i t_i) - \tfrac\tau2 a^2

    for predictions t and labels y. Its dual is :math:`\ell(a) = y'a - \tfrac\tau2 a'a` on
    :math:`0 \le y_i a_i \le C_i`. A term is zero for :math:`y_i t_i \ge 1`, quadratic over a length
    :math:`\tau C_i`, and then linear with slope :math:`C_i`. This is the general (C, tau) criterion of [1]_;
    predictions use K and not K + tau I.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Largest slope of each sample, not divided by n.
    tau : float > 0, default 1.0
        Ridge of the dual, in units of the kernel.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.1, Proposition 15.
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tau", positive(self.tau, "tau"))

    def scaled(self, factor: float) -> Self:
        """Return the loss times a positive number: C times it, and tau divided by it."""
        return replace(super().scaled(factor), tau=self.tau / factor)

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        slack = cp.Variable(y.size, nonneg=True, name="slack")
        rest = cp.pos(1 - cp.multiply(y, fit) - slack)
        return weighted_sum(self.C, slack) + cp.sum_squares(rest) / (2 * self.tau)

    def curve(self, y: Array) -> Curve:
        return signed_box(y, self.tau, per_sample(self.C, y.size))


@dataclass(frozen=True, eq=False, repr=False)
class hard_margin(Loss):
    r"""The hard margin: zero where no sample misses the margin one, infinite elsewhere.

    The samples meet it where :math:`y_i t_i \ge 1`. The dual is :math:`\ell(a) = y'a` on
    :math:`0 \le y_i a_i`.
    """

    def scaled(self, factor: float) -> Self:
        """Return the loss itself, whose values are zero and infinity."""
        positive(factor, "factor")
        return self

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return indicator([(cp.multiply(y, fit) >= 1).set_label("margin")])

    def curve(self, y: Array) -> Curve:
        return signed_box(y, 0.0, np.inf)

    def value(self, t: Array, y: Array) -> float:
        return 0.0 if float((y * t).min()) >= 1.0 else np.inf

    def intercept(self, f: Array, y: Array) -> float:
        return -(float(f[y > 0].min()) + float(f[y < 0].max())) / 2

    def primal(self, f: Array, penalty: float, y: Array, bias: bool) -> Primal:
        """Return the value of f scaled to margin one, which is penalty / margin(f)^2."""
        b = self.intercept(f, y) if bias else 0.0
        margin = float((y * (f + b)).min())
        if margin <= 0:
            return Primal(np.inf, 1.0, b)
        with np.errstate(all="ignore"):  # infinite where it overflows
            return Primal(float(np.float64(penalty) / margin / margin), 1 / margin, b / margin)

    def above(self, f: Array, error: Array, penalty: float, y: Array, intercept: float) -> float:
        """Return an upper bound of the value of f + b scaled to margin one."""
        margin = Ball(((Ball(f, error) + intercept) * y).below.min())
        return float((Ball(penalty) / margin / margin).above) if margin.mid > 0 else np.inf


@dataclass(frozen=True, eq=False, repr=False)
class logistic(WeightedLoss):
    r"""The logistic loss, the negative logarithm of a likelihood of the labels.

    .. math:: \sum_i C_i \log(1 + \exp(-y_i t_i))

    for predictions t and labels y. Its dual is :math:`\ell(a) = \sum_i C_i H(y_i a_i / C_i)` on
    :math:`0 \le y_i a_i \le C_i`, with the entropy :math:`H(v) = -v \log v - (1 - v) \log(1 - v)`.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    """

    @property
    def quadratic(self) -> bool:
        return False

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.logistic(-cp.multiply(y, fit)))

    def curve(self, y: Array) -> Curve:
        return signed_box(y, 0.0, per_sample(self.C, y.size))

    def responder(self, y: Array) -> Callable[[Array], Array]:
        reach = y * per_sample(self.C, y.size)
        return lambda t: np.asarray(reach * expit(-y * t))

    def hessian_diag(self, t: Array, y: Array) -> Array:
        slope = expit(-y * t)
        return np.asarray(per_sample(self.C, y.size) * slope * (1 - slope))

    def value(self, t: Array, y: Array) -> float:
        return float(per_sample(self.C, y.size) @ np.logaddexp(0.0, -y * t))

    def dual_value(self, alpha: Array, y: Array) -> float:
        C = per_sample(self.C, y.size)
        v = np.clip(y * alpha / C, 0.0, 1.0)
        return float(-C @ (xlogy(v, v) + xlog1py(1 - v, -v)))

    def dual_gradient(self, alpha: Array, y: Array) -> Array:
        return np.asarray(-y * logit(y * alpha / per_sample(self.C, y.size)))

    def concavity(self, y: Array) -> Array:
        return 4 / per_sample(self.C, y.size)  # -H'' = 1 / (v (1 - v)) is at least 4

    def dual_expression(self, alpha: cp.Expression, y: Array) -> tuple[cp.Expression, list[cp.Constraint]]:
        C = per_sample(self.C, y.size)
        a = cp.multiply(y, alpha)
        return -cp.sum(cp.rel_entr(a, C)) - cp.sum(cp.rel_entr(C - a, C)), []

    def dual_perspective(
        self, alpha: cp.Expression, y: Array, weight: cp.Expression | None = None
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        a = cp.multiply(cp.Constant(y, name="y"), alpha)
        C: Any = cp.Constant(self.C, name="C") if isinstance(self.C, np.ndarray) else self.C
        C = C if weight is None else C * weight
        return -cp.sum(cp.rel_entr(a, C)) - cp.sum(cp.rel_entr(C - a, C)), []
