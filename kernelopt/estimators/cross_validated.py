"""`MKLClassifierCV`: `MKLClassifier` with C chosen by cross-validation along warm-started paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import cvxpy as cp
import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from kernelopt.errors import ConvergenceWarning, ParameterError, TimeLimitError
from kernelopt.estimators.classifier import MKLClassifier
from kernelopt.estimators.dictionary import C_GRID
from kernelopt.estimators.fitting import expect, one_call, time_for
from kernelopt.estimators.labels import read_labels, warn_of_targets
from kernelopt.estimators.samples import positive_weights
from kernelopt.methods.describe import warn_caller
from kernelopt.validation import Array, as_float_array, as_list, is_number, positive, shown

SHORTER = 0.5
"""Share of the mean seconds of the solves so far in which another can end: it has a part of what is left."""
ROUNDING = 1e-12
"""Relative difference up to which mean scores are equal: a mean is rounded by the order of its terms."""


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifierCV(MKLClassifier):
    """`MKLClassifier` that chooses C by cross-validation.

    In each split the kernels are evaluated once, and the solution of each C is the start of the next
    larger one. `GridSearchCV` evaluates the kernels again for every C.

    Parameters
    ----------
    kernels : None, kernel, list of kernels, or dict from name to kernel, default None
        As for `MKLClassifier`.
    Cs : sequence of float > 0, default `kernelopt.estimators.C_GRID`
        The values of C to try.
    cv : int, splitter or iterable of splits, default 5
        As for `GridSearchCV`: an integer is the number of stratified splits.
    scoring : str or function, optional
        As for `GridSearchCV`; by default the accuracy.
    p, loss, multiclass, class_weight, normalize, method, tol, time_limit, verbose, random_state
        As for `MKLClassifier`. Where the time limit is too short for all splits, C is chosen by the
        scored ones; see the notes.

    Attributes
    ----------
    C_ : float
        The C with the largest mean score. Of equal scores it is the C nearest to 1, the default of
        `MKLClassifier`, on a logarithmic scale, and of two equally near ones the smaller.
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
    without the time for them on many.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelopt.estimators import MKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifierCV(["gaussian(1.0)", "linear()"], Cs=[0.1, 1.0, 10.0], cv=3).fit(X[50:], y[50:])
    >>> model.scores_.shape, bool(model.best_score_ > 0.9), model.C_ in (0.1, 1.0, 10.0)
    ((3, 3), True, True)
    """

    fitted_forms = MKLClassifier.fitted_forms | {
        "Cs_": Annotated[Array, "v"],
        "scores_": Annotated[Array, "r v"],
        "C_": float,
        "best_score_": float,
    }

    C: ClassVar[None] = None  # type: ignore[assignment, misc]
    Cs: Any = C_GRID
    cv: Any = 5
    scoring: Any = None

    @one_call
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifierCV:
        """Choose C, and learn the weights and the machines at it on all samples.

        The arguments and errors are as for `MKLClassifier.fit`. Sample weights enter the training, and
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
        samples = self.read_training(X)
        labels = read_labels(y, self)
        check_consistent_length(samples, labels)
        warn_of_targets(np.unique(labels), labels.size, self)
        weights = positive_weights(sample_weight, len(samples))
        Cs = self._values()
        splits = list(check_cv(self.cv, labels, classifier=True).split(np.zeros(len(samples)), labels))
        if not splits:
            raise ParameterError("cv must give at least one split, got none. Pass cv=5, say.")
        self.Cs_ = Cs
        data = X if hasattr(X, "iloc") else samples  # a data frame has names of columns
        problems = np.unique(labels).size if self.multiclass == "per-class" else 1
        scores: list[list[float]] = []
        for i, (train, test) in enumerate(splits):
            ahead = min(len(splits) - i, 2)  # half of the time is for this split
            larger = (len(samples) / max(1, len(train))) ** 2  # matrices of all samples
            if i and not time_for((SHORTER * Cs.size + larger) * problems, 1 + larger):
                break
            expect(f"split {i + 1} of {len(splits)}", (ahead * Cs.size + 1) * problems, ahead)
            found: list[float] = []
            try:
                for score in self._scores(data, labels, weights, train, test):
                    found.append(score)
                    if not time_for(problems * larger, larger):
                        break
            except TimeLimitError:  # of a solve: its limit was a part of the call's
                if not i and not found:
                    raise
            whole = len(found) == Cs.size
            if whole or not i:
                scores.append(found)
            if not whole:
                break
        expect("machine on all samples", problems)
        self.scores_ = np.array(scores)
        self.Cs_ = Cs[: self.scores_.shape[1]]
        if self.scores_.size < len(splits) * Cs.size:
            warn_of_time(len(scores), len(splits), self.Cs_, Cs, self.time_limit)
        means = self.scores_.mean(axis=0)
        best = chosen(self.Cs_, means)
        self.C_, self.best_score_ = float(Cs[best]), float(means[best])
        grams, tasks, shared = self.prepare(X, labels, weights)
        self.learn(grams, tasks(self.C_), shared=shared)
        return self

    def stated(self, X: Any, y: Any = None, **data: Any) -> list[cp.Problem]:
        scores = as_float_array(self.scores_, "scores_", ndim=2)
        self.Cs_ = self._values()[: scores.shape[1]]
        if scores.shape[1] != self.Cs_.size or self.C_ != self.Cs_[chosen(self.Cs_, scores.mean(axis=0))]:
            raise self.changed("C_")
        return super().stated(X, y, **data)

    def _values(self) -> Array:
        """Return the values of C to try, in ascending order."""
        Cs = np.unique([positive(C, "Cs") for C in as_list(self.Cs, "Cs", "a sequence of positive numbers")])
        if not Cs.size:
            raise ParameterError("Cs must hold at least one value of C, got none. Pass Cs=[1.0], say.")
        return Cs

    def _scores(self, X: Any, y: Any, weights: Array, train: Any, test: Any) -> Iterator[float]:
        """Yield the scores of a split, one for each C."""
        grams, tasks, shared = self.prepare(_safe_indexing(X, train), y[train], weights[train])
        path = self.learn_path(grams, map(tasks, self.Cs_.tolist()), shared=shared)
        scorer = check_scoring(self, self.scoring)
        for fitted in path:
            score = scorer(fitted, _safe_indexing(X, test), y[test])
            if not is_number(score):
                raise ParameterError(
                    f"scoring must return numbers, got {shown(score)} ({type(score).__name__}). Pass the "
                    "name of a scorer of scikit-learn, or a function (estimator, X, y) -> float."
                )
            yield float(score)


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
