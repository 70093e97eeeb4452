"""`kernelopt fit`: learn a kernel and a predictor from a table."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from kernelopt.cli.output import Output, check_out, number
from kernelopt.cli.usage import add_decimal
from kernelopt.errors import InputError
from kernelopt.validation import as_model_path

FORMULATION = "lp_norm.primal"  # the problem of the estimators MKLClassifier and MKLRegressor
MANY_ROWS = 20_000  # whose default kernels have 4 10^9 entries: minutes before the first bound
# As in `kernelopt.estimators`, whose import would make every `--help` wait for scikit-learn.
LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive")
NORMALIZATIONS = ("multiplicative", "spherical", "trace", "none")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    fit = commands.add_parser(
        "fit",
        parents=[shared],
        usage="kernelopt fit DATA --target COLUMN --out MODEL [option ...]",  # --drop may take DATA behind it
        help="learn a kernel and a predictor from the columns of a CSV or Parquet file",
        description="Learn a combination of kernels, and a classifier or a regression with it, from a CSV or "
        "Parquet file whose first line names the columns. Columns are standardised. The model is saved with "
        "its certificate. Exit status: 0 if the gap is certified to --tol, 1 if not or if the data cannot be "
        "used, 2 on wrong use.",
    )
    fit.add_argument("data", type=Path, metavar="DATA", help="a CSV or Parquet file")
    fit.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    fit.add_argument("--out", required=True, type=Path, metavar="MODEL", help="the file of the model")
    fit.add_argument(
        "--task",
        choices=("classification", "regression"),
        help="default: classification for text, two values, and up to ten whole numbers",
    )
    fit.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    fit.add_argument(
        "--categorical",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns of text, one coordinate a value",
    )
    fit.add_argument("--raw", action="store_true", help="do not standardise the columns")
    add_decimal(fit)
    fit.add_argument(
        "--cv",
        type=int,
        metavar="K",
        help="print the score of a K-fold cross-validation; for classes, without --C and --formulation, it "
        "chooses C",
    )
    add_learning_options(fit)
    fit.set_defaults(run=run, parser=fit)


def add_learning_options(fit: argparse.ArgumentParser) -> None:
    """Add what is learned, and how; an option that is not given has the default of the estimator."""
    fit.add_argument(
        "--formulation",
        default=FORMULATION,
        metavar="NAME",
        help=f"from `kernelopt list formulations` (default {FORMULATION}, weights in an l_p ball)",
    )
    fit.add_argument(
        "--option",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the formulation, such as gamma1=0.1 trace=none",
    )
    fit.add_argument(
        "--kernels",
        nargs="+",
        metavar="KERNEL",
        help='such as "gaussian(0.5)" "linear()"; default: Gaussian kernels around the median distance, and '
        "polynomials",
    )
    fit.add_argument("--p", type=float, help="exponent of the ball of weights, 1 to inf (default 4/3)")
    fit.add_argument("--C", type=float, help="weight of the loss of each row (default 1)")
    fit.add_argument("--loss", choices=LOSSES, help="default by the task")
    fit.add_argument(
        "--epsilon",
        type=float,
        help="errors that a regression tolerates, in standard deviations (default 0.1)",
    )
    fit.add_argument(
        "--multiclass", choices=("shared", "per-class"), help="weights of several classes (default shared)"
    )
    fit.add_argument("--class-weight", choices=("balanced",), help="make the classes count alike")
    fit.add_argument("--normalize", choices=NORMALIZATIONS, help="scale of kernels (default multiplicative)")
    fit.add_argument("--method", help="from `kernelopt list methods` (default: the fastest that applies)")
    fit.add_argument("--tol", type=float, help="certified relative gap to reach (default 1e-3)")
    fit.add_argument("--time-limit", type=float, metavar="SECONDS", help="of each fit")


def run(options: argparse.Namespace) -> int:
    """Read the table, learn, save the model and say what was learned; return the exit status."""
    check_out(options.parser, options.out, options.data)
    try:
        as_model_path(options.out, "--out")
    except InputError as error:
        options.parser.error(str(error))
    if options.cv is not None and options.cv < 2:
        options.parser.error(f"--cv must be 2 or more, got {options.cv}")
    from kernelopt.cli.chosen_estimator import chosen_estimator
    from kernelopt.cli.columns import learn_columns, read_target
    from kernelopt.cli.cross_validation import cross_validate
    from kernelopt.cli.data_table import read_table
    from kernelopt.cli.table_model import TableModel

    table, output = read_table(options.data, options.decimal), Output(options.json)
    columns, X = learn_columns(table, options.target, options.drop, options.categorical, options.raw)
    y, task, why = read_target(table, options.target, options.task)
    estimator = chosen_estimator(options, task, len(set(y.tolist())))
    output.line(
        f"{X.shape[0]} rows, {X.shape[1]} coordinates; {options.target!r} is taken for "
        f"{'classes' if task == 'classification' else 'numbers'}: {why}"
        + ("" if options.task else ". --task changes it")
    )
    if len(X) > MANY_ROWS:
        print(
            f"kernelopt: {len(X)} rows: the time grows with their square. Fit a random sample of some "
            "thousand rows first; Ctrl-C ends this run",
            file=sys.stderr,
        )
    started = time.perf_counter()
    scores = chosen = None
    if options.cv is not None:
        scores, chosen = cross_validate(estimator, X, y, task, options.cv, choose_C=options.C is None)
        if chosen is not None:
            estimator.set_params(C=chosen)
    estimator.fit(X, y)  # on a terminal the solve shows its bounds on standard error
    seconds = time.perf_counter() - started
    score = float(estimator.score(X, y))
    dropped = tuple(options.drop)
    numbers = (len(table), score, scores, chosen)
    model = TableModel(columns, estimator, options.target, dropped, task, *numbers)
    model.save(options.out)
    model.show(output)
    output.line(
        f"{number(seconds, '.2f')} s; model: {options.out} ({options.out.stat().st_size / 1000:.0f} kB)"
    )
    output.document({**model.document(), "seconds": seconds, "model": str(options.out)})
    return 0 if estimator.dual_gap_ <= estimator.tol else 1  # then the solve has given a warning
