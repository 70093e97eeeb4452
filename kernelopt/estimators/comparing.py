"""`compare`: a learned kernel beside models of scikit-learn that learn none, by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from kernelopt.errors import InputError
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.cross_validated import splits_of
from kernelopt.estimators.labels import read_labels, read_targets
from kernelopt.estimators.mkl import MKLEstimator, MKLRegressor
from kernelopt.estimators.precomputed import KernelStack
from kernelopt.estimators.samples import is_stack
from kernelopt.estimators.workers import in_workers
from kernelopt.plain_tables import text_table
from kernelopt.running import user_call
from kernelopt.validation import Array, Index, shown

LEARNED = "learned kernel"
CS = (0.1, 1.0, 10.0, 100.0)
GAMMAS = (0.1, 0.3, 1.0, 3.0)  # times 1 / columns, the default of SVC on standardised columns
RIDGES = tuple(10.0**k for k in range(-3, 4))
EPSILON, TOL = 0.1, 1e-3  # of SVR, in standard deviations of the targets: its defaults
INNER = 3  # parts of the training samples of a split, by which hyperparameters are chosen


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Scores of a learned kernel and of others on the same splits. `print` shows a table.

    Parameters
    ----------
    scores : dict from str to array of shape (n_splits,)
        The scores of each model on the test samples of the splits; the learned kernel comes first.
    seconds : dict from str to float
        The mean time of a fit with its choice of hyperparameters, and of its score.
    single : tuple of n_splits str
        The name of the best single kernel of each split.
    measure : str
        What the scores are.
    """

    scores: Mapping[str, Array]
    seconds: Mapping[str, float]
    single: tuple[str, ...]
    measure: str

    def as_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the table, as ``pandas.DataFrame`` takes them.

        They are model, score, standard_error, difference, standard_error_of_difference and seconds. A
        difference is the mean, over the splits, of the learned kernel's score minus the other one, and
        standard errors are the standard deviation over the splits, over the root of their number.
        """
        learned = self.scores[LEARNED]
        differences = [learned - each for each in self.scores.values()]
        return {
            "model": [*self.scores],
            "score": [float(each.mean()) for each in self.scores.values()],
            "standard_error": [standard_error(each) for each in self.scores.values()],
            "difference": [float(each.mean()) for each in differences],
            "standard_error_of_difference": [standard_error(each) for each in differences],
            "seconds": [*self.seconds.values()],
        }

    def table(self) -> tuple[list[str], list[list[str]], int]:
        """Return the header, the rows of text and the number of columns of numbers."""
        columns = self.as_dict()
        rows = [
            [name, f"{score:.3f}", f"{error:.3f}", f"{more:+.3f}", f"{its:.3f}", f"{seconds:.2f}"]
            for name, score, error, more, its, seconds in zip(*columns.values(), strict=True)
        ]
        rows[0][3:5] = ["", ""]
        head = ["", self.measure, "std. error", "learned minus it", "std. error", "s / split"]
        return head, rows, len(head) - 1

    def __str__(self) -> str:
        return text_table(*self.table())

    __repr__ = __str__


def compare(
    model: Any, X: Any, y: Any, *, cv: Any = 5, scoring: Any = None, n_jobs: int | None = None
) -> Comparison:
    """Return cross-validated scores of a learned kernel, and of models that learn none on the same splits.

    The others are support vector machines of scikit-learn on the average of the kernels, on the best single
    kernel, and on a Gaussian kernel of standardised columns, and ridge regression on standardised columns,
    for classes on their indicators. In each split their hyperparameters are chosen by a cross-validation of
    its training samples: C of 0.1, 1, 10 and 100, in standard deviations of targets, gamma, the ridge, and
    which kernel is the best single one. The kernels are those of the model, normalised as for it. Several
    targets have a machine each, with a common kernel, C and gamma, and a ridge each.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, MKLClassifierCV or MKLRegressorCV, or a pipeline that ends with one
        It is cloned, and need not be fitted. Its own C stays as it is: pass an estimator that chooses C, so
        that it has what the others have. The machines on its kernels see what its pipeline makes of X.
    X : array or data frame of shape (n, d), sequence of n strings, KernelStack, or array (m, n, n)
        The samples. Without points there are no Gaussian kernel and no ridge regression.
    y : array of shape (n,), or (n, k) of k targets
        Their labels or targets.
    cv : int, splitter or iterable of splits, default 5
        As for `cross_val_score`.
    scoring : str or function, optional
        As for `cross_val_score`; by default the accuracy or R^2, of several targets its mean. It also chooses
        the hyperparameters.
    n_jobs : int, optional
        The number of processes, each with a split at a time.

    Returns
    -------
    Comparison
        The scores on every split, and the seconds of each model.

    Raises
    ------
    InputError
        If the model is none of these, or an argument is wrong.

    Notes
    -----
    Differences are taken split by split, so that what makes a split hard for all models cancels. Their
    standard errors are a little too small: the training samples of splits overlap.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelopt.estimators import MKLClassifier, compare
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare(MKLClassifier(multiclass="per-class"), X, y, cv=3)
    >>> [*found.scores]
    ['learned kernel', 'average kernel', 'best single kernel', 'tuned Gaussian kernel', 'ridge']
    >>> bool(found.scores["learned kernel"].mean() > 0.9), found.scores["ridge"].shape
    (True, (3,))
    """
    learner, X, y = read_data(model, X, y, "compare")
    classes = is_classifier(learner)
    splits = splits_of(cv, y, classes)
    with user_call():
        tasks = [(model, X, y, train, test, scoring) for train, test in splits]
        found = list(in_workers(judged_split, tasks, n_jobs, "comparing on split"))
    names = [*found[0][0]]
    return Comparison(
        {name: np.array([rows[name][0] for rows, _ in found]) for name in names},
        {name: float(np.mean([rows[name][1] for rows, _ in found])) for name in names},
        tuple(single for _, single in found),
        measure_of(scoring, classes),
    )


def read_data(model: Any, X: Any, y: Any, caller: str) -> tuple[Any, Any, Any]:
    """Return the estimator of a model, samples that are indexed by sample, and the labels or targets."""
    learner = parts_of(model, caller)[1]
    y = read_labels(y, learner) if is_classifier(learner) else read_targets(y, learner, several=True)
    if is_stack(X) and not isinstance(X, KernelStack):
        X = KernelStack(X)
    check_consistent_length(X, y)
    return learner, X, y


def measure_of(scoring: Any, classes: bool) -> str:
    """Return what scores are called."""
    if scoring is None:
        return "accuracy" if classes else "R^2"
    return scoring if isinstance(scoring, str) else "score"


def parts_of(model: Any, caller: str) -> tuple[Any, Any]:
    """Return what a pipeline does before its estimator, None without a pipeline, and the estimator.

    Raises
    ------
    InputError
        If the estimator is no classifier or regressor with weights in an l_p ball.
    """
    before, learner = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    if not isinstance(learner, MKLClassifier | MKLRegressor):
        raise InputError(
            f"model must be an MKLClassifier, MKLRegressor, MKLClassifierCV or MKLRegressorCV, or a pipeline "
            f"that ends with one, got {shown(model)} in {caller}. Pass MKLClassifier(), say."
        )
    return before if before is not None and len(before) else None, learner


Rows: TypeAlias = dict[str, tuple[float, float]]
"""The score and the seconds of each model."""


def judged_split(model: Any, X: Any, y: Any, train: Index, test: Index, scoring: Any) -> tuple[Rows, str]:
    """Return the rows of a split, and the name of its best single kernel."""
    (A, B), (a, b) = ([_safe_indexing(data, part) for part in (train, test)] for data in (X, y))
    before, learner = parts_of(model, "compare")
    machine = machine_for(learner, a)
    options = {"cv": inner_splits(learner, a), "scoring": scoring, "error_score": "raise"}
    rows: Rows = {}

    def judge(name: str, fit: Callable[[], tuple[Any, Any]]) -> Any:
        """Write the row of the model that `fit` returns with the test samples that it takes."""
        began = time.perf_counter()
        fitted, new = fit()
        rows[name] = float(check_scoring(fitted, scoring)(fitted, new, b)), time.perf_counter() - began
        return fitted

    judge(LEARNED, lambda: (clone(model).fit(A, a), B))
    if before is not None:
        before = clone(before).fit(A, a)
        A, B = before.transform(A), before.transform(B)
    kernels = clone(learner)
    samples = kernels._read_training(A)
    grams = kernels._fit_kernels(samples)
    search = GridSearchCV(clone(machine).set_params(kernel="precomputed"), {"C": CS}, **options)

    def on_kernel(weights: Array, fitted: Any = None) -> tuple[Any, Any]:
        """Return the machine on a combination of the kernels, and the combination at the test samples."""
        fitted = search.fit(grams.combine(weights), a) if fitted is None else fitted
        return fitted, kernels._trained.at(kernels._read_new(B), weights)

    def on_best() -> tuple[Any, Any]:
        searches = [clone(search).fit(K, a) for K in grams]
        best = int(np.argmax([each.best_score_ for each in searches]))
        singles.append(grams.names[best])
        return on_kernel(np.eye(len(grams))[best], searches[best])

    singles: list[str] = []
    judge("average kernel", lambda: on_kernel(np.full(len(grams), 1 / len(grams))))
    judge("best single kernel", on_best)
    if not isinstance(samples, KernelStack) and samples.ndim == 2:
        scale = StandardScaler(with_mean=not issparse(A))
        grid = {"svm__C": CS, "svm__gamma": [gamma / samples.shape[1] for gamma in GAMMAS]}
        tuned = GridSearchCV(Pipeline([("scale", scale), ("svm", machine)]), grid, **options)
        judge("tuned Gaussian kernel", lambda: (tuned.fit(A, a), B))
        judge("ridge", lambda: (make_pipeline(scale, ridge_for(learner)).fit(A, a), B))
    return rows, singles[0]


def inner_splits(learner: MKLEstimator, y: Any) -> Any:
    """Return the splitter of the training samples of a split: three random parts, or two of small classes.

    Raises
    ------
    InputError
        If a part would lack a class, or have less than two targets.
    """
    classes = is_classifier(learner)
    fewest = int(np.unique(y, return_counts=True)[1].min()) if classes else len(y) // 2
    if fewest < 2:
        raise InputError(
            f"every split must have two training samples {'of each class' if classes else 'in two parts'}, "
            f"by which hyperparameters are chosen, got {len(y)} training samples in compare. Add samples, or "
            "pass a smaller cv."
        )
    splitter = StratifiedKFold if classes else KFold
    return splitter(min(INNER, fewest), shuffle=True, random_state=0)


class TargetMachines(RegressorMixin, BaseEstimator):
    """Support vector regressions of scikit-learn, one for each target, as if it were divided by its unit.

    Parameters
    ----------
    units : array of shape (k,)
        C, epsilon and the tolerance are in these units.
    kernel, C, gamma
        As for `SVR`.
    """

    def __init__(self, units: Array, kernel: str = "rbf", C: float = 1.0, gamma: Any = "scale") -> None:
        self.units, self.kernel, self.C, self.gamma = units, kernel, C, gamma

    def fit(self, X: Any, y: Array) -> TargetMachines:
        options = {"kernel": self.kernel, "gamma": self.gamma}
        self.machines_ = [
            SVR(C=self.C * unit, epsilon=EPSILON * unit, tol=TOL * unit, **options).fit(X, target)
            for unit, target in zip(self.units, y.reshape(len(y), -1).T, strict=True)
        ]
        self.several_ = y.ndim == 2
        return self

    def predict(self, X: Any) -> Array:
        values = np.stack([machine.predict(X) for machine in self.machines_], axis=1)
        return values if self.several_ else values[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def machine_for(learner: MKLEstimator, y: Array) -> Any:
    """Return a support vector machine of scikit-learn for a task, and for targets in their deviations."""
    if is_classifier(learner):
        return SVC(class_weight=learner.class_weight)
    deviations = np.atleast_1d(y.std(axis=0))
    return TargetMachines(np.where(deviations > 0, deviations, 1.0))


def ridge_for(learner: MKLEstimator) -> Any:
    """Return the ridge regression of scikit-learn for a task."""
    if is_classifier(learner):
        return RidgeClassifierCV(RIDGES, class_weight=learner.class_weight)
    return RidgeCV(RIDGES, alpha_per_target=True)


def standard_error(values: Array) -> float:
    """Return the standard error of a mean; NaN of one value."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan
