r"""The penalised ("Tikhonov") form: a price on the weights. By Theorem 1 it has the machines of `primal`.

Let (w, b, theta) solve `primal` with the loss V, and let w be different from zero. Take any tau > 0 and

.. math:: \mu = \frac{B^2}{4 \tau^3}, \qquad B^2 = \sum_m \|w_m\|^2 / \theta_m = \alpha'K_\theta\alpha.

Then (w, b, tau theta) solves `tikhonov` with the loss V / tau and the penalty mu. Its dual variable is
alpha / tau, and the optimal values P and T of the two forms satisfy

.. math:: T(V / \tau, \mu) = P(V) / \tau + \mu \tau^2.

Every solution of `tikhonov` with w different from zero is of this kind, with tau the p-norm of its weights.
Both maps take a solution: B and tau are not known before.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    DualOverAlpha,
    MultipleKernelData,
    formulation,
    multiple_kernel_data,
)
from formulations.lp_norm.primal import primal
from formulations.machines import as_loss
from kernelopt.extend import exponent, norms, parameters_of, positive, shown

LEARNED = "Pass the one that was learned with."
NEARLY_ZERO = 1e-12  # half a squared norm below this share of the value is rounding of a solver


@parameters_of(primal)
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

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, :math:`1'\alpha = 0`,

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
        As in `primal`.
    p : float in [1, inf]
        The exponent of the norm: weights are sparser for smaller p.
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


class Ivanov(NamedTuple):
    """Arguments of `primal` that give the machine of a solution of `tikhonov`.

    Parameters
    ----------
    loss : Loss
        tau V.
    tau : float > 0
        The norm of the weights of the solution.
    """

    loss: ko.Loss
    tau: float


class Tikhonov(NamedTuple):
    """Arguments of `tikhonov` that give the machine of a solution of `primal`.

    Parameters
    ----------
    loss : Loss
        V / tau.
    penalty : float > 0
        The price of the squared norm of the weights.
    tau : float > 0
        The norm of the weights.
    """

    loss: ko.Loss
    penalty: float
    tau: float


def ivanov_from_tikhonov(solution: ko.Solution, *, p: float, loss: ko.Loss) -> Ivanov:
    r"""The constrained form that has the machine of a solution of `tikhonov`.

    Statement: let :math:`\tau = \|\theta\|_p`, theta being the weights of the solution. `primal` with the
    loss :math:`\tau V` has the same (w, b), the weights theta / tau and tau times the dual variable.

    Parameters
    ----------
    solution : Solution
        Of `tikhonov`.
    p : float in [1, inf]
        Of the norm, as `tikhonov` was given it.
    loss : Loss
        The loss V that `tikhonov` was given.

    Returns
    -------
    Ivanov : (loss, tau)
        The loss tau V and the norm tau.

    Raises
    ------
    InputError
        If the machine is zero: then the weights are not determined, and Theorem 1 does not apply.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Theorem 1.

    Examples
    --------
    The maximum of 2 a - |s|_2^2 / 16 for alpha = (a, -a) and s = 2 a^2 (1, 2) is at a^3 = 2/5, and
    tau = |s|_2 / 4.

    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.tikhonov(K, [1, -1], p=2, penalty=1.0).solve("exact", tol=1e-8)
    >>> found = lp_norm.ivanov_from_tikhonov(solution, p=2, loss=ko.hinge(1.0))
    >>> round(found.tau, 3), round(5**0.5 / 2 * 0.4 ** (2 / 3), 3)
    (0.607, 0.607)
    """
    check_machine(solution)
    tau = norms.lp_length(np.asarray(solution.weights), exponent(p))
    return Ivanov(as_loss(loss, LEARNED).scaled(tau), tau)


def tikhonov_from_ivanov(solution: ko.Solution, *, loss: ko.Loss, tau: float = 1.0) -> Tikhonov:
    r"""The penalised form that has the machine of a solution of `primal`, with weights of norm tau.

    Statement: let :math:`B^2 = \alpha'K_\theta\alpha` and tau > 0. `tikhonov` with the loss
    :math:`V / \tau` and the penalty :math:`B^2 / (4 \tau^3)` has the same (w, b), tau times the weights, and
    the dual variable divided by tau.

    Parameters
    ----------
    solution : Solution
        Of `primal`.
    loss : Loss
        The loss V that `primal` was given.
    tau : float > 0, default 1.0
        The norm of the weights.

    Returns
    -------
    Tikhonov : (loss, penalty, tau)
        The loss V / tau, the penalty and the norm tau.

    Raises
    ------
    InputError
        If the machine is zero: then the penalty would be zero.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Theorem 1.

    Examples
    --------
    The maximum of 2 a - |s|_2 / 2 for alpha = (a, -a) and s = 2 a^2 (1, 2) is at a = 1 / sqrt(5). So
    B^2 = |s|_2 = 2 / sqrt(5), and the penalty is B^2 / 4.

    >>> import numpy as np
    >>> import kernelopt as ko
    >>> from formulations import lp_norm
    >>> K = [np.eye(2), np.array([[1.0, -1], [-1, 1]])]
    >>> solution = lp_norm.primal(K, [1, -1], p=2).solve("exact", tol=1e-8)
    >>> found = lp_norm.tikhonov_from_ivanov(solution, loss=ko.hinge(1.0))
    >>> round(found.penalty, 4), round(20**-0.5, 4)
    (0.2236, 0.2236)
    """
    half = check_machine(solution)
    tau = positive(tau, "tau")
    return Tikhonov(as_loss(loss, LEARNED).scaled(1 / tau), half / (2 * tau**3), tau)


def check_machine(solution: Any) -> float:
    """Return 1/2 alpha'K alpha, half of B^2, of a solution with one machine that is not zero."""
    if not isinstance(solution, ko.Solution):
        raise ko.InputError(
            f"solution must be a Solution, got {shown(solution)}. Pass what "
            "lp_norm.primal(...).solve() returns."
        )
    if len(solution.learned) != 1 or solution.weights is None:
        raise ko.InputError(
            f"the solution must have one machine with weights, got {len(solution.learned)} machine(s). "
            "Pass one of lp_norm.primal or lp_norm.tikhonov."
        )
    alpha = np.asarray(solution.alpha)
    half = float(alpha @ solution.kernel[: alpha.size, : alpha.size] @ alpha) / 2
    if not half > NEARLY_ZERO * max(1.0, abs(solution.value)):
        raise ko.InputError(
            f"the machine must be different from zero, got 1/2 |f|^2 = {half:.1e}: Theorem 1 needs w != 0, "
            "and the weights are not determined. Increase C."
        )
    return half
