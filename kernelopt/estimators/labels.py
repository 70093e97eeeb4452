"""Class labels of estimators: their classes, and the labels -1 and +1 of each problem."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from kernelopt.errors import LabelError, LabelWarning
from kernelopt.estimators.samples import LARGEST_POINT, positive_weights
from kernelopt.methods.describe import warn_caller
from kernelopt.validation import Array, is_missing, numeric, plain, shown
from kernelopt.validation.messages import listed

CLASSES, SAMPLES = 10, 10
"""A `LabelWarning` is given for more than so many classes of numbers with fewer than so many samples each.

`kernelopt fit` takes up to ten whole numbers for classes too. scikit-learn warns below two samples of each:
whole numbers such as ages mostly have more.
"""


def read_labels(y: Any, estimator: Any) -> Any:
    """Return labels of any type that can be sorted as an array of shape (n,), after scikit-learn's checks.

    Raises
    ------
    LabelError
        If there are none, if one is missing, or if they are of types that have no common order.
    """
    require(y, estimator, "label")
    given = plain(y, "y", LabelError)
    refuse_missing(y, given, estimator)
    labels = one_column(given, estimator, "OneVsRestClassifier")
    numeric = labels.dtype.kind in "iuf"
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # labels may be too large for integers
        if numeric:  # `warn_of_targets` says more
            warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        try:
            check_classification_targets(labels)
            np.unique(labels)
        except (TypeError, ValueError) as error:
            kinds = sorted({type(label).__name__ for label in labels.tolist()})
            raise LabelError(
                "y must hold classes, as an array of whole numbers, truth values or text, got "
                f"{shown(kinds)} in an array of dtype {labels.dtype} as the labels of "
                f"{type(estimator).__name__} ({str(error).rstrip('.')}). If these are names of classes, make "
                "all of them text: [str(label) for label in y]. If they are quantities, use MKLRegressor."
            ) from error
    return labels


def refuse_missing(y: Any, array: Any, estimator: Any) -> None:
    """Raise a `LabelError` if a label is None or NaN. numpy makes the text 'nan' of a NaN among texts."""
    labels = y if isinstance(y, list | tuple) else np.ravel(array).tolist()
    missing = [i for i, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise LabelError(
            f"y must hold a label for each sample, got {len(missing)} missing (None or NaN) among the "
            f"{len(labels)} labels of {type(estimator).__name__}, at sample "
            f"{listed([*map(str, missing)], 3)}. Samples count from 0. Drop these samples."
        )


def warn_of_targets(classes: Any, n: int, estimator: Any) -> None:
    """Warn if numbers are probably no classes: there are many of them, each with few of the n samples.

    Parameters
    ----------
    classes : array of shape (k,)
    n : int
        The number of samples.
    estimator : estimator
        It is named in the message.

    Warns
    -----
    LabelWarning
    """
    k = len(classes)
    if classes.dtype.kind not in "iuf" or k <= CLASSES or n >= SAMPLES * k:
        return
    text = (
        f"y should hold at least {SAMPLES} samples of each class, got {k} different numbers among {n} "
        f"samples in {type(estimator).__name__}, which learns one machine for each. If y is a quantity, use "
        "MKLRegressor; if its numbers are names of classes, pass them as text: y.astype(str)."
    )
    warn_caller(LabelWarning(text))


def read_targets(y: Any, estimator: Any, *, several: bool = False) -> Array:
    """Return finite real targets as an array of shape (n,), after scikit-learn's checks.

    With `several` they may have the shape (n, k), of k > 1 targets for each sample.

    Raises
    ------
    LabelError
        If there are none, or if they are text, times, masked, or larger than `LARGEST_POINT`.
    """
    require(y, estimator, "number")
    given = plain(y, "y", LabelError)
    texts = given.dtype == object and any(isinstance(target, str | bytes) for target in given.flat)
    if texts or given.dtype.kind in "US":
        raise LabelError(
            f"y must hold numbers, got text in the targets of {type(estimator).__name__}. Convert them to "
            "numbers, or pass classes to MKLClassifier."
        )
    numbers = numeric(y, "y", LabelError)
    numbers = check_array(numbers, ensure_2d=False, input_name="y", estimator=estimator)
    matrix = several and numbers.ndim == 2 and numbers.shape[1] > 1
    for i in np.flatnonzero(np.abs(numbers) > LARGEST_POINT)[:1]:
        raise LabelError(
            f"y must hold numbers of at most {LARGEST_POINT:g} in size, got {numbers.flat[i]:g} at index {i} "
            f"of the targets of {type(estimator).__name__}. Divide them by a unit."
        )
    return np.asarray(numbers if matrix else one_column(numbers, estimator, "MultiOutputRegressor"))


def one_column(y: Any, estimator: Any, several: str) -> Any:
    """Return labels or targets as an array of shape (n,); `several` takes more of them for each sample.

    Raises
    ------
    LabelError
        If there are several for each sample.
    """
    if y.ndim == 2 and y.shape[1] > 1:
        name = type(estimator).__name__
        raise LabelError(
            f"y should be a 1d array, of shape (n,), got shape {y.shape} in {name}. Pass a column, such as "
            f"y[:, 0], or all of them to {several}({name}(...)) of scikit-learn."
        )
    return column_or_1d(y, warn=True)


def require(y: Any, estimator: Any, what: str) -> None:
    """Raise a `LabelError` if `fit` or `certify` was given no y."""
    if y is None:
        raise LabelError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: it must hold one "
            f"{what} for each sample. Pass y with X."
        )


def classes_of(
    y: Any, samples: Any, estimator: Any, *, most: int | None = None, weights: Array | None = None
) -> tuple[Any, Any]:
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
    weights : array of shape (n,), optional
        Not negative. Samples of weight zero have no class, and the number of any.

    Raises
    ------
    LabelError
        If there are no labels, one class only, or more classes than `most`.
    """
    labels = read_labels(y, estimator)
    check_consistent_length(samples, labels)
    classes = np.unique(labels if weights is None else labels[weights > 0])
    if classes.size < 2:
        among = "" if weights is None or weights.all() else " among samples of positive weight"
        raise LabelError(
            f"y must hold labels of at least two classes, got one class{among}, "
            f"{shown(classes.tolist()[0])}. Add samples of another class, or use OneClassMKL."
        )
    name = type(estimator).__name__
    if most is not None and classes.size > most:
        raise LabelError(
            f"Only binary classification is supported by {name}: y must hold two classes, got "
            f"{classes.size}. Pass OneVsRestClassifier({name}(...)) of scikit-learn."
        )
    return classes, np.searchsorted(classes, labels)


