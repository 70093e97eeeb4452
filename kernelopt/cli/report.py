"""`kernelopt report`: what a saved model has learned, and its certificate, proved again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kernelopt.cli.output import Output, say_ignored
from kernelopt.cli.usage import add_decimal

ROUNDING = 1e-9  # of a gap: by how much the bounds of another machine may differ in the last digits


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    report = commands.add_parser(
        "report",
        parents=[shared],
        help="show what a model has learned, and prove its certificate again",
        description="Show the weights of the kernels, whether the optimum determines them, the certified "
        "bounds and the support of a model of `kernelopt fit`. With --data, the training table, compute the "
        "bounds again. Exit status: 0, or 1 if the file cannot be used, or if the bounds that are computed "
        "again leave a larger gap than the saved ones and than --tol of the fit, 2 on wrong use.",
    )
    report.add_argument("model", type=Path, metavar="MODEL", help="a file that `kernelopt fit` has written")
    report.add_argument(
        "--data", type=Path, metavar="DATA", help="the training table: prove the bounds again"
    )
    add_decimal(report)
    report.set_defaults(run=run, parser=report)


def run(options: argparse.Namespace) -> int:
    """Print what was learned, and the bounds that are computed again; return the exit status."""
    from kernelopt.cli.data_table import read_table
    from kernelopt.cli.table_model import load_model

    model, output = load_model(options.model), Output(options.json)
    proved = {}
    if options.data is not None:  # before anything is printed: the table may be another one
        table = read_table(options.data, options.decimal)
        say_ignored(model.ignored(table))
        proved = model.proved_again(table)
    model.show(output)
    document, saved = model.document(), model.certificates()
    if proved:
        document["proved_again"] = [
            {"class": name, "lower": c.lower, "upper": c.upper, "gap": c.gap} for name, c in proved.items()
        ]
    status, tol = 0, model.estimator.tol
    for name, c in proved.items():
        what = "" if name is None else f"{name}: "
        output.line(
            f"{what}proved again: {c.lower:.6g} <= optimum <= {c.upper:.6g}, gap {c.gap:.1e}{c.assumed}"
        )
        if not c.gap <= max(saved[name].gap + ROUNDING, tol):
            print(
                f"kernelopt: {what}the gap is {c.gap:.1e} and was {saved[name].gap:.1e} when the model "
                "was saved. Rely on the bounds that were computed again.",
                file=sys.stderr,
            )
            status = 1
    output.document(document)
    return status
