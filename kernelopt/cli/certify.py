"""Run the conic solvers on problems with known optima, and check their answers by certificates.

Run every installed conic solver on problems whose optimum is known in closed form, of every formulation
of the catalogue, and on two on which solvers have returned wrong answers. Print the true error, the
certified gap, feasibility, complementarity, seconds, and a verdict that does not rely on the solver's
status. About a minute. Exit status: 0 if every certified bracket holds the true value, 1 if not, 2 on
wrong use.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from importlib.metadata import version
from itertools import product
from typing import TYPE_CHECKING

from kernelopt.cli.output import Output, number, progress, say
from kernelopt.cli.usage import Parser

if TYPE_CHECKING:
    from kernelopt.testing.conformance import ConformanceRow

LEGEND = (
    "error: of the claimed value, relative to the true one. gap: certified, from the solver's own point and "
    "multipliers. feas., compl.: largest violation, largest product of a multiplier with its slack."
)
HEADER = ("solver", "problem", "says", "verdict", "value", "error", "gap", "feas.", "compl.", "s")


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("--solver", nargs="+", metavar="NAME", help="solvers to run (default: all installed)")
    which = "beginnings of the names of the problems to solve (default: all)"
    add("--problem", nargs="+", metavar="NAME", default=[""], help=which)
    add("--size", type=int, default=10, help="points of the problems, even, 6 to 60 (default 10)")
    parser.stray = (
        "This command checks solvers, and takes no file. `kernelopt report MODEL --data DATA` proves the "
        "certificate of a model again"
    )


def run(options: argparse.Namespace) -> int:
    """Check the options, run the conformance suite and print its rows; return the exit status."""
    wrong = options.parser.error
    if options.size % 2 or not 6 <= options.size <= 60:
        wrong(f"--size must be even and between 6 and 60, got {options.size}")
    from kernelopt.testing.conformance import TOLERANCE, conic_solvers, run_case
    from kernelopt.testing.suite import cases

    solvers, every = conic_solvers(options.solver), list(cases(options.size))
    chosen = [case for case in every if case.name.startswith(tuple(options.problem))]
    if not chosen:
        names = ", ".join(case.name for case in every)
        wrong(f"--problem must be the beginning of a name, got {options.problem}; there are {names}")
    started, output = time.perf_counter(), Output(options.json)
    rows: list[ConformanceRow] = []
    with warnings.catch_warnings(), progress() as bar:
        warnings.simplefilter("ignore")  # the rows hold what the warnings say
        task = bar.add_task("", total=len(chosen) * len(solvers))
        for case, solver in product(chosen, solvers):
            bar.update(task, advance=1, description=f"{case.name}, {solver}")
            row = run_case(case, solver)
            rows += [row] if row is not None else []
    versions = {name: version(name) for name in ("kernelopt", "cvxpy", "numpy")}
    output.document({"versions": versions, "tolerance": TOLERANCE, "rows": [vars(row) for row in rows]})
    output.table(HEADER, [cells(row) for row in rows], numbers=6)
    output.line(LEGEND)
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    output.line(f"{time.perf_counter() - started:.0f} s; {len(rows)} rows: {summary}")
    if counts["false bracket"]:
        say("a certified bracket excludes the true value; please report it")
        return 1
    return 0


def cells(row: ConformanceRow) -> list[str]:
    """Return a row of the conformance suite as text."""
    measures = (row.error, row.gap, row.infeasibility, row.complementarity)
    return [
        row.solver,
        row.problem,
        row.status,
        row.verdict + (f": {row.why}" if row.why else ""),
        number(row.value, ".6g"),
        *(number(value, ".0e") for value in measures),
        number(row.seconds, ".2f"),
    ]
