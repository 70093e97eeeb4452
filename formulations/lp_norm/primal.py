"""The constrained ("Ivanov") form: the weights in an l_p ball, and its solutions along p or C."""

from __future__ import annotations

from functools import partial
from typing import Any

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
from kernelopt.extend import Method, as_grams, as_list, exponent, norms, parameters_of, positive


def primal(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    p: float = 2.0,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
) -> ko.Formulation:
    r"""The kernel of an l_p ball at which the regularised risk is smallest.

    .. math::

        \min_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{w, b}\ \sum_i V(f_i, y_i)
        + \tfrac12 \sum_m \frac{\|w_m\|^2}{\theta_m}, \qquad f = \sum_m L_m w_m + b,\quad K_m = L_m L_m'

    with C inside the loss V.

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, :math:`1'\alpha = 0`,

    .. math::

        \max_\alpha\ \ell(\alpha) - \tfrac12 \|s\|_q, \qquad s_m = \alpha'K_m\alpha, \quad
        \tfrac1p + \tfrac1q = 1

    Statement: the two have one value. The machine is :math:`f = \sum_m \theta_m K_m \alpha + b`, and for
    1 < p < inf the weights are :math:`\theta_m = (s_m / \|s\|_q)^{q-1}` at a dual solution. p = 1 is the
    sparse learning of Lanckriet et al., and p = inf is the machine of the sum of the kernels.

    Parameters
    ----------
    grams : Grams or array of shape (M, N, N)
        Positive semidefinite. Zero kernels change nothing.
    y : array of shape (n,), n <= N
        Labels in {-1, +1}, real targets for the regression losses, or None for `one_class`.
    p : float in [1, inf], default 2.0
        Weights are sparser for smaller p, and the value is larger.
    loss : Loss, default hinge(1.0)
        V, whose C weighs each sample and is not divided by n.
    bias : bool, optional
        Whether there is an unpenalised intercept; by default the loss decides.

    Returns
    -------
    Formulation
        claim "equal"; the weights are theta.

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that the sum of the kernels cannot meet.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), Optimization Problems (P) and (D), section 3.3, Corollary 3.

    Notes
    -----
    One second-order cone per kernel; the ball is linear for p = 1 and inf, a second-order cone for
    p = 2, and M power cones otherwise. Weights are not unique for p = 1 with kernels of equal s_m, for
    p = inf where s_m = 0, and where w = 0 is optimal: then any weights are.

    Examples
    --------
    Two copies of K = I count as one, multiplied by 2^(1/q):

    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> solution = lp_norm.primal([np.eye(2)] * 2, [1, -1], p=2, loss=ko.hinge(2.0)).solve("exact")
    >>> round(solution.value, 5), solution.weights.round(4)
    (0.70711, array([0.7071, 0.7071]))
    """
    data, p = multiple_kernel_data(grams, y, loss, bias), exponent(p)
    theta, K = data.weights()
    problem = cp.Problem(cp.Minimize(data.risk(K)), ko.lp_ball(theta, p))
    return formulation(
        "primal", problem, K, theta, partial(dual, data, p), "Optimization Problems (P) and (D)"
    )


def dual(data: MultipleKernelData, p: float) -> cp.Problem:
    """Return the dual of `primal`: Optimization Problem (D) with the norm of section 3.3."""
    side = DualOverAlpha(data)
    s, caps = side.forms()
    return side.maximize(side.gain - ko.p_norm(s, norms.conjugate_exponent(p)) / 2, caps)


@parameters_of(primal)
def path(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    p: float | ArrayLike = 2.0,
    C: ArrayLike | None = None,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
    method: str | Method = "auto",
    **options: Any,
) -> ko.Path:
    """Solve `primal` along several exponents p, or along several C, each from the solution before it.

    The optimal value does not increase with p, and does not decrease with C. Every point of the path has
    certified bounds of its own. The kernels are read and checked once.

    Parameters
    ----------
    grams, y, loss, bias
        As for `primal`.
    p : float in [1, inf], or a sequence of them, default 2.0
        A sequence gives the path over p.
    C : sequence of floats > 0, optional
        The path over C at one p: the loss is multiplied by each of them. For the default loss hinge(1.0),
        they are its C.
    method : str or Method, default "auto"
        As for `kernelopt.path`.
    **options
        As for `kernelopt.path`.

    Returns
    -------
    Path
        The solutions, one for each value.

    Raises
    ------
    ParameterError
        If neither p nor C is a sequence, or if both are.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import lp_norm
    >>> kernels = [np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]]
    >>> path = lp_norm.path(kernels, [1, -1], p=[1, 2, np.inf], method="block-descent")
    >>> path.values, path.upper.round(4)
    ((1.0, 2.0, inf), array([0.5   , 0.4472, 0.3333]))
    >>> lp_norm.path(kernels, [1, -1], p=1, C=[0.1, 1.0], method="block-descent").upper.round(4)
    array([0.18, 0.5 ])
    """
    stack = as_grams(grams)
    if C is None:
        exponents = [exponent(value) for value in as_list(p, "p", "a list of exponents without C")]
        return ko.path(
            lambda one: primal(stack, y, p=one, loss=loss, bias=bias), exponents, method, name="p", **options
        )
    p = exponent(p)
    factors = [positive(value, "C") for value in as_list(C, "C", "a list of positive numbers")]
    return ko.path(
        lambda factor: primal(stack, y, p=p, loss=loss.scaled(factor), bias=bias),
        factors,
        method,
        name="C",
        **options,
    )
