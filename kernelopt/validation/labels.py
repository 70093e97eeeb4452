"""Validation of labels and targets. They are copied, so that later changes by the caller have no effect."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import LabelError, NotFiniteError, ShapeError
from kernelopt.validation.arrays import LARGEST_SQUARED, Array, as_float_array, numeric, plain
from kernelopt.validation.messages import LISTED, shown
from kernelopt.validation.scalars import is_real


def as_labels(y: Any, what: str = "y") -> Array:
    """Return labels in {-1, +1}, with both values present.

    Parameters
    ----------
    y : array of shape (n,)
        Labels -1 and +1.
    what : str, default "y"
        The name of the argument, for the message.

    Returns
    -------
    array of shape (n,)
        A copy in doubles.

    Raises
    ------
    LabelError, NotFiniteError, ShapeError
        If it is no such array.

    Examples
    --------
    >>> from kernelopt.extend import as_labels
    >>> as_labels([1, -1]).tolist()
    [1.0, -1.0]
    """
    given = plain(y, what, LabelError)
    if given.dtype.kind == "O" and all(is_real(label) for label in given.ravel()):
        given = numeric(given, what, LabelError)
    if given.dtype.kind in "OUS":
        raise LabelError(
            f"{what} must hold labels -1 and +1, got {shown(given.ravel()[:1].tolist())} of type "
            f"{given.dtype}. Map two classes with numpy.where(y == positive_class, 1.0, -1.0)."
        )
    array = as_float_array(given, what, ndim=1)
    outside = np.flatnonzero(~np.isin(array, (-1.0, 1.0)))
    if outside.size:
        raise LabelError(
            f"{what} must hold labels -1 and +1, got {array[outside[0]]:g} at index {outside[0]} "
            f"(values {np.unique(array)[:LISTED].tolist()}). Map two classes with "
            "numpy.where(y == positive_class, 1.0, -1.0)."
        )
    if np.unique(array).size < 2:
        raise LabelError(
            f"{what} must hold both labels, got only {array[0]:+.0f} on {array.size} points. "
            "With one class every kernel is optimal; use one_class(C) for novelty detection."
            if array.size
            else f"{what} must hold both labels, got no label at all. Pass at least one point of each class."
        )
    return array.copy()


def as_targets(y: Any, what: str = "y") -> Array:
    """Return finite real targets, at least one, of at most `LARGEST_SQUARED` in size.

    Parameters
    ----------
    y : array of shape (n,)
        Real targets.
    what : str, default "y"
        The name of the argument, for the message.

    Returns
    -------
    array of shape (n,)
        A copy in doubles.

    Raises
    ------
    LabelError, NotFiniteError, ShapeError
        If it is no such array.

    Examples
    --------
    >>> from kernelopt.extend import as_targets
    >>> as_targets([0.5, 2]).tolist()
    [0.5, 2.0]
    """
    array = as_float_array(y, what, ndim=1)
    if array.size == 0:
        raise LabelError(f"{what} must hold at least one target, got none. Pass the training targets.")
    for i in np.flatnonzero(np.abs(array) > LARGEST_SQUARED)[:1]:
        raise LabelError(
            f"{what} must be at most {LARGEST_SQUARED:g} in size, since squares of larger targets are no "
            f"doubles, got {array[i]:g} at index {i}. Divide the targets by a unit, such as their standard "
            "deviation, and multiply the predictions by it."
        )
    return array.copy()


def as_classes(y: Any, what: str = "y", wanted: str = "one dimension") -> NDArray[Any]:
    """Return labels of any type that can be sorted, one per point, without missing ones.

    Parameters
    ----------
    y : array of shape (n,)
        The label of each point.
    what, wanted : str
        The name of the argument and the required shape, for the message.

    Raises
    ------
    ShapeError
        If it does not have one dimension.
    NotFiniteError
        If a label is NaN, None or masked.
    LabelError
        If the labels cannot be compared with each other.

    Examples
    --------
    >>> from kernelopt.extend import as_classes
    >>> as_classes(["b", "a"]).tolist()
    ['b', 'a']
    """
    labels = plain(y, what)
    if labels.ndim != 1:
        raise ShapeError(f"{what} must have {wanted}, got shape {labels.shape}. Pass one label per point.")
    try:
        missing = np.asarray(labels != labels, dtype=bool) | np.array([y is None for y in labels], dtype=bool)
        if not missing.any():
            np.unique(labels)
    except Exception as error:  # whatever the comparison of strange objects raises
        raise LabelError(
            f"{what} must hold labels of one type, got a mixture: {error}. Convert them with astype(str)."
        ) from error
    for i in np.flatnonzero(missing)[:1]:
        raise NotFiniteError(
            f"{what} must hold labels, got {labels[i]!r} at index {i}. Drop the points without a label."
        )
    return labels
