"""A model that was learned from a table, as the commands use it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from kernelopt.certificates import Certificate
from kernelopt.cli.columns import read_target, target_values
from kernelopt.cli.data_table import PARQUET, read_table
from kernelopt.cli.output import Output, say
from kernelopt.errors import FileError, InputError
from kernelopt.estimators import C_GRID
from kernelopt.estimators.table import TABLE_MODEL, TableFile, source
from kernelopt.records import read, write

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

    @property
    def classes(self) -> list[Any]:
        """The classes, none of a regression."""
        return self.estimator.classes_.tolist() if self.task == "classification" else []

    def save(self, path: Path) -> None:
        """Write the model to a file, at once: an interrupted call leaves what was there before."""
        write(path, TableFile(**vars(self)))

    def read(self, options: argparse.Namespace) -> pd.DataFrame:
        """Return the table of `options.data`; columns that the model does not use are said."""
        table = read_table(options.data, options.decimal)
        if others := self.ignored(table):
            say(f"columns that the model does not use: {', '.join(others)}")
        return table

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
            return self.named(self.estimator.certify(X, y))
        except InputError as error:
            raise InputError(
                f"--data must be the table that the model was fitted on, of {self.rows} rows in the same "
                f"order, got {len(table)} rows with other numbers in {source(table)}: {error} Pass that file."
            ) from error

    def named(self, found: Any) -> dict[str | None, Certificate]:
        """Return one certificate under the name None, or the certificates of the classes by their names."""
        if not isinstance(found, tuple):
            return {None: found}
        return dict(zip(map(str, self.classes), found, strict=True))

    def certificates(self) -> dict[str | None, Certificate]:
        """Return the certificates of the fit by the names of their classes."""
        return self.named(self.estimator.certificate_)

    def predictions(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a row for each row of a table: the prediction, and for classes the decision function."""
        X = self.columns.transform(table)
        found = pd.DataFrame({"prediction": self.estimator.predict(X)})
        if self.classes:
            scores = self.estimator.decision_function(X).reshape(len(found), -1)
            found[[f"score of {label}" for label in self.classes[-scores.shape[1] :]]] = scores
        return found

    def score_of(self, table: pd.DataFrame, predicted: pd.Series) -> float | None:
        """Return the score of predictions for a table, None where there is none.

        Of a regression the target must be numbers with a variance.
        """
        if self.target not in table.columns or table[self.target].isna().any():
            return None
        y = target_values(table, self.target, self.task)
        if self.classes:
            return float(np.mean(y.astype(str) == predicted.astype(str)))
        return float(r2_score(y, predicted)) if np.isfinite(y).all() and 0 < np.var(y) < np.inf else None

    def document(self) -> dict[str, Any]:
        """Return what was learned, for `--json`."""
        estimator, scores = self.estimator, self.scores
        weights, unique = np.atleast_2d(estimator.weights_), np.atleast_1d(estimator.weights_unique_).tolist()
        found = {"scores": scores, "chosen_C": self.chosen}
        return {
            "task": self.task,
            "target": self.target,
            "classes": self.classes or None,
            "coordinates": self.columns.coordinates,
            "rows": self.rows,
            "support": estimator.support_.size,
            "kernels": list(estimator.kernel_names_),
            "weights": weights if len(weights) > 1 else weights[0],
            "weights_unique": False if False in unique else None if None in unique else True,
            "certificates": [
                bounds_of(*each) | {"route": each[1].route} for each in self.certificates().items()
            ],
            "training": {self.measure: self.score},
            "cross_validation": scores
            and {**found, "mean": np.mean(scores), "standard_deviation": np.std(scores, ddof=1)},
        }

    def show(self, output: Output) -> dict[str, Any]:
        """Print what was learned, and the table of the weights; return the document."""
        document = self.document()
        classes = f": {', '.join(map(str, self.classes))}" if self.classes else ""
        output.line(f"{self.task} of {self.target!r}{classes}")
        output.line(
            f"{document['support']} of {self.rows} training rows are support points; {self.measure} on the "
            f"training rows {self.score:.3f}"
        )
        if document["cross_validation"]:
            output.line(self.scored(**document["cross_validation"]))
        for name, c in self.certificates().items():
            output.line(
                f"{'' if name is None else f'{name}: '}{c.lower:.6g} <= optimum <= {c.upper:.6g}, certified "
                f"relative gap {c.gap:.1e} ({c.route}){c.assumed}"
            )
        output.line(f"weights determined by the optimum: {UNIQUE[document['weights_unique']]}")
        weights, names = np.atleast_2d(document["weights"]).T, document["kernels"]
        largest = np.abs(weights).max(axis=1)
        header, shares = [f"weight for {label}" for label in self.classes], weights[:, :0]
        if weights.shape[1] == 1:
            header, shares = ["weight", "share"], weights / max(largest.sum(), np.finfo(float).tiny)
        rows = [
            [names[m], *(f"{w:.4f}" for w in weights[m]), *(f"{s:.1%}" for s in shares[m])]
            for m in np.argsort(-largest, kind="stable")
            if largest[m] > SHOWN * largest.max()
        ]
        output.table(["kernel", *header], rows, len(header))
        return document

    def scored(
        self, scores: Sequence[float], chosen_C: float | None, mean: float, standard_deviation: float
    ) -> str:
        """Return the scores of the cross-validation in words."""
        chosen = ""
        if chosen_C is not None:
            chosen = f"; C = {chosen_C:g} is the best of {', '.join(f'{C:g}' for C in C_GRID)}"
            for end, which, factor in ((C_GRID[0], "first", 0.1), (C_GRID[-1], "last", 10)):
                if chosen_C == end:
                    chosen += f", and the {which}: try --C {factor * end:g} too"
        return (
            f"{len(scores)}-fold cross-validation: {self.measure} {mean:.3f}, standard deviation "
            f"{standard_deviation:.3f}{chosen}"
        )


def bounds_of(name: str | None, c: Certificate) -> dict[str, Any]:
    """Return the bounds of the problem of a class, None for the only problem, for `--json`."""
    return {"class": name, "lower": c.lower, "upper": c.upper, "gap": c.gap}


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
