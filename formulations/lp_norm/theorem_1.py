r"""Theorem 1: the penalised ("Tikhonov") and the constrained ("Ivanov") form have the same machines.

Let (w, b, theta) solve `primal` with the loss V, and let w be different from zero. Take any tau > 0 and

.. math:: \mu = \frac{B^2}{4 \tau^3}, \qquad B^2 = \sum_m \|w_m\|^2 / \theta_m = \alpha'K_\theta\alpha.

Then (w, b, tau theta) solves `tikhonov` with the loss V / tau and the penalty mu. Its dual variable is
alpha / tau, and the optimal values P and T of the two forms satisfy

.. math:: T(V / \tau, \mu) = P(V) / \tau + \mu \tau^2.

Every solution of `tikhonov` with w different from zero is of this kind, with tau the p-norm of its weights.
Both maps take a solution: B and tau are not known before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import kernelopt as ko
from formulations.losses import as_loss
from kernelopt.extend import exponent, norms, positive, shown

NEARLY_ZERO = 1e-12  # half a squared norm below this share of the value is rounding of a solver


class Ivanov(NamedTuple):
    """Arguments of `primal` that give the machine of a solution of `tikhonov`."""

    loss: ko.Loss
    tau: float


class Tikhonov(NamedTuple):
    """Arguments of `tikhonov` that give the machine of a solution of `primal`."""

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
    loss : Loss
        The loss V that `tikhonov` was given.

    Returns
    -------
    Ivanov : (loss, tau)

    Raises
    ------
    InputError
        If the machine is zero: then the weights are not determined, and Theorem 1 does not apply.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Theorem 1.
    """
    check_machine(solution)
    tau = norms.lp_length(np.asarray(solution.weights), exponent(p))
    return Ivanov(learned_loss(loss).scaled(tau), tau)


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

    Returns
    -------
    Tikhonov : (loss, penalty, tau)

    Raises
    ------
    InputError
        If the machine is zero: then the penalty would be zero.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Theorem 1.
    """
    half = check_machine(solution)
    tau = positive(tau, "tau")
    return Tikhonov(learned_loss(loss).scaled(1 / tau), half / (2 * tau**3), tau)


def learned_loss(loss: Any) -> ko.Loss:
    """Return the loss that a solution was learned with, checked."""
    return as_loss(loss, "Pass the one that was learned with.")


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
