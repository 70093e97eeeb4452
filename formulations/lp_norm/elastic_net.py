"""The elastic net over kernels: a sparse penalty of the lengths, and a quadratic one."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    DualOverAlpha,
    MultipleKernelData,
    multiple_kernel_data,
)
from formulations.lp_norm.primal import primal
from kernelopt.extend import parameters_of, positive


@parameters_of(primal)
def elastic_net(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    l1: float,
    l2: float,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
) -> ko.Formulation:
    r"""The kernel, and the machine, of the elastic-net penalty on the lengths of the parts of a function.

    .. math::

        \min_{w, b}\ \sum_i V(f_i, y_i) + \lambda_1 \sum_m \|w_m\|
        + \tfrac{\lambda_2}{2} \sum_m \|w_m\|^2, \qquad f = \sum_m L_m w_m + b

    The lengths are eliminated by weights, and the problem that is solved is

    .. math::

        \min_{0 \le \theta_m < 1/\lambda_2}\ \mathrm{risk}\Big(\sum_m \theta_m K_m\Big)
        + \frac{\lambda_1^2}{2 \lambda_2} \sum_m \Big(\frac{1}{1 - \lambda_2 \theta_m} - 1\Big)

    For l2 = 0, the group lasso, its last term is :math:`\tfrac{\lambda_1^2}{2} \sum_m \theta_m`.

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, :math:`1'\alpha = 0`,

    .. math::

        \max_\alpha\ \ell(\alpha) - \frac{1}{2 \lambda_2} \sum_m (\sqrt{s_m} - \lambda_1)_+^2, \qquad
        s_m = \alpha'K_m\alpha

    For l2 = 0 it has the constraints :math:`\sqrt{s_m} \le \lambda_1` in the place of the last term.

    Statement: the three have one value, and
    :math:`\theta_m = \|w_m\| / (\lambda_1 + \lambda_2 \|w_m\|)`.

    Parameters
    ----------
    grams, y, loss, bias
        As in `primal`.
    l1 : float > 0
        Price of the lengths: kernels with :math:`\sqrt{\alpha'K_m\alpha} \le \lambda_1` get weight 0.
    l2 : float >= 0
        Price of half their squares.

    Returns
    -------
    Formulation
        claim "equal"; the weights are theta.

    References
    ----------
    .. [1] Suzuki, Tomioka, "SpicyMKL", Machine Learning 85 (2011): the penalty. The second display is
       derived here, as Kloft et al., JMLR 12 (2011), section 4.4, eliminate the lengths for powers.

    Notes
    -----
    One second-order cone per kernel for the risk, and one for the reciprocal.

    Examples
    --------
    For K = I and f = y, |w| is sqrt(2): the value is sqrt(2) l1 + l2.

    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> machine = lp_norm.elastic_net([np.eye(2)], [1, -1], l1=0.5, l2=0.5, loss=ko.hinge(2.0))
    >>> solution = machine.solve("exact")
    >>> round(solution.value, 5), solution.weights.round(4)
    (1.20711, array([1.1716]))
    """
    if positive(l1, "l1", allow_zero=True) == 0:
        raise ko.errors.ParameterError(
            "l1 must be a positive finite number, got 0: without it every weight is 1 / l2. Use "
            "primal(p=numpy.inf), the machine of the sum of the kernels, with the loss divided by l2."
        )
    l1, l2 = float(l1), positive(l2, "l2", allow_zero=True)
    data = multiple_kernel_data(grams, y, loss, bias)
    theta, K = data.weights()
    if l2 == 0:
        penalty = l1**2 / 2 * cp.sum(theta)
    else:
        penalty = l1**2 / (2 * l2) * cp.sum(cp.inv_pos(1 - l2 * theta) - 1)
    problem = cp.Problem(cp.Minimize(data.risk(K) + penalty))
    return ko.Formulation(
        name="lp_norm.elastic_net",
        problem=problem,
        kernel=K,
        weights=theta,
        dual=partial(dual, data, l1, l2),
        claim="equal",
        reference="Suzuki and Tomioka (2011), the penalty of SpicyMKL",
    )


def dual(data: MultipleKernelData, l1: float, l2: float) -> cp.Problem:
    """Return the dual of `elastic_net`."""
    side = DualOverAlpha(data)
    lengths = side.lengths()
    if l2 == 0:
        return side.maximize(side.gain, [lengths <= l1])
    return side.maximize(side.gain - cp.sum_squares(cp.pos(lengths - l1)) / (2 * l2), [])
