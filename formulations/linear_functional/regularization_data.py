"""The checked data of the first stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelopt as ko
from formulations.linear_functional.method.filters import Filter, tikhonov
from kernelopt.extend import Array, as_float_array, as_grams, as_indices, one_of, shown

Columns = Literal["training", "leave-one-out", "split"]
Convention = Literal["mean", "sum"]
Intercept = Literal["none", "mean", "column"]
Weights = Literal["free", "nonnegative", "simplex"]
CHOICES = ("gcv", "leave-one-out")
LARGEST_TARGET = 1e70  # fourth powers of larger targets, and of their inverses, are no normal doubles


@dataclass(frozen=True, eq=False)
class RegularizationData:
    """Checked data of the first stage.

    Attributes
    ----------
    grams : Grams, the M kernels on N points
    targets : array of shape (n,), of the first n points
    regularization : array of shape (M,), "gcv" or "leave-one-out"
    grid : array, the values of alpha that are tried; None for the default
    convention : "mean" or "sum"
    filter : function of (eigenvalues, level)
    columns : "training", "leave-one-out" or "split"
    intercept : "none", "mean" or "column"
    trained, evaluated : integer arrays
        The points on which the x_j are trained, and those on which they are combined: all labelled points
        for both, except with "split".
    """

    grams: ko.Grams
    targets: Array
    regularization: Any
    grid: Array | None
    convention: Convention
    filter: Filter
    columns: Columns
    intercept: Intercept
    trained: NDArray[np.intp]
    evaluated: NDArray[np.intp]

    @property
    def M(self) -> int:
        """The number of kernels."""
        return len(self.grams)

    @property
    def n(self) -> int:
        """The number of labelled points."""
        return self.targets.size

    @property
    def offset(self) -> float:
        """The number that is subtracted from the targets before the first stage and added to predictions."""
        return float(self.targets[self.trained].mean()) if self.intercept == "mean" else 0.0

    @property
    def v(self) -> Array:
        """The targets of both stages, less the offset, shape (n,)."""
        return self.targets - self.offset

    @property
    def multiple(self) -> float:
        """The level is this times alpha: the number of points of the first stage for "mean", else 1."""
        return float(self.trained.size) if self.convention == "mean" else 1.0


def regularization_data(
    grams: ko.Grams | ArrayLike,
    targets: ArrayLike,
    regularization: Any,
    *,
    grid: ArrayLike | None,
    convention: Convention,
    filter: Filter,
    columns: Columns,
    intercept: Intercept,
    held_out: ArrayLike | None,
) -> RegularizationData:
    """Return the data of the first stage after checking them."""
    stack = as_grams(grams)
    v = ko.squared().targets(targets, stack.n_points, "targets")
    largest = np.abs(v).max()
    if largest > 0 and not 1 / LARGEST_TARGET <= largest <= LARGEST_TARGET:
        raise ko.errors.LabelError(
            f"targets must be zero or have a largest size from {1 / LARGEST_TARGET:g} to {LARGEST_TARGET:g}, "
            f"since squares of their squares are compared, got {largest:g}. Divide them by a unit, such as "
            "their standard deviation, and multiply the predictions by it."
        )
    one_of(convention, "convention", get_args(Convention))
    one_of(columns, "columns", get_args(Columns))
    one_of(intercept, "intercept", get_args(Intercept))
    if not callable(filter):
        raise ko.errors.ParameterError(
            f"filter must be a function of (eigenvalues, level), got {shown(filter)}. Pass one of "
            "linear_functional.tikhonov, cut_off, landweber or iterated_tikhonov(2)."
        )
    alpha = regularization
    if isinstance(regularization, str):
        one_of(regularization, "regularization", CHOICES, "Pass one of these, or positive numbers.")
    else:
        alpha = alphas(regularization, len(stack))
    if filter is not tikhonov and "leave-one-out" in (columns, alpha if isinstance(alpha, str) else ""):
        raise ko.errors.ParameterError(
            "leaving one out has a closed form for filter=tikhonov only, got another filter. Use "
            'columns="split" and regularization="gcv", which take every filter.'
        )
    everyone = np.arange(v.size)
    evaluated = everyone
    if columns == "split":
        held = everyone[2::3] if held_out is None else held_out
        evaluated = np.sort(as_indices(held, v.size, "held_out", unique=True))
    elif held_out is not None:
        raise ko.errors.ParameterError(f'held_out belongs to columns="split", got columns={columns!r}.')
    trained = np.setdiff1d(everyone, evaluated) if columns == "split" else everyone
    if columns != "training" and (not trained.size or not evaluated.size or v.size < 2):
        raise ko.errors.ShapeError(
            f"columns={columns!r} need points for both stages, got {trained.size} to train and "
            f"{evaluated.size} held out. Give more targets, or another held_out."
        )
    tried = None if grid is None else np.sort(alphas(grid, None, "grid"))[::-1]
    return RegularizationData(
        stack, v, alpha, tried, convention, filter, columns, intercept, trained, evaluated
    )


def alphas(values: Any, M: int | None, what: str = "regularization") -> Array:
    """Return positive values of alpha, one per kernel where M is given."""
    array = np.atleast_1d(as_float_array(values, what, ndim=(0, 1)))
    if not array.size or not (array > 0).all() or isinstance(values, bool | np.bool_):
        raise ko.errors.ParameterError(
            f"{what} must be positive and finite numbers, got {shown(values)}. It is alpha of equation (1): "
            "without it the candidates interpolate."
        )
    if M is not None and array.size not in (1, M):
        raise ko.errors.ShapeError(
            f"{what} must be a number or one per kernel ({M}), got {array.size} values. To choose among "
            'values pass regularization="gcv" or "leave-one-out" with grid=[...].'
        )
    chosen: Array = array.astype(float)
    return chosen if M is None else np.broadcast_to(chosen, (M,)).copy()
