"""`LinearFunctionalMKLRegressor` and `LinearFunctionalMKLClassifier`: one function per kernel, combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from kernelopt.catalog import Formulation
from kernelopt.docstrings import parameters_of
from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.formulation import built
from kernelopt.estimators.labels import MachineClassifier, ScoredMixin, read_targets
from kernelopt.grams import Grams
from kernelopt.records import Digest
from kernelopt.validation import Array


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class LinearFunctionalMKL(KernelEstimator):
    r"""Base class: one regularised least-squares function for each kernel, and their best combination.

    .. math::

        x_m = \arg\min_x\ \tfrac1n \sum_i (v_i - x(u_i))^2 + \alpha_m \|x\|_m^2, \qquad
        \min_{c \in \mathcal C}\ \tfrac1n \|v - X c\|^2 + \lambda \|c\|^2, \qquad f = \sum_m c_m x_m + b

    Kernels are evaluated a few at a time, so that there may be hundreds of them.

    Parameters
    ----------
    regularization : "gcv", "leave-one-out", float > 0 or array of shape (m,), default "gcv"
        alpha. A text names the criterion that chooses it for each kernel.
    ridge : float >= 0, default 0.0
        lambda.
    weights : "simplex", "nonnegative" or "free", default "simplex"
        The set of c: with the sum one, not negative, or any. Without the sum one, columns "leave-one-out" can
        give narrow kernels weights above one, and f then misses the targets of its own samples.
    columns : "leave-one-out" or "training", default "leave-one-out"
        The values X_im of x_m at sample i: of the function that was trained without this sample, or with it.
    kernels, normalize, tol, time_limit, random_state
        As for `KernelEstimator`.

    Attributes
    ----------
    weights_ : array of shape (m,)
        The weights c of the functions.
    dual_coef_ : array of shape (m, n_support)
        The coefficients of each function x_m.
    intercept_ : array of shape (1,)
    kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_, n_features_in_
        As for `MKLClassifier`.

    References
    ----------
    .. [1] Pereverzyev, Tkachenko, Regularization by the linear functional strategy with multiple kernels,
       Front. Appl. Math. Stat. 3 (2017).
    """

    _fitted_forms = KernelEstimator._fitted_forms | {"_labels_checksum": Digest}

    regularization: Any = "gcv"
    ridge: float = 0.0
    weights: str = "simplex"
    columns: str = "leave-one-out"
    method: ClassVar[str] = "auto"  # type: ignore[misc]

    def _learn(self, X: Any, y: Any) -> Self:
        """Learn the functions and their weights."""
        _, _, solution = self._fit_formulation(X, y)
        self._keep_machines(
            np.asarray(solution.alpha), np.array([solution.intercept]), np.asarray(solution.weights)
        )
        return self

    def _formulated(self, grams: Grams, labels: list[Any]) -> Formulation:
        return built(
            "linear_functional.functional_strategy",
            grams,
            labels[0],
            regularization=self.regularization,
            ridge=self.ridge,
            weights=self.weights,
            columns=self.columns,
            intercept="mean",
        )


@parameters_of(LinearFunctionalMKL)
class LinearFunctionalMKLRegressor(ScoredMixin, RegressorMixin, LinearFunctionalMKL):
    """Regressor by `LinearFunctionalMKL`, whose parameters and attributes it has.

    Parameters
    ----------
    all
        As for `LinearFunctionalMKL`.

    Examples
    --------
    >>> from kernelopt.estimators import LinearFunctionalMKLRegressor
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = LinearFunctionalMKLRegressor(["linear()", "gaussian(1.0)"]).fit(X, [0.0, 2.0, 4.0, 6.0])
    >>> model.predict([[1.5]]).round(2).tolist()
    [3.0]
    """

    @one_call
    def fit(self, X: Any, y: Any) -> LinearFunctionalMKLRegressor:
        """Learn the functions and their weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,)
            Their targets.

        Returns
        -------
        LinearFunctionalMKLRegressor
            The estimator itself.

        Raises
        ------
        InputError
            If an argument is wrong; its subclass says what.
        """
        return self._learn(X, y)

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Array]]:
        samples = self._read_training(X)
        targets = read_targets(y, self)
        check_consistent_length(samples, targets)
        return self._fit_kernels(samples), self._keep_labels([targets])

    def predict(self, X: Any) -> Array:
        """Return the values of the function at samples, shape (n_new,).

        Parameters
        ----------
        X : as for `fit`, or kernels of shape (m, n_new, n)
            The n_new samples.
        """
        return self._sum_of_functions(X)


@parameters_of(LinearFunctionalMKL)
class LinearFunctionalMKLClassifier(MachineClassifier, LinearFunctionalMKL):
    """Classifier of two classes by `LinearFunctionalMKL`, whose parameters and attributes it has.

    Parameters
    ----------
    all
        As for `LinearFunctionalMKL`.

    Examples
    --------
    >>> from kernelopt.estimators import LinearFunctionalMKLClassifier
    >>> X = [[0.0], [1.0], [4.0], [5.0]]
    >>> model = LinearFunctionalMKLClassifier(["linear()", "gaussian(1.0)"]).fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [4.5]]).tolist()
    ['a', 'b']
    """

    _two_classes = True
    _fitted_forms = LinearFunctionalMKL._fitted_forms | {"classes_": Any}

    @one_call
    def fit(self, X: Any, y: Any) -> LinearFunctionalMKLClassifier:
        """Learn the functions and their weights, with the targets -1 and +1.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,)
            Labels of two classes.

        Returns
        -------
        LinearFunctionalMKLClassifier
            The estimator itself.

        Raises
        ------
        LabelError
            If there are not two classes.
        InputError
            If an argument is wrong; its subclass says what.
        """
        return self._learn(X, y)

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Array]]:
        samples, labels = self._read_classes(X, y, most=2)
        return self._fit_kernels(samples), labels
