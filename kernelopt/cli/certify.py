"""`kernelopt certify`: the conic solvers on problems with known optima."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernelopt.cli.output import Output, number, progress

if TYPE_CHECKING:
    from kernelopt.testing.conformance import ConformanceRow
    from kernelopt.testing.suite import Case

LEGEND = (
    "error: of the claimed value, relative to the true one. gap: certified, from the solver's own point and "
    "multipliers. feas., compl.: largest violation, largest product of a multiplier with its slack."
)
HEADER = ("solver", "problem", "says", "verdict", "value", "error", "gap", "feas.", "compl.", "s")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    certify = commands.add_parser(
        "certify",
        parents=[shared],
        help="run the conic solvers on problems with known optima, and check their answers by certificates",
        description="Run every installed conic solver on problems whose optimum is known in closed form, of "
        "every formulation of the catalogue, and on two on which solvers have returned wrong answers. Print "
        "the true error, the certified gap, feasibility, complementarity, seconds, and a verdict that does "
        "not rely on the solver's status. About a minute. Exit status: 0 if every certified bracket holds "
        "the true value, 1 if not, 2 on wrong use.",
    )
    certify.add_argument(
        "--solver", nargs="+", metavar="NAME", help="solvers to run (default: all installed)"
    )
    certify.add_argument(
        "--problem",
        nargs="+",
        metavar="NAME",
        default=[""],
        help="beginnings of the names of the problems to solve (default: all)",
    )
    certify.add_argument(
        "--size", type=int, default=10, help="points of the problems, even, 6 to 60 (default 10)"
    )
    certify.stray = (
        "This command checks solvers, and takes no file. `kernelopt report MODEL --data DATA` proves the "
        "certificate of a model again"
    )
    certify.set_defaults(run=run, parser=certify)


def run(options: argparse.Namespace) -> int:
    """Check the options, run the conformance suite and print its rows."""
    wrong = options.parser.error
    if options.size % 2 or not 6 <= options.size <= 60:
        wrong(f"--size must be even and between 6 and 60, got {options.size}")
    from kernelopt.testing.conformance import conic_solvers
    from kernelopt.testing.suite import cases

    solvers = conic_solvers(options.solver)
    chosen = [case for case in cases(options.size) if case.name.startswith(tuple(options.problem))]
    if not chosen:
        names = ", ".join(case.name for case in cases(options.size))
        wrong(f"--problem must be the beginning of a name, got {options.problem}; there are {names}")
    return run_suite(chosen, solvers, Output(options.json))


def run_suite(chosen: Sequence[Case], solvers: Sequence[str], output: Output) -> int:
    """Run the conformance suite and print its rows; return the exit status."""
    from kernelopt.testing.conformance import conformance, report

    started = time.perf_counter()
    rows: list[ConformanceRow] = []
    with warnings.catch_warnings(), progress() as bar:
        warnings.simplefilter("ignore")  # the rows hold what the warnings say
        task = bar.add_task("", total=len(chosen) * len(solvers))
        for row in conformance(chosen, solvers, lambda what: bar.update(task, advance=1, description=what)):
            rows.append(row)
    output.document(report(rows))
    output.table(HEADER, [cells(row) for row in rows], numbers=6)
    output.line(LEGEND)
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    output.line(f"{time.perf_counter() - started:.0f} s; {len(rows)} rows: {summary}")
    if counts["false bracket"]:
        print("kernelopt: a certified bracket excludes the true value; please report it", file=sys.stderr)
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
