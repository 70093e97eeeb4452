"""The linear programme: kernel weights from relative comparisons, plainly or by groups of kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.triplet_lp.dual import dual
from formulations.triplet_lp.method import TripletProgramme
from formulations.triplet_lp.setting import Array, Cone, Setting, setting

PAPER = "Fung, Rosales, Rao (2007)"


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

    Statement: its value, between 0 and rho T, is that of `dual`. alpha = 0 is optimal exactly for
    gamma1 >= `gamma1_max`.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Symmetric, of any signature. A kernel multiplied by a number counts differently: normalise them.
    triplets : integer array of shape (T, 3)
        Rows (i, j, k): i is more similar to j than to k.
    gamma1 : float >= 0, or a non-negative scalar cp.Parameter
        Price of the weights.
    gamma2 : float >= 0
        Price of the trace over S.
    cone : "dominant", "psd" or "nonnegative", default "dominant"
        What keeps K positive semidefinite: dominance on S; K >> 0 on S, a semidefinite programme; or
        alpha >= 0 with positive semidefinite kernels, which is so at every point.
    points : integer array, optional
        S; by default the points of the triplets. A larger set can only cost more.
    margin : float > 0, default 1.0
        rho. Value and weights are proportional to it.

    Returns
    -------
    Formulation
        claim "equal". After `solve()`, `solution.weights` are alpha, `solution.kernel` is K on all
        points, and `solution.is_psd` says whether K is positive semidefinite there: outside of S it need
        not be, but with cone="nonnegative".

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
       section 3 (their formulas are lost in our copy and were reconstructed from the argument).

    Notes
    -----
    A linear programme with m + n_S (n_S - 1) / 2 + T + F variables; the matrix has m (T + n_S^2) numbers.
    `solve()` generates the rows of dominance as they are needed, as columns of the dual in HiGHS, and never
    solves the whole programme; `solve(solver="HIGHS")`, or any other solver, does.

    Examples
    --------
    Two points of a kind and one apart; the second kernel sees it:

    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([np.eye(3), [[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]])
    >>> solution = triplet_lp.kernel_design(K, [[0, 1, 2]], gamma1=0.1, gamma2=0.1).solve()
    >>> round(solution.value, 6), solution.weights.round(6) + 0.0, solution.is_psd
    (0.4, array([0., 1.]), True)
    """
    return build(setting(grams, triplets, None, gamma2, cone, points, margin), gamma1, "kernel_design")


def feature_selection(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    groups: ArrayLike,
    *,
    gamma1: Any,
    gamma2: float,
    cone: Cone = "dominant",
    points: ArrayLike | None = None,
    margin: float = 1.0,
) -> ko.Formulation:
    r"""The kernel that respects relative comparisons, from the kernels of few features.

    As `kernel_design`, with :math:`\gamma_1 \sum_f \max_{p \in I_f} |\alpha_p|` in the place of
    :math:`\gamma_1 \|\alpha\|_1`: a group I_f of kernels, those that see one feature, comes in or stays
    out as a whole. `selected` lists the groups that came in.

    Parameters
    ----------
    grams, triplets, gamma1, gamma2, cone, points, margin
        As in `kernel_design`; the kernels for instance ``ko.per_feature([ko.gaussian(1.0)], d)``.
    groups : array of shape (m,)
        The group of each kernel: the `.groups` of `per_feature`.

    Returns
    -------
    Formulation
        claim "equal".

    References
    ----------
    .. [1] Fung, Rosales, Rao, IJCAI 2007, section 4.

    Notes
    -----
    Under dominance groups also come in to lower the sums off the diagonal, with weights of both signs. A
    large identity of its own group, ``n * ko.identity()``, makes dominance cheap, and leaves the choice to
    the comparisons.
    """
    data = setting(grams, triplets, groups, gamma2, cone, points, margin)
    return build(data, gamma1, "feature_selection")


def build(data: Setting, gamma1: Any, name: str) -> ko.Formulation:
    """Return the programme of the checked data."""
    price = as_price(gamma1)
    alpha = cp.Variable(data.m, name="alpha", nonneg=data.cone == "nonnegative")
    eps, s = cp.Variable(data.T, nonneg=True, name="eps"), cp.Variable(data.F, nonneg=True, name="s")
    member = sp.csr_array((np.ones(data.m), (np.arange(data.m), data.groups)), shape=(data.m, data.F))
    K = ko.combine(alpha, data.grams)
    constraints = [
        (ko.triplet_gains(K, data.triplets) + eps >= data.margin).set_label("comparisons"),
        (alpha <= member @ s).set_label("group above"),
        (-alpha <= member @ s).set_label("group below"),
    ]
    if data.cone == "dominant":
        constraints += ko.diagonally_dominant(K, data.points)
    elif data.cone == "psd":
        on_points: cp.Expression = ko.combine(alpha, data.grams.block(data.points))
        constraints.append((on_points >> 0).set_label("K >> 0"))
    objective = cp.sum(eps) + price * cp.sum(s) + data.gamma2 * (data.q @ alpha)
    problem = TripletProgramme(cp.Minimize(objective), constraints, data, price)
    return ko.Formulation(
        name=f"triplet_lp.{name}",
        problem=problem,
        kernel=K,
        weights=alpha,
        dual=partial(dual, data, price),
        claim="equal",
        reference=f"{PAPER}, section {3 if name == 'kernel_design' else 4}",
    )


def as_price(gamma1: Any) -> Any:
    """Return a non-negative number or scalar parameter."""
    if not isinstance(gamma1, cp.Parameter):
        return ko.positive(gamma1, "gamma1", allow_zero=True)
    if gamma1.shape != () or not gamma1.is_nonneg():
        raise ko.ParameterError(
            f"gamma1 must be a non-negative scalar, got the parameter {gamma1.name()} of shape "
            f"{gamma1.shape} and sign {gamma1.sign}. Make it with cp.Parameter(nonneg=True)."
        )
    return gamma1


def selected(solution: ko.Solution, groups: ArrayLike, tol: float = 1e-6) -> Any:
    """Return the groups whose largest weight exceeds `tol` times the largest of all, ascending.

    Parameters
    ----------
    solution : Solution
    groups : array of shape (m,), as given to `feature_selection`
    tol : float >= 0, default 1e-6
    """
    weights, labels = chosen_weights(solution), ko.as_classes(groups, "groups")
    tol = ko.positive(tol, "tol", allow_zero=True)
    if labels.size != weights.size:
        raise ko.ShapeError(
            f"groups must have one entry per kernel ({weights.size}), got shape {labels.shape}. Pass "
            "those that "
            "feature_selection was given."
        )
    return np.unique(labels[weights > tol * float(weights.max(initial=0.0))])


def chosen_weights(solution: Any) -> Array:
    """Return the sizes of the weights of a solution."""
    weights = getattr(solution, "weights", None)
    if not isinstance(weights, np.ndarray):
        raise ko.InputError(
            f"solution must be a Solution with weights, got {ko.shown(solution)}. "
            "Pass what feature_selection(...).solve() returns."
        )
    return np.abs(weights)
