"""The block-norm form: the weights eliminated, one weight vector per kernel."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.dual_over_alpha import DualOverAlpha
from formulations.lp_norm.exponents import ball_exponent
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    MultipleKernelData,
    formulation,
    multiple_kernel_data,
)
from formulations.lp_norm.powers import powers
from formulations.machine_weights import machine_weights
from kernelopt.extend import Array, Programme, boolean, exponent, norms


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

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, 1'alpha = 0,

    .. math::

        \max_\alpha\ \ell(\alpha) - \tfrac12 \big\|(\sqrt{s_1}, \dots, \sqrt{s_M})\big\|_{r^*}^2, \qquad
        s_m = \alpha'K_m\alpha, \quad \tfrac1r + \tfrac1{r^*} = 1

    or for `squared=False` with
    :math:`\tfrac{r - 1}{2} (2/r)^{r^*} \sum_m s_m^{r^*/2}` in the place of the last term, and at r = 1 with
    the constraints :math:`\sqrt{s_m} \le \tfrac12` and no last term.

    Statement: the two have one value. For r <= 2 it is also the value of `primal` with the same loss at
    p = r / (2 - r), which means r = 2 p / (p + 1). For r > 2 it is the value of

    .. math::

        \max_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{w, b}\ \sum_i V(f_i, y_i)
        + \tfrac12 \sum_m \theta_m \|w_m\|^2, \qquad p = \frac{r}{r - 2}

    Let B be the r-norm of the lengths at the solution of `squared=True`. Then `squared=False` with the loss
    times :math:`\tfrac r2 B^{r-2}` has the same (w, b).

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
        :math:`f = \sum_m \omega_m K_m \alpha + b`. For `squared=True` they are the theta of `primal` where
        r < 2, one where r = 2, and 1 / theta of the last display where r > 2.

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
    data, r = multiple_kernel_data(grams, y, loss, bias), exponent(r, "r")
    if not boolean(squared, "squared"):
        return powers(data, r)
    if r > 2:
        return above_two(data, r)
    data.check_psd()
    theta, K = data.weights()
    return formulation(
        "block_norm",
        cp.Problem(cp.Minimize(data.risk(K)), ko.lp_ball(theta, ball_exponent(r))),
        K,
        theta,
        partial(dual, data, r),
        "Proposition 7",
        programmes={"block norm": partial(programme, data, r, theta)},
    )


def programme(data: MultipleKernelData, r: float, theta: cp.Variable) -> Programme:
    """Return the primal over functions for r <= 2; its lengths give the weights, by Proposition 2."""
    machine = data.machine()
    objective = cp.square(ko.p_norm(machine.lengths, r)) / 2 + machine.loss
    problem = cp.Problem(cp.Minimize(objective), machine.constraints)

    def recover() -> tuple[dict[cp.Variable, Array], list[Array]]:
        lengths = np.asarray(data.everywhere(machine.lengths).value) if data.used.size else np.zeros(data.M)
        weights = norms.minimizing_weights(lengths, ball_exponent(r))
        return {theta: weights}, [np.asarray(machine.fit.dual_value)]

    return Programme(problem, recover)


def above_two(data: MultipleKernelData, r: float) -> ko.Formulation:
    """Return the formulation for r > 2: a risk with a block norm over constant kernels."""
    risk = data.risk(data.kernels(), norm=r)
    omega = machine_weights(risk)
    return formulation(
        "block_norm",
        cp.Problem(cp.Minimize(risk)),
        ko.combine(omega, data.grams),
        omega,
        partial(dual, data, r),
        "equations (32)-(33)",
    )


def dual(data: MultipleKernelData, r: float) -> cp.Problem:
    """Return the dual of `block_norm` with the square: section 4.4, and (33) without theta for r > 2."""
    side = DualOverAlpha(data)
    norm = ko.p_norm(side.lengths(), norms.conjugate_exponent(r))
    return side.maximize(side.gain - cp.square(norm) / 2, [])
