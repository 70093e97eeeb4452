"""Learn a kernel and a predictor from the columns of a CSV or Parquet file.

Learn a combination of kernels, and a classifier or a regression with it, from a CSV or Parquet file whose
first line names the columns. Columns are standardised. The model is saved with its certificate. Exit
status: 0 if the gap is certified to --tol, 1 if not or if the data cannot be used, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from kernelopt.cli.output import Output, check_out, say
from kernelopt.cli.usage import Parser, add_table
from kernelopt.errors import InputError
from kernelopt.validation import as_model_path

FORMULATION = "lp_norm.primal"  # the problem of the estimators MKLClassifier and MKLRegressor
MANY_ROWS = 20_000  # whose default kernels have 4 10^9 entries: minutes before the first bound
# As in `kernelopt.estimators`, whose import would make every `--help` wait for scikit-learn.
LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive")
NORMALIZATIONS = ("multiplicative", "spherical", "trace", "none")


def add_options(parser: Parser) -> None:
    """Add the options of the command; one that is not given has the default of the estimator."""
    parser.usage = "kernelopt fit DATA --target COLUMN --out MODEL [option ...]"  # --drop may take DATA
    add_table(parser)
    add = parser.add_argument
    many: dict[str, Any] = {"nargs": "+", "default": [], "metavar": "COLUMN"}
    add("--target", required=True, metavar="COLUMN", help="the column to predict")
    add("--out", required=True, type=Path, metavar="MODEL", help="the file of the model")
    tasks = "default: classification for text, two values, and up to ten whole numbers"
    add("--task", choices=("classification", "regression"), help=tasks)
    add("--drop", help="columns to leave out", **many)
    add("--categorical", help="columns of text, one coordinate a value", **many)
    imputed = "fill missing cells: numbers by the median of the column, texts by its most frequent one"
    add("--impute", action="store_true", help=imputed)
    add("--raw", action="store_true", help="do not standardise the columns")
    folds = (
        "print the score of a K-fold cross-validation, beside models that learn no kernel; without --C and "
        "--formulation, it chooses C"
    )
    add("--cv", type=int, metavar="K", help=folds)
    names = f"from `kernelopt list formulations` (default {FORMULATION}, weights in an l_p ball)"
    add("--formulation", default=FORMULATION, metavar="NAME", help=names)
    arguments = "arguments of the formulation, such as gamma1=0.1 trace=none"
    add("--option", action="extend", help=arguments, **(many | {"metavar": "NAME=VALUE"}))
    kernels = (
        'such as "gaussian(0.5)" "linear()"; default: Gaussian kernels around the median distance, and '
        "polynomials"
    )
    add("--kernels", nargs="+", metavar="KERNEL", help=kernels)
    add("--p", type=float, help="exponent of the ball of weights, 1 to inf (default 4/3)")
    add("--C", type=float, help="weight of the loss of each row (default: chosen by leave-one-out)")
    add("--loss", choices=LOSSES, help="default by the task")
    errors = "errors that a regression tolerates, in standard deviations (default 0.1)"
    add("--epsilon", type=float, help=errors)
    classes = "weights of several classes (default shared)"
    add("--multiclass", choices=("shared", "per-class"), help=classes)
    add("--class-weight", choices=("balanced",), help="make the classes count alike")
    add("--normalize", choices=NORMALIZATIONS, help="scale of kernels (default multiplicative)")
    add("--method", help="from `kernelopt list methods` (default: the fastest that applies)")
    add("--tol", type=float, help="certified relative gap to reach (default 1e-3)")
    add("--time-limit", type=float, metavar="SECONDS", help="of each fit")


def run(options: argparse.Namespace) -> int:
    """Read the table, learn, save the model and say what was learned; return the exit status."""
    check_out(options.parser, options.out, options.data)
    try:
        as_model_path(options.out, "--out")
    except InputError as error:
        options.parser.error(str(error))
    if options.cv is not None and options.cv < 2:
        options.parser.error(f"--cv must be 2 or more, got {options.cv}")
    from kernelopt.cli.learning import chosen_estimator, compare_with_others, cross_validate
    from kernelopt.cli.model import show
    from kernelopt.cli.table import identifiers, learn_columns, option, read_table, read_target
    from kernelopt.estimators.table import TableModel
    from kernelopt.records import write

    table, output = read_table(options.data, options.decimal), Output(options.json)
    table_options = options.drop, options.categorical, options.raw, options.impute
    columns, X = learn_columns(table, options.target, *table_options)
    for name, why in identifiers(table, [*columns.numeric, *columns.categories]).items():
        say(f"{name!r} {why}, and says nothing of other rows: drop {name}?{option('drop', [name])}")
    y, task, why = read_target(table, options.target, options.task)
    estimator = chosen_estimator(options, task, len(set(y.tolist())))
    output.line(
        f"{X.shape[0]} rows, {X.shape[1]} coordinates; {options.target!r} is taken for "
        f"{'classes' if task == 'classification' else 'numbers'}: {why}"
        + ("" if options.task else ". --task changes it")
    )
    if len(X) > MANY_ROWS:
        say(
            f"{len(X)} rows: the time grows with their square. Fit a random sample of some thousand rows "
            "first; Ctrl-C ends this run"
        )
    started = time.perf_counter()
    scores = chosen = None
    if options.cv is not None:
        scores, chosen = cross_validate(estimator, X, y, task, options.cv, choose_C=options.C is None)
        if chosen is not None:
            estimator.set_params(C=chosen)
    estimator.fit(X, y)  # on a terminal the solve shows its bounds on standard error
    seconds, score = time.perf_counter() - started, float(estimator.score(X, y))
    dropped, numbers = tuple(options.drop), (len(table), score, scores, chosen)
    model = TableModel(columns, estimator, options.target, dropped, task, *numbers)
    write(options.out, model)
    document = show(model, output)
    if options.cv is not None:
        document["comparison"] = compare_with_others(estimator, X, y, task, options.cv, output)
    size = options.out.stat().st_size / 1000
    output.line(f"{seconds:.2f} s; model: {options.out} ({size:.0f} kB)")
    output.document({**document, "seconds": seconds, "model": str(options.out)})
    return 0 if estimator.dual_gap_ <= estimator.tol else 1  # then the solve has given a warning
