"""The block norm without the square: a sum of powers of the lengths, the group lasso at r = 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.lp_norm.dual_over_alpha import DualOverAlpha
from formulations.lp_norm.multiple_kernel_data import PAPER, MultipleKernelData
from kernelopt.extend import Array

LARGEST_RATIO = 1e8  # of two weights; at it a part of the kernel keeps half of the digits of a double


def powers(data: MultipleKernelData, r: float) -> ko.Formulation:
    r"""The machine of equation (29), :math:`\sum_i V(f_i, y_i) + \tfrac12 \sum_m \|w_m\|^r`.

    For r < 2 it is a problem of risks, by

    .. math::

        \tfrac12 t^r = \min_{\theta > 0}\ \frac{t^2}{2 \theta} + \kappa \theta^p, \qquad
        p = \frac{r}{2 - r},\quad \kappa = \frac{p^p}{2 (p + 1)^{p + 1}}

    where theta is the weight of the kernel. At r = 2 it is the machine of the sum of the kernels.
    """
    if np.isinf(r):
        raise ko.ParameterError(
            "r must be finite for squared=False, got inf: the sum of powers has no limit. Use squared=True."
        )
    if r > 2:
        return powers_above_two(data, r)
    theta, K = data.weights()
    weights: cp.Expression = theta
    if r == 2:
        weights = cp.Constant(np.ones(data.M))
        K = ko.combine(weights, data.grams)
        problem = cp.Problem(cp.Minimize(data.risk(K)))
    else:
        p = r / (2 - r)
        kappa = (p / (p + 1)) ** p / (2 * (p + 1))
        problem = cp.Problem(cp.Minimize(data.risk(K) + kappa * sum_of_powers(theta, p)))
    return ko.Formulation(
        name="lp_norm.block_norm",
        problem=problem,
        kernel=K,
        weights=weights,
        dual=partial(dual, data, r),
        claim="equal",
        reference=f"{PAPER}, equation (29)",
    )


def sum_of_powers(x: cp.Expression, p: float) -> cp.Expression:
    """Return sum_m x_m^p for x >= 0: linear, quadratic, or exact power cones."""
    if p == 1:
        return cp.sum(x)
    return cp.sum_squares(x) if p == 2 else cp.sum(cp.power(x, p, approx=False))


def dual(data: MultipleKernelData, r: float) -> cp.Problem:
    r"""The dual of the sum of powers, with :math:`s_m = \alpha'K_m\alpha` and :math:`r' = r / (r - 1)`.

    .. math:: \max\ \ell(\alpha) - \tfrac{r - 1}{2} (2/r)^{r'} \sum_m s_m^{r'/2}

    and at r = 1, :math:`\sqrt{s_m} \le \tfrac12` in the place of the sum.
    """
    side = DualOverAlpha(data)
    if r == 1:
        return side.maximize(side.gain, [side.lengths() <= 1 / 2])
    penalty = (r - 1) / 2 * sum_of_powers(2 / r * side.lengths(), ko.conjugate_exponent(r))
    return side.maximize(side.gain - penalty, [])


def powers_above_two(data: MultipleKernelData, r: float) -> ko.Formulation:
    r"""The explicit programme for r > 2, with :math:`\omega_m = \tfrac2r \|w_m\|^{2 - r}`.

    A part that vanishes would have an infinite weight: weights are at most 1e8 times the smallest.
    """
    machine = data.machine()
    objective = sum_of_powers(machine.lengths, r) / 2 + machine.loss
    problem = cp.Problem(cp.Minimize(objective), machine.constraints)
    ratios = 2 / r * cp.power(machine.lengths, 2 - r, approx=False)
    ratios = cp.minimum(ratios, LARGEST_RATIO * cp.min(ratios))
    omega = data.everywhere(ratios) if data.used.size else cp.Constant(np.zeros(data.M))

    return Retrained(
        name="lp_norm.block_norm",
        problem=problem,
        kernel=ko.combine(omega, data.grams),
        weights=omega,
        dual=partial(dual, data, r),
        claim="equal",
        reference=f"{PAPER}, equation (29)",
        data=data,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Retrained(ko.Formulation):
    """A programme without risks, with the machine that is trained at its kernel."""

    data: MultipleKernelData = field(kw_only=True)

    def machine(self) -> tuple[Array, float]:
        n = self.data.n
        found = self.data.risk(np.asarray(self.kernel.value)[:n, :n]).oracle()
        return found.alpha, float(found.intercept)
