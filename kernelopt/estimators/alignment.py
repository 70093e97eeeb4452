"""`KernelAlignment`: the combination of kernels that is best aligned with the labels."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.errors import InputError, Stopped
from kernelopt.estimators.fitting import limit_of_solve, one_call
from kernelopt.estimators.labels import classes_of, signs
from kernelopt.estimators.transformer import KernelTransformer
from kernelopt.grams import Grams
from kernelopt.language import alignment, combine, frobenius
from kernelopt.methods import solve
from kernelopt.records import Digest
from kernelopt.validation import boolean


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
    kernels : None, kernel, list of kernels, or dict from name to kernel, default None
        As for `MKLClassifier`.
    center : bool, default True
        Whether the kernels are centred before they are aligned.
    normalize : "multiplicative", "spherical", "trace" or "none", default "multiplicative"
        As for `MKLClassifier`.
    method : str, default "auto"
        As for `kernelopt.solve`.
    tol : float > 0, default 1e-5
    time_limit : float > 0, optional
        Seconds of the call.
    random_state : int, Generator or None, default 0
        As for `MKLClassifier`.

    Attributes
    ----------
    alignment_ : float
        The cosine of the angle between the learned kernel and sum_k y_k y_k', at most 1.
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

    fitted_forms = KernelTransformer.fitted_forms | {
        "classes_": Any,
        "_labels_checksum": Digest,
        "alignment_": float,
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        center: bool = True,
        normalize: str = "multiplicative",
        method: Any = "auto",
        tol: float = 1e-5,
        time_limit: float | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernels = kernels
        self.center = center
        self.normalize = normalize
        self.method = method
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state

    @one_call
    def fit(self, X: Any, y: Any) -> KernelAlignment:
        """Learn the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
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
        grams, labels = self.problem_data(X, y)
        problem = self.formulated(grams, labels)
        solution = solve(problem, self.method, tol=self.tol, time_limit=limit_of_solve(self.time_limit))
        (mu,) = problem.variables()
        if not mu.value.any():  # feasible, and the best point of a call that was ended
            raise Stopped
        self.keep_kernel(solution, mu.value / mu.value.sum())
        target = np.array([[float(a @ b) ** 2 for a in labels] for b in labels]).sum()
        self.alignment_ = float(solution.lower / np.sqrt(target))
        return self

    def problem_data(self, X: Any, y: Any) -> tuple[Grams, list[Any]]:
        samples = self.read_training(X)
        self.classes_, numbers = classes_of(y, samples, self)
        return self.fit_kernels(samples), self.keep_labels(signs(numbers, self.classes_))

    def formulated(self, grams: Grams, labels: list[Any]) -> cp.Problem:
        used = grams.center() if boolean(self.center, "center") else grams
        if not np.sum([used.forms(each) for each in labels], axis=0).max() > 0:
            raise InputError(
                "some kernel must be positively aligned with the labels, got none: any weights are optimal. "
                "Add kernels."
            )
        K = combine(cp.Variable(len(grams), nonneg=True, name="mu"), used)
        total = sum(alignment(K, each) for each in labels)
        return cp.Problem(cp.Maximize(total), [frobenius(K) <= 1])
