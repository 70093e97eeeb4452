"""The groups of kernels that a solution uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import kernelopt as ko
from kernelopt.extend import Array, as_classes, positive, shown


def selected(solution: ko.Solution, groups: ArrayLike, tol: float = 1e-6) -> Any:
    """Return the groups whose largest weight exceeds `tol` times the largest of all, ascending.

    Parameters
    ----------
    solution : Solution
    groups : array of shape (m,), as given to `feature_selection`
    tol : float >= 0, default 1e-6
    """
    weights, labels = chosen_weights(solution), as_classes(groups, "groups")
    tol = positive(tol, "tol", allow_zero=True)
    if labels.size != weights.size:
        raise ko.errors.ShapeError(
            f"groups must have one entry per kernel ({weights.size}), got shape {labels.shape}. Pass those "
            "that feature_selection was given."
        )
    return np.unique(labels[weights > tol * float(weights.max(initial=0.0))])


def chosen_weights(solution: Any) -> Array:
    """Return the absolute weights of a solution."""
    weights = getattr(solution, "weights", None)
    if not isinstance(weights, np.ndarray):
        raise ko.InputError(
            f"solution must be a Solution with weights, got {shown(solution)}. "
            "Pass what feature_selection(...).solve() returns."
        )
    return np.abs(weights)
