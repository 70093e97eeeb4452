"""Losses for real targets, and the one-class loss, which has no targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import cvxpy as cp
import numpy as np

from kernelopt.losses.base import WeightedLoss
from kernelopt.losses.curve import Curve
from kernelopt.losses.weights import per_sample, weighted_sum
from kernelopt.validation import Array, positive


@dataclass(frozen=True, eq=False, repr=False)
class squared(WeightedLoss):
    r"""The squared loss of kernel ridge regression.

    .. math:: \sum_i \tfrac12 C_i (t_i - y_i)^2

    for predictions t and targets y. Its dual is :math:`\ell(a) = y'a - \sum_i a_i^2 / (2 C_i)`, without
    bounds.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n: kernel ridge regression with ridge 1/C.
    """

    kind: ClassVar[Literal["labels", "targets", "none"]] = "targets"

    def dilated(self, unit: float) -> Self:
        """Return the loss of targets in another unit, with C times the square of the unit."""
        return self.scaled(unit**2)

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.square(fit - y)) / 2

    def curve(self, y: Array) -> Curve:
        unbounded = np.full(y.size, np.inf)
        return Curve(y, 1 / per_sample(self.C, y.size), np.zeros(y.size), -unbounded, unbounded)


@dataclass(frozen=True, eq=False, repr=False)
class epsilon_insensitive(WeightedLoss):
    r"""The loss of support vector regression, which is zero in a tube around the targets.

    .. math:: \sum_i C_i (|t_i - y_i| - \varepsilon)_+

    for predictions t and targets y. Its dual is :math:`\ell(a) = y'a - \varepsilon \|a\|_1` on
    :math:`|a_i| \le C_i`.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    eps : float >= 0, default 0.1
        Half width of the tube, in units of the targets.
    """

    kind: ClassVar[Literal["labels", "targets", "none"]] = "targets"
    eps: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", positive(self.eps, "eps", allow_zero=True))

    def dilated(self, unit: float) -> Self:
        """Return the loss of targets in another unit, with C times the unit and eps divided by it."""
        return replace(self.scaled(unit), eps=self.eps / unit)

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.pos(cp.abs(fit - y) - self.eps))

    def curve(self, y: Array) -> Curve:
        C, zero = per_sample(self.C, y.size), np.zeros(y.size)
        return Curve(y, zero, zero + self.eps, -C, C)


@dataclass(frozen=True, eq=False, repr=False)
class one_class(WeightedLoss):
    r"""The loss of one-class learning, used without intercept.

    .. math:: \sum_i C_i (1 - t_i)_+

    for predictions t. Its dual is :math:`\ell(a) = 1'a` on :math:`0 \le a_i \le C_i`. With an intercept the
    optimum would be b = 1 and f = 0.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    """

    kind: ClassVar[Literal["labels", "targets", "none"]] = "none"
    default_bias: ClassVar[bool] = False

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        return weighted_sum(self.C, cp.pos(1 - fit))

    def curve(self, y: Array) -> Curve:
        zero = np.zeros(y.size)
        return Curve(zero + 1, zero, zero, zero, zero + per_sample(self.C, y.size))
