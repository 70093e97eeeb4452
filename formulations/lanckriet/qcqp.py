"""The quadratically constrained quadratic programme for non-negative weights."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.sdp import sdp
from formulations.lanckriet.transduction_data import Point, Ridge, Trace, TransductionData, transduction_data
from kernelopt.extend import Array, Programme, parameters_of


@parameters_of(sdp)
def qcqp(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The quadratically constrained quadratic programme for non-negative weights.

    Problem: :math:`\min_\mu \omega_{C,\tau}(\sum_i \mu_i K_i)` over :math:`\mu \ge 0`,
    :math:`\sum_i \mu_i r_i = c`, as in `margin`. Programme, with :math:`(G_i)_{jk} = y_j y_k (K_i)_{jk}`; its
    t is c times the t of the paper:

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - \tau \alpha'\alpha - t \quad\text{s.t.}\quad
        0 \le \alpha \le C,\ y'\alpha = 0,\ \tfrac{c}{r_i} \alpha' G_i \alpha \le t

    A learned tau adds the constraint :math:`(c / N)\, \alpha'\alpha \le t`, and tau = 0 in the objective.

    Dual: over mu in the set of the problem (and tau, where it is learned), lambda, nu >= 0 and delta >= 0,

    .. math::

        \min\ q'\,(G(\mu) + \tau I)^+\,q + 2 C e'\delta, \qquad q = e + \nu - \delta + \lambda y

    without delta where C is infinite. It is the problem of Theorem 16 before its Schur complement is taken.

    Statement: the three have one value. The multipliers p_i of the last constraints sum to one, and the
    weights are :math:`\mu_i = c p_i / r_i`, not :math:`p_i`. A learned tau is c / N times the multiplier of
    its constraint.

    Parameters
    ----------
    grams, y, C, tau, trace
        As in `sdp`.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        For kernels, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that no kernel of the set can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorems 17 and 20; section 4.5 for a learned tau.

    Notes
    -----
    One second-order cone per kernel of size rank + 2.

    Examples
    --------
    K_1 = 2 I and K_2 = 2 yy' both have trace 4; the second separates better.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.qcqp(K, [1, -1], trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0
    (0.5, array([0., 1.]))
    """
    data = transduction_data(grams, y, C, tau, trace)
    data.check_psd()
    return data.formulation(
        "qcqp", "Theorems 17 and 20", partial(dual, data), {"qcqp": partial(programme, data)}
    )


def programme(data: TransductionData) -> Programme:
    """Return the quadratically constrained programme of checked data."""
    alpha = cp.Variable(data.n, nonneg=True, name="alpha")
    t = cp.Variable(name="t")
    signed = cp.multiply(data.y, alpha)
    caps = []
    for i, F, r in zip(data.used, data.factors(), data.r, strict=True):
        size = cp.sum_squares((np.sqrt(data.c / r) * F.T) @ signed) if F.shape[1] else cp.Constant(0.0)
        caps.append((size <= t).set_label(data.grams.names[i]))
    if data.ridge is not None:
        caps.append((data.c / data.N * cp.sum_squares(alpha) <= t).set_label("ridge"))
    objective = data.minus_ridge(2 * cp.sum(alpha) - t, alpha)
    problem = cp.Problem(cp.Maximize(objective), [*data.dual_domain(alpha), *caps])

    def recover() -> tuple[Point, list[Array]]:
        p = np.array([max(float(np.ravel(cap.dual_value)[0]), 0.0) for cap in caps])
        p *= data.c / p.sum()
        ridge = None if data.ridge is None else p[-1] / data.N
        return data.point(p[: data.used.size] / data.r, ridge), [data.y * alpha.value]

    return Programme(problem, recover)


def dual(data: TransductionData) -> cp.Problem:
    """Return the dual of `qcqp`, on weights of its own."""
    data = data.fresh()
    G, vector, number = data.lagrangian()
    return cp.Problem(cp.Minimize(cp.matrix_frac(vector, G) + number), data.kernel_set())
