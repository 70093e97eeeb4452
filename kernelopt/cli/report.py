"""Show what a model has learned, and prove its certificate again.

Show the weights of the kernels, whether the optimum determines them, the certified bounds and the support
of a model of `kernelopt fit`. With --data, the training table, compute the bounds again. Exit status: 0,
or 1 if the file cannot be used, or if the bounds that are computed again leave a larger gap than the
saved ones and than --tol of the fit, 2 on wrong use.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from kernelopt.cli.output import Output, say
from kernelopt.cli.usage import Parser, add_table

ROUNDING = 1e-9  # of a gap: by how much the bounds of another machine may differ in the last digits


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_table(parser, model=True, data=False)
    parser.add_argument(
        "--data", type=Path, metavar="DATA", help="the training table: prove the bounds again"
    )


def run(options: argparse.Namespace) -> int:
    """Print what was learned, and the bounds that are computed again; return the exit status."""
    from kernelopt.cli.model import bounds_of, by_class, load_model, proved_again, read_for, show

    model, output = load_model(options.model), Output(options.json)
    proved = {}
    if options.data is not None:  # before anything is printed: the table may be another one
        proved = proved_again(model, read_for(model, options))
    document, saved, status = show(model, output), by_class(model, model.estimator.certificate_), 0
    if proved:
        document["proved_again"] = [bounds_of(name, c) for name, c in proved.items()]
    for name, c in proved.items():
        what = "" if name is None else f"{name}: "
        output.line(
            f"{what}proved again: {c.lower:.6g} <= optimum <= {c.upper:.6g}, gap {c.gap:.1e}{c.assumed}"
        )
        if not c.gap <= max(saved[name].gap + ROUNDING, model.estimator.tol):
            say(
                f"{what}the gap is {c.gap:.1e} and was {saved[name].gap:.1e} when the model was saved. Rely "
                "on the bounds that were computed again."
            )
            status = 1
    output.document(document)
    return status
