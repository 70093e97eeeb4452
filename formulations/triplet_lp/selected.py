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
