"""Weights in an ellipsoid, whose matrix states how the kernels interact."""

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
    formulation,
    multiple_kernel_data,
)
from formulations.lp_norm.primal import primal
from kernelopt.extend import Array, as_symmetric, parameters_of

DEFINITE = 1e-12  # smallest over largest eigenvalue: above it at least four digits of the inverse are correct


@parameters_of(primal)
def non_isotropic(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    E: ArrayLike,
    loss: ko.Loss = HINGE,
    bias: bool | None = None,
) -> ko.Formulation:
    r"""The kernel of an ellipsoid of weights at which the regularised risk is smallest.

    .. math::

        \min_{\theta \ge 0,\ \theta'E\theta \le 1}\ \mathrm{risk}\Big(\sum_m \theta_m K_m\Big)

    Dual: over v and over alpha in the domain of :math:`\ell` and, with an intercept, :math:`1'\alpha = 0`,

    .. math::

        \max_{\alpha,\ v \ge s}\ \ell(\alpha) - \tfrac12 \sqrt{v'Fv}, \qquad F = E^{-1},\quad
        s_m = \alpha'K_m\alpha

    Statement: the two have one value, and :math:`\theta = Fv / \sqrt{v'Fv}` at a dual solution.

    The paper prints this dual with v = s, which is the dual without the constraint theta >= 0. The two are
    equal where Fs >= 0, for instance where no entry of F is negative (E is an M-matrix). Where E has positive
    entries off the diagonal, the optimum of the printed dual can be too small, and it need not be concave.

    Parameters
    ----------
    grams, y, loss, bias
        As in `primal`.
    E : array of shape (M, M), symmetric positive definite
        The identity gives `primal` at p = 2. The larger E_jk, the less weight kernels j and k have together.

    Returns
    -------
    Formulation
        claim "equal"; the weights are theta.

    References
    ----------
    .. [1] Kloft et al., JMLR 12 (2011), section 3.6, with its dual corrected.

    Notes
    -----
    Second-order cones throughout.

    Examples
    --------
    Copies of K = I that are kept apart: theta = (t, t) with 6 t^2 = 1.

    >>> import numpy as np, kernelopt as ko
    >>> from formulations import lp_norm
    >>> E = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> solution = lp_norm.non_isotropic([np.eye(2)] * 2, [1, -1], E=E, loss=ko.hinge(2.0)).solve("exact")
    >>> round(solution.value, 5), solution.weights.round(4)
    (1.22474, array([0.4082, 0.4082]))
    """
    data = multiple_kernel_data(grams, y, loss, bias)
    R = root(E, data.M)
    theta, K = data.weights()
    ball = (cp.norm2(R @ theta) <= 1).set_label("ball")
    problem = cp.Problem(cp.Minimize(data.risk(K)), [ball])
    return formulation("non_isotropic", problem, K, theta, partial(dual, data, R), "section 3.6, corrected")


def dual(data: MultipleKernelData, R: Array) -> cp.Problem:
    """Return the dual of `non_isotropic`: the dual of section 3.6, corrected, with E = R'R."""
    side = DualOverAlpha(data)
    v, caps = side.forms("v")  # v_m >= |L_m'alpha|^2 = s_m
    half = np.linalg.inv(R).T  # half' half = E^-1, since E = R'R
    return side.maximize(side.gain - cp.norm2(half @ v) / 2, caps)


def root(E: ArrayLike, M: int) -> Array:
    """Return R with E = R'R, or say why E is not positive definite."""
    matrix = as_symmetric(E, "E")
    if matrix.shape != (M, M):
        raise ko.errors.ShapeError(
            f"E must have shape ({M}, {M}), one row per kernel, got {matrix.shape}. numpy.eye({M}) is p = 2."
        )
    eigenvalues = np.linalg.eigvalsh(matrix)
    if not eigenvalues[0] > DEFINITE * eigenvalues[-1]:
        raise ko.errors.NotPSDError(
            f"E must be positive definite, got a smallest eigenvalue of {eigenvalues[0]:.3g} against the "
            f"largest {eigenvalues[-1]:.3g}. Add a multiple of the identity."
        )
    return np.asarray(np.linalg.cholesky(matrix).T)
