"""A model that was learned from a table, as the commands use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernelopt.certificates import Certificate
from kernelopt.cli.columns import read_target, target_values
from kernelopt.cli.data_table import PARQUET
from kernelopt.cli.output import Output, number
from kernelopt.errors import FileError, InputError
from kernelopt.estimators import C_GRID
from kernelopt.estimators.table import TABLE_MODEL, TableFile, source
from kernelopt.records import read, write
from kernelopt.validation import Array

SHOWN = 1e-6  # share of the largest weight below which a table leaves a kernel out
UNIQUE = {True: "yes", False: "no, others are as good", None: "not known"}


@dataclass(frozen=True)
class TableModel(TableFile):
    """The content of a file of `kernelopt fit`, with what the commands say of it."""

    estimator: Any

    @property
    def measure(self) -> str:
        """What `score` is."""
        return "accuracy" if self.task == "classification" else "R^2"

    def save(self, path: Path) -> None:
        """Write the model to a file, at once: an interrupted call leaves what was there before."""
        write(path, TableFile(**vars(self)))

    def ignored(self, table: pd.DataFrame) -> list[str]:
        """Return the columns of a table that the training data did not have."""
        known = {*self.columns.numeric, *self.columns.categories, *self.dropped, self.target}
        return [name for name in table.columns if name not in known]

    def proved_again(self, table: pd.DataFrame) -> dict[str | None, Certificate]:
        """Return the certificates that the training table gives at the learned point.

        Raises
        ------
        InputError
            If the table is another one.
        """
        X, (y, _, _) = self.columns.transform(table), read_target(table, self.target, self.task)
        try:
            proved = self.estimator.certify(X, y)
        except InputError as error:
            raise InputError(
                f"--data must be the table that the model was fitted on, of {self.rows} rows in the same "
                f"order, got {len(table)} rows with other numbers in {source(table)}: {error} Pass that file."
            ) from error
        return dict(zip(self.certificates(), proved if isinstance(proved, tuple) else (proved,), strict=True))

    def show(self, output: Output) -> None:
        """Print what was learned, and the table of the weights."""
        for line in self.lines():
            output.line(line)
        output.table(*self.weights_table())

    def lines(self) -> list[str]:
        """Return what was learned, in words."""
        estimator, target = self.estimator, self.target
        classes = "" if self.task == "regression" else f": {', '.join(map(str, estimator.classes_.tolist()))}"
        certified = [
            f"{'' if name is None else f'{name}: '}{c.lower:.6g} <= optimum <= {c.upper:.6g}, certified "
            f"relative gap {c.gap:.1e} ({c.route}){c.assumed}"
            for name, c in self.certificates().items()
        ]
        return [
            f"{self.task} of {target!r}{classes}",
            f"{estimator.support_.size} of {self.rows} training rows are support points; {self.measure} on "
            f"the training rows {self.score:.3f}",
            *self.scored(),
            *certified,
            f"weights determined by the optimum: {UNIQUE[self.unique()]}",
        ]

    def predictions(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a row for each row of a table: the prediction, and for classes the decision function."""
        X = self.columns.transform(table)
        found = pd.DataFrame({"prediction": self.estimator.predict(X)})
        if self.task == "classification":
            scores, labels = self.estimator.decision_function(X), self.estimator.classes_
            if scores.ndim == 1:
                scores, labels = scores[:, None], labels[1:]
            found[[f"score of {label}" for label in labels.tolist()]] = scores
        return found

    def scored(self) -> list[str]:
        """Return the scores of the cross-validation in words, if there was one."""
        if self.scores is None:
            return []
        chosen = ""
        if self.chosen is not None:
            chosen = f"; C = {self.chosen:g} is the best of {', '.join(f'{C:g}' for C in C_GRID)}"
            for end, which, factor in ((C_GRID[0], "first", 0.1), (C_GRID[-1], "last", 10)):
                if self.chosen == end:
                    chosen += f", and the {which}: try --C {factor * end:g} too"
        return [
            f"{len(self.scores)}-fold cross-validation: {self.measure} {np.mean(self.scores):.3f}, standard "
            f"deviation {np.std(self.scores, ddof=1):.3f}{chosen}"
        ]

    def score_of(self, table: pd.DataFrame, predicted: Sequence[Any]) -> float | None:
        """Return the score of predictions for a table, None where there is none.

        Of a regression the target must be numbers with a variance.
        """
        if self.target not in table.columns or table[self.target].isna().any():
            return None
        y = target_values(table, self.target, self.task)
        if self.task == "classification":
            return float(np.mean(y.astype(str) == np.asarray(predicted).astype(str)))
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
        rows = [[names[m], *(number(w, ".4f") for w in weights[:, m])] for m in chosen]
        if len(weights) > 1:
            titles = [f"weight for {label}" for label in self.estimator.classes_.tolist()]
            return ["kernel", *titles], rows, len(titles)
        share = weights[0] / max(largest.sum(), np.finfo(float).tiny)
        shared = [[*row, f"{share[m]:.1%}"] for row, m in zip(rows, chosen, strict=True)]
        return ["kernel", "weight", "share"], shared, 2

    def document(self) -> dict[str, Any]:
        """Return what was learned, for `--json`."""
        estimator = self.estimator
        weights = self.weights() if len(self.weights()) > 1 else self.weights()[0]
        return {
            "task": self.task,
            "target": self.target,
            "classes": None if self.task == "regression" else estimator.classes_,
            "coordinates": self.columns.coordinates,
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
            "cross_validation": None
            if self.scores is None
            else {
                "scores": self.scores,
                "chosen_C": self.chosen,
                "mean": np.mean(self.scores),
                "standard_deviation": np.std(self.scores, ddof=1),
            },
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
    return TableModel(**vars(read(path, TABLE_MODEL)))
