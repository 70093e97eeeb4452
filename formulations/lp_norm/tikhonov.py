"""The penalised ("Tikhonov") form: a price on the weights."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    DualOverAlpha,
    MultipleKernelData,
    formulation,
    multiple_kernel_data,
)
from kernelopt.extend import exponent, norms, positive


def tikhonov(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    p: float,
    penalty: float,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
) -> ko.Formulation:
    r"""The regularised risk with a price on the weights in the place of a bound.

    .. math::

        \min_{\theta \ge 0}\ \mathrm{risk}\Big(\sum_m \theta_m K_m\Big) + \mu \|\theta\|_p^2

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, 1'alpha = 0,

    .. math::

        \max_\alpha\ \ell(\alpha) - \frac{\|s\|_q^2}{16 \mu}, \qquad s_m = \alpha'K_m\alpha, \quad
        \tfrac1p + \tfrac1q = 1

    Statement: the two have one value, and the weights have the norm
    :math:`\|\theta\|_p = \|s\|_q / (4\mu) = (B^2 / 4\mu)^{1/3}`. Here B^2 is the minimum of
    :math:`\sum_m \|w_m\|^2 / \theta_m` over the unit ball, for the w of the solution. By Theorem 1 the
    machine solves the constrained form at another C, see `ivanov_from_tikhonov`.

    Parameters
    ----------
    grams, y, loss, bias
        As in `primal`; the C of the loss is the one of this form.
    p : float in [1, inf]
    penalty : float > 0
        mu, the price of the squared norm of the weights.

    Returns
    -------
    Formulation
        claim "equal"; the weights are theta, of any length.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), equation (4), Theorem 1.

    Examples
    --------
    For K = I the risk at theta K is 1 / theta, and 1 / theta + theta^2 / 2 is smallest at 1:

    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> machine = lp_norm.tikhonov([np.eye(2)], [1, -1], p=2, penalty=0.5, loss=ko.hinge(2.0))
    >>> solution = machine.solve("exact")
    >>> round(solution.value, 5), solution.weights.round(4)
    (1.5, array([1.]))
    """
    data, p = multiple_kernel_data(grams, y, loss, bias), exponent(p)
    mu = positive(penalty, "penalty")
    theta, K = data.weights()
    problem = cp.Problem(cp.Minimize(data.risk(K) + mu * cp.square(ko.p_norm(theta, p))))
    return formulation("tikhonov", problem, K, theta, partial(dual, data, p, mu), "equation (4)")


def dual(data: MultipleKernelData, p: float, mu: float) -> cp.Problem:
    """Return the dual of `tikhonov`: equation (10) of the paper, with the half of a squared norm for h."""
    side = DualOverAlpha(data)
    s, caps = side.forms()
    return side.maximize(side.gain - cp.square(ko.p_norm(s, norms.conjugate_exponent(p))) / (16 * mu), caps)
