"""The linear programme over groups of kernels: features from relative comparisons, and the selected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.triplet_lp.comparison_data import Cone, comparison_data
from formulations.triplet_lp.kernel_design import kernel_design
from formulations.triplet_lp.programme import triplet_formulation
from kernelopt.extend import Array, as_classes, parameters_of, positive, shown


@parameters_of(kernel_design)
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

    .. math::

        \min_{\alpha}\ \sum_{t = (i, j, k)} \big(\rho - K_{ij} + K_{ik}\big)_+
        + \gamma_1 \sum_f \max_{p \in I_f} |\alpha_p| + \gamma_2 \sum_{i \in S} K_{ii},
        \qquad K = \sum_p \alpha_p K_p

    over weights of any sign for which K is diagonally dominant on S. I_f holds the kernels of one feature.
    The price of a group is its largest weight's: other kernels of the group may have weights of the
    same size at no further price. `selected` lists the groups with a weight.

    Dual: the dual of `kernel_design` with the constraints

    .. math:: \sum_{p \in I_f} |z_p| \le \gamma_1 \quad\text{for every feature}\ f

    in the place of those on the single z_p.

    Statement: the two have one value, between 0 and rho T. alpha = 0 is optimal exactly for
    gamma1 >= `gamma1_max`.

    Parameters
    ----------
    grams : Grams or array of shape (m, N, N)
        Symmetric, of any signature; for instance of ``ko.per_feature([ko.gaussian(1.0)], d)``.
    triplets : integer array of shape (T, 3)
        Rows (i, j, k): i is more similar to j than to k.
    groups : array of shape (m,)
        The group of each kernel: the `.groups` of `per_feature`.
    gamma1 : float >= 0, or a non-negative scalar cp.Parameter
        Price of the largest weight of each group.
    gamma2, cone, points, margin
        As in `kernel_design`.

    Returns
    -------
    Formulation
        claim "equal".

    Raises
    ------
    InputError
        For kernels, triplets, groups and numbers that are not as above.

    Warns
    -----
    ConditionWarning
        If triplets contradict each other; on solving, if alpha = 0 is optimal.

    References
    ----------
    .. [1] Fung, Rosales, Rao, IJCAI 2007, section 4.

    Notes
    -----
    Under dominance a group may also have weights because they reduce the entries of K off the diagonal. The
    kernel ``n * ko.identity()``, in a group of its own, satisfies dominance at a small weight, so that the
    comparisons decide which other groups have weights.

    Examples
    --------
    The kernel of feature 0 respects the comparison by 1 at weight 1, at a price of 0.1 and a trace of 3;
    the identity of feature 1 does not distinguish the points.

    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]], np.eye(3)])
    >>> problem = triplet_lp.feature_selection(K, [[0, 1, 2]], groups=[0, 1], gamma1=0.1, gamma2=0.1)
    >>> solution = problem.solve()
    >>> round(solution.value, 6), triplet_lp.selected(solution, [0, 1])
    (0.4, array([0]))
    """
    data = comparison_data(grams, triplets, groups, gamma2, cone, points, margin)
    return triplet_formulation(data, gamma1, "feature_selection")


def selected(solution: ko.Solution, groups: ArrayLike, tol: float = 1e-6) -> Any:
    """Return the groups whose largest weight exceeds `tol` times the largest of all, ascending.

    Parameters
    ----------
    solution : Solution
        Of `feature_selection`.
    groups : array of shape (m,)
        The group of each kernel, as `feature_selection` was given it.
    tol : float >= 0, default 1e-6
        Smaller weights, relative to the largest one, count as zero.

    Returns
    -------
    array
        The names of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]], np.eye(3)])
    >>> solution = triplet_lp.feature_selection(K, [[0, 1, 2]], ["a", "b"], gamma1=0.1, gamma2=0.1).solve()
    >>> triplet_lp.selected(solution, ["a", "b"]).tolist()
    ['a']
    """
    weights, labels = getattr(solution, "weights", None), as_classes(groups, "groups")
    if not isinstance(weights, np.ndarray):
        raise ko.InputError(
            f"solution must be a Solution with weights, got {shown(solution)}. "
            "Pass what feature_selection(...).solve() returns."
        )
    tol = positive(tol, "tol", allow_zero=True)
    if labels.size != weights.size:
        raise ko.errors.ShapeError(
            f"groups must have one entry per kernel ({weights.size}), got shape {labels.shape}. Pass those "
            "that feature_selection was given."
        )
    return used_groups(weights, labels, tol)


def used_groups(weights: Array, labels: Any, tol: float) -> Any:
    """Return the groups whose largest absolute weight exceeds `tol` times the largest of all."""
    sizes = np.abs(weights)
    return np.unique(labels[sizes > tol * sizes.max(initial=0.0)])
