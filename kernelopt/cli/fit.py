"""`kernelopt fit`: learn a kernel and a predictor from a table."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelopt.cli.data_table import add_decimal
from kernelopt.cli.output import Output, check_out, number
from kernelopt.errors import InputError
from kernelopt.validation import as_model_path

if TYPE_CHECKING:
    from kernelopt.cli.table_model import TableModel
    from kernelopt.cli.target import Target

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
    from kernelopt.cli.chosen_estimator import check_classes, chosen_estimator
    from kernelopt.cli.cross_validation import cross_validate
    from kernelopt.cli.data_table import read_table
    from kernelopt.cli.features import learn_features
    from kernelopt.cli.table_model import TableModel
    from kernelopt.cli.target import read_target

    table, output = read_table(options.data, options.decimal), Output(options.json)
    features, X = learn_features(table, options.target, options.drop, options.categorical, options.raw)
    target = read_target(table, options.target, options.task)
    estimator = chosen_estimator(options, target.task)
    check_classes(options, estimator, target)
    announce(output, target, options, X.shape)
    started = time.perf_counter()
    checked = None
    if options.cv is not None:
        checked = cross_validate(estimator, X, target.y, target.task, options.cv, choose_C=options.C is None)
        if checked.chosen is not None:
            estimator.set_params(C=checked.chosen)
    estimator.fit(X, target.y)  # on a terminal the solve shows its bounds on standard error
    seconds = time.perf_counter() - started
    score = float(estimator.score(X, target.y))
    model = TableModel(features, target.task, estimator, len(table), score, checked)
    model.save(options.out)
    return say(model, output, options.out, seconds)


def announce(output: Output, target: Target, options: argparse.Namespace, shape: tuple[int, ...]) -> None:
    """Print how the table is read, and whether the work will take long."""
    meant = "classes" if target.task == "classification" else "numbers"
    output.line(
        f"{shape[0]} rows, {shape[1]} coordinates; {options.target!r} is taken for {meant}: {target.why}"
        + ("" if options.task else ". --task changes it")
    )
    if shape[0] > MANY_ROWS:
        print(
            f"kernelopt: {shape[0]} rows: the time grows with their square. Fit a random sample of some "
            "thousand rows first; Ctrl-C ends this run",
            file=sys.stderr,
        )


def say(model: TableModel, output: Output, path: Path, seconds: float) -> int:
    """Print what was learned; return the exit status."""
    estimator = model.estimator
    for line in model.lines():
        output.line(line)
    output.table(*model.weights_table())
    output.line(f"{number(seconds, '.2f')} s; model: {path} ({path.stat().st_size / 1000:.0f} kB)")
    output.document({**model.document(), "seconds": seconds, "model": str(path)})
    return 0 if estimator.dual_gap_ <= estimator.tol else 1  # then the solve has given a warning
