"""`MKLClassifierCV` and `MKLRegressorCV`: C chosen by cross-validation along warm-started paths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import cvxpy as cp
import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from kernelopt.docstrings import parameters_of
from kernelopt.errors import ConvergenceWarning, InputError, ParameterError, Stopped, TimeLimitError
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.dictionary import C_GRID
from kernelopt.estimators.fitting import Fit, expect, one_call, running_fit, time_for
from kernelopt.estimators.labels import read_labels, read_targets, warn_of_targets
from kernelopt.estimators.mkl import MKLEstimator, MKLRegressor
from kernelopt.estimators.samples import positive_weights
from kernelopt.estimators.workers import in_workers, workers
from kernelopt.methods.describe import warn_caller
from kernelopt.validation import Array, Index, as_float_array, as_list, is_number, positive, shown

SHORTER = 0.5
"""Share of the mean seconds of the solves so far in which another can end: it has a part of what is left."""
ROUNDING = 1e-12
"""Relative difference up to which mean scores are equal: a mean is rounded by the order of its terms."""
SEARCHED: dict[str, Any] = {
    "Cs_": Annotated[Array, "v"],
    "scores_": Annotated[Array, "r v"],
    "C_": float,
    "best_score_": float,
}


Split: TypeAlias = tuple[Index, Index]
"""The training and the test samples of a split."""


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidatedMixin:
    """The search for C of `MKLClassifierCV` and `MKLRegressorCV`, whose other base states the problem.

    Parameters
    ----------
    Cs : sequence of float > 0, default `kernelopt.estimators.C_GRID`
        The values of C to try.
    n_jobs : int, optional
        As for `GridSearchCV`: the number of processes that score splits, -1 for one on each processor.
    time_limit : float > 0, optional
        Seconds of the call. Where they are too few for all splits, C is chosen by the scored ones; see the
        notes of `MKLClassifierCV`.
    """

    C: ClassVar[Any] = None
    Cs: Any = C_GRID
    cv: Any = 5
    scoring: Any = None
    n_jobs: int | None = None

    @one_call
    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose C, and learn the weights and the machines at it on all samples.

        The arguments and errors are as for the estimator of one C. Sample weights enter the training, and
        not the scores.

        Raises
        ------
        TimeLimitError
            If there is no time for a score of one C on one split and for a machine on all samples.

        Warns
        -----
        ConvergenceWarning
            If the time limit ends before every C is scored on every split.
        """
        samples, classes = self._read_training(X), is_classifier(self)
        targets = read_labels(y, self) if classes else read_targets(y, self, several=True)
        check_consistent_length(samples, targets)
        if classes:
            warn_of_targets(np.unique(targets), targets.size, self)
        weights = positive_weights(sample_weight, len(samples))
        self.Cs_ = Cs = self._values()
        splits = splits_of(self.cv, targets, classes)
        data = X if hasattr(X, "iloc") else samples  # a data frame has names of columns
        machines = np.unique(targets).size if classes else targets[:1].size
        shared = self.multiclass if classes else self.multioutput
        problems = 1 if shared == "shared" else machines
        scored = self._in_turn if workers(self.n_jobs) == 1 else self._in_parallel
        found = list(scored(splits, problems, data, targets, weights))
        # Scores are comparable on the same splits alone.
        whole = [scores for scores in found if len(scores) == Cs.size] or [max(found, key=len)]
        if not whole[0]:
            raise Stopped
        expect("machine on all samples", problems)
        self.scores_ = np.array(whole)
        self.Cs_ = Cs[: self.scores_.shape[1]]
        if self.scores_.size < len(splits) * Cs.size:
            warn_of_time(len(whole), len(splits), self.Cs_, Cs, self.time_limit)
        means = self.scores_.mean(axis=0)
        best = chosen(self.Cs_, means)
        self.C_, self.best_score_ = float(Cs[best]), float(means[best])
        grams, tasks, shared = self._prepare(X, targets, weights)
        self._learn(grams, tasks(self.C_), shared=shared)
        return self

    def _in_turn(
        self: Any, splits: list[Split], problems: int, data: Any, y: Any, weights: Array
    ) -> Iterator[list[float]]:
        """Yield the scores of one split after another while there is time; the last ones may be too few."""
        count = len(self.Cs_)
        for i, (train, test) in enumerate(splits):
            ahead = min(len(splits) - i, 2)  # half of the time is for this split
            larger = (len(y) / max(1, len(train))) ** 2  # matrices of all samples
            if i and not time_for((SHORTER * count + larger) * problems, 1 + larger):
                return
            expect(f"split {i + 1} of {len(splits)}", (ahead * count + 1) * problems, ahead)
            found: list[float] = []
            try:
                for score in self._scores(data, y, weights, train, test):
                    found.append(score)
                    if not time_for(problems * larger, larger):
                        break
            except TimeLimitError:  # of a solve: its limit was a part of the call's
                if not i and not found:
                    raise
            yield found
            if len(found) < count:
                return

    def _in_parallel(
        self: Any, splits: list[Split], problems: int, data: Any, y: Any, weights: Array
    ) -> Iterator[list[float]]:
        """Yield the scores of the splits, which are learned in processes, each within its part of the time.

        Splits that follow each other in one process have equal parts, and so has the machine on all samples.
        """
        fit, limit = running_fit(), None
        if fit is not None and math.isfinite(fit.left):
            limit = fit.left / (math.ceil(len(splits) / workers(self.n_jobs)) + 1)
        each = [(self, limit, problems, data, y, weights, *split) for split in splits]
        return in_workers(scored_within, each, self.n_jobs, "scoring split")

    def _stated(self: Any, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        scores = as_float_array(self.scores_, "scores_", ndim=2)
        self.Cs_ = self._values()[: scores.shape[1]]
        if scores.shape[1] != self.Cs_.size or self.C_ != self.Cs_[chosen(self.Cs_, scores.mean(axis=0))]:
            raise self._changed("C_")
        return MKLEstimator._stated(self, X, y, **data)

    def _values(self) -> Array:
        """Return the values of C to try, in ascending order."""
        Cs = np.unique([positive(C, "Cs") for C in as_list(self.Cs, "Cs", "a sequence of positive numbers")])
        if not Cs.size:
            raise ParameterError("Cs must hold at least one value of C, got none. Pass Cs=[1.0], say.")
        return Cs

    def _scores(self: Any, X: Any, y: Any, weights: Array, train: Any, test: Any) -> Iterator[float]:
        """Yield the scores of a split, one for each C."""
        grams, tasks, shared = self._prepare(_safe_indexing(X, train), y[train], weights[train])
        path = self._learn_path(grams, map(tasks, self.Cs_.tolist()), shared=shared)
        scorer = check_scoring(self, self.scoring)
        for fitted in path:
            score = scorer(fitted, _safe_indexing(X, test), y[test])
            if not is_number(score):
                raise ParameterError(
                    f"scoring must return numbers, got {shown(score)} ({type(score).__name__}). Pass the "
                    "name of a scorer of scikit-learn, or a function (estimator, X, y) -> float."
                )
            yield float(score)


def splits_of(cv: Any, y: Any, classes: bool) -> list[Split]:
    """Return the splits that `cv` gives, at least one, as for scikit-learn's model selection."""
    splits = list(check_cv(cv, y, classifier=classes).split(np.zeros(len(y)), y))
    if not splits:
        raise ParameterError("cv must give at least one split, got none. Pass cv=5, say.")
    for k, (train, _) in enumerate(splits) if classes else ():
        lacking = np.setdiff1d(y, y[train])
        if lacking.size:
            raise InputError(
                f"every split of cv must have training samples of all classes, got none of class "
                f"{shown(lacking[0])} in split {k}. Add samples of the class, or take fewer splits."
            )
    return splits


def scored_within(model: CrossValidatedMixin, limit: float | None, problems: int, *split: Any) -> list[float]:
    """Return the scores of a split for as many values of C as the time limit allows."""
    model, found = copy(model), []  # threads may share the estimator
    call = Fit(type(model).__name__, limit)
    try:
        with call:
            expect("", len(model.Cs_) * problems)
            for score in model._scores(*split):
                found.append(score)
    except TimeLimitError:  # of a solve: its limit was a part of the call's
        pass
    finally:
        call.close()
    return found


def warn_of_time(scored: int, splits: int, Cs: Array, given: Array, time_limit: float | None) -> None:
    """Warn that C was chosen by the scores that the time limit has left."""
    few = "" if Cs.size == given.size else f" and only C up to {Cs[-1]:g} of the {given.size} values"
    text = (
        f"every C should be scored on {splits} splits, got {scored} of them{few} within time_limit = "
        f"{time_limit:g}. Scores of few splits differ by chance: give more time, or fewer Cs or splits."
    )
    warn_caller(ConvergenceWarning(text))


def chosen(Cs: Array, means: Array) -> int:
    """Return the position of the C with the largest mean score, of equal scores that nearest to 1.

    Parameters
    ----------
    Cs : array of shape (n_values,)
        In ascending order.
    means : array of shape (n_values,)
    """
    if np.isnan(means).any():
        C = float(Cs[np.argmax(np.isnan(means))])
        raise ParameterError(
            f"scoring must return numbers, got NaN as the mean score at C = {C:g} of the values "
            f"{shown(Cs.tolist())}. Choose a scoring that is defined on every split."
        )
    best = np.flatnonzero(means >= means.max() - ROUNDING * np.abs(means.max()))
    return int(best[np.argmin(np.maximum(Cs[best], 1 / Cs[best]))])


@parameters_of(CrossValidatedMixin, MKLClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifierCV(CrossValidatedMixin, MKLClassifier):
    """`MKLClassifier` that chooses C by cross-validation.

    In each split the kernels are evaluated once, and the solution of each C is the start of the next
    larger one. `GridSearchCV` evaluates the kernels again for every C.

    Parameters
    ----------
    cv : int, splitter or iterable of splits, default 5
        As for `GridSearchCV`: an integer is the number of stratified splits.
    scoring : str or function, optional
        As for `GridSearchCV`; by default the accuracy.
    kernels, p, loss, multiclass, class_weight, normalize, method, tol, verbose, random_state
        As for `MKLClassifier`.
    Cs, n_jobs, time_limit
        As for `CrossValidatedMixin`.

    Attributes
    ----------
    C_ : float
        The C with the largest mean score. Of equal scores it is the C nearest to 1 on a logarithmic scale,
        and of two equally near ones the smaller.
    Cs_ : array of shape (n_values,)
        The values of C that were scored, in ascending order.
    scores_ : array of shape (n_splits, n_values)
        Of the splits that were scored.
    best_score_ : float
        The mean score at `C_`.
    classes_, weights_, weights_unique_, kernel_names_, kernels_, support_, dual_coef_, intercept_, solution_
        As for `MKLClassifier`, learned on all samples at `C_`.
    certificate_, dual_gap_, n_iter_, history_, n_features_in_, feature_names_in_
        As for `MKLClassifier`.

    Notes
    -----
    On few samples many values of C often have the same score, which then does not say which is best. The
    normalised kernels have variance one, for which C = 1 has the right size. The rule does not depend on how
    far the values reach, as the middle of values of equal score would: above some C a machine that separates
    the classes no longer changes. Where `C_` is the first or the last of `Cs_`, values beyond it may have a
    larger score: extend `Cs`.

    Scores are comparable on the same splits alone, since one split may be harder than another. So a split
    that the time limit ends is left out for every C. If it is the first split, the values of C that were
    scored on it, the smallest ones, are compared on it. The time of the machine on all samples is reserved as
    soon as one C has a score; it is predicted from the solves and evaluations so far. A split has at most
    half of the time that is left: scores of accurate machines on few splits say more than scores of machines
    without the time for them on many. With `n_jobs`, splits that follow each other in one process have equal
    parts of the time, and so has the machine on all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelopt.estimators import MKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifierCV(["gaussian(1.0)", "linear()"], Cs=[0.1, 1.0, 10.0], cv=3).fit(X[50:], y[50:])
    >>> model.scores_.shape, bool(model.best_score_ > 0.9), model.C_ in (0.1, 1.0, 10.0)
    ((3, 3), True, True)
    """

    _fitted_forms = MKLClassifier._fitted_forms | SEARCHED


@parameters_of(CrossValidatedMixin, MKLRegressor)
@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressorCV(CrossValidatedMixin, MKLRegressor):
    """`MKLRegressor` that chooses C by cross-validation, as `MKLClassifierCV` does.

    Parameters
    ----------
    cv : int, splitter or iterable of splits, default 5
        As for `GridSearchCV`: an integer is the number of consecutive parts of the samples. Where these are
        sorted, pass ``KFold(5, shuffle=True)``.
    scoring : str or function, optional
        As for `GridSearchCV`; by default R^2.
    Cs, n_jobs, time_limit
        As for `CrossValidatedMixin`.
    kernels, p, loss, epsilon, target_scale, multioutput, normalize, method, tol, verbose, random_state
        As for `MKLRegressor`.

    Attributes
    ----------
    C_, Cs_, scores_, best_score_
        As for `MKLClassifierCV`.
    weights_, weights_unique_, kernel_names_, kernels_, support_, dual_coef_, intercept_, solution_
        As for `MKLRegressor`, learned on all samples at `C_`.
    certificate_, dual_gap_, n_iter_, history_, n_features_in_, feature_names_in_
        As for `MKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from kernelopt.estimators import MKLRegressorCV
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> kernels, splits = ["gaussian(0.5)", "linear()"], KFold(4, shuffle=True, random_state=0)
    >>> model = MKLRegressorCV(kernels, Cs=[0.01, 1.0, 100.0], cv=splits).fit(X, np.sin(3 * X.ravel()))
    >>> model.scores_.shape, model.C_
    ((4, 3), 100.0)
    """

    _fitted_forms = MKLRegressor._fitted_forms | SEARCHED
