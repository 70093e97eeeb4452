"""One kernel per similarity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cvxpy as cp
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.machines import machine_weights
from formulations.similarity.fidelity_dual import fidelity_dual, semidefinite
from formulations.similarity.similarity_data import PAPER, Fidelity, SimilarityData, similarity_data
from formulations.similarity.single_kernel import single_kernel
from kernelopt.extend import parameters_of


@parameters_of(single_kernel)
def kernel_per_similarity(
    similarities: ko.Grams | ArrayLike,
    y: ArrayLike | None,
    *,
    C: float = 1.0,
    rho: float,
    trace: float | None,
    fidelity: Fidelity = "l1",
    loss: ko.Loss | None = None,
) -> ko.Formulation:
    r"""One kernel near each similarity, jointly good for the learning problem ("EMKL").

    .. math::

        \min_{K_i \succeq 0,\ \operatorname{tr} K_i = \tau}\ \Omega(K_1, \dots, K_m)
        + \rho \sum_i L(K_i - S_i)

    with the convex Omega of (10),

    .. math::

        \Omega = \max_{\alpha,\ \gamma_i \ge 0,\ \sum_i \gamma_i \le 1}\ \ell(\alpha)
        - \tfrac12 \sum_i \frac{\alpha'K_i\alpha}{\gamma_i}
        = \min_{f_i, b}\ \sum_j V\Big(\sum_i f_{ij} + b, y_j\Big) + \tfrac12 \max_i \|f_i\|_{K_i}^2

    The paper also prints (5), the minimum of the risk over weights of the kernels. That is another function,
    which is not convex in the K_i.

    Dual: over alpha, the gamma_i, one symmetric matrix U_i and one number sigma_i per similarity,

    .. math::

        \max\ \ell(\alpha) + \sum_i \Big(\tau \sigma_i
        - \rho \big(\langle U_i, S_i \rangle + L^*(U_i)\big)\Big)
        \quad\text{s.t.}\quad
        \begin{bmatrix} \rho U_i - \sigma_i I & z \\ z' & 2 \gamma_i \end{bmatrix} \succeq 0,\quad
        \gamma_i \ge 0,\ \sum_i \gamma_i \le 1

    and the other constraints as in `single_kernel`.

    Statement: the two have one value. It is at most the value of `single_kernel`, and the same for m = 1. The
    machine is :math:`f = \sum_i K_i \alpha / \gamma_i + b` with the gamma_i of `gammas`: the larger
    :math:`\alpha'K_i\alpha`, the smaller the weight of K_i.

    Parameters
    ----------
    similarities, y, C, rho, fidelity, loss
        As in `single_kernel`.
    trace : float > 0 or None
        tau, of every K_i over all N points, or None for no constraint, which needs rho > 0.

    Returns
    -------
    Formulation
        claim "equal"; no weights. `Solution.kernel` is the machine's kernel, the sum of K_i / gamma_i; K_i
        and 1 / gamma_i are `part.grams.gram(0)` and `part.weights` of `solution.learned[0].parts[i]`.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equations (6) and (10).

    Notes
    -----
    m matrix inequalities of order n + 1 and m PSD variables of order N; methods as in `single_kernel`.

    Examples
    --------
    The same S = yy' twice: each f_i is half of f, so that the value is the risk at the kernel 4 yy':

    >>> import numpy as np
    >>> from formulations import similarity
    >>> y = np.array([1.0, 1, -1])
    >>> learning = similarity.kernel_per_similarity(
    ...     [np.outer(y, y)] * 2, y, rho=10, trace=3, fidelity="frobenius"
    ... )
    >>> solution = learning.solve()
    >>> round(solution.value, 4), solution.kernel[0].round(2)
    (0.125, array([ 4.,  4., -4.]))
    """
    data = similarity_data(similarities, y, C, rho, trace, fidelity, loss)
    kernels = [cp.Variable((data.N, data.N), PSD=True, name=f"K{i}") for i in range(data.m)]
    risk = data.risk(kernels)
    problem = data.learn(risk, [cp.trace(K) for K in kernels], zip(kernels, data.S, strict=True))
    return ko.Formulation(
        name="similarity.kernel_per_similarity",
        problem=problem,
        kernel=machine_kernel(risk, kernels),
        weights=None,
        dual=partial(dual, data),
        claim="equal",
        reference=f"{PAPER}, equations (6) and (10)",
    )


def dual(data: SimilarityData) -> cp.Problem:
    """Return the dual of `kernel_per_similarity`, which the paper does not print."""
    return fidelity_dual(data, list(data.S), semidefinite)


def machine_kernel(risk: ko.Risk, kernels: Sequence[cp.Expression]) -> cp.Expression:
    """Return the kernel of the machine, the sum of K_i / gamma_i: 1 / gamma_i are its weights."""
    if len(kernels) == 1:
        return kernels[0]
    weights = machine_weights(risk)
    return cp.sum([weights[i] * K for i, K in enumerate(kernels)])
