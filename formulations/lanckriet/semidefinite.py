"""The semidefinite programme, for weights of free sign and for non-negative ones."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.lanckriet.setting import Ridge, Setting, Trace, Weights, setting


def sdp(
    grams: ko.Grams | ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: Ridge = 0.0,
    weights: Weights = "free",
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The semidefinite programme of the general learning problem.

    Problem: :math:`\min_\mu \omega_{C,\tau}(K(\mu))`, :math:`K(\mu) = \sum_i \mu_i K_i \succeq 0` on all
    N points, :math:`\sum_i \mu_i r_i = c`. Programme:

    .. math::

        \min_{\mu, t, \lambda, \nu \ge 0, \delta \ge 0}\ t \quad\text{s.t.}\quad
        \begin{bmatrix} G(K_{tr}) + \tau I & e + \nu - \delta + \lambda y \\
        \cdot & t - 2 C \delta'e \end{bmatrix} \succeq 0

    without delta where C is infinite. Statement: its value is the optimum above; with [[Z, z], [z', zeta]]
    the multiplier of the matrix inequality, the machine's alpha is -z / zeta.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Of any signature for free signs, as long as some combination is positive semidefinite.
    y, C, tau, trace
        As in `qcqp`.
    weights : "free" or "nonnegative", default "free"

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the lifted dual, with U in the place of alpha alpha'. With free signs
        it is never above `qcqp`.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorem 16, with the special cases 19, 21 and 22.

    Notes
    -----
    Matrix inequalities of order n + 1 and N: a few seconds at N = 60, minutes at 100.
    """
    data = setting(grams, y, C, tau, trace, weights)
    t, lam = cp.Variable(name="t"), cp.Variable(name="lambda")
    nu = cp.Variable(data.n, nonneg=True, name="nu")
    push, corner = 1 + nu + lam * data.y, t
    if not np.isinf(data.C):
        delta = cp.Variable(data.n, nonneg=True, name="delta")
        push, corner = push - delta, t - 2 * data.C * cp.sum(delta)
    ridge = data.tau if data.ridge is None else data.ridge
    K = data.kernel
    labels = np.outer(data.y, data.y)
    G = cp.multiply(labels, K[: data.n, : data.n]) + ridge * np.eye(data.n)
    column = cp.reshape(push, (data.n, 1), order="F")
    lmi = cp.bmat([[G, column], [column.T, cp.reshape(corner, (1, 1), order="F")]]) >> 0
    total = data.r @ data.mu if data.ridge is None else data.r @ data.mu + data.N * data.ridge
    constraints = [lmi.set_label("margin"), (total == data.c).set_label("trace")]
    if data.signed:
        constraints.append((K >> 0).set_label("K >> 0"))
    else:
        data.factors()  # non-negative weights need positive semidefinite kernels

    def recover() -> NDArray[np.float64]:
        Z = np.asarray(lmi.dual_value)
        return np.asarray(data.y * (-Z[:-1, -1] / Z[-1, -1]))

    return ko.Formulation(
        name="lanckriet.sdp",
        problem=cp.Problem(cp.Minimize(t), constraints),
        kernel=K,
        weights=data.weights,
        dual=lambda: lifted_dual(setting(grams, y, C, tau, trace, weights)),
        claim="equal",
        reference="Lanckriet et al. (2004), Theorem 16",
        words=data.words(),
        recover=recover,
    )


def lifted_dual(data: Setting) -> cp.Problem:
    """Return the dual of the semidefinite programme, with a lifted U >= alpha alpha' (signed).

    max 2 e'alpha - tau alpha'alpha - c eta  s.t.  0 <= alpha <= C, y'alpha = 0,
    <U, K_i> = eta r_i (<= for non-negative weights), [[U, alpha], [alpha', 1]] PSD,
    and for a learned tau alpha'alpha <= eta N instead of the ridge.
    """
    alpha = cp.Variable(data.n, nonneg=True, name="alpha")
    eta = cp.Variable(name="eta")
    lifted = cp.Variable((data.N + 1, data.N + 1), PSD=True, name="U")
    padded = cp.hstack([cp.multiply(data.y, alpha), np.zeros(data.N - data.n)])
    constraints = [data.y @ alpha == 0, lifted[:-1, -1] == padded, lifted[-1, -1] == 1]
    if not np.isinf(data.C):
        constraints.append(alpha <= data.C)
    U = lifted[:-1, :-1]
    forms = cp.hstack([cp.sum(cp.multiply(data.grams.gram(int(i)), U)) for i in data.used])
    constraints.append(forms == eta * data.r if data.signed else forms <= eta * data.r)
    objective = 2 * cp.sum(alpha) - data.c * eta
    if data.ridge is not None:
        constraints.append(cp.sum_squares(alpha) <= eta * data.N)
    elif data.tau:
        objective -= data.tau * cp.sum_squares(alpha)
    return cp.Problem(cp.Maximize(objective), constraints)
