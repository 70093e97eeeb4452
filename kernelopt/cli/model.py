"""A model that was learned from a table: its file, and what the commands print of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from kernelopt.certificates import Certificate
from kernelopt.cli.output import Output, say
from kernelopt.cli.table import PARQUET, read_table, read_target, target_values
from kernelopt.errors import FileError, InputError
from kernelopt.estimators import C_GRID
from kernelopt.estimators.table import TABLE_MODEL, TableModel, source
from kernelopt.records import read

SHOWN = 1e-6  # share of the largest weight below which a table leaves a kernel out
UNIQUE = {True: "yes", False: "no, others are as good", None: "not known"}


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
    model: TableModel = read(path, TABLE_MODEL)
    return model


def read_for(model: TableModel, options: argparse.Namespace) -> pd.DataFrame:
    """Return the table of `options.data`; columns that the training data did not have are said."""
    table = read_table(options.data, options.decimal)
    known = {*model.columns.numeric, *model.columns.categories, *model.dropped, model.target}
    if others := [name for name in table.columns if name not in known]:
        say(f"columns that the model does not use: {', '.join(others)}")
    return table


def by_class(model: TableModel, found: Any) -> dict[str | None, Certificate]:
    """Return one certificate under the name None, or the certificates of the classes by their names."""
    if not isinstance(found, tuple):
        return {None: found}
    return dict(zip(map(str, model.classes), found, strict=True))


def proved_again(model: TableModel, table: pd.DataFrame) -> dict[str | None, Certificate]:
    """Return the certificates that the training table gives at the learned point.

    Raises
    ------
    InputError
        If the table is another one.
    """
    X, (y, _, _) = model.columns.transform(table), read_target(table, model.target, model.task)
    try:
        return by_class(model, model.estimator.certify(X, y))
    except InputError as error:
        raise InputError(
            f"--data must be the table that the model was fitted on, of {model.rows} rows in the same "
            f"order, got {len(table)} rows with other numbers in {source(table)}: {error} Pass that file."
        ) from error


def predictions(model: TableModel, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each row of a table: the prediction, and for classes the decision function."""
    X, estimator = model.columns.transform(table), model.estimator
    found = pd.DataFrame({"prediction": estimator.predict(X)})
    if model.classes:
        scores = estimator.decision_function(X).reshape(len(found), -1)
        found[[f"score of {label}" for label in model.classes[-scores.shape[1] :]]] = scores
    return found


def score_of(model: TableModel, table: pd.DataFrame, predicted: pd.Series) -> float | None:
    """Return the score of predictions for a table, None where there is none.

    Of a regression the target must be numbers with a variance.
    """
    if model.target not in table.columns or table[model.target].isna().any():
        return None
    y = target_values(table, model.target, model.task)
    if model.classes:
        return float(np.mean(y.astype(str) == predicted.astype(str)))
    return float(r2_score(y, predicted)) if np.isfinite(y).all() and 0 < np.var(y) < np.inf else None


def document_of(model: TableModel) -> dict[str, Any]:
    """Return what was learned, for `--json`."""
    estimator, scores = model.estimator, model.scores
    unique = np.atleast_1d(estimator.weights_unique_).tolist()
    certificates = by_class(model, estimator.certificate_)
    return {
        "task": model.task,
        "target": model.target,
        "classes": model.classes or None,
        "coordinates": model.columns.coordinates,
        "rows": model.rows,
        "support": estimator.support_.size,
        "kernels": list(estimator.kernel_names_),
        "weights": estimator.weights_,
        "weights_unique": False if False in unique else None if None in unique else True,
        "certificates": [bounds_of(*each) | {"route": each[1].route} for each in certificates.items()],
        "training": {model.measure: model.score},
        "cross_validation": scores
        and {
            "scores": scores,
            "chosen_C": model.chosen,
            "mean": np.mean(scores),
            "standard_deviation": np.std(scores, ddof=1),
        },
    }


def bounds_of(name: str | None, c: Certificate) -> dict[str, Any]:
    """Return the bounds of the problem of a class, None for the only problem, for `--json`."""
    return {"class": name, "lower": c.lower, "upper": c.upper, "gap": c.gap}


def show(model: TableModel, output: Output) -> dict[str, Any]:
    """Print what was learned, and the table of the weights; return the document."""
    document, estimator = document_of(model), model.estimator
    classes = f": {', '.join(map(str, model.classes))}" if model.classes else ""
    output.line(f"{model.task} of {model.target!r}{classes}")
    output.line(
        f"{estimator.support_.size} of {model.rows} training rows are support points; {model.measure} on the "
        f"training rows {model.score:.3f}"
    )
    if found := document["cross_validation"]:
        output.line(
            f"{len(found['scores'])}-fold cross-validation: {model.measure} {found['mean']:.3f}, standard "
            f"deviation {found['standard_deviation']:.3f}{choice_of(model.chosen)}"
        )
    for name, c in by_class(model, estimator.certificate_).items():
        output.line(
            f"{'' if name is None else f'{name}: '}{c.lower:.6g} <= optimum <= {c.upper:.6g}, certified "
            f"relative gap {c.gap:.1e} ({c.route}){c.assumed}"
        )
    output.line(f"weights determined by the optimum: {UNIQUE[document['weights_unique']]}")
    weights = np.atleast_2d(estimator.weights_)
    largest = np.abs(weights).max(axis=0)
    columns = {
        f"weight for {label}": [f"{w:.4f}" for w in row]
        for label, row in zip(model.classes, weights, strict=False)
    }
    if len(weights) == 1:
        shares = weights[0] / (largest.sum() or 1.0)
        columns = {"weight": [f"{w:.4f}" for w in weights[0]], "share": [f"{s:.1%}" for s in shares]}
    used = [m for m in np.argsort(-largest, kind="stable") if largest[m] > SHOWN * largest.max()]
    rows = [[estimator.kernel_names_[m], *(cells[m] for cells in columns.values())] for m in used]
    output.table(["kernel", *columns], rows, len(columns))
    return document


def choice_of(C: float | None) -> str:
    """Return how C was chosen in words; nothing where it was given."""
    if C is None:
        return ""
    beyond = ""
    if C in (C_GRID[0], C_GRID[-1]):
        which, further = ("first", C / 10) if C == C_GRID[0] else ("last", C * 10)
        beyond = f", and the {which}: try --C {further:g} too"
    return f"; C = {C:g} is the best of {', '.join(f'{each:g}' for each in C_GRID)}{beyond}"
