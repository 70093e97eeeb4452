"""The smallest price of the weights at which all of them are zero."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData, Cone, comparison_data
from formulations.triplet_lp.kernel_design import kernel_design
from formulations.triplet_lp.method.column_generation import Columns
from formulations.triplet_lp.programme import priced
from kernelopt.extend import parameters_of


@parameters_of(kernel_design)
def gamma1_max(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    *,
    gamma2: float,
    groups: ArrayLike | None = None,
    cone: Cone = "dominant",
    points: ArrayLike | None = None,
    margin: float = 1.0,
) -> float:
    r"""The smallest price of the weights at which all are zero: alpha = 0 is optimal from gamma1_max on.

    .. math::

        \gamma_1^{\max} = \min_{v \ge 0,\ |w_{ij}| \le v_i + v_j}\ \max_f \sum_{p \in I_f} |z_p|

    with the z of the dual of `kernel_design` at u = 1.

    Parameters
    ----------
    grams, triplets, gamma2, cone, points, margin
        As in `kernel_design`.
    groups : array of shape (m,), optional
        The group of each kernel; by default each is a group of its own, as in `kernel_design`.

    Returns
    -------
    float
        Zero where the trace is so dear that no weight is worth it.

    References
    ----------
    .. [1] From the dual of Fung, Rosales, Rao, IJCAI 2007.

    Examples
    --------
    One comparison that K respects by 1, at a trace of 3: z = 1 - 3 gamma2.

    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]])
    >>> round(triplet_lp.gamma1_max(K, [[0, 1, 2]], gamma2=0.1), 6)
    0.7
    """
    return least_price(comparison_data(grams, triplets, groups, gamma2, cone, points, margin))


def least_price(data: ComparisonData) -> float:
    """Return `gamma1_max` of checked data."""
    if data.cone != "psd":
        columns = Columns(data, None)
        columns.solve()
        return max(0.0, float(columns.highs.getObjectiveValue()))
    price = cp.Variable(nonneg=True, name="gamma1")
    problem = cp.Problem(cp.Minimize(price), priced(data, np.ones(data.T), price))
    return ko.solve(problem, force=True).upper
