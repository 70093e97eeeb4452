"""The quadratically constrained programme for non-negative weights, and the QP for rank-one kernels."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.setting import Array, Point, Ridge, Setting, Trace, setting


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

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), Theorems 17 and 20; section 4.5 for a learned tau.

    Notes
    -----
    One second-order cone per kernel of size rank + 2.

    Examples
    --------
    K_1 = 2 I and K_2 = yy' both have trace 4; the second separates better.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> K = np.array([[[2.0, 0], [0, 2]], [[2, -2], [-2, 2]]])
    >>> solution = lanckriet.qcqp(K, [1, -1], trace=4).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0
    (0.5, array([0., 1.]))
    """
    data = setting(grams, y, C, tau, trace)
    data.check_psd()
    return ko.Formulation(
        name="lanckriet.qcqp",
        problem=data.words(),
        kernel=data.kernel,
        weights=data.weights,
        dual=partial(inverse_form, data),
        claim="equal",
        reference="Lanckriet et al. (2004), Theorems 17 and 20",
        programmes={"qcqp": partial(programme, data)},
    )


def programme(data: Setting) -> ko.Programme:
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
    objective = 2 * cp.sum(alpha) - t
    if data.tau:
        objective -= data.tau * cp.sum_squares(alpha)
    problem = cp.Problem(cp.Maximize(objective), [*dual_domain(data, alpha), *caps])

    def recover() -> tuple[Point, list[Array]]:
        p = np.array([max(float(np.ravel(cap.dual_value)[0]), 0.0) for cap in caps])
        p *= data.c / p.sum()
        ridge = None if data.ridge is None else p[-1] / data.N
        return data.point(p[: data.used.size] / data.r, ridge), [data.y * alpha.value]

    return ko.Programme(problem, recover)


def dual_domain(data: Setting, alpha: cp.Variable) -> list[cp.Constraint]:
    """Return 0 <= alpha <= C and y'alpha = 0; the sign is an attribute of alpha."""
    domain = [(data.y @ alpha == 0).set_label("bias")]
    return domain if np.isinf(data.C) else [*domain, (alpha <= data.C).set_label("box")]


def inverse_form(data: Setting) -> cp.Problem:
    """Return the dual of the QCQP, the minimisation over the kernel of Theorem 16 before the Schur step.

    min over mu >= 0 with r'mu = c, and over lambda, nu >= 0, delta >= 0, of
    2 C e'delta + (e + nu - delta + lambda y)' (G(mu) + tau I)^+ (e + nu - delta + lambda y).
    """
    data = data.fresh()
    lam, nu = cp.Variable(name="lambda"), cp.Variable(data.n, nonneg=True, name="nu")
    push = 1 + nu + lam * data.y
    cost: cp.Expression | float = 0.0
    if not np.isinf(data.C):
        delta = cp.Variable(data.n, nonneg=True, name="delta")
        push, cost = push - delta, 2 * data.C * cp.sum(delta)
    tau = data.tau if data.ridge is None else data.ridge
    G = cp.multiply(np.outer(data.y, data.y), data.kernel[: data.n, : data.n]) + tau * np.eye(data.n)
    total = data.r @ data.mu if data.ridge is None else data.r @ data.mu + data.N * data.ridge
    return cp.Problem(cp.Minimize(cp.matrix_frac(push, G) + cost), [(total == data.c).set_label("trace")])


def rank_one(
    V: ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: float = 0.0,
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The quadratic programme for kernels of rank one, K(mu) = V diag(mu) V'.

    Programme, with :math:`\breve v_i = y \circ v_i[:n]`:

    .. math::

        \max_{\alpha, s}\ 2 e'\alpha - \tau \alpha'\alpha - c s^2 \quad\text{s.t.}\quad
        0 \le \alpha \le C,\ y'\alpha = 0,\ |\breve v_i'\alpha| \le \|v_i\| s

    Statement: its value is the optimum of `qcqp` on the matrices v_i v_i', and for linearly independent
    v_i also that of `sdp` with free signs, since V diag(mu) V' is then positive semidefinite only for
    mu >= 0. With p_i the sum of the two multipliers of :math:`\pm \breve v_i'\alpha / \|v_i\| \le s`,
    :math:`\mu_i = p_i / (2 s \|v_i\|^2)`.

    Parameters
    ----------
    V : array of shape (N, m)
        One vector per column, such as the eigenvectors of a kernel. Zero columns get weight 0.
    y, C, tau, trace
        As in `qcqp`; tau is a number here.

    Returns
    -------
    Formulation
        claim "equal"; `.dual()` is the squared l1-norm machine on the features V.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), the special case K_i = v_i v_i' after Theorem 17.
    """
    if isinstance(tau, str):
        raise ko.ParameterError(f"tau must be a number for rank-one kernels, got {tau!r}. Use learned_tau.")
    V = ko.as_float_array(V, "V", ndim=2).copy()
    data = setting(ko.Grams.rank_one(V), y, C, tau, trace)
    return ko.Formulation(
        name="lanckriet.rank_one",
        problem=data.words(),
        kernel=data.kernel,
        weights=data.weights,
        dual=partial(l1_machine, data, V),
        claim="equal",
        reference="Lanckriet et al. (2004), after Theorem 17",
        programmes={"qp": partial(rank_one_programme, data, V)},
    )


def rank_one_programme(data: Setting, V: Array) -> ko.Programme:
    """Return the quadratic programme of checked data."""
    vectors = V[:, data.used]
    directions = (vectors[: data.n] / np.sqrt(data.r)).T * data.y  # rows v_i / |v_i|, times the labels
    alpha, s = cp.Variable(data.n, nonneg=True, name="alpha"), cp.Variable(nonneg=True, name="s")
    above = (directions @ alpha <= s).set_label("above")
    below = (-directions @ alpha <= s).set_label("below")
    objective = 2 * cp.sum(alpha) - data.c * cp.square(s)
    if data.tau:
        objective -= data.tau * cp.sum_squares(alpha)
    problem = cp.Problem(cp.Maximize(objective), [*dual_domain(data, alpha), above, below])

    def recover() -> tuple[Point, list[Array]]:
        p = np.maximum(np.asarray(above.dual_value) + np.asarray(below.dual_value), 0.0) / data.r
        mu = p * (data.c / (p @ data.r))  # = p / (2 s), with the trace exact
        return data.point(mu), [data.y * alpha.value]

    return ko.Programme(problem, recover)


def l1_machine(data: Setting, V: Array) -> cp.Problem:
    """Return the squared l1-norm machine on the features V, the dual of the quadratic programme."""
    w, b = cp.Variable(data.used.size, name="w"), cp.Variable(name="b")
    penalty = cp.square(cp.sum(cp.multiply(np.sqrt(data.r), cp.abs(w)))) / data.c
    fit = V[: data.n, data.used] @ w + b
    return cp.Problem(cp.Minimize(penalty + 2 * data.criterion.expression(fit, data.y)))
