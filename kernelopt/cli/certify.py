"""Check the answers of conic solvers by certificates, on a problem in a file or with known optima.

With FILE, a semidefinite programme in SDPA's format or a linear one in MPS, solve it, and print what each
solver claims, what is proved, and the seconds of both. Without FILE, run every installed conic solver on
problems whose optimum is known in closed form, of every formulation of the catalogue, and on two on which
solvers have returned wrong answers. Print the true error, the certified gap, feasibility, complementarity,
seconds, and a verdict that does not rely on the solver's status. About a minute. Exit status: 0 if every
certified bracket holds the true value, or every answer to FILE is proved to --tol, 1 if not, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelopt.cli.output import Output, progress, say
from kernelopt.cli.usage import Parser

if TYPE_CHECKING:
    from kernelopt.testing.conformance import ConformanceRow

LEGEND = (
    "error: of the claimed value, relative to the true one. gap: certified, from the solver's own point and "
    "multipliers. feas., compl.: largest violation, largest product of a multiplier with its slack."
)
FILE_COLUMNS = {
    "solver": ("solver", ""),
    "says": ("status", ""),
    "claims": ("claimed", ".9g"),
    "lower": ("lower", ".9g"),
    "upper": ("upper", ".9g"),
    "gap": ("gap", ".0e"),
    "s": ("seconds", ".2f"),
    "proof s": ("certificate_seconds", ".2f"),
}
COLUMNS = {
    "solver": ("solver", ""),
    "problem": ("problem", ""),
    "says": ("status", ""),
    "verdict": ("verdict", ""),
    "value": ("value", ".6g"),
    "error": ("error", ".0e"),
    "gap": ("gap", ".0e"),
    "feas.": ("infeasibility", ".0e"),
    "compl.": ("complementarity", ".0e"),
    "s": ("seconds", ".2f"),
}


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add(
        "file", nargs="?", type=Path, metavar="FILE", help="a problem in SDPA's format (.dat-s) or MPS (.mps)"
    )
    add(
        "--solver",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="solvers to run (default: all, for FILE the first)",
    )
    add("--tol", type=float, default=1e-6, help="of FILE: relative gap to be proved (default 1e-6)")
    add("--bound", type=float, metavar="R", help="of FILE: assume an optimum with entries up to R")
    add("--save", type=Path, metavar="PATH", help="of FILE: write the proof of the last solver")
    which = "beginnings of the names of the problems to solve (default: all)"
    add("--problem", nargs="+", metavar="NAME", default=[""], help=which)
    add("--size", type=int, default=10, help="points of the problems, even, 6 to 60 (default 10)")


def run(options: argparse.Namespace) -> int:
    """Check the options, run the conformance suite and print its rows; return the exit status."""
    if options.file is not None:
        return check_file(options)
    wrong = options.parser.error
    if options.size % 2 or not 6 <= options.size <= 60:
        wrong(f"--size must be even and between 6 and 60, got {options.size}")
    from kernelopt.testing.conformance import TOLERANCE, conic_solvers, run_case
    from kernelopt.testing.suite import cases

    solvers, every = conic_solvers(options.solver), cases(options.size)
    chosen = [name for name in every if name.startswith(tuple(options.problem))]
    if not chosen:
        wrong(
            f"--problem must be the beginning of a name, got {options.problem}; there are {', '.join(every)}"
        )
    started, output = time.perf_counter(), Output(options.json)
    rows: list[ConformanceRow] = []
    with warnings.catch_warnings(), progress() as bar:
        warnings.simplefilter("ignore")  # the rows hold what the warnings say
        task = bar.add_task("", total=len(chosen) * len(solvers))
        for name, solver in product(chosen, solvers):
            bar.update(task, advance=1, description=f"{name}, {solver}")
            row = run_case(name, every[name], solver)
            rows += [row] if row is not None else []
    versions = {name: version(name) for name in ("kernelopt", "cvxpy", "numpy")}
    output.document({"versions": versions, "tolerance": TOLERANCE, "rows": [vars(row) for row in rows]})
    output.rows(COLUMNS, map(shown, rows), numbers=6)
    output.line(LEGEND)
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    output.line(f"{time.perf_counter() - started:.0f} s; {len(rows)} rows: {summary}")
    if counts["false bracket"]:
        say("a certified bracket excludes the true value; please report it")
        return 1
    return 0


def check_file(options: argparse.Namespace) -> int:
    """Solve the problem in a file, print what is claimed and what is proved; return the exit status."""
    from kernelopt.certificates.certify import certify
    from kernelopt.conic.ladder import SolverAttempt, run_solver
    from kernelopt.problem_files import read_mps, read_sdpa
    from kernelopt.testing.conformance import conic_solvers

    linear = ".mps" in options.file.suffixes
    problem, output = (read_mps if linear else read_sdpa)(options.file), Output(options.json)
    R = options.bound
    bounds = None if R is None else dict.fromkeys(problem.variables(), (-R, R))
    rows: list[dict[str, Any]] = []
    for name in conic_solvers(options.solver or ["HIGHS" if linear else "CLARABEL"]):
        with progress() as bar:
            bar.add_task(f"{options.file.name}, {name}", total=None)
            started = time.perf_counter()
            failure = run_solver(problem, SolverAttempt(name)).failure
            solved = time.perf_counter()
            found = certify(problem, tol=options.tol, bounds=bounds)
        status, claimed = failure or problem.status, problem.value
        rows.append({
            "solver": name, "status": status, "claimed": np.nan if claimed is None else claimed,
            "lower": found.lower, "upper": found.upper, "gap": found.gap, "reason": found.reason,
            "seconds": solved - started, "certificate_seconds": time.perf_counter() - solved,
        })  # fmt: skip
    if options.save is not None:
        found.save(options.save)
    output.document({"file": options.file.name, "tolerance": options.tol, "rows": rows})
    output.rows(FILE_COLUMNS, rows, numbers=6)
    for row in rows:
        if row["reason"]:
            output.line(f"{row['solver']}: {row['reason']}")
    infeasible = found.lower == found.upper  # by a proof: both bounds are infinite
    return 0 if all(row["gap"] <= options.tol or infeasible for row in rows) else 1


def shown(row: ConformanceRow) -> dict[str, Any]:
    """Return the entries of a row, with the reason behind the verdict."""
    return vars(row) | {"verdict": row.verdict + (f": {row.why}" if row.why else "")}
