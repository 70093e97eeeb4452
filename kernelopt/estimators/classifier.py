"""`MKLClassifier`: support vector machines with a learned combination of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.docstrings import parameters_of
from kernelopt.errors import ParameterError
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.labels import MachineClassifier, classes_of, signs, warn_of_targets
from kernelopt.estimators.mkl import MKLEstimator, Prepared, Task, own_C
from kernelopt.estimators.samples import distinct, positive_weights
from kernelopt.losses import Loss, hinge, logistic, squared_hinge
from kernelopt.validation import Array, exponent, one_of, positive, shown

LOSSES: dict[str, Callable[[Any], Loss]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "logistic": logistic,
}


@parameters_of(MKLEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifier(MachineClassifier, MKLEstimator):
    r"""Classifier whose kernel is a learned combination of kernels (l_p-norm MKL).

    It solves, for labels y in {-1, +1},

    .. math::

        \min_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{f, b}\ \sum_i C_i V(f(x_i) + b, y_i)
        + \tfrac12 \|f\|^2_{K(\theta)}, \qquad K(\theta) = \sum_m \theta_m k_m / c_m

    with constants c_m from the normalisation. The result has a certificate of its distance to the optimum.

    Parameters
    ----------
    kernels, p, normalize, method, tol, time_limit, verbose, random_state
        As for `MKLEstimator`.
    C : float > 0 or "loo", default "loo"
        Weight of the loss of each sample. `kernelopt.estimators.C_GRID` are customary. "loo" is a choice
        from 0.001 to 1000 in half powers of ten: the smallest C whose leave-one-out values, of kernel ridge
        regression at equal weights of the kernels, are as good as the best up to one standard error. The
        values have a closed form. Their number is at most 500: of more samples 500 are drawn.
    loss : "hinge", "squared_hinge" or "logistic", default "hinge"
        V, of the value f(x) + b and the label, each with the weight C of its sample.
    multiclass : "shared" or "per-class", default "shared"
        For more than two classes: the k machines of one class against the rest have the same weights, which
        minimise the sum of their risks, or each machine has its own.
    class_weight : dict, "balanced" or None, default None
        Factors of C for the classes. "balanced" makes the sums of C over the classes equal.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    C_ : float
        The C of the problem. For "loo" and a loss other than the squared ones it is scaled, so that the
        slopes of the losses agree at the size of the leave-one-out residuals.
    weights_ : array of shape (m,), or (n_classes, m) for "per-class" and more than two classes
        The weights theta of the normalised kernels.
    weights_unique_ : bool or None, or tuple of them
        Whether the optimum determines the weights; None where that is not known.
    kernel_names_ : tuple of m str
    kernels_ : tuple of m Kernels; None for precomputed kernels
    support_ : array of shape (n_support,)
    dual_coef_ : array of shape (k, n_support)
        The dual variables, of the sign of the label; k = 1 for two classes.
    intercept_ : array of shape (k,)
    certificate_ : Certificate, or tuple of them
    dual_gap_ : float
        The certified relative gap, of several problems the largest.
    n_iter_ : int
    history_ : tuple of (seconds, lower, upper)
    solution_ : Solution, or tuple of them
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        If X has names of columns.

    See Also
    --------
    KernelStack : precomputed kernels for `fit` and `predict`.
    MKLClassifierCV : the same, with C chosen by cross-validation.
    compare, stability, leave_one_out : whether the kernel is worth learning, and which kernels matter.

    References
    ----------
    .. [1] Kloft, Brefeld, Sonnenburg, Zien, l_p-norm multiple kernel learning, JMLR 12 (2011).

    Examples
    --------
    >>> from kernelopt.estimators import MKLClassifier
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> model = MKLClassifier(["linear()", "polynomial(2)"], p=1, C=10.0).fit(X, ["a", "b", "b", "a"])
    >>> model.predict(X).tolist(), model.weights_.round(3).tolist()
    (['a', 'b', 'b', 'a'], [0.0, 1.0])
    """

    _fitted_forms = MKLEstimator._fitted_forms | {"classes_": Any}

    C: float | str = "loo"
    loss: str = "hinge"
    multiclass: str = "shared"
    class_weight: Any = None

    @one_call
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        """Learn the weights and the machines.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,)
            Labels of at least two classes, of any type that can be sorted.
        sample_weight : array of shape (n,), optional
            Factors of C, not negative. Samples of weight zero are left out.

        Returns
        -------
        MKLClassifier
            The estimator itself.

        Raises
        ------
        LabelError
            If there is one class only, or if a label is missing.
        InputError
            If an argument is wrong; its subclass says what.

        Warns
        -----
        ScaleWarning
            If a kernel reads a column with more than 100 times their median standard deviation.
        GramWarning
            If X is an array of points and symmetric positive semidefinite, as a kernel matrix is.
        LabelWarning
            If y holds more than ten different numbers with fewer than ten samples each, on average.
        """
        grams, tasks, shared = self._prepare(X, y, sample_weight)
        warn_of_targets(self.classes_, np.asarray(y).shape[0], self)
        self._learn(grams, tasks(self.C_), shared=shared)
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        exponent(self.p)
        C = own_C(self)
        loss = LOSSES[one_of(self.loss, "loss", LOSSES)]
        one_of(self.multiclass, "multiclass", ("shared", "per-class"))
        samples = self._read_training(X)
        given = positive_weights(sample_weight, len(samples))
        self.classes_, numbers = classes_of(y, samples, self, weights=given)
        rows, weights = distinct(samples, numbers, given)
        numbers = numbers[rows]
        factors = class_factors(self.class_weight, self.classes_, numbers, weights)
        labels = signs(numbers, self.classes_)

        def tasks(C: float) -> list[Task]:
            return [(each, loss(positive(C, "C") * factors * weights)) for each in labels]

        self._keep_labels([*labels, weights])
        grams = self._fit_kernels(samples, rows, weights)
        self._keep_C(C, grams, tasks(1.0), factors * weights, self.loss)
        return grams, tasks, len(labels) == 1 or self.multiclass == "shared"


def class_factors(class_weight: Any, classes: Any, numbers: Any, weights: Array) -> Array:
    """Return the factor of C of each sample by its class.

    Parameters
    ----------
    class_weight : dict from class to positive number, "balanced" or None
    classes : array of shape (k,)
    numbers : array of shape (n,)
        The position of each sample's class in `classes`.
    weights : array of shape (n,)
        Positive. They count for "balanced": a sample of weight 2 is two samples.
    """
    if class_weight is None:
        return np.ones(len(numbers))
    if isinstance(class_weight, str) and class_weight == "balanced":
        sums = np.bincount(numbers, weights, classes.size)
        return np.asarray((weights.sum() / (classes.size * sums))[numbers])
    if not isinstance(class_weight, dict):
        raise ParameterError(
            "class_weight must be None, 'balanced' or a dict from class to number, got "
            f"{shown(class_weight)} ({type(class_weight).__name__}). Pass class_weight='balanced', say."
        )
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ParameterError(
            f"class_weight must be for classes of y, got {shown(unknown)}; the classes are {shown(known)}. "
            "Leave the others out."
        )
    given = [positive(class_weight.get(label, 1.0), f"class_weight[{label!r}]") for label in known]
    factors: Array = np.array(given)[numbers]
    return factors
