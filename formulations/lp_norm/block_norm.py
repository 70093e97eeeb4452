"""The block-norm form: the weights eliminated, one weight vector per kernel."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import (
    HINGE,
    DualOverAlpha,
    MultipleKernelData,
    ball_exponent,
    formulation,
    multiple_kernel_data,
)
from formulations.lp_norm.primal import primal
from formulations.machines import machine_weights
from kernelopt.extend import Array, Programme, boolean, exponent, norms, parameters_of

LARGEST_RATIO = 1e8  # of two weights: the smaller term of their sum then keeps half of its sixteen digits


@parameters_of(primal)
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

    Dual: over alpha in the domain of :math:`\ell` and, with an intercept, :math:`1'\alpha = 0`,

    .. math::

        \max_\alpha\ \ell(\alpha) - \tfrac12 \big\|(\sqrt{s_1}, \dots, \sqrt{s_M})\big\|_{r^*}^2, \qquad
        s_m = \alpha'K_m\alpha, \quad \tfrac1r + \tfrac1{r^*} = 1

    or for `squared=False` with
    :math:`\tfrac{r - 1}{2} (2/r)^{r^*} \sum_m s_m^{r^*/2}` in the place of the last term, and at r = 1 with
    the constraints :math:`\sqrt{s_m} \le \tfrac12` and no last term.

    Statement: the two have one value. For r <= 2 it is also the value of `primal` with the same loss at
    :math:`p = r / (2 - r)`, which means :math:`r = 2 p / (p + 1)`. For r > 2 it is the value of

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
        claim "equal"; the weights are the weights of the learned machine,
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
        partial(dual, data, r, True),
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
        partial(dual, data, r, True),
        "equations (32)-(33)",
    )


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
    return formulation("block_norm", problem, K, weights, partial(dual, data, r, False), "equation (29)")


def sum_of_powers(x: cp.Expression, p: float) -> cp.Expression:
    """Return sum_m x_m^p for x >= 0: linear, quadratic, or exact power cones."""
    if p == 1:
        return cp.sum(x)
    return cp.sum_squares(x) if p == 2 else cp.sum(cp.power(x, p, approx=False))


def dual(data: MultipleKernelData, r: float, squared: bool) -> cp.Problem:
    """Return the dual of `block_norm`: section 4.4, and (33) without theta for r > 2."""
    side, q = DualOverAlpha(data), norms.conjugate_exponent(r)
    lengths = side.lengths()
    if squared:
        return side.maximize(side.gain - cp.square(ko.p_norm(lengths, q)) / 2, [])
    if r == 1:
        return side.maximize(side.gain, [lengths <= 1 / 2])
    return side.maximize(side.gain - (r - 1) / 2 * sum_of_powers(2 / r * lengths, q), [])


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

    return formulation(
        "block_norm",
        problem,
        ko.combine(omega, data.grams),
        omega,
        partial(dual, data, r, False),
        "equation (29)",
        predictor=partial(retrained, data),
    )


def retrained(data: MultipleKernelData, solved: ko.Formulation) -> tuple[Array, float]:
    """Return the machine that is trained at the kernel of a solution, for a formulation without risks."""
    found = data.risk(np.asarray(solved.kernel.value)[: data.n, : data.n]).oracle()
    return found.alpha, float(found.intercept)
