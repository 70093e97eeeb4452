"""Predict the target of the rows of a CSV or Parquet file.

Predict the target of each row of a CSV or Parquet file by a model of `kernelopt fit`, and write the
predictions as CSV, in the order of the rows: the prediction, and for classes the value of the decision
function, which is no probability. Exit status: 0, or 1 if the file or the data cannot be used, 2 on wrong
use.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernelopt.cli.output import Output, check_out, say
from kernelopt.cli.usage import Parser, add_table


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_table(parser, model=True)
    parser.add_argument("--out", type=Path, metavar="FILE", help="a CSV file (default: standard output)")


def run(options: argparse.Namespace) -> int:
    """Predict, write the predictions and, where the target is known, the score; return the exit status."""
    if options.out is not None:
        check_out(options.parser, options.out, options.model, options.data)
    from kernelopt.cli.model import load_model, predictions, read_for, score_of
    from kernelopt.files import replacing

    model = load_model(options.model)
    table = read_for(model, options)
    found = predictions(model, table)
    score = score_of(model, table, found["prediction"])
    Output(options.json).document(
        {
            "predictions": found.to_dict("records"),
            "score": None if score is None else {model.measure: score},
            "out": options.out and str(options.out),
        }
    )
    lines = found.to_csv(index=False, lineterminator="\n")  # with all digits of a float
    if options.out is not None:
        with replacing(options.out) as file:
            file.write(lines.encode())
    elif not options.json:
        sys.stdout.write(lines)
    if score is not None:
        say(f"{model.measure} {score:.4f} on {len(table)} rows")
    elif model.target in table.columns:
        say(
            f"no score: each row must have a value of {model.target!r}, and the values of a regression must "
            "be numbers that vary"
        )
    return 0
