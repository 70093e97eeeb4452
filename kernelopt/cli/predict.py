"""`kernelopt predict`: predictions of a saved model for the rows of a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kernelopt.cli.output import Output, check_out, say_ignored
from kernelopt.cli.usage import add_decimal


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
    say_ignored(model.ignored(table))
    found = model.predictions(table)
    score = model.score_of(table, found["prediction"])
    Output(options.json).document(
        {
            "predictions": found.to_dict("records"),
            "score": None if score is None else {model.measure: score},
            "out": None if options.out is None else str(options.out),
        }
    )
    written = found.to_csv(index=False, lineterminator="\n")  # with all digits of a float
    if options.out is not None:
        with replacing(options.out) as file:
            file.write(written.encode())
    elif not options.json:
        sys.stdout.write(written)
    if score is not None:
        print(f"kernelopt: {model.measure} {score:.4f} on {len(table)} rows", file=sys.stderr)
    elif model.target in table.columns:
        print(
            f"kernelopt: no score: each row must have a value of {model.target!r}, and the values of a "
            "regression must be numbers that vary",
            file=sys.stderr,
        )
    return 0
