"""The quadratically constrained quadratic programme for non-negative weights."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.transduction_data import Point, Ridge, Trace, TransductionData, transduction_data
from kernelopt.extend import Array


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
    :math:`\sum_i \mu_i r_i = c`. Programme, with :math:`G_i = y_j y_k (K_i)_{jk}` and t = c times the
    paper's:

    .. math::

        \max_{\alpha, t}\ 2 e'\alpha - \tau \alpha'\alpha - t \quad\text{s.t.}\quad
        0 \le \alpha \le C,\ y'\alpha = 0,\ \tfrac{c}{r_i} \alpha' G_i \alpha \le t

    Statement: its value is the optimum above. The multipliers p_i of the last constraints sum to one,
    and the weights are mu_i = c p_i / r_i, not p_i. A learned tau adds the constraint
    (c / N) alpha'alpha <= t, whose multiplier times c / N it is.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Positive semidefinite. Zero kernels get weight 0.
    y : array of shape (n,), n <= N
        Labels in {-1, +1} of the first n points, both present.
    C : float in (0, inf], default inf
        Largest dual variable.
    tau : float >= 0 or "learned", default 0
        Ridge of the criterion. When learned it counts N tau towards the trace.
    trace : "sum" or float > 0, default "sum"
        c; "sum" is the sum of the traces, plus N where tau is learned.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the minimisation over the kernel, with the inverse written out.

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
    return ko.Formulation(
        name="lanckriet.qcqp",
        problem=data.problem(),
        kernel=data.kernel,
        weights=data.weights,
        dual=partial(dual, data),
        claim="equal",
        reference="Lanckriet et al. (2004), Theorems 17 and 20",
        programmes={"qcqp": partial(programme, data)},
    )


def programme(data: TransductionData) -> ko.Programme:
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

    return ko.Programme(problem, recover)


def dual(data: TransductionData) -> cp.Problem:
    """Return the dual of the QCQP, the minimisation over the kernel of Theorem 16 before the Schur step.

    min over mu >= 0 with r'mu = c, and over lambda, nu >= 0, delta >= 0, of
    2 C e'delta + (e + nu - delta + lambda y)' (G(mu) + tau I)^+ (e + nu - delta + lambda y).
    """
    data = data.fresh()
    G, vector, number = data.lagrangian()
    return cp.Problem(cp.Minimize(cp.matrix_frac(vector, G) + number), data.kernel_set())
