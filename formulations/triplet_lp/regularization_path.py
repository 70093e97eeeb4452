"""The optimum along a grid of prices of the weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData, Cone, comparison_data
from formulations.triplet_lp.feature_selection import feature_selection, used_groups
from formulations.triplet_lp.gamma1_max import least_price
from formulations.triplet_lp.method.column_generation import Columns
from formulations.triplet_lp.method.problem import zero_is_optimal
from formulations.triplet_lp.programme import triplet_formulation
from kernelopt.extend import DEFAULT_TOL, Array, as_list, parameters_of, positive, whole

VANISHING = 1e-9  # gamma1_max below this share of its value without a cone is zero up to rounding


@dataclass(frozen=True)
class Path:
    """Optima along a grid of gamma1, each with certified bounds.

    Parameters
    ----------
    gamma1 : array of shape (k,), descending
        The prices of the weights.
    weights : array of shape (k, m)
        Optimal weights at each price.
    groups : array of shape (m,)
        The group of each kernel.
    certificates : tuple of k Certificates
        The bounds at each price.
    """

    gamma1: Array
    weights: Array
    groups: NDArray[Any]
    certificates: tuple[ko.Certificate, ...]

    @property
    def lower(self) -> Array:
        """The certified lower bounds of the optima, shape (k,)."""
        return np.array([found.lower for found in self.certificates])

    @property
    def upper(self) -> Array:
        """The certified upper bounds of the optima, shape (k,)."""
        return np.array([found.upper for found in self.certificates])

    @property
    def gap(self) -> Array:
        """The certified relative gaps, shape (k,)."""
        return np.array([found.gap for found in self.certificates])

    def selected(self, tol: float = 1e-6) -> list[Any]:
        """Return for every gamma1 the groups that are used.

        Parameters
        ----------
        tol : float >= 0, default 1e-6
            Smaller weights, relative to the largest one, count as zero.
        """
        return [used_groups(row, self.groups, tol) for row in self.weights]

    def plot(self, ax: Any = None) -> Any:
        """Draw the largest weight of every group against gamma1, and return the axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        for group in np.unique(self.groups):
            ax.plot(self.gamma1, np.abs(self.weights[:, self.groups == group]).max(axis=1), label=str(group))
        ax.set(xscale="log", xlabel="gamma1", ylabel="largest weight of a group")
        return ax


@parameters_of(feature_selection)
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

    Every solve starts from the columns and the basis of the previous one.

    Parameters
    ----------
    grams, triplets, gamma2, cone, points, margin
        As in `feature_selection`.
    groups : array of shape (m,), optional
        The group of each kernel; by default each is a group of its own, as in `kernel_design`.
    gamma1 : sequence of floats > 0, optional
        The grid; by default `size` values from `gamma1_max` down to a thousandth of it, in equal ratios.
    size : int >= 2, default 20
        The number of values of the default grid.

    Returns
    -------
    Path
        Weights and certified bounds at each value of the grid.

    Warns
    -----
    ConvergenceWarning
        If a certified gap is above 1e-5.

    Examples
    --------
    One comparison that K respects by 1, at a trace of 3: from gamma1 = 0.7 on its weight is zero.

    >>> import numpy as np
    >>> from formulations import triplet_lp
    >>> K = np.array([[[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]])
    >>> path = triplet_lp.regularization_path(K, [[0, 1, 2]], gamma2=0.1, size=3)
    >>> path.gamma1.round(4).tolist(), abs(path.weights).round(4).ravel().tolist()
    ([0.7, 0.0221, 0.0007], [0.0, 1.0, 1.0])
    """
    data = comparison_data(grams, triplets, groups, gamma2, cone, points, margin)
    size = whole(size, "size", 2, "an integer >= 2")
    grid = default_grid(data, size) if gamma1 is None else as_grid(gamma1)
    price = cp.Parameter(nonneg=True, name="gamma1")
    formulation = triplet_formulation(data, price, "feature_selection")  # warns of contradictions
    with warnings.catch_warnings():  # at its first price all weights are zero; gaps are checked below
        warnings.simplefilter("ignore", (ko.errors.ConditionWarning, ko.ConvergenceWarning))
        found = certificates(formulation, price, grid)
    weights = [one.point[formulation.weights] for one in found]
    labels = np.arange(data.m) if groups is None else np.array(groups)
    path = Path(grid, np.array(weights), labels, tuple(found))
    if not (path.gap <= DEFAULT_TOL).all():
        worst = int(np.argmax(path.gap))
        warnings.warn(
            ko.ConvergenceWarning(
                f"the certified gap at gamma1 = {grid[worst]:.3g} is {path.gap[worst]:.1e}, above "
                f"{DEFAULT_TOL:g}. Solve that one by kernel_design or feature_selection."
            ),
            stacklevel=2,
        )
    return path


def certificates(formulation: ko.Formulation, price: cp.Parameter, grid: Array) -> list[ko.Certificate]:
    """Return the certificate at every price of the grid; every solve starts from the last basis."""
    problem: Any = formulation.problem
    columns, found = None if problem.data.cone == "psd" else Columns(problem.data, float(grid[0])), []
    for value in grid.tolist():
        price.value = value
        if columns is None:
            found.append(formulation.solve().certificate)
            continue
        columns.reprice(value)
        columns.solve()
        found.append(problem.bounds(problem.values(columns.weights), problem.prices(columns.multipliers)))
    return found


def default_grid(data: ComparisonData, size: int) -> Array:
    """Return prices from gamma1_max down to a thousandth of it, in equal ratios.

    Where gamma1_max is zero up to rounding, all weights are zero at every price, and a warning says so. The
    grid then starts from the value of gamma1_max without a cone.
    """
    free = float(data.group_sizes(data.D.sum(axis=0) - data.gamma2 * data.q).max())  # z of the dual at u = 1
    top = least_price(data)
    if top <= VANISHING * free:
        top = free or 1.0
        warnings.warn(ko.errors.ConditionWarning(zero_is_optimal(data, 0.0)), stacklevel=3)
    return np.asarray(top * np.geomspace(1.0, 1e-3, size))


def as_grid(gamma1: Any) -> Array:
    """Return the prices of a path, the largest first."""
    prices = (
        list(gamma1) if isinstance(gamma1, str) else as_list(gamma1, "gamma1", "a list of positive numbers")
    )
    if not prices:
        raise ko.errors.ShapeError("gamma1 must hold at least one price, got none. Leave it out for a grid.")
    return np.sort([positive(price, "gamma1") for price in prices])[::-1]
