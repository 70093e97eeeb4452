"""What the estimators share: reading samples, kernels and weights, and the learned machines.

`fit` of an estimator reads its samples by `_read_training`, chooses kernels by `_fit_kernels`, writes its
problem in the language with the `Grams` that this returns, solves it, and hands the result to
`_keep_solutions` and `_keep_machines`. New samples go through `_machine_values` or `_kernel_at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import cvxpy as cp
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from kernelopt.catalog import Formulation
from kernelopt.errors import InputError, ParameterError, ShapeError
from kernelopt.estimators.dictionary import fit_dictionary
from kernelopt.estimators.fitting import limit_of_solve, running_fit
from kernelopt.estimators.kernels import (
    StackKernels,
    have_room,
    of_one_distance,
    trained_on_points,
    trained_on_stack,
)
from kernelopt.estimators.labels import classes_of, signs
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.samples import finite_points, is_stack, is_strings, warn_of_gram
from kernelopt.estimators.saving import SavedMixin, Trained, samples_checksum
from kernelopt.estimators.sparse import SparseKernels, SparsePoints, trained_on_sparse
from kernelopt.grams import Grams
from kernelopt.kernels import as_strings
from kernelopt.methods import Solution, solve
from kernelopt.records import Digest
from kernelopt.validation import Array, Index, shown


@dataclass(eq=False, repr=False)
class KernelEstimator(SavedMixin, BaseEstimator):
    r"""Base class of the estimators. It reads samples and keeps what was learned.

    It is a dataclass, whose fields are the parameters that the estimators have in common; a subclass adds its
    own. Samples are points, an array or a data frame of shape (n, d), or a sequence of n strings, or a
    `KernelStack`. An array of shape (m, n, n), a list of m matrices and a dict from name to matrix are taken
    as a `KernelStack` by `fit`, and kernels of shape (m, n_new, n), with the same names, as kernels at new
    points by the other methods. One matrix is taken so where `kernels` is "precomputed".

    Parameters
    ----------
    kernels : None, kernel, list of kernels, or dict from name to kernel, default None
        A kernel is a `kernelopt.Kernel`, a text such as "gaussian(0.5)", or a function of two arrays of
        points. In a list it may be a triple (name, kernel, columns), as in a ColumnTransformer. None stands
        for the default kernels: Gaussian kernels of 0.6 and 1.2 median distances and polynomials of degree 1
        and 2, on standardised columns; columns of one range, such as pixels, keep their common unit. The
        name of such a Gaussian kernel with any number, as "gaussian(0.5 median)", stands for it alone. Other
        kernels see the columns as they are: put a StandardScaler before them where units differ. Where
        samples are strings, these are kernels of strings, such as
        ``[kernelopt.spectrum(2), kernelopt.spectrum(3)]``. "precomputed" says that X is a kernel matrix, or
        several, and no points; without it a stack, a list and a dict of matrices are taken for kernels too.
        Where X is sparse, kernels are functions of :math:`x'z` or :math:`\|x - z\|^2`, and must be given.
    normalize : "multiplicative", "spherical", "trace" or "none", default "multiplicative"
        How kernels are brought to one scale, as in `Grams.normalize`. The constants of the training
        samples hold for new samples too.
    method : str, default "auto"
        As for `kernelopt.solve`.
    tol : float > 0, default 1e-5
        Certified gap to reach, relative to the value.
    time_limit : float > 0, optional
        Seconds of the call.
    random_state : int, Generator or None, default 0
        The seed of the points that determine the median distance, where there are more than 1000.

    Attributes
    ----------
    kernels_ : tuple of m Kernels, or None
        The kernels as they are evaluated; None for precomputed ones.
    kernel_names_ : tuple of m str
    weights_ : array of shape (m,), or (k, m) where each class or target has its own
    support_ : array of shape (n_support,)
        The training samples with a dual variable that is not zero.
    dual_coef_ : array of shape (k, n_support)
        The signed dual variables of each of the k machines.
    intercept_ : array of shape (k,)
    solution_ : Solution, or tuple of them where each class or target has its own problem
    certificate_, dual_gap_, n_iter_, history_, weights_unique_
        Those of the solution; tuples where there are several, but the largest gap and number of iterations.
    """

    _fitted_forms: ClassVar[dict[str, Any]] = {
        "_checksum": Digest,
        "_rows": Annotated[Index, "n"],
        "intercept_": Annotated[Array, "k"],
        "weights_": Annotated[Array, "m", "k m"],
        "dual_coef_": Annotated[Array, "k s", "m s"],
        "support_": Annotated[Index, "s"],
    }
    """What `fit` sets, for the check of files: as `kernelopt.records` reads annotations.

    There are m kernels, s support points, n samples of the problem and k machines.
    """

    kernels: Any = None
    _: KW_ONLY
    normalize: str = "multiplicative"
    method: Any = "auto"
    tol: float = 1e-5
    time_limit: float | None = None
    random_state: Any = 0

    def _read_training(self, X: Any) -> Array | KernelStack | SparsePoints:
        """Return the training samples after a check, and set `n_features_in_` and `feature_names_in_`.

        Parameters
        ----------
        X : points, sequence of strings, KernelStack or array of shape (m, n, n)

        Returns
        -------
        array of shape (n, d), array of n strings, KernelStack, or SparsePoints
            All are indexed by sample.
        """
        if self._is_one_kernel(X):
            if X.shape[0] != X.shape[1]:
                raise ShapeError(
                    f"X must be a kernel matrix of shape (n, n) for kernels='precomputed', got {X.shape}. "
                    "Points are for kernels=None, which evaluates the default kernels."
                )
            X = [X]
        if isinstance(X, SparsePoints) or issparse(X):
            return self._sparse_points(X, reset=True)
        if is_stack(X):
            if self.kernels is not None and not self._kernels_are_given:
                raise ParameterError(
                    "kernels must be None for precomputed kernels, got both a stack and kernels="
                    f"{shown(self.kernels)}. Leave the kernels out, or pass points."
                )
            stack = X if isinstance(X, KernelStack) else KernelStack(X)
            if not len(stack):
                raise InputError("fit must receive at least one sample, got an empty KernelStack. Add some.")
            self._forget_columns()
            return stack
        if self._kernels_are_given:
            raise InputError(
                f"X must hold kernels for kernels='precomputed', got {shown(X)}. Pass an array of shape "
                "(n, n) or (m, n, n), a list or a dict of matrices, or a KernelStack."
            )
        if is_strings(X):
            self._forget_columns()
            return np.asarray(as_strings(X, "X"))
        points = self._points(X, reset=True)
        if not hasattr(X, "columns"):
            warn_of_gram(points, self)
        return points

    @property
    def _kernels_are_given(self) -> bool:
        """Whether samples are kernels by the parameter `kernels`; without it they may be a stack too."""
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _is_one_kernel(self, X: Any) -> bool:
        """Whether samples are one kernel matrix: an array of two dimensions, by the parameter `kernels`."""
        two = getattr(X, "ndim", None) == 2 and not isinstance(X, KernelStack)
        return self._kernels_are_given and two

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._kernels_are_given
        tags.input_tags.sparse = self.kernels is not None and not self._kernels_are_given
        return tags

    def _forget_columns(self) -> None:
        """Delete what an earlier `fit` on points has set."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def _fit_kernels(
        self,
        samples: Array | KernelStack | SparsePoints,
        rows: Index | None = None,
        weights: Array | None = None,
    ) -> Grams:
        """Return the normalised kernels of training samples, and keep them for new samples.

        Parameters
        ----------
        samples : array of shape (n, d), array of n strings, or KernelStack
            What `_read_training` returns.
        rows : array of shape (n_used,), optional
            The samples of the problem; all by default.
        weights : array of shape (n_used,), optional
            Positive. They count in the means of the normalisation: a sample of weight 2 is two samples.

        Returns
        -------
        Grams of m kernels on n_used points
        """
        fit = running_fit()
        if fit is not None:
            fit.evaluate()
        self._rows = np.arange(len(samples)) if rows is None else rows
        samples = samples if rows is None else samples[rows]
        weights = np.ones(len(samples)) if weights is None else weights
        trained: Trained
        if isinstance(samples, KernelStack):
            trained, grams = trained_on_stack(samples, self.normalize, weights)
        elif isinstance(samples, SparsePoints):
            trained, grams = trained_on_sparse(self.kernels, samples, self.normalize, weights)
        else:
            names = getattr(self, "feature_names_in_", None)
            dictionary = fit_dictionary(self.kernels, samples, names, weights, self.random_state)
            swift = of_one_distance(dictionary.kernels) and self.normalize != "multiplicative"
            if fit is not None and hasattr(self, "p"):  # a method may learn from the points
                fit.avoidable = not swift and samples.dtype != object
            trained, grams = trained_on_points(dictionary, samples, self.normalize, weights)
        self._trained, self.kernels_ = trained, trained.kernels
        self.kernel_names_, self._checksum = self._trained.names, samples_checksum(samples)
        return grams

    def _read_new(self, X: Any) -> Any:
        """Check samples that come after the training, and return them as `TrainedKernels.at` takes them."""
        check_is_fitted(self)
        if isinstance(self._trained, StackKernels):
            if self._is_one_kernel(X):
                X = [X]
            if not is_stack(X):
                raise InputError(
                    "the model was fitted on precomputed kernels, so that samples must be a KernelStack or "
                    f"kernels of shape (m, n_new, n), got {shown(X)}. Pass stack[test]."
                )
            return X
        if not hasattr(self, "n_features_in_"):
            return as_strings(X, "X")
        if isinstance(self._trained, SparseKernels):
            return self._sparse_points(X, reset=False)
        if isinstance(X, KernelStack) or is_strings(X):
            raise InputError(
                f"the model was fitted on points, so that samples must be points, got {shown(X)}. Pass an "
                f"array of shape (n_new, {self.n_features_in_})."
            )
        return self._points(X, reset=False)

    def _sparse_points(self, X: Any, *, reset: bool) -> SparsePoints:
        """Return sparse or dense points as sparse ones, and check or set the number of their columns."""
        given = X.matrix if isinstance(X, SparsePoints) else X
        checked = check_array(given, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=self)
        validate_data(self, given, reset=reset, skip_check_array=True)
        return SparsePoints(checked)

    def _points(self, X: Any, *, reset: bool) -> Array:
        """Return points as an array of finite numbers, and check or set the names of their columns."""
        points = finite_points(X, self, fitting=reset)
        validate_data(self, X, reset=reset, skip_check_array=True)  # the number and names of columns
        return points

    def _keep_machines(self, alpha: Array, intercept: Array, weights: Array) -> None:
        """Keep the dual variables, the intercepts and the weights on the samples of the problem.

        Parameters
        ----------
        alpha : array of shape (k, n_used)
        intercept : array of shape (k,)
        weights : array of shape (m,) or (k, m)
        """
        support = np.flatnonzero(alpha.any(axis=0))
        self.weights_, self.intercept_ = np.asarray(weights), np.asarray(intercept)
        self.support_, self.dual_coef_ = self._rows[support], alpha[:, support]
        self._trained = self._trained.only(support)

    def _read_classes(self, X: Any, y: Any, most: int | None = None) -> tuple[Any, list[Array]]:
        """Return the training samples, and the labels -1 and +1 of each class; see `signs`."""
        samples = self._read_training(X)
        self.classes_, numbers = classes_of(y, samples, self, most=most)
        return samples, self._keep_labels(signs(numbers, self.classes_))

    def _fit_formulation(self, X: Any, y: Any, **data: Any) -> tuple[Grams, list[Array], Solution]:
        """Solve the problem of these data; return its kernels, its labels or targets, and its solution."""
        grams, labels = self._problem_data(X, y, **data)
        solution = self._solve(self._formulated(grams, labels))
        self._keep_solutions([solution])
        return grams, labels, solution

    def _solve(self, problem: Formulation | cp.Problem, **options: Any) -> Solution:
        """Return the certified solution of a problem, in the time that the running `fit` has for it."""
        run = partial(solve, problem) if isinstance(problem, cp.Problem) else problem.solve
        return run(self.method, tol=self.tol, time_limit=limit_of_solve(self.time_limit), **options)

    def _keep_solutions(self, solutions: Sequence[Solution]) -> None:
        """Keep the certified solutions of one problem, or of one problem for each class."""
        several = len(solutions) > 1
        self.solution_ = tuple(solutions) if several else solutions[0]
        for name in ("certificate", "history", "weights_unique"):
            values = tuple(getattr(solution, name) for solution in solutions)
            setattr(self, f"{name}_", values if several else values[0])
        self.dual_gap_ = max(solution.gap for solution in solutions)
        self.n_iter_ = max(solution.iterations or 0 for solution in solutions)

    def _kernel_at(self, X: Any) -> Array:
        """Return the learned kernel between samples and the support points, shape (n_new, n_support)."""
        return self._trained.at(self._read_new(X), self.weights_)

    def _sum_of_functions(self, X: Any) -> Array:
        """Return sum_m weights_m f_m + intercept at samples, shape (n_new,).

        There is one function f_m for each kernel, with its coefficients in the row m of `dual_coef_`.
        """
        check_is_fitted(self)
        return np.asarray(np.sum(self._functions(X, np.diag(self.weights_)), axis=0) + self.intercept_[0])

    def _machine_values(self, X: Any) -> Array:
        """Return the values of the k machines at samples, shape (n_new, k).

        Kernels are evaluated at the support points, and only those with a weight that is not zero.
        """
        check_is_fitted(self)
        if self.weights_.ndim == 1:
            return np.asarray(self._kernel_at(X) @ self.dual_coef_.T + self.intercept_)
        return np.stack(self._functions(X, self.weights_), axis=1) + self.intercept_

    def _functions(self, X: Any, weights: Array) -> list[Array]:
        """Return the functions of the rows of `dual_coef_` at samples, each with a row of weights."""
        samples = self._read_new(X)
        return [
            self._trained.only(np.flatnonzero(alpha)).at(samples, row) @ alpha[alpha != 0]
            for row, alpha in zip(weights, self.dual_coef_, strict=True)
        ]


def centred(grams: Grams) -> Grams:
    """Return the kernels of the centred features where their matrices fit into the memory of caches.

    A machine with an intercept is the same for both: its dual variables sum to zero, so that only the
    intercept differs, by `centring_shift`. Where wide kernels are nearly constant, the centred ones have
    small entries, and methods that round them to float32 then reach a smaller gap.
    """
    return grams.center() if have_room(grams) else grams


def centring_shift(grams: Grams, used: Grams, weights: Array, alpha: Array) -> float:
    """Return the intercept with `grams` minus that with `used`, which are the same or `centred(grams)`."""
    return 0.0 if used is grams else -float(weights @ (grams.row_means @ alpha))
