"""`fit --cv`: the score on rows that were not learned from, and C by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from kernelopt.cli.target import Task
from kernelopt.errors import InputError
from kernelopt.estimators import C_GRID, MKLClassifier, MKLClassifierCV


@dataclass(frozen=True)
class CrossValidation:
    """The scores of a cross-validation.

    Attributes
    ----------
    scores : tuple of k float
        On the rows that each split holds out.
    chosen : float or None
        The C that `MKLClassifierCV` has chosen of `C_GRID`; None where the C was given or there is none.
    """

    scores: tuple[float, ...]
    chosen: float | None

    @property
    def mean(self) -> float:
        """The mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def deviation(self) -> float:
        """The standard deviation of the scores, of k - 1 degrees of freedom."""
        return float(np.std(self.scores, ddof=1))

    def line(self, measure: str) -> str:
        """Return the scores in words."""
        chosen = ""
        if self.chosen is not None:
            chosen = f"; C = {self.chosen:g} is the best of {', '.join(f'{C:g}' for C in C_GRID)}"
            if self.chosen in (C_GRID[0], C_GRID[-1]):
                beyond = self.chosen / 10 if self.chosen == C_GRID[0] else self.chosen * 10
                chosen += f", and the {'first' if beyond < 1 else 'last'}: try --C {beyond:g} too"
        return (
            f"{len(self.scores)}-fold cross-validation: {measure} {self.mean:.3f}, standard deviation "
            f"{self.deviation:.3f}{chosen}"
        )

    def document(self) -> dict[str, Any]:
        """Return the scores for `--json`."""
        scores = {"scores": list(self.scores), "chosen_C": self.chosen}
        return {**scores, "mean": self.mean, "standard_deviation": self.deviation}


def cross_validate(estimator: Any, X: Any, y: Any, task: Task, k: int, *, choose_C: bool) -> CrossValidation:
    """Return the scores of an estimator on k parts of the rows, each learned from the other parts.

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
        return CrossValidation(tuple(search.scores_[:, column].tolist()), search.C_)
    scores = cross_val_score(estimator, X, y, cv=splits, error_score="raise")
    return CrossValidation(tuple(scores.tolist()), None)


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
