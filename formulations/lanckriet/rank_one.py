"""The quadratic programme for kernels of rank one."""

from __future__ import annotations

from functools import partial

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.lanckriet.transduction_data import Point, Trace, TransductionData, transduction_data
from kernelopt.extend import Array, Programme, as_float_array


def rank_one(
    V: ArrayLike,
    y: ArrayLike,
    *,
    C: float = np.inf,
    tau: float = 0.0,
    trace: Trace = "sum",
) -> ko.Formulation:
    r"""The quadratic programme for kernels of rank one, K(mu) = V diag(mu) V'.

    Problem: `qcqp` for the kernels v_i v_i'. Programme, with :math:`\breve v_i = y \circ v_i[:n]`:

    .. math::

        \max_{\alpha, s}\ 2 e'\alpha - \tau \alpha'\alpha - c s^2 \quad\text{s.t.}\quad
        0 \le \alpha \le C,\ y'\alpha = 0,\ |\breve v_i'\alpha| \le \|v_i\| s

    Dual: a machine on the features V with a squared l1-norm,

    .. math::

        \min_{w, b}\ \tfrac1c \Big(\sum_i \|v_i\| |w_i|\Big)^2
        + \sum_j h_{C,\tau}\big(1 - y_j (V w + b)_j\big)

    with the h of `block_norm`.

    Statement: the three have one value. For linearly independent v_i it is also the value of `sdp` with free
    signs, since V diag(mu) V' is then positive semidefinite for mu >= 0 only. With p_i the sum of the two
    multipliers of :math:`\pm \breve v_i'\alpha / \|v_i\| \le s` the weights are
    :math:`\mu_i = p_i / (2 s \|v_i\|^2)`.

    Parameters
    ----------
    V : array of shape (N, m)
        One vector per column, such as the eigenvectors of a kernel. Zero columns get weight 0.
    y : array of shape (n,), n <= N
        Labels in {-1, +1} of the first n points, both present.
    C : float in (0, inf], default inf
        Largest dual variable.
    tau : float >= 0, default 0
        Ridge of the criterion, a number: `learned_tau` learns it.
    trace : "sum" or float > 0, default "sum"
        c; "sum" is the sum of the :math:`\|v_i\|^2`.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        For vectors, labels and numbers that are not as above.
    InfeasibleError
        On solving, with a proof, for a hard margin that no kernel of the set can meet.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), the special case :math:`K_i = v_i v_i'` after Theorem 17.

    Notes
    -----
    A quadratic programme with 2 m linear constraints.

    Examples
    --------
    v_1 = (1, -1) separates the labels and v_2 = (1, 1) does not. With alpha = (a, a) and c = 2 the programme
    is max 4 a - 2 s^2 with 2 a <= sqrt(2) s, which is 1 at a = 1/2.

    >>> import numpy as np
    >>> from formulations import lanckriet
    >>> V = np.array([[1.0, 1], [-1, 1]])
    >>> solution = lanckriet.rank_one(V, [1, -1], trace=2).solve()
    >>> round(solution.value, 5), solution.weights.round(4) + 0.0
    (1.0, array([1., 0.]))
    """
    V = as_float_array(V, "V", ndim=2).copy()
    data = transduction_data(ko.Grams.rank_one(V), y, C, tau, trace)
    if data.ridge is not None:
        raise ko.errors.ParameterError(
            f"tau must be a number for rank-one kernels, got {tau!r}. Use learned_tau."
        )
    return data.formulation(
        "rank_one", "after Theorem 17", partial(dual, data, V), {"qp": partial(programme, data, V)}
    )


def programme(data: TransductionData, V: Array) -> Programme:
    """Return the quadratic programme of checked data."""
    vectors = V[:, data.used]
    directions = (vectors[: data.n] / np.sqrt(data.r)).T * data.y  # rows v_i / |v_i|, times the labels
    alpha, s = cp.Variable(data.n, nonneg=True, name="alpha"), cp.Variable(nonneg=True, name="s")
    above = (directions @ alpha <= s).set_label("above")
    below = (-directions @ alpha <= s).set_label("below")
    objective = data.minus_ridge(2 * cp.sum(alpha) - data.c * cp.square(s), alpha)
    problem = cp.Problem(cp.Maximize(objective), [*data.dual_domain(alpha), above, below])

    def recover() -> tuple[Point, list[Array]]:
        p = np.maximum(np.asarray(above.dual_value) + np.asarray(below.dual_value), 0.0) / data.r
        mu = p * (data.c / (p @ data.r))  # = p / (2 s), with the trace exact
        return data.point(mu), [data.y * alpha.value]

    return Programme(problem, recover)


def dual(data: TransductionData, V: Array) -> cp.Problem:
    """Return the dual of `rank_one`."""
    w, b = cp.Variable(data.used.size, name="w"), cp.Variable(name="b")
    penalty = cp.square(cp.sum(cp.multiply(np.sqrt(data.r), cp.abs(w)))) / data.c
    fit = V[: data.n, data.used] @ w + b
    return cp.Problem(cp.Minimize(penalty + 2 * data.criterion.expression(fit, data.y)))
