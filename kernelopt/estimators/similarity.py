"""`SimilarityClassifier`: a kernel learned from similarities that are not positive semidefinite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelopt.catalog import Formulation
from kernelopt.docstrings import parameters_of
from kernelopt.errors import ParameterError, ShapeError
from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.formulation import built
from kernelopt.estimators.labels import MachineClassifier
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.grams import Grams
from kernelopt.numerics.decompositions import eigenpairs, eigenvalues, pseudoinverse
from kernelopt.records import Digest
from kernelopt.validation import Array


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class SimilarityClassifier(MachineClassifier, KernelEstimator):
    r"""Classifier of two classes from an indefinite similarity matrix.

    It solves, with the eigenvectors V and eigenvalues lambda of the similarities S,

    .. math:: \min_{\mu \ge 0,\ 1'\mu = \tau}\ \omega(V \operatorname{diag}(\mu) V')
        + \rho\, d(V \operatorname{diag}(\mu) V', S)

    where omega is the criterion of a support vector machine and d the fidelity. New samples with similarities
    s(x) have the kernel values :math:`k(x)' = s(x)' V \operatorname{diag}(\mu_j / \lambda_j) V'`, which are
    the values of the learned kernel at the training samples.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the loss of each sample.
    rho : float > 0, default 10.0
        Price of the distance from S.
    trace : float > 0, optional
        tau, by default the trace of the positive semidefinite matrix nearest to S.
    fidelity : "l1", "frobenius", "squared_frobenius" or a Fidelity, default "squared_frobenius"
        The distance.
    tol : float > 0, default 1e-4
        Certified gap to reach, relative to the value.
    method, time_limit
        As for `KernelEstimator`.

    Attributes
    ----------
    classes_ : array of shape (2,)
    kernel_ : array of shape (n, n)
        The learned kernel on the training samples.
    dual_coef_ : array of shape (1, n)
        The coefficients of the similarities:
        :math:`f(x) = \sum_i \mathrm{dual\_coef}_i\, s(x, x_i) + \mathrm{intercept}`.
    intercept_, certificate_, dual_gap_, n_iter_, history_, solution_, n_features_in_
        As for `MKLClassifier`.

    Notes
    -----
    scikit-learn's model selection takes the right rows and columns of the matrix, since the estimator has the
    tag ``pairwise``.

    References
    ----------
    .. [1] Kundu et al., convex formulations of learning from indefinite similarities; see
       `formulations.similarity.restricted_spectral`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import SimilarityClassifier
    >>> S = np.array([[1, 0.9, -0.2, 0.1], [0.9, 1, 0.3, 0], [-0.2, 0.3, 1, 1.1], [0.1, 0, 1.1, 1]])
    >>> model = SimilarityClassifier(C=10.0).fit(S, ["a", "a", "b", "b"])
    >>> model.predict(S).tolist()
    ['a', 'a', 'b', 'b']
    """

    _two_classes = True
    kernels: ClassVar[None] = None  # type: ignore[misc]
    normalize: ClassVar[str] = "none"  # type: ignore[misc]
    random_state: ClassVar[None] = None  # type: ignore[misc]

    _fitted_forms = KernelEstimator._fitted_forms | {
        "classes_": Any,
        "_labels_checksum": Digest,
        "kernel_": Annotated[Array, "n n"],
        "n_features_in_": int,
    }

    C: float = 1.0
    rho: float = 10.0
    trace: float | None = None
    fidelity: Any = "squared_frobenius"
    tol: float = 1e-4

    @one_call
    def fit(self, X: Any, y: Any) -> SimilarityClassifier:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array of shape (n, n)
            Symmetric similarities between the samples.
        y : array of shape (n,)
            Labels of two classes.

        Returns
        -------
        SimilarityClassifier
            The estimator itself.

        Raises
        ------
        NotSymmetricError
            If the similarities are not symmetric.
        LabelError
            If there are not two classes.
        InputError
            If an argument is wrong; its subclass says what.
        """
        grams, _, solution = self._fit_formulation(X, y)
        lam, V = eigenpairs(grams.gram(0))
        self.kernel_ = np.asarray(solution.kernel)
        coefficients = pseudoinverse(lam, V) @ (self.kernel_ @ solution.alpha)
        self._keep_machines(coefficients[None], np.array([solution.intercept]), np.ones(1))
        return self

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Array]]:
        S, labels = self._read_classes(X, y, most=2)
        if S.shape[0] != S.shape[1]:
            raise ShapeError(
                f"X must hold the similarities between all samples, shape (n, n), got {S.shape}. Evaluate "
                "the similarity of each pair of samples."
            )
        return self._fit_kernels(KernelStack(S[None], names=["similarity"])), labels

    def _formulated(self, grams: Grams, labels: list[Any]) -> Formulation:
        S = grams.gram(0)
        return built(
            "similarity.restricted_spectral",
            S,
            labels[0],
            C=self.C,
            rho=self.rho,
            trace=self._trace(eigenvalues(S)) if self.trace is None else self.trace,
            fidelity=self.fidelity,
        )

    def _read_training(self, X: Any) -> Array:
        return self._points(X, reset=True)

    def _read_new(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._points(X, reset=False)[None]

    def _trace(self, lam: Array) -> float:
        """Return the trace of the nearest positive semidefinite matrix to one of these eigenvalues."""
        found = float(np.maximum(lam, 0.0).sum())
        if not found > 0:
            raise ParameterError(
                "the similarities must have a positive eigenvalue, got none: the nearest kernel is zero. "
                "Pass trace= as a positive number, or change their sign."
            )
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags
