"""The linear programme over kernel weights: a kernel from relative comparisons."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.triplet_lp.comparison_data import Cone, comparison_data
from formulations.triplet_lp.programme import triplet_formulation


def kernel_design(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    *,
    gamma1: Any,
    gamma2: float,
    cone: Cone = "dominant",
    points: ArrayLike | None = None,
    margin: float = 1.0,
) -> ko.Formulation:
    r"""The kernel that respects relative comparisons, with few weights and a small trace.

    .. math::

        \min_{\alpha}\ \sum_{t = (i, j, k)} \big(\rho - K_{ij} + K_{ik}\big)_+ + \gamma_1 \|\alpha\|_1
        + \gamma_2 \sum_{i \in S} K_{ii}, \qquad K = \sum_p \alpha_p K_p

    over weights of any sign for which K is diagonally dominant on S,
    :math:`K_{ii} \ge \sum_{j \ne i} |K_{ij}|`, and so positive semidefinite there.

    Dual: over multipliers u of the triplets, v of dominance and w of the pairs of points of S,

    .. math::

        \max\ \rho \sum_t u_t \quad\text{s.t.}\quad 0 \le u \le 1,\ v \ge 0,\ |w_{ij}| \le v_i + v_j,\
        |z_p| \le \gamma_1

    with :math:`z_p = \sum_t u_t d_{tp} + \sum_i v_i K_p(i, i) + \sum_{i<j} w_{ij} K_p(i, j) - \gamma_2 q_p`.
    Here :math:`d_{tp}` is :math:`K_p(i, j) - K_p(i, k)` for the triplet t = (i, j, k), and :math:`q_p` the
    trace of K_p over S. For cone="nonnegative" there are no v and w, and the positive part of :math:`z_p`
    takes the place of :math:`|z_p|`. For cone="psd" the sums over v and w are :math:`\langle Z, K_p \rangle`
    for a matrix :math:`Z \succeq 0`.

    Statement: the two have one value, between 0 and rho T. alpha = 0 is optimal exactly for
    gamma1 >= `gamma1_max`.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Symmetric, of any signature. The price of a weight does not depend on the size of its kernel, so
        kernels should be normalised.
    triplets : integer array of shape (T, 3)
        Rows (i, j, k): i is more similar to j than to k.
    gamma1 : float >= 0, or a non-negative scalar cp.Parameter
        Price of the weights.
    gamma2 : float >= 0
        Price of the trace over S.
    cone : "dominant", "psd" or "nonnegative", default "dominant"
        What keeps K positive semidefinite: dominance on S; K >> 0 on S, a semidefinite programme; or
        alpha >= 0 with positive semidefinite kernels, so that K is positive semidefinite on all points.
    points : integer array, optional
        S; by default the points of the triplets. A larger set gives the same value or a larger one.
    margin : float > 0, default 1.0
        rho. Value and weights are proportional to it.

    Returns
    -------
    Formulation
        claim "equal". After `solve()`, `solution.weights` are alpha, `solution.kernel` is K on all
        points, and `solution.is_psd` says whether K is positive semidefinite there. With
        cone="nonnegative" it is; with the other cones it may not be, where S is not all points.

    Raises
    ------
    InputError
        For kernels, triplets and numbers that are not as above.

    Warns
    -----
    ConditionWarning
        If triplets contradict each other; on solving, if alpha = 0 is optimal.

    References
    ----------
    .. [1] Fung, Rosales, Rao, "Feature Selection and Kernel Design via Linear Programming", IJCAI 2007,
       section 3. The formulas are missing in our copy of the paper, and were derived from its text; the
       dual is ours.

    Notes
    -----
    A linear programme with m + n_S (n_S - 1) / 2 + T + F variables; the matrix has m (T + n_S^2) numbers.
    `solve("column-generation")` generates the rows of dominance as they are needed, as columns of the dual in
    HiGHS. It returns a vertex: most weights are exactly zero. `solve("interior-point")` makes Newton steps on
    the m weights, for every cone, and its weights are small numbers where a vertex has zeros.
    `solve()` takes the method that is predicted to be faster. `solve(solver="HIGHS")`, or any other solver,
    solves the programme with all rows.

    Examples
    --------
    The second kernel distinguishes the third point from the first two, and the identity does not:

    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([np.eye(3), [[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]])
    >>> solution = triplet_lp.kernel_design(K, [[0, 1, 2]], gamma1=0.1, gamma2=0.1).solve()
    >>> round(solution.value, 6), solution.weights.round(6) + 0.0, solution.is_psd
    (0.4, array([0., 1.]), True)
    """
    return triplet_formulation(
        comparison_data(grams, triplets, None, gamma2, cone, points, margin), gamma1, "kernel_design"
    )
