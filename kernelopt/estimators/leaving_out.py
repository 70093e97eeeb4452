"""`leave_one_out`: the values of machines at samples that they are trained without, at the learned kernel."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from kernelopt.errors import InputError
from kernelopt.estimators.classifier import LOSSES, MKLClassifier, class_factors
from kernelopt.estimators.comparing import read_data
from kernelopt.estimators.labels import signs
from kernelopt.estimators.mkl import MKLRegressor, groups
from kernelopt.estimators.samples import positive_weights
from kernelopt.learner.single import learn
from kernelopt.losses import Loss, epsilon_insensitive, squared
from kernelopt.numerics.decompositions import lower_factor
from kernelopt.validation import Array, shown


def leave_one_out(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Array:
    r"""Return the value at each training sample of the machine that is trained without it.

    The weights of the kernels stay as they were learned from all samples, and so do C, the constants of the
    normalisation and the scale of the targets. So this judges the machine, and not the choice of its kernel:
    for that, `cross_val_score` learns the weights again.

    Of the squared loss the values have a closed form [1]_. With the weights C_i of the samples, let
    :math:`A = K + \mathrm{diag}(1/C)` and :math:`G = A^{-1} - A^{-1} 1 1' A^{-1} / (1' A^{-1} 1)`. Then the
    dual variables are :math:`\alpha = G y`, and

    .. math::

        y_i - f_{-i}(x_i) = \frac{\alpha_i}{G_{ii}} = \frac{y_i - f(x_i)}{1 - H_{ii}}, \qquad
        H = I - \mathrm{diag}(1/C)\, G

    with the matrix H of f = H y. Of the other losses a sample with :math:`\alpha_i = 0` has the value of the
    machine itself, which is also the one without it. Each other sample needs another machine, which is
    trained from the dual variables of all samples.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLClassifierCV or MKLRegressorCV
        It is fitted. Of a pipeline pass ``pipe[-1]``, with ``pipe[:-1].transform(X)`` for X.
    X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
        The samples, as they were passed to `fit`.
    y : array of shape (n,), or (n, k) of k targets
        Their labels or targets, as they were passed to `fit`.
    sample_weight : array of shape (n,), optional
        As it was passed to `fit`.

    Returns
    -------
    array of shape (n,), or (n, k) for k > 2 classes or k > 1 targets
        Values as of `decision_function`, or predictions of a regression. A sample of weight zero has the
        value of the machine itself, which was trained without it.

    Raises
    ------
    InputError
        If the model is none of these, or the data are not those of `fit`.

    References
    ----------
    .. [1] Cawley, Leave-one-out cross-validation based model selection criteria for weighted LS-SVMs, IJCNN
       (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import r2_score
    >>> from kernelopt.estimators import MKLRegressor, leave_one_out
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(3 * X.ravel())
    >>> model = MKLRegressor(["gaussian(0.5)", "linear()"], C=10.0, loss="squared").fit(X, y)
    >>> bool(0.95 < r2_score(y, leave_one_out(model, X, y)) < model.score(X, y))
    True
    """
    if not isinstance(model, MKLClassifier | MKLRegressor):
        raise InputError(
            "model must be a fitted MKLClassifier, MKLRegressor, MKLClassifierCV or MKLRegressorCV, got "
            f"{shown(model)} in leave_one_out. Of a pipeline pass pipe[-1], with pipe[:-1].transform(X)."
        )
    check_is_fitted(model)
    _, X, y = read_data(model, X, y, "leave_one_out")
    refuse_other_data(model, X, y, sample_weight)
    weights = positive_weights(sample_weight, len(y))
    used = np.flatnonzero(weights)
    samples = model._read_new(X)
    samples = _safe_indexing(samples, used)
    training = model._trained.moved(samples)
    values = np.asarray(model._machine_values(X))
    labels, loss = labels_and_loss(model, y[used], weights[used])
    of_kernel = closed_form if isinstance(loss, squared) else retrained
    machines = groups(range(len(labels)), model.weights_.ndim == 1)
    for theta, of_theta in zip(np.atleast_2d(model.weights_), machines, strict=True):
        values[used[:, None], of_theta] = of_kernel(training.at(samples, theta), labels[of_theta], loss).T
    if isinstance(model, MKLRegressor):
        values[used] = model.target_unit_ * values[used] + model.target_mean_
    return values if values.shape[1] > 1 else values[:, 0]


def refuse_other_data(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Raise an `InputError` if the data are not those of `fit`."""
    stated = copy(model)
    stated._prepare(X, y, sample_weight)
    known, given = (
        (each._checksum, each._labels_checksum, np.ravel(getattr(each, "classes_", [])).tolist())
        for each in (model, stated)
    )
    if known != given:
        raise InputError(
            "X and y must be the data that the estimator was fitted on, with the same sample_weight, got "
            f"{len(y)} samples with other values in leave_one_out. Pass the same X and y, in the same order."
        )


def labels_and_loss(model: Any, y: Any, weights: Array) -> tuple[Array, Loss]:
    """Return the labels or scaled targets of the machines, shape (k, n), and the loss with each C."""
    each = model.C_ * weights
    if is_classifier(model):
        numbers = np.searchsorted(model.classes_, y)
        each = each * class_factors(model.class_weight, model.classes_, numbers, weights)
        return np.array(signs(numbers, model.classes_)), LOSSES[model.loss](each)
    loss = squared(each) if model.loss == "squared" else epsilon_insensitive(each, model.epsilon)
    return ((y - model.target_mean_) / model.target_unit_).reshape(len(y), -1).T, loss


def closed_form(K: Array, labels: Array, loss: Any) -> Array:
    """Return y - alpha / diag(G) of each row y of labels, shape (k, n); see `leave_one_out`."""
    inverse = cho_solve((lower_factor(K + np.diag(loss.curve(labels[0]).curvature)), True), np.eye(len(K)))
    sums = inverse.sum(axis=0)
    G = inverse - np.outer(sums, sums) / sums.sum()
    return np.asarray(labels - (labels @ G) / np.diagonal(G))


def retrained(K: Array, labels: Array, loss: Any) -> Array:
    """Return the value at each sample of the machines without it, started from those of all samples."""
    values, C, every = np.empty_like(labels), loss.C, np.arange(len(K))
    for row, y in zip(values, labels, strict=True):
        machine = learn(K, y, loss, True)
        row[:] = K @ machine.alpha + machine.intercept
        for i in np.flatnonzero(machine.alpha):
            rest = np.delete(every, i)
            without = replace(loss, C=C[rest])
            other = learn(K[np.ix_(rest, rest)], y[rest], without, True, start=machine.alpha[rest])
            row[i] = K[i, rest] @ other.alpha + other.intercept
    return values
