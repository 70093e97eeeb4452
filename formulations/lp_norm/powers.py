"""`block_norm` without the square: the regulariser is a sum of powers of the lengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import cvxpy as cp
import numpy as np

import kernelopt as ko
from formulations.lp_norm.dual_over_alpha import DualOverAlpha
from formulations.lp_norm.exponents import ball_exponent
from formulations.lp_norm.multiple_kernel_data import PAPER, MultipleKernelData, formulation
from kernelopt.extend import Array, norms

LARGEST_RATIO = 1e8  # of two weights: the smaller term of their sum then keeps half of its sixteen digits


def powers(data: MultipleKernelData, r: float) -> ko.Formulation:
    r"""Return the formulation of equation (29), :math:`\min \sum_i V(f_i, y_i) + \tfrac12 \sum_m \|w_m\|^r`.

    For r < 2 the lengths are eliminated, and a problem in the risk remains. This rests on

    .. math::

        \tfrac12 t^r = \min_{\theta > 0}\ \frac{t^2}{2 \theta} + \kappa \theta^p, \qquad
        p = \frac{r}{2 - r},\quad \kappa = \frac{p^p}{2 (p + 1)^{p + 1}}

    where theta becomes the weight of the kernel. At r = 2 it is the machine of the sum of the kernels.
    """
    if np.isinf(r):
        raise ko.errors.ParameterError(
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
        p = ball_exponent(r)
        kappa = (p / (p + 1)) ** p / (2 * (p + 1))
        problem = cp.Problem(cp.Minimize(data.risk(K) + kappa * sum_of_powers(theta, p)))
    return formulation("block_norm", problem, K, weights, partial(dual, data, r), "equation (29)")


def sum_of_powers(x: cp.Expression, p: float) -> cp.Expression:
    """Return sum_m x_m^p for x >= 0: linear, quadratic, or exact power cones."""
    if p == 1:
        return cp.sum(x)
    return cp.sum_squares(x) if p == 2 else cp.sum(cp.power(x, p, approx=False))


def dual(data: MultipleKernelData, r: float) -> cp.Problem:
    """Return the dual of `block_norm` with `squared=False`."""
    side = DualOverAlpha(data)
    if r == 1:
        return side.maximize(side.gain, [side.lengths() <= 1 / 2])
    penalty = (r - 1) / 2 * sum_of_powers(2 / r * side.lengths(), norms.conjugate_exponent(r))
    return side.maximize(side.gain - penalty, [])


def powers_above_two(data: MultipleKernelData, r: float) -> ko.Formulation:
    r"""Return the formulation for r > 2, a problem over functions without risks.

    Its weights are :math:`\omega_m = \tfrac2r \|w_m\|^{2 - r}`. The weight of a part that vanishes would be
    infinite: weights are bounded by `LARGEST_RATIO` times the smallest one.
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
    """A formulation without risks: its machine is trained at the kernel of its solution."""

    data: MultipleKernelData = field(kw_only=True)

    def machine(self) -> tuple[Array, float]:
        n = self.data.n
        found = self.data.risk(np.asarray(self.kernel.value)[:n, :n]).oracle()
        return found.alpha, float(found.intercept)
