"""`KernelAlignment` and `TripletKernel`: transformers to a learned kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import cvxpy as cp
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from kernelopt.catalog import Formulation
from kernelopt.comparisons import sample_triplets
from kernelopt.docstrings import parameters_of
from kernelopt.errors import InputError, LabelError, Stopped
from kernelopt.estimators.base import KernelEstimator
from kernelopt.estimators.features import LearnedKernelMixin
from kernelopt.estimators.fitting import one_call
from kernelopt.estimators.formulation import built
from kernelopt.estimators.labels import classes_of
from kernelopt.grams import Grams, join
from kernelopt.language import alignment, combine, frobenius
from kernelopt.records import Digest
from kernelopt.validation import Array, Index, boolean, whole


class KernelTransformer(
    LearnedKernelMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator
):
    """Base class of the estimators that learn a kernel and no machine.

    `transform` returns the kernel with the training samples, as estimators with ``kernel="precomputed"``
    take it.
    """

    _fitted_forms: ClassVar[dict[str, Any]] = {
        "_checksum": Digest,
        "_rows": Annotated[Index, "s"],
        "weights_": Annotated[Array, "m"],
        "n_samples_fit_": int,
    }

    def _keep_kernel(self, weights: Array) -> None:
        """Keep the weights of the kernel on all training samples."""
        self.n_samples_fit_ = self._rows.size
        self.weights_ = np.asarray(weights)

    def transform(self, X: Any) -> Array:
        """Return the learned kernel between samples and the training samples.

        Parameters
        ----------
        X : array or data frame of shape (n_new, d), sequence of strings, KernelStack, or array (m, n_new, n)

        Returns
        -------
        array of shape (n_new, n)
        """
        return self._kernel_at(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class KernelAlignment(KernelTransformer):
    r"""Transformer to the kernel that is best aligned with the labels.

    It solves

    .. math::

        \max_{\mu \ge 0}\ \sum_k \langle K(\mu), y_k y_k' \rangle \quad\text{s.t.}\quad \|K(\mu)\|_F \le 1,
        \qquad K(\mu) = \sum_m \mu_m k_m / c_m

    where y_k holds the labels -1 and +1 of class k against the rest, of two classes one vector. The
    weights are then scaled to the sum one. By default the kernels are centred for this problem, as in [2]_;
    the kernel that `transform` returns is not.

    Parameters
    ----------
    center : bool, default True
        Whether the kernels are centred before they are aligned.
    kernels, normalize, method, tol, time_limit, random_state
        As for `KernelEstimator`.

    Attributes
    ----------
    alignment_ : float
        The cosine of the angle between the learned kernel and :math:`\sum_k y_k y_k'`, at most 1.
    weights_ : array of shape (m,)
    classes_ : array of shape (n_classes,)
    kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_, n_features_in_
        As for `MKLClassifier`.

    References
    ----------
    .. [1] Lanckriet et al., JMLR 5 (2004), section 4.6, Theorem 23.
    .. [2] Cortes, Mohri, Rostamizadeh, Algorithms for learning kernels based on centered alignment, JMLR 13
       (2012).

    Examples
    --------
    >>> from kernelopt.estimators import KernelAlignment
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> learned = KernelAlignment(["linear()", "polynomial(2)"]).fit(X, ["a", "b", "b", "a"])
    >>> learned.weights_.round(3).tolist(), round(learned.alignment_, 3), learned.transform(X).shape
    ([0.0, 1.0], 0.098, (4, 4))
    """

    _fitted_forms = KernelTransformer._fitted_forms | {
        "classes_": Any,
        "_labels_checksum": Digest,
        "alignment_": float,
    }

    center: bool = True

    @one_call
    def fit(self, X: Any, y: Any) -> KernelAlignment:
        """Learn the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,)
            Labels of at least two classes.

        Returns
        -------
        KernelAlignment
            The estimator itself.

        Raises
        ------
        LabelError
            If there is one class only.
        InputError
            If an argument is wrong, or if no kernel is positively aligned with the labels.
        """
        _, labels, solution = self._fit_formulation(X, y)
        if not solution.weights.any():  # feasible, and the best point of a call that was ended
            raise Stopped
        self._keep_kernel(solution.weights / solution.weights.sum())
        target = np.array([[float(a @ b) ** 2 for a in labels] for b in labels]).sum()
        self.alignment_ = float(solution.lower / np.sqrt(target))
        return self

    def _problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Any]]:
        samples, labels = self._read_classes(X, y)
        return self._fit_kernels(samples), labels

    def _formulated(self, grams: Grams, labels: list[Any]) -> cp.Problem:
        used = grams.center() if boolean(self.center, "center") else grams
        if not np.sum([used.forms(each) for each in labels], axis=0).max() > 0:
            raise InputError(
                "some kernel must be positively aligned with the labels, got none: any weights are optimal. "
                "Add kernels."
            )
        K = combine(cp.Variable(len(grams), nonneg=True, name="mu"), used)
        total = sum(alignment(K, each) for each in labels)
        return cp.Problem(cp.Maximize(total), [frobenius(K) <= 1])


@parameters_of(KernelEstimator)
@dataclass(eq=False, repr=False, kw_only=True)
class TripletKernel(KernelTransformer):
    r"""Transformer to a kernel that is learned from comparisons "i is more similar to j than to k".

    It is the programme `kernel_design` of `formulations.triplet_lp`, with a kernel that is positive
    semidefinite or diagonally dominant on the training samples. Weights may be negative: at new samples the
    kernel is the same combination, and it need not be positive semidefinite there.

    Parameters
    ----------
    gamma1 : float > 0, default 0.01
        Price of the sum of the weights' absolute values.
    gamma2 : float >= 0, default 0.001
        Price of the trace.
    cone : "psd", "dominant" or "nonnegative", default "psd"
        The training matrix is positive semidefinite, diagonally dominant (a linear programme, for many
        samples), or a combination with weights that are not negative. With "dominant" the identity matrix is
        one more kernel of the problem: wide kernels alone are far from dominant.
    n_triplets : int > 0, default 300
        Comparisons that are drawn from the labels where `fit` is given none.
    kernels, normalize, method, tol, time_limit
        As for `KernelEstimator`.
    random_state : int, Generator or None, default 0
        The seed of the comparisons and of the default kernels.

    Attributes
    ----------
    weights_ : array of shape (m,)
        Of any sign.
    ridge_ : float
        The weight of the identity matrix: part of the learned training matrix, and not of `transform`.
    triplets_ : array of shape (T, 3)
        The comparisons that were used.
    kernel_names_, kernels_, certificate_, dual_gap_, n_iter_, history_, solution_, n_features_in_
        As for `MKLClassifier`.

    References
    ----------
    .. [1] Fung, Rosales, Rao, Feature selection and kernel design via linear programming, IJCAI (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelopt.estimators import TripletKernel
    >>> X = np.array([[0.0, 0.3], [0.1, 0.9], [1.0, 0.2], [1.1, 0.8]])
    >>> learned = TripletKernel(["gaussian(0.5)"]).fit(X, triplets=[[0, 1, 2], [3, 2, 1]])
    >>> K = learned.transform(X)
    >>> bool(K[0, 1] > K[0, 2] and K[3, 2] > K[3, 1])
    True
    """

    _fitted_forms = KernelTransformer._fitted_forms | {"triplets_": Annotated[Index, "t r"], "ridge_": float}

    gamma1: float = 0.01
    gamma2: float = 0.001
    cone: str = "psd"
    n_triplets: int = 300

    @one_call
    def fit(self, X: Any, y: Any = None, *, triplets: Any = None) -> TripletKernel:
        """Learn the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
            The training samples.
        y : array of shape (n,), optional
            Labels of at least two classes, from which comparisons are drawn.
        triplets : array of shape (T, 3), optional
            Rows (i, j, k): sample i is more similar to j than to k.

        Returns
        -------
        TripletKernel
            The estimator itself.

        Raises
        ------
        LabelError
            If there are neither comparisons nor labels of two classes.
        InputError
            If an argument is wrong; its subclass says what.
        """
        grams, _, solution = self._fit_formulation(X, y, triplets=triplets)
        weights, m = np.asarray(solution.weights), len(grams)
        self._keep_kernel(weights[:m])
        self.ridge_ = float(weights[m]) if weights.size > m else 0.0
        return self

    def _problem_data(self, X: Any, y: Any = None, *, triplets: Any = None) -> tuple[Grams, list[Array]]:
        samples = self._read_training(X)
        if triplets is None:
            if y is None:
                raise LabelError(
                    "TripletKernel requires y to be passed, but the target y is None: comparisons are drawn "
                    "from labels. Pass fit(X, y) or fit(X, triplets=...)."
                )
            _, numbers = classes_of(y, samples, self)
            count = whole(self.n_triplets, "n_triplets")
            triplets = sample_triplets(numbers, count, random_state=self.random_state)
        self.triplets_ = np.asarray(triplets)
        self._keep_labels([self.triplets_])
        return self._fit_kernels(samples), []

    def _formulated(self, grams: Grams, labels: list[Array]) -> Formulation:  # its data are `triplets_`
        cone: object = self.cone  # of any class: its formulation checks it
        if isinstance(cone, str) and cone == "dominant":
            grams = join([(1.0, grams), (1.0, Grams.identity(grams.n_points))])
        return built(
            "triplet_lp.kernel_design",
            grams,
            self.triplets_,
            gamma1=self.gamma1,
            gamma2=self.gamma2,
            cone=self.cone,
        )