def signs(numbers: Any, classes: Any) -> list[Array]:
    """Return the labels -1 and +1 of each class against the rest, of two classes the labels of the second."""
    positives = [1] if classes.size == 2 else range(classes.size)
    return [np.where(numbers == k, 1.0, -1.0) for k in positives]


class ScoredMixin:
    """The score of scikit-learn's mixin, which follows this one: of labels or targets read as by `fit`."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the predicted labels, or the R^2 of the predicted values.

        R^2 is computed in a power of two as the unit of the targets, since it is a quotient of squares, which
        overflow for targets of 1e200.

        Parameters
        ----------
        X : samples, as for `predict`
        y : array of shape (n_new,), or (n_new, k) of k targets
            The true labels or targets. Masked and missing ones are refused. Of several targets the result is
            the mean of their R^2.
        sample_weight : array of shape (n_new,), optional
            Not negative, and not all zero.
        """
        several = get_tags(self).target_tags.multi_output
        given = read_targets(y, self, several=several) if is_regressor(self) else read_labels(y, self)
        weights = None if sample_weight is None else in_units(positive_weights(sample_weight, len(given)))[0]
        if not is_regressor(self):
            found: float = super().score(X, given, weights)  # type: ignore[misc]
            return found
        predicted = self.predict(X)  # type: ignore[attr-defined]
        if given.shape != predicted.shape:
            raise LabelError(
                f"y must have the shape {predicted.shape} of what is predicted, got {given.shape} in score "
                f"of {type(self).__name__}. Pass the true values of the same samples and targets."
            )
        return float(r2_score(*in_units(given, predicted), sample_weight=weights))


def in_units(*vectors: Array) -> list[Array]:
    """Return vectors divided by one power of two, such that the largest entry is between 1/2 and 1.

    Of arrays of shape (n, k) each column has its own.
    """
    exponent = np.frexp(np.max([np.abs(v).max(axis=0) for v in vectors], axis=0))[1]
    return [np.ldexp(v, -exponent) for v in vectors]


class MachineClassifier(ScoredMixin, ClassifierMixin):
    """A classifier by the values of machines: of one for two classes, else of one for each class."""

    _two_classes: ClassVar[bool] = False
    """Whether there are no more than two classes."""

    def decision_function(self: Any, X: Any) -> Array:
        """Return the values of the machines at samples.

        Parameters
        ----------
        X : samples, as for `fit`
            For a matrix of similarities those between new samples and the training samples.

        Returns
        -------
        array of shape (n_new,) for two classes, positive for `classes_[1]`; else (n_new, n_classes)
        """
        check_is_fitted(self)
        if self.classes_.size > 2:
            return np.asarray(self._machine_values(X))
        one = len(self.dual_coef_) == 1
        return np.asarray(self._machine_values(X)[:, 0] if one else self._sum_of_functions(X))

    @property
    def predict_proba(self) -> Any:
        """Not there: machines have values and no probabilities, which `CalibratedClassifierCV` learns."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_proba: its machines have values, decision_function(X), "
            "and no probabilities. Learn them by CalibratedClassifierCV(model, ensemble=False) of "
            "sklearn.calibration."
        )

    def predict(self: Any, X: Any) -> Any:
        """Return the class of each sample, shape (n_new,); X and errors as for `decision_function`."""
        values = self.decision_function(X)  # it raises NotFittedError before `classes_` is missed
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._two_classes
        return tags
