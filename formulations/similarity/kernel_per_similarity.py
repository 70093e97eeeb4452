"""One kernel per similarity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.similarity.fidelity_dual import FidelityDual
from formulations.similarity.similarity_data import PAPER, Fidelity, SimilarityData, similarity_data
from kernelopt.extend import Array


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

    with the convex Omega of (10): the maximum of
    :math:`\ell(\alpha) - \tfrac12 \sum_i \alpha'K_i\alpha / \gamma_i` over alpha, gamma >= 0 and
    :math:`\sum \gamma_i \le 1`, which is the risk :math:`\sum_j V(f_j + b, y_j)
    + \tfrac12 \max_i \|f_i\|_{K_i}^2` at :math:`f = \sum_i f_i`, minimised. The paper also prints (5), the
    risk minimised over weights; that is another function, and not convex in the K_i.

    Statement: its value is that of `dual_kernel_per_similarity`, never above that of `single_kernel`, and
    the same for m = 1. The machine is :math:`f = \sum_i K_i \alpha / \gamma_i + b` with gamma from
    `gammas`: the kernel that moves most has the smallest weight.

    Parameters
    ----------
    similarities, y, C, rho, trace, fidelity, loss
        As in `single_kernel`; the trace is that of every K_i.

    Returns
    -------
    Formulation
        claim "equal"; no weights. `Solution.kernel` is that of the machine, the sum of K_i / gamma_i; K_i
        and 1 / gamma_i are `part.grams.gram(0)` and `part.weights` of `solution.learned[0].parts[i]`.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010, equations (6) and (10).

    Notes
    -----
    m matrix inequalities of order n + 1 and m PSD variables of order N; methods as in `single_kernel`.

    Examples
    --------
    The same S = yy' twice: each f_i is half of f, so that the risk is that of 4 yy':

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
    r"""The dual over alpha, gamma, one matrix per similarity, and least eigenvalues sigma_i.

    .. math::

        \max\ \ell(\alpha) + \sum_i \Big(\tau \sigma_i
        - \rho \big(\langle U_i, S_i \rangle + L^*(U_i)\big)\Big)
        \quad\text{s.t.}\quad
        \begin{bmatrix} \rho U_i - \sigma_i I & z \\ z' & 2 \gamma_i \end{bmatrix} \succeq 0,\quad
        \gamma \ge 0,\ \sum_i \gamma_i \le 1

    and the rest as in `dual_single_kernel`. Parameters as in `kernel_per_similarity`.

    References
    ----------
    .. [1] Kundu et al., NIPS 2010: the dual of equation (6) with (10), which the paper does not print.
    """
    side = FidelityDual(data, list(data.S))
    for i, gamma in enumerate(side.shares(data.m)):
        side.above(side.U[i] if side.U else cp.Constant(0.0), side.floor(i), gamma)
    return side.problem()


def machine_scales(risk: ko.Risk, count: int) -> cp.Expression:
    """Return 1 / gamma of the machine at the current kernels, with a value once they have one."""
    if count == 1:
        return cp.Constant(np.ones(1))
    return cp.CallbackParam(partial(scales_of, risk), (count,), nonneg=True)


def scales_of(risk: ko.Risk) -> Array | None:
    """Return 1 / gamma of the machine, None where a kernel has no value."""
    kernels = risk.learner.kernels
    if any(v.value is None for K in kernels for v in K.variables()):
        return None
    machine = risk.oracle()
    coefficients = np.atleast_2d(getattr(machine, "coefficients", machine.alpha))
    length = float(np.linalg.norm(machine.alpha))
    sizes = np.linalg.norm(coefficients, axis=1)
    return np.asarray(sizes / length) if length > 0 else np.ones(len(kernels))


def machine_kernel(risk: ko.Risk, kernels: Sequence[cp.Expression]) -> cp.Expression:
    """Return the kernel of the machine, the sum of K_i / gamma_i."""
    scales = machine_scales(risk, len(kernels))
    return cp.sum([scales[i] * K for i, K in enumerate(kernels)]) if len(kernels) > 1 else kernels[0]
