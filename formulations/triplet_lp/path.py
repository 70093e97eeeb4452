"""The price at which the first weight appears, and the optimum along a grid of prices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.triplet_lp.certificate import certificate, collapse
from formulations.triplet_lp.columns import Columns
from formulations.triplet_lp.design import build
from formulations.triplet_lp.dual import priced
from formulations.triplet_lp.setting import Array, Cone, Setting, setting

LOOSE = 1e-5
NEVER = 1e-9  # relative to the price without the cone


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
    r"""The price above which nothing is selected: alpha = 0 is optimal exactly for gamma1 >= gamma1_max.

    .. math::

        \gamma_1^{\max} = \min_{v \ge 0,\ |w_{ij}| \le v_i + v_j}\ \max_f \sum_{p \in I_f} |z_p|

    with the z of `dual` at u = 1.

    Parameters
    ----------
    grams, triplets, gamma2, groups, cone, points, margin
        As in `kernel_design` and `feature_selection`.

    Returns
    -------
    float

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
    return least_price(setting(grams, triplets, groups, gamma2, cone, points, margin))


def least_price(data: Setting) -> float:
    """Return `gamma1_max` of checked data."""
    if data.cone != "psd":
        columns = Columns(data, None)
        columns.solve()
        return max(0.0, float(columns.highs.getObjectiveValue()))
    price = cp.Variable(nonneg=True, name="gamma1")
    problem = cp.Problem(cp.Minimize(price), priced(data, np.ones(data.T), price))
    return ko.solve(problem, force=True).upper


@dataclass(frozen=True)
class Path:
    """Optima along a grid of gamma1, each with certified bounds.

    Attributes
    ----------
    gamma1 : array of shape (k,), descending
    weights : array of shape (k, m)
    lower, upper : arrays of shape (k,)
        Bounds of the value.
    groups : array of shape (m,)
    floor : float
        What a gap is relative to at least: a share of 1e-4 of the value of zero weights.
    """

    gamma1: Array
    weights: Array
    lower: Array
    upper: Array
    groups: NDArray[Any]
    floor: float

    @property
    def gap(self) -> Array:
        """The certified gaps, relative to max(|upper|, |lower|, floor)."""
        size = np.maximum(np.maximum(np.abs(self.upper), np.abs(self.lower)), self.floor)
        return np.asarray((self.upper - self.lower) / size)

    def selected(self, tol: float = 1e-6) -> list[Any]:
        """Return for every gamma1 the groups whose weight exceeds `tol` times the largest."""
        sizes = np.abs(self.weights)
        return [np.unique(self.groups[row > tol * row.max(initial=0.0)]) for row in sizes]

    def plot(self, ax: Any = None) -> Any:
        """Draw the largest weight of every group against gamma1, and return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        for group in np.unique(self.groups):
            ax.plot(self.gamma1, np.abs(self.weights[:, self.groups == group]).max(axis=1), label=str(group))
        ax.set(xscale="log", xlabel="gamma1", ylabel="largest weight of a group")
        return ax


def regularization_path(
    grams: ko.Grams | ArrayLike,
    triplets: ArrayLike,
    *,
    gamma2: float,
    groups: ArrayLike | None = None,
    gamma1: Sequence[float] | None = None,
    size: int = 20,
    cone: Cone = "dominant",
    points: ArrayLike | None = None,
    margin: float = 1.0,
) -> Path:
    """The optima of `feature_selection` (or `kernel_design`, without groups) along a grid of gamma1.

    Every solve starts from the columns and the basis of the last.

    Parameters
    ----------
    grams, triplets, gamma2, groups, cone, points, margin
        As in `feature_selection`.
    gamma1 : sequence of floats > 0, optional
        The grid; by default `size` values from `gamma1_max` down to a thousandth of it, in equal ratios.
    size : int >= 2, default 20

    Returns
    -------
    Path

    Warns
    -----
    ConvergenceWarning
        If a certified gap is above 1e-5.
    """
    data = setting(grams, triplets, groups, gamma2, cone, points, margin)
    size = ko.whole(size, "size", 2, "an integer >= 2")
    if gamma1 is None:
        free = float(data.by_group(data.sizes(data.D.sum(axis=0) - data.gamma2 * data.q), np.add).max())
        top = least_price(data)
        if top <= NEVER * free:  # nothing is selected at any price: the grid only shows it
            top = free or 1.0
            warnings.warn(ko.ConditionWarning(collapse(data, 0.0)), stacklevel=2)
        grid = top * np.geomspace(1.0, 1e-3, size)
    else:
        grid = as_grid(gamma1)
    price = cp.Parameter(nonneg=True, name="gamma1")
    programme = build(data, price, "feature_selection")
    problem = programme.problem
    columns = None if cone == "psd" else Columns(data, float(grid[0]))
    weights, lower, upper = [], [], []
    for value in grid:
        price.value = value
        with warnings.catch_warnings():  # the path begins where nothing is selected, and looks at gaps below
            warnings.simplefilter("ignore", (ko.ConditionWarning, ko.ConvergenceWarning))
            if columns is None:
                found = programme.solve().certificate
            else:
                columns.reprice(value)
                columns.solve()
                values, multipliers = columns.found(problem)
                labels_of = [constraint.label for constraint in problem.constraints]
                prices = {k: d[0] for k, d in zip(labels_of, multipliers, strict=True)}
                found = certificate(problem, values, prices)
        by_name = {variable.name(): number for variable, number in found.point.items()}
        weights.append(by_name["alpha"])
        lower.append(found.lower)
        upper.append(found.upper)
    labels = np.arange(data.m) if groups is None else np.array(groups)
    floor = ko.FLOOR_SHARE * data.margin * data.T
    path = Path(np.asarray(grid), np.array(weights), np.array(lower), np.array(upper), labels, floor)
    if not (path.gap <= LOOSE).all():
        worst = int(np.argmax(path.gap))
        warnings.warn(
            ko.ConvergenceWarning(
                f"the certified gap at gamma1 = {grid[worst]:.3g} is {path.gap[worst]:.1e}, above {LOOSE:g}. "
                "Solve that one by kernel_design or feature_selection."
            ),
            stacklevel=2,
        )
    return path


def as_grid(gamma1: Any) -> Array:
    """Return the prices of a path, the largest first."""
    prices = (
        list(gamma1)
        if isinstance(gamma1, str)
        else ko.as_list(gamma1, "gamma1", "a list of positive numbers")
    )
    if not prices:
        raise ko.ShapeError("gamma1 must hold at least one price, got none. Leave it out for a grid.")
    return np.sort([ko.positive(price, "gamma1") for price in prices])[::-1]
