"""The penalised ("Tikhonov") form, and Theorem 1: the passage between it and the constrained one."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.dual_over_alpha import DualOverAlpha
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    PAPER,
    MultipleKernelData,
    multiple_kernel_data,
)

NEARLY_ZERO = 1e-12  # half a squared norm below this share of the value is rounding of a solver


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

    Statement: its value is that of `dual_tikhonov`, and
    :math:`\|\theta\|_p = \|s(\alpha)\|_q / (4\mu) = (B^2 / 4\mu)^{1/3}` at the solution, with B^2 the least
    :math:`\sum_m \|w_m\|^2 / \theta_m` over the unit ball for its w. By Theorem 1 it is the constrained
    form at another C, see `ivanov_from_tikhonov`.

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
    data, p = multiple_kernel_data(grams, y, loss, bias), ko.exponent(p)
    mu = ko.positive(penalty, "penalty")
    theta, K = data.weights()
    problem = cp.Problem(cp.Minimize(data.risk(K) + mu * cp.square(ko.p_norm(theta, p))))
    return ko.Formulation(
        name="lp_norm.tikhonov",
        problem=problem,
        kernel=K,
        weights=theta,
        dual=partial(dual, data, p, mu),
        claim="equal",
        reference=f"{PAPER}, equation (4)",
    )


def dual(data: MultipleKernelData, p: float, mu: float) -> cp.Problem:
    r"""The dual over alpha: :math:`\max \ell(\alpha) - \|(\alpha'K_m\alpha)_m\|_q^2 / (16 \mu)`.

    Over the domain of :math:`\ell` and, with an intercept, 1'alpha = 0; :math:`1/p + 1/q = 1`.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), equation (10), with the half of a squared norm for h.
    """
    side = DualOverAlpha(data)
    s, caps = side.forms()
    return side.maximize(side.gain - cp.square(ko.p_norm(s, ko.conjugate_exponent(p))) / (16 * mu), caps)


class Ivanov(NamedTuple):
    """Parameters of `primal` that give the machine of a solution of `tikhonov`."""

    loss: ko.Loss
    tau: float


class Tikhonov(NamedTuple):
    """Parameters of `tikhonov` that give the machine of a solution of `primal`."""

    loss: ko.Loss
    penalty: float
    tau: float


def ivanov_from_tikhonov(solution: ko.Solution, *, p: float, loss: ko.Loss) -> Ivanov:
    r"""The constrained form that a solution of `tikhonov` solves.

    Statement: let tau be the p-norm of the weights. Then `primal` with tau times the loss has the same
    (w, b), the weights theta / tau and tau times the alpha. The values T of the penalised form and P of the
    constrained one satisfy

    .. math:: T(V, \mu) = P(\tau V) / \tau + \mu \tau^2

    The map takes the solution, since tau is not known before.

    Parameters
    ----------
    solution : Solution
        Of `tikhonov`.
    p : float in [1, inf]
    loss : Loss
        The one that `tikhonov` was given.

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
    refuse_zero(solution, loss)
    tau = ko.lp_length(np.asarray(solution.weights), ko.exponent(p))
    return Ivanov(loss.scaled(tau), tau)


def tikhonov_from_ivanov(solution: ko.Solution, *, loss: ko.Loss, tau: float = 1.0) -> Tikhonov:
    r"""The penalised form that a solution of `primal` solves, its weights stretched to the norm tau.

    Statement: with :math:`B^2 = \sum_m \|w_m\|^2 / \theta_m = \alpha'K_\theta\alpha`, `tikhonov` with the
    loss divided by tau and :math:`\mu = B^2 / (4 \tau^3)` has the same (w, b) and the weights
    tau theta. Every tau > 0 gives one.

    Parameters
    ----------
    solution : Solution
        Of `primal`.
    loss : Loss
        The one that `primal` was given.
    tau : float > 0, default 1.0

    Returns
    -------
    Tikhonov : (loss, penalty, tau)

    Raises
    ------
    InputError
        If the machine is zero: then the penalty would be.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Theorem 1.
    """
    refuse_zero(solution, loss)
    tau = ko.positive(tau, "tau")
    return Tikhonov(loss.scaled(1 / tau), half_norm(solution) / (2 * tau**3), tau)


def half_norm(solution: ko.Solution) -> float:
    """Return 1/2 alpha'K alpha at the learned kernel, half the B^2 of Theorem 1."""
    alpha = np.asarray(solution.alpha)
    return float(alpha @ solution.kernel[: alpha.size, : alpha.size] @ alpha) / 2


def refuse_zero(solution: Any, loss: Any) -> None:
    """Raise unless the solution has one machine, which is not zero, and `loss` is a loss."""
    if not isinstance(solution, ko.Solution):
        raise ko.InputError(
            f"solution must be a Solution, got {ko.shown(solution)}. Pass what "
            "lp_norm.primal(...).solve() returns."
        )
    if not isinstance(loss, ko.Loss):
        raise ko.ParameterError(
            f"loss must be a loss such as kernelopt.hinge(1.0), got {ko.shown(loss)}. Pass the one that "
            "was learned with."
        )
    if len(solution.learned) != 1 or solution.weights is None:
        raise ko.InputError(
            f"the solution must have one machine with weights, got {len(solution.learned)} machine(s). "
            "Pass one of lp_norm.primal or lp_norm.tikhonov."
        )
    if not half_norm(solution) > NEARLY_ZERO * max(1.0, abs(solution.value)):
        raise ko.InputError(
            f"the machine must be different from zero, got 1/2 |f|^2 = {half_norm(solution):.1e}: Theorem 1 "
            "needs w != 0, and the weights are not determined. Increase C."
        )
