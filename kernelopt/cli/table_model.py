"""A model that was learned from a table: its columns, its estimator, and the file of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.cli.cross_validation import CrossValidation
from kernelopt.cli.data_table import PARQUET, DataTable, listed
from kernelopt.cli.features import Features
from kernelopt.cli.output import number
from kernelopt.cli.target import read_target
from kernelopt.errors import FileError, InputError, LabelError
from kernelopt.estimators.table import TABLE_MODEL, TableFile, Task
from kernelopt.records import read, write
from kernelopt.validation import Array

SHOWN = 1e-6  # share of the largest weight below which a table leaves a kernel out
UNIQUE = {True: "yes", False: "no, others are as good", None: "not known"}


@dataclass(frozen=True)
class TableModel:
    """An estimator with the columns of its points.

    Attributes
    ----------
    features : Features
    task : "classification" or "regression"
    estimator : fitted estimator
    rows : int
        Of the training table.
    score : float
        On the training rows: the accuracy, or the coefficient of determination.
    cross_validation : CrossValidation or None
    """

    features: Features
    task: Task
    estimator: Any
    rows: int
    score: float
    cross_validation: CrossValidation | None = None

    @property
    def measure(self) -> str:
        """What `score` is."""
        return "accuracy" if self.task == "classification" else "R^2"

    def save(self, path: Path) -> None:
        """Write the model to a file, at once: an interrupted call leaves what was there before."""
        features, checked = self.features, self.cross_validation
        scores, chosen = (None, None) if checked is None else (checked.scores, checked.chosen)
        columns, target, dropped = features.columns, features.target, features.dropped
        numbers = (self.task, self.rows, self.score, scores, chosen)
        write(path, TableFile(columns, self.estimator, target, dropped, *numbers))

    def proved_again(self, table: DataTable) -> dict[str | None, Certificate]:
        """Return the certificates that the training table gives at the learned point.

        Raises
        ------
        InputError
            If the table is another one.
        """
        X = self.features.points(table)
        if len(table) != self.rows:
            raise InputError(
                f"--data must be the table that the model was fitted on, of {self.rows} rows, got "
                f"{len(table)} in {table.path}. Pass that file."
            )
        y = read_target(table, self.features.target, self.task).y
        if self.task == "classification":
            self._refuse_classes(table, y.tolist())
        try:
            proved = self.estimator.certify(X, y)
        except InputError as error:
            raise InputError(
                f"--data must be the table that the model was fitted on, in the same order of rows, got "
                f"other numbers in {table.path}. Pass that file."
            ) from error
        return dict(zip(self.certificates(), proved if isinstance(proved, tuple) else (proved,), strict=True))

    def _refuse_classes(self, table: DataTable, labels: Sequence[Any]) -> None:
        known = self.estimator.classes_.tolist()
        unknown = [repr(label) for label in dict.fromkeys(labels) if label not in known]
        if unknown:
            shown = listed([repr(label) for label in known])
            raise LabelError(
                "--data must be the table that the model was fitted on, with "
                f"{self.features.target!r} one of {shown}, got {listed(unknown)} in {table.path}. Pass that "
                "file."
            )

    def lines(self) -> list[str]:
        """Return what was learned, in words."""
        estimator, target = self.estimator, self.features.target
        classes = "" if self.task == "regression" else f": {', '.join(map(str, estimator.classes_.tolist()))}"
        certified = [
            f"{'' if name is None else f'{name}: '}{c.lower:.6g} <= optimum <= {c.upper:.6g}, certified "
            f"relative gap {c.gap:.1e} ({c.route}){c.assumed}"
            for name, c in self.certificates().items()
        ]
        checked = [] if self.cross_validation is None else [self.cross_validation.line(self.measure)]
        return [
            f"{self.task} of {target!r}{classes}",
            f"{estimator.support_.size} of {self.rows} training rows are support points; {self.measure} on "
            f"the training rows {self.score:.3f}",
            *checked,
            *certified,
            f"weights determined by the optimum: {UNIQUE[self.unique()]}",
        ]

    def score_of(self, table: DataTable, predicted: Sequence[Any]) -> float | None:
        """Return the score of predictions for a table, None where there is none.

        Of a regression the target must be numbers with a variance.
        """
        cells = table.columns.get(self.features.target)
        if cells is None or "" in cells:
            return None
        values = list(map(table.number, cells))
        if self.task == "classification":
            known = cells if self.estimator.classes_.dtype.kind == "U" else values
            return float(np.mean([cell == p for cell, p in zip(known, predicted, strict=True)]))
        y = np.array(values, dtype=float)  # None becomes NaN
        spread = float(((y - y.mean()) ** 2).sum())
        return 1 - float(((y - predicted) ** 2).sum()) / spread if 0 < spread < np.inf else None

    def certificates(self) -> dict[str | None, Certificate]:
        """Return the certificate under the name None, or those of several problems under their classes."""
        found = self.estimator.certificate_
        if not isinstance(found, tuple):
            return {None: found}
        return dict(zip(map(str, self.estimator.classes_.tolist()), found, strict=True))

    def unique(self) -> bool | None:
        """Return whether the optimum determines the weights; None where that is not known of some problem."""
        found = self.estimator.weights_unique_
        parts = found if isinstance(found, tuple) else (found,)
        return False if False in parts else None if None in parts else True

    def weights(self) -> Array:
        """Return the weights of the kernels, shape (k, m), with k = 1 where all machines share them."""
        return np.atleast_2d(self.estimator.weights_)

    def weights_table(self) -> tuple[list[str], list[list[str]], int]:
        """Return the header, the rows and the number of numeric columns of the table of weights."""
        weights, names = self.weights(), self.estimator.kernel_names_
        largest = np.abs(weights).max(axis=0)
        chosen = [m for m in np.argsort(-largest, kind="stable") if largest[m] > SHOWN * largest.max()]
        if len(weights) > 1:
            header = ["kernel", *(f"weight for {label}" for label in self.estimator.classes_.tolist())]
            return (
                header,
                [[names[m], *(number(w, ".4f") for w in weights[:, m])] for m in chosen],
                len(weights),
            )
        share = weights[0] / max(largest.sum(), np.finfo(float).tiny)
        rows = [[names[m], number(weights[0, m], ".4f"), f"{share[m]:.1%}"] for m in chosen]
        return ["kernel", "weight", "share"], rows, 2

    def document(self) -> dict[str, Any]:
        """Return what was learned, for `--json`."""
        estimator = self.estimator
        weights = self.weights() if len(self.weights()) > 1 else self.weights()[0]
        return {
            "task": self.task,
            "target": self.features.target,
            "classes": None if self.task == "regression" else estimator.classes_,
            "coordinates": self.features.columns.coordinates,
            "rows": self.rows,
            "support": estimator.support_.size,
            "kernels": list(estimator.kernel_names_),
            "weights": weights,
            "weights_unique": self.unique(),
            "certificates": [
                {"class": name, "lower": c.lower, "upper": c.upper, "gap": c.gap, "route": c.route}
                for name, c in self.certificates().items()
            ],
            "training": {self.measure: self.score},
            "cross_validation": None if self.cross_validation is None else self.cross_validation.document(),
        }


def load_model(path: Path) -> TableModel:
    """Return the model of a file; nothing in the file is executed.

    Raises
    ------
    FileError
        If there is no such file, or it is damaged or none of `kernelopt fit`.
    """
    if not path.is_file():
        raise FileError(f"the model must be a file of `kernelopt fit`, got no file {path}. Correct its path.")
    if path.suffix.lower() in (".csv", *PARQUET):
        raise FileError(
            f"the model must be a file of `kernelopt fit`, got the table {path}. MODEL comes before DATA."
        )
    found: TableFile = read(path, TABLE_MODEL)
    return TableModel(
        Features(found.target, found.columns, found.dropped),
        found.task,
        found.estimator,
        found.rows,
        found.score,
        None if found.scores is None else CrossValidation(found.scores, found.chosen),
    )
