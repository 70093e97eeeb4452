"""`fit --cv`: the score on rows that were not learned from, and C by it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from kernelopt.errors import InputError
from kernelopt.estimators import MKLClassifier, MKLClassifierCV
from kernelopt.estimators.table import Task


def cross_validate(
    estimator: Any, X: Any, y: Any, task: Task, k: int, *, choose_C: bool
) -> tuple[tuple[float, ...], float | None]:
    """Return the scores of an estimator on k parts of the rows, each learned from the other parts, and C.

    C is None where it was given or there is none.

    The parts are random with the seed 0, and for classes of equal shares of each class.

    Parameters
    ----------
    estimator : estimator, not fitted
    X : array of shape (n, d)
    y : array of shape (n,)
    task : "classification" or "regression"
    k : int >= 2
    choose_C : bool
        Whether C is chosen where the estimator is a `MKLClassifier`.

    Raises
    ------
    InputError
        If a class has fewer than k rows, or a regression fewer than 2 k.
    """
    refuse_few(y, task, k)
    splitter = StratifiedKFold if task == "classification" else KFold
    splits = splitter(k, shuffle=True, random_state=0)
    if choose_C and isinstance(estimator, MKLClassifier):
        parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name != "C"}
        search = MKLClassifierCV(cv=splits, **parameters).fit(X, y)
        column = search.Cs_.tolist().index(search.C_)
        return tuple(search.scores_[:, column].tolist()), search.C_
    scores = cross_val_score(estimator, X, y, cv=splits, error_score="raise")
    return tuple(scores.tolist()), None


def refuse_few(y: Any, task: Task, k: int) -> None:
    """Raise `InputError` if a part would have no row of some class, or no variance."""
    if task == "regression":
        if len(y) < 2 * k:
            raise InputError(
                f"--cv must leave two rows in each part, got {k} parts of {len(y)} rows. Pass at most --cv "
                f"{len(y) // 2}, or add rows."
            )
        return
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < k:
        rarest = labels.tolist()[counts.argmin()]
        remedy = f"Pass --cv {counts.min()}, or add" if counts.min() > 1 else "Add"
        raise InputError(
            f"--cv must be at most the number of rows of each class, got {k} and {counts.min()} of the class "
            f"{rarest!r}. {remedy} rows of the class."
        )
