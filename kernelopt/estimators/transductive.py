"""`TransductiveKernelClassifier`: a kernel learned on labelled and unlabelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelopt.catalog import Formulation
from kernelopt.docstrings import parameters_of
from kernelopt.errors import InputError
from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.formulation import built
from kernelopt.estimators.labels import MachineClassifier
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.sparse import SparsePoints
from kernelopt.grams import Grams
from kernelopt.kernels import as_strings
from kernelopt.records import Digest
from kernelopt.validation import Array, one_of

FORMULATIONS = {
    "l1": "lanckriet.soft_margin",
    "l2": "lanckriet.soft_margin_squared",
    "hard": "lanckriet.hard_margin",
}


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class TransductiveKernelClassifier(MachineClassifier, KernelEstimator):
    r"""Classifier of two classes whose kernel matrix is learned on labelled and unlabelled samples.

    It solves, over all N samples, where the first n have labels,

    .. math:: \min_{\mu}\ \omega(K(\mu)_{tr}) \quad\text{s.t.}\quad \operatorname{tr} K(\mu) = c,
        \qquad K(\mu) = \sum_m \mu_m k_m / c_m

    with :math:`\mu \ge 0` or, for weights of any sign, :math:`K(\mu) \succeq 0` on all N samples, where
    :math:`\omega` is the criterion of a support vector machine. The unlabelled samples enter by the trace and
    by :math:`K(\mu) \succeq 0`.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the loss of each sample; the margin "hard" has none.
    margin : "l1", "l2" or "hard", default "l1"
        The sum of hinge losses, of their squares, or no loss allowed.
    weights : "nonnegative" or "free", default "nonnegative"
        With "free" there is no kernel at new samples: only `transduction_` and `predict` at the samples of
        `fit` are known.
    kernels, normalize, method, tol, time_limit, random_state
        As for `KernelEstimator`.

    Attributes
    ----------
    classes_ : array of shape (2,)
    transduction_ : array of shape (n_unlabeled,)
        The classes of the unlabelled samples.
    weights_ : array of shape (m,)
    dual_coef_ : array of shape (1, n_support)
    support_, intercept_, kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_
        As for `MKLClassifier`.

    References
    ----------
    .. [1] Lanckriet et al., Learning the kernel matrix with semidefinite programming, JMLR 5 (2004).

    Examples
    --------
    >>> from kernelopt.estimators import TransductiveKernelClassifier
    >>> X, X_new = [[0.0], [1.0], [4.0], [5.0]], [[0.5], [4.5]]
    >>> model = TransductiveKernelClassifier(["gaussian(1.0)", "linear()"])
    >>> model.fit(X, ["a", "a", "b", "b"], X_unlabeled=X_new).transduction_.tolist()
    ['a', 'b']
    """

    _two_classes = True
    _fitted_forms = KernelEstimator._fitted_forms | {
        "classes_": Any,
        "_labels_checksum": Digest,
        "values_": Annotated[Array, "n"],
        "transduction_": Any,
    }

    C: float = 1.0
    margin: str = "l1"
    weights: str = "nonnegative"

    @one_call
    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> TransductiveKernelClassifier:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, or KernelStack
            The labelled samples.
        y : array of shape (n,)
            Labels of two classes.
        X_unlabeled : array or data frame of shape (n_unlabeled, d), strings, or KernelStack, optional
            Further samples of the kernel matrix that is learned; of the same stack as X.

        Returns
        -------
        TransductiveKernelClassifier
            The estimator itself.

        Raises
        ------
        LabelError
            If there are not two classes.
        InfeasibleError
            For a hard margin, if no kernel separates the classes.
        InputError
            If an argument is wrong; its subclass says what.
        """
        grams, labels, solution = self._fit_formulation(X, y, X_unlabeled=X_unlabeled)
        n = labels[0].size
        self.values_ = solution.decision_function()
        self.transduction_ = self.classes_[(self.values_[n:] > 0).astype(int)]
        alpha = np.zeros((1, grams.n_points))
        alpha[0, :n] = solution.alpha
        self._keep_machines(alpha, np.array([solution.intercept]), np.asarray(solution.weights))
        return self

    def _problem_data(self, X: Any, y: Any, X_unlabeled: Any = None) -> tuple[Grams, list[Array]]:
        one_of(self.margin, "margin", FORMULATIONS)
        samples, labels = self._read_classes(X, y, most=2)
        return self._fit_kernels(
            samples if X_unlabeled is None else self._joined(samples, X_unlabeled)
        ), labels

    def _formulated(self, grams: Grams, labels: list[Any]) -> Formulation:
        options: dict[str, Any] = {"weights": self.weights}
        if self.margin != "hard":
            options["C"] = self.C
        return built(FORMULATIONS[self.margin], grams, labels[0], **options)

    def decision_function(self, X: Any) -> Array:
        """Return the values of the machine at samples, shape (n_new,), positive for `classes_[1]`.

        Parameters
        ----------
        X : as for `fit`, or kernels of shape (m, n_new, n)
            The n_new samples.

        Raises
        ------
        InputError
            If weights may be negative: then the kernel is known on the samples of `fit` alone.
        """
        check_is_fitted(self)
        if (self.weights_ < 0).any():
            raise InputError(
                "new samples need weights that are not negative, got a negative one of weights='free'. Pass "
                "them to fit as X_unlabeled and read transduction_, or choose weights='nonnegative'."
            )
        return super().decision_function(X)

    def _joined(
        self, labelled: Array | KernelStack | SparsePoints, X_unlabeled: Any
    ) -> Array | KernelStack | SparsePoints:
        """Return the labelled samples followed by the unlabelled ones."""
        if isinstance(labelled, KernelStack):
            if not isinstance(X_unlabeled, KernelStack):
                raise InputError(
                    "X_unlabeled must be a KernelStack if X is one, got "
                    f"{type(X_unlabeled).__name__}. Pass stack[unlabelled] of the same stack."
                )
            return labelled.joined(X_unlabeled)
        if isinstance(labelled, SparsePoints):
            return labelled.joined(self._sparse_points(X_unlabeled, reset=False))
        if labelled.ndim == 1:
            return np.concatenate([labelled, as_strings(X_unlabeled, "X_unlabeled")])
        return np.concatenate([labelled, self._points(X_unlabeled, reset=False)])
