"""`kernelopt predict`: predictions of a saved model for the rows of a table."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelopt.cli.data_table import add_decimal
from kernelopt.cli.output import Output, check_out, say_ignored

if TYPE_CHECKING:
    from kernelopt.cli.data_table import DataTable
    from kernelopt.cli.table_model import TableModel


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    predict = commands.add_parser(
        "predict",
        parents=[shared],
        help="predict the target of the rows of a CSV or Parquet file",
        description="Predict the target of each row of a CSV or Parquet file by a model of `kernelopt fit`, "
        "and write the predictions as CSV, in the order of the rows: the prediction, and for classes the "
        "value of the decision function, which is no probability. Exit status: 0, or 1 if the file or the "
        "data cannot be used, 2 on wrong use.",
    )
    predict.add_argument("model", type=Path, metavar="MODEL", help="a file that `kernelopt fit` has written")
    predict.add_argument("data", type=Path, metavar="DATA", help="a CSV or Parquet file")
    predict.add_argument("--out", type=Path, metavar="FILE", help="a CSV file (default: standard output)")
    add_decimal(predict)
    predict.set_defaults(run=run, parser=predict)


def run(options: argparse.Namespace) -> int:
    """Predict, write the predictions and, where the target is known, the score; return the exit status."""
    if options.out is not None:
        check_out(options.parser, options.out, options.model, options.data)
    from kernelopt.cli.data_table import read_table
    from kernelopt.cli.table_model import load_model
    from kernelopt.files import replacing

    model, table = load_model(options.model), read_table(options.data, options.decimal)
    say_ignored(model.features.ignored(table))
    header, rows = predictions(model, table)
    score = model.score_of(table, [row[0] for row in rows])
    Output(options.json).document(
        {
            "predictions": [dict(zip(header, row, strict=True)) for row in rows],
            "score": None if score is None else {model.measure: score},
            "out": None if options.out is None else str(options.out),
        }
    )
    if options.out is not None:
        with replacing(options.out) as file:
            file.write(as_csv(header, rows).encode())
    elif not options.json:
        sys.stdout.write(as_csv(header, rows))
    if score is not None:
        print(f"kernelopt: {model.measure} {score:.4f} on {len(table)} rows", file=sys.stderr)
    elif (target := model.features.target) in table.columns:
        print(
            f"kernelopt: no score: each row must have a value of {target!r}, and those of a regression must "
            "be numbers that vary",
            file=sys.stderr,
        )
    return 0


def predictions(model: TableModel, table: DataTable) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns, and a row of values for each row of the table."""
    X = model.features.points(table)
    columns = {"prediction": model.estimator.predict(X).tolist()}
    if model.task == "classification":
        scores = model.estimator.decision_function(X)
        labels = model.estimator.classes_.tolist()
        if scores.ndim == 1:
            columns[f"score of {labels[1]}"] = scores.tolist()
        else:
            columns |= {f"score of {label}": s.tolist() for label, s in zip(labels, scores.T, strict=True)}
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the rows as text; `repr` of a float, which the module csv writes, has all its digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
