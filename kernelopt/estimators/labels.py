"""Class labels of estimators: their classes, and the labels -1 and +1 of each problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from kernelopt.errors import LabelError
from kernelopt.validation import Array, shown


def read_labels(y: Any, estimator: Any) -> Any:
    """Return labels of any type that can be sorted as an array of shape (n,), after scikit-learn's checks."""
    require(y, estimator, "label")
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    return labels


def read_targets(y: Any, estimator: Any) -> Array:
    """Return finite real targets as an array of shape (n,), after scikit-learn's checks."""
    require(y, estimator, "number")
    numbers = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=estimator)
    return np.asarray(column_or_1d(numbers, warn=True))


def require(y: Any, estimator: Any, what: str) -> None:
    """Raise a `LabelError` if `fit` or `certify` was given no y."""
    if y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: it must hold one "
            f"{what} for each sample. Pass y with X."
        )


def classes_of(y: Any, samples: Any, estimator: Any, *, most: int | None = None) -> tuple[Any, Any]:
    """Return the classes in ascending order and the class number of each sample.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of any type that can be sorted.
    samples : sequence of n samples
    estimator : estimator
        It is named in messages.
    most : int, optional
        The largest number of classes.

    Raises
    ------
    LabelError
        If there are no labels, one class only, or more classes than `most`.
    """
    labels = read_labels(y, estimator)
    check_consistent_length(samples, labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise LabelError(
            f"y must hold labels of at least two classes, got one class, {shown(classes.tolist()[0])}. Add "
            "samples of another class."
        )
    name = type(estimator).__name__
    if most is not None and classes.size > most:
        raise LabelError(
            f"Only binary classification is supported by {name}: y must hold two classes, got "
            f"{classes.size}. Pass OneVsRestClassifier({name}(...)) of scikit-learn."
        )
    return classes, numbers


def signs(numbers: Any, classes: Any) -> list[Array]:
    """Return the labels -1 and +1 of each class against the rest, of two classes those of the second."""
    positives = [1] if classes.size == 2 else range(classes.size)
    return [np.where(numbers == k, 1.0, -1.0) for k in positives]
