"""`MKLRegressor`: support vector and ridge regression with a learned combination of kernels."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from kernelopt.estimators.columns import means_and_deviations
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.labels import ScoredMixin, read_targets
from kernelopt.estimators.mkl import MKLEstimator, Prepared, Task
from kernelopt.estimators.samples import distinct, positive_weights
from kernelopt.losses import Loss, epsilon_insensitive, squared
from kernelopt.validation import Array, exponent, one_of, positive

TARGET_LOSSES = ("epsilon_insensitive", "squared")


class MKLRegressor(ScoredMixin, RegressorMixin, MKLEstimator):
    r"""Regression whose kernel is a learned combination of kernels (l_p-norm MKL).

    It solves, for targets y in units of their standard deviation,

    .. math::

        \min_{\theta \ge 0,\ \|\theta\|_p \le 1}\ \min_{f, b}\ \sum_i C_i V(f(x_i) + b, y_i)
        + \tfrac12 \|f\|^2_{K(\theta)}, \qquad K(\theta) = \sum_m \theta_m k_m / c_m

    with constants c_m from the normalisation. The result has a certificate of its distance to the optimum.

    Parameters
    ----------
    kernels, p, normalize, method, tol, time_limit, verbose, random_state
        As for `MKLClassifier`.
    C : float > 0, default 1.0
        Weight of the loss of each sample.
    loss : "epsilon_insensitive" or "squared", default "epsilon_insensitive"
        (\|f - y\| - epsilon)_+, of support vector regression, or (f - y)^2 / 2, of kernel ridge regression
        with ridge 1/C.
    epsilon : float >= 0, default 0.1
        Half width of the tube in which a deviation costs nothing.
    target_scale : "standard" or "none", default "standard"
        Whether the targets are divided by their standard deviation, after their mean is subtracted.
        Predictions are in the units of y either way. With "none", C and epsilon are in the units of y, as for
        scikit-learn's `SVR`.

    Attributes
    ----------
    weights_ : array of shape (m,)
        The weights theta of the normalised kernels.
    dual_coef_ : array of shape (1, n_support)
        The signed dual variables, in units of y.
    intercept_ : array of shape (1,)
    kernel_names_, kernels_, support_, certificate_, dual_gap_, n_iter_, history_, weights_unique_
    solution_, n_features_in_, feature_names_in_
        As for `MKLClassifier`. The certificate and the solution are for the targets that were scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import MKLRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> model = MKLRegressor(C=10.0).fit(X, 100 * np.sin(X.ravel()))
    >>> round(model.score(X, 100 * np.sin(X.ravel())), 3)
    0.994
    """

    fitted_forms = MKLEstimator.fitted_forms | {"target_mean_": float, "target_unit_": float}

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 4 / 3,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        target_scale: str = "standard",
        normalize: str = "multiplicative",
        method: Any = "auto",
        tol: float = 1e-3,
        time_limit: float | None = None,
        verbose: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.kernels = kernels
        self.p = p
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.target_scale = target_scale
        self.normalize = normalize
        self.method = method
        self.tol = tol
        self.time_limit = time_limit
        self.verbose = verbose
        self.random_state = random_state

    @one_call
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        """Learn the weights and the function.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Factors of C, not negative. Samples of weight zero are left out.

        Returns
        -------
        MKLRegressor
            The estimator itself.

        Raises
        ------
        InputError
            If an argument is wrong; its subclass says what.
        """
        C = positive(self.C, "C")
        grams, tasks, shared = self.prepare(X, y, sample_weight)
        self.learn(grams, tasks(C), shared=shared)
        self.dual_coef_ = self.target_unit_ * self.dual_coef_
        self.intercept_ = self.target_unit_ * self.intercept_ + self.target_mean_
        return self

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        exponent(self.p)
        epsilon = positive(self.epsilon, "epsilon", allow_zero=True)
        one_of(self.loss, "loss", TARGET_LOSSES)
        one_of(self.target_scale, "target_scale", ("standard", "none"))
        samples = self.read_training(X)
        y = read_targets(y, self)
        check_consistent_length(samples, y)
        rows, weights = distinct(samples, y, positive_weights(sample_weight, len(samples)))
        y = y[rows]
        mean, unit = scale_of(y, weights) if self.target_scale == "standard" else (0.0, 1.0)
        self.target_mean_, self.target_unit_ = mean, unit

        def tasks(C: float) -> list[Task]:
            each = positive(C, "C") * weights
            loss: Loss = squared(each) if self.loss == "squared" else epsilon_insensitive(each, epsilon)
            return [((y - mean) / unit, loss)]

        self.keep_labels([y, weights])
        return self.fit_kernels(samples, rows, weights), tasks, True

    def predicting(self, X: Any) -> tuple[Array, Array, Array]:
        f, alpha, intercepts = super().predicting(X)
        unit = self.target_unit_
        return f / unit, alpha / unit, (intercepts - self.target_mean_) / unit

    def predict(self, X: Any) -> Array:
        """Return the values of the function at samples, shape (n_new,).

        Parameters
        ----------
        X : array or data frame of shape (n_new, d), sequence of strings, KernelStack, or array (m, n_new, n)
        """
        return self.machine_values(X)[:, 0]


def scale_of(y: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of targets; equal targets y_i have y_1 and one.

    The computed mean of equal numbers may differ from them by a rounding.
    """
    (mean,), (deviation,) = means_and_deviations(y[:, None], weights)
    return (float(mean), float(deviation)) if deviation else (float(y[0]), 1.0)
