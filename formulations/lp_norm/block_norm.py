"""The block-norm form: the weights eliminated, one weight vector per kernel."""

from __future__ import annotations

from functools import partial

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
from formulations.lp_norm.powers import powers
from kernelopt.extend import Array

SMALLEST = 1e-300  # the divisor at alpha = 0, where the coefficients are zero too


def block_norm(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    r: float,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
    squared: bool = True,
) -> ko.Formulation:
    r"""The primal over functions, regularised by a norm of the lengths of their parts.

    .. math::

        \min_{w, b}\ \sum_i V(f_i, y_i) + \tfrac12 \big\|(\|w_1\|, \dots, \|w_M\|)\big\|_r^2,
        \qquad f = \sum_m L_m w_m + b

    or with :math:`\tfrac12 \sum_m \|w_m\|^r` for `squared=False`, at r = 1 the group lasso.

    Statement: its value is that of `dual_block_norm`. For r <= 2 it is also that of `primal` at
    p = r / (2 - r), which is r = 2 p / (p + 1), with the same loss. For r > 2 it is that of

    .. math::

        \max_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{w, b}\ \sum_i V(f_i, y_i)
        + \tfrac12 \sum_m \theta_m \|w_m\|^2, \qquad p = \frac{r}{r - 2}

    `squared=False` has the same (w, b) where its loss is that of `squared=True` times
    :math:`\tfrac r2 B^{r-2}`, with B the r-norm of the lengths at the solution.

    Parameters
    ----------
    grams, y, loss, bias
        As in `primal`.
    r : float in [1, inf]
        Exponent of the block norm; finite for `squared=False`.
    squared : bool, default True
        Whether the regulariser is half the square of the norm, or half the sum of powers.

    Returns
    -------
    Formulation
        claim "equal"; the weights are those of the learned machine,
        :math:`\omega_m = \|w_m\| / \sqrt{\alpha'K_m\alpha}`, so that
        :math:`f = \sum_m \omega_m K_m \alpha + b`. For r < 2 and `squared=True` they are the theta of
        `primal`, for r = 2 they are one, and for r > 2 one over the theta of the display.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), section 4.4: equations (28), (29), (32), (33), Proposition 7.

    Notes
    -----
    One second-order cone per kernel; power cones for r other than 1, 2 and inf.

    Examples
    --------
    Two copies of K = I share w, with lengths 1/sqrt(2) each:

    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> solution = lp_norm.block_norm([np.eye(2)] * 2, [1, -1], r=4 / 3, loss=ko.hinge(2.0)).solve("exact")
    >>> round(solution.value, 5), solution.weights.round(4)
    (0.70711, array([0.7071, 0.7071]))
    """
    data, r = multiple_kernel_data(grams, y, loss, bias), ko.exponent(r, "r")
    if not ko.boolean(squared, "squared"):
        return powers(data, r)
    if r > 2:
        return above_two(data, r)
    data.check_psd()
    theta, K = data.weights()
    p = np.inf if r == 2 else r / (2 - r)
    return ko.Formulation(
        name="lp_norm.block_norm",
        problem=cp.Problem(cp.Minimize(data.risk(K)), ko.lp_ball(theta, p)),
        kernel=K,
        weights=theta,
        dual=partial(dual, data, r),
        claim="equal",
        reference=f"{PAPER}, Proposition 7",
        programmes={"block norm": partial(programme, data, r, theta)},
    )


def programme(data: MultipleKernelData, r: float, theta: cp.Variable) -> ko.Programme:
    """Return the primal over functions for r <= 2; by Proposition 2 its lengths give the weights."""
    machine = data.machine()
    objective = cp.square(ko.p_norm(machine.lengths, r)) / 2 + machine.loss
    problem = cp.Problem(cp.Minimize(objective), machine.constraints)

    def recover() -> tuple[dict[cp.Variable, Array], list[Array]]:
        weights = np.ones(data.M)
        lengths = np.asarray(data.everywhere(machine.lengths).value) if data.used.size else np.zeros(data.M)
        if r < 2 and lengths.max() > 0:
            powers_of = (lengths / lengths.max()) ** (2 - r)  # theta_m ~ |w_m|^(2/(p+1)), 2/(p+1) = 2 - r
            weights = powers_of / ko.lp_length(powers_of, r / (2 - r))
        elif r < 2:
            weights = np.full(data.M, data.M ** ((r - 2) / r))
        return {theta: weights}, [np.asarray(machine.fit.dual_value)]

    return ko.Programme(problem, recover)


def above_two(data: MultipleKernelData, r: float) -> ko.Formulation:
    """Return the formulation for r > 2: a risk with a block norm over constant kernels."""
    risk = data.risk(data.kernels(), norm=r)
    omega = machine_weights(data, risk)
    return ko.Formulation(
        name="lp_norm.block_norm",
        problem=cp.Problem(cp.Minimize(risk)),
        kernel=ko.combine(omega, data.grams),
        weights=omega,
        dual=partial(dual, data, r),
        claim="equal",
        reference=f"{PAPER}, equations (32)-(33)",
    )


def machine_weights(data: MultipleKernelData, risk: ko.Risk) -> cp.Expression:
    """Return omega as a parameter: its value is that of the machine at the kernels."""
    return cp.CallbackParam(partial(scales_of, risk), (data.M,), nonneg=True)


def scales_of(risk: ko.Risk) -> Array:
    """Return omega_m = |omega_m alpha| / |alpha|; the machine holds the coefficients omega_m alpha."""
    learned = risk.oracle()
    coefficients = np.atleast_2d(getattr(learned, "coefficients", learned.alpha))
    length = max(float(np.linalg.norm(learned.alpha)), SMALLEST)
    return np.asarray(np.linalg.norm(coefficients, axis=1) / length)


def dual(data: MultipleKernelData, r: float) -> cp.Problem:
    r"""The dual over alpha: :math:`\max \ell(\alpha) - \tfrac12 \|(\sqrt{\alpha'K_m\alpha})_m\|_{r^*}^2`.

    :math:`1/r + 1/r^* = 1`, for every r in [1, inf]. For `squared=False` the dual has other terms: see
    `formulations.lp_norm.powers`.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), section 4.4; (33) for r > 2, with its theta eliminated.
    """
    side = DualOverAlpha(data)
    norm = ko.p_norm(side.lengths(), ko.conjugate_exponent(r))
    return side.maximize(side.gain - cp.square(norm) / 2, [])
