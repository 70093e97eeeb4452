"""One-class learning: the kernel in which most points lie far from the origin."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lp_norm.multiple_kernel_data import (
    PAPER,
    DualOverAlpha,
    MultipleKernelData,
    block_exponent,
    formulation,
    multiple_kernel_data,
)
from formulations.lp_norm.outliers import Outliers, threshold
from formulations.lp_norm.primal import primal
from kernelopt.extend import Array, as_grams, exponent, norms, parameters_of, positive, shown

SMALLEST_LENGTH = 1e-150  # |w_m| are raised to powers up to 2, which then do not underflow


@parameters_of(primal)
def one_class(
    grams: ko.Grams | ArrayLike, *, p: float, C: Any = None, nu: float | None = None
) -> ko.Formulation:
    r"""The one-class machine and its kernel, in the C form or in the nu form.

    .. math::

        \min\ C \sum_i (1 - f_i)_+ + \tfrac12 \sum_m \frac{\|w_m\|^2}{\theta_m}
        \qquad\text{or}\qquad
        \min\ \frac{1}{\nu n} \sum_i (\varrho - f_i)_+ - \varrho
        + \tfrac12 \sum_m \frac{\|w_m\|^2}{\theta_m}

    over w, rho and :math:`\theta \ge 0, \|\theta\|_p \le 1`, with :math:`f = \sum_m L_m w_m` and no
    intercept. In the nu form theta is eliminated: the last sum is :math:`\|(\|w_1\|, \dots, \|w_M\|)\|_r^2`,
    :math:`r = 2 p / (p + 1)`.

    Dual: with :math:`s_m = \alpha'K_m\alpha` and :math:`1/p + 1/q = 1`,

    .. math::

        \max_{0 \le \alpha \le C}\ 1'\alpha - \tfrac12 \|s\|_q \qquad\text{or}\qquad
        \max_{0 \le \alpha \le 1/(\nu n),\ 1'\alpha = 1}\ - \tfrac12 \|s\|_q

    Statement: either form has the value of its dual. A dual solution alpha of the C form gives the dual
    solution alpha / 1'alpha of the nu form at nu = 1'alpha / (C n). In the nu form f <= rho holds for at
    least the fraction nu of the points, and f < rho for at most that fraction.

    Parameters
    ----------
    grams : Grams or array of shape (M, N, N)
        Every point is used; there are no labels.
    p : float in [1, inf]
        Weights are sparser for smaller p.
    C : float > 0 or array of shape (N,), optional
        Weight of the loss per sample, not divided by n.
    nu : float in (0, 1], optional
        Takes the place of C: the fraction of points that may be outliers, f < rho.

    Returns
    -------
    Formulation
        claim "equal"; the weights are theta. In the nu form the intercept is -rho, so that outliers have
        a negative decision function; in the C form it is zero, and inliers are near one or above.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), section 3.5; Proposition 2 for theta.
    .. [2] Schölkopf et al., "Estimating the support of a high-dimensional distribution", Neural
       Computation 13 (2001), for nu.

    Examples
    --------
    Two points with K = I: alpha = (1/2, 1/2) and rho = 1/2.

    >>> import numpy as np
    >>> from formulations import lp_norm
    >>> solution = lp_norm.one_class([np.eye(2)], p=2, nu=1.0).solve("exact")
    >>> round(solution.value, 5), solution.alpha.round(4), round(solution.intercept, 4)
    (-0.25, array([0.5, 0.5]), -0.5)
    """
    share = fraction(C, nu)
    if share is None:
        machine = primal(grams, None, p=p, loss=ko.one_class(C))
        return replace(machine, name="lp_norm.one_class", reference=f"{PAPER}, section 3.5")
    p, stack = exponent(p), as_grams(grams)
    data = multiple_kernel_data(stack, None, ko.one_class(1 / (share * stack.n_points)))
    problem = Outliers(data, block_exponent(p), largest_rho(data, p), share)
    theta = optimal_weights_at(data, problem.explicit.lengths, p)

    return formulation(
        "one_class",
        problem,
        ko.combine(theta, data.grams),
        theta,
        partial(dual, data, p),
        "section 3.5",
        predictor=offset,
    )


def offset(solved: ko.Formulation) -> tuple[Array, float] | None:
    """Return the alpha of the lower bound and - rho; None where a call was ended without a multiplier."""
    problem = cast(Outliers, solved.problem)
    (fit,) = problem.constraints
    if fit.dual_value is None:
        return None
    (_, alpha), _ = problem.proved({v.id: v.value for v in problem.variables()}, fit.dual_value)
    alpha = alpha / alpha.sum()
    return alpha, -threshold(np.asarray(solved.kernel.value) @ alpha, problem.share)


def dual(data: MultipleKernelData, p: float) -> cp.Problem:
    """Return the dual of the nu form, from data whose loss has C = 1 / (nu n).

    The dual of the C form is the dual of `primal`.
    """
    side = DualOverAlpha(data)
    s, caps = side.forms()
    return side.maximize(-ko.p_norm(s, norms.conjugate_exponent(p)) / 2, [cp.sum(side.alpha) == 1, *caps])


def optimal_weights_at(data: MultipleKernelData, lengths: cp.Expression, p: float) -> cp.Expression:
    """Return theta of Proposition 2 as an expression of the lengths: see `minimizing_weights`.

    Lengths count as `SMALLEST_LENGTH` at least. Where all are zero the weights are then equal, M^(-1/p).
    """
    if np.isinf(p) or not data.used.size:
        return cp.Constant(np.full(data.M, data.M ** (-1 / p)))
    powers = cp.power(cp.maximum(lengths, SMALLEST_LENGTH), 2 / (p + 1), approx=False)
    return data.everywhere(powers / cp.power(cp.sum(cp.power(powers, p, approx=False)), 1 / p, approx=False))


def fraction(C: Any, nu: float | None) -> float | None:
    """Return nu, None in the C form, or say that exactly one must be given."""
    if (C is None) == (nu is None):
        raise ko.errors.ParameterError(
            f"exactly one of C and nu must be given, got C={shown(C)} and nu={shown(nu)}. Drop "
            "one: nu is a fraction "
            "of points, C a weight per sample."
        )
    if nu is not None and positive(nu, "nu") > 1:
        raise ko.errors.ParameterError(
            f"nu must be a fraction in (0, 1], got {nu:g}. Divide the number of outliers by that of points."
        )
    return None if nu is None else float(nu)


def largest_rho(data: MultipleKernelData, p: float) -> float:
    """Return an upper bound of an optimal rho; at nu = 1 every rho above all f is optimal.

    By the inequality of Hölder f_i is at most the r-norm of the |w_m| times the dual norm of the
    sqrt(K_m,ii). The square of this r-norm is minus twice the optimum. It is therefore at most the |s|_q of
    alpha = 1/n, which is feasible for the dual.
    """
    r_dual = norms.conjugate_exponent(block_exponent(p))
    forms = np.maximum(data.grams.forms(np.full(data.n, 1 / data.n)), 0.0)
    lengths = np.sqrt(np.maximum(data.grams.diagonals, 0.0))
    return float(np.sqrt(norms.lp_length(forms, norms.conjugate_exponent(p)))) * max(
        norms.lp_length(point, r_dual) for point in lengths.T
    )
