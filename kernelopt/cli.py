"""The command line: `kernelopt demo`, `kernelopt certify` and `kernelopt list`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kernelopt.errors import KerneloptError
from kernelopt.tables import demo_table, plain_table, verdict_table

if TYPE_CHECKING:  # cvxpy is slow to import: --help and wrong arguments do without
    from kernelopt.demo import DemoRow
    from kernelopt.testing import Case, ConformanceRow

GAP_TOLERANCE = 1e-5  # relative: of every solve of the demo, and of its exit status


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="kernelopt", description="Kernel learning in the language of cvxpy, certified."
    )
    top.add_argument("--version", action="version", version=f"kernelopt {version('kernelopt')}")
    commands = top.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="learn kernels on breast cancer data by every criterion of Lanckriet et al.",
        description="Learn kernels on scikit-learn's breast cancer data by every criterion of Lanckriet et "
        "al. (2004), print a table with certified bounds, and save a figure of weights and bounds. Takes "
        "less than a minute. Exit status: 0 if every gap is certified to 1e-5, 1 if not, 2 on wrong use.",
    )
    certify = commands.add_parser(
        "certify",
        help="run the conic solvers on problems with known optima, and check their answers by certificates",
        description="Run every installed conic solver on problems whose optimum is known in closed form, of "
        "every formulation of the catalogue, and on two on which solvers have returned wrong answers. Print "
        "the true error, the certified gap, feasibility, complementarity, seconds, and a verdict that does "
        "not rely on the solver's status. About a minute. Exit status: 0 if every certified bracket holds "
        "the true value, 1 if not, 2 on wrong use.",
    )
    listing = commands.add_parser(
        "list",
        help="list the losses, kernels, fidelities, methods and formulations that are installed",
        description="List the losses, kernels, fidelities, methods and formulations that are installed, "
        "with those of other packages. Exit status: 0 if all can be used, 1 if a package names one that "
        "cannot be used, 2 on wrong use.",
    )
    add_demo_options(demo)
    add_certify_options(certify)
    listing.add_argument(
        "kind", nargs="*", help="losses, kernels, fidelities, methods or formulations (default: all)"
    )
    return top


def add_demo_options(demo: argparse.ArgumentParser) -> None:
    """Add the options of `kernelopt demo`."""
    demo.add_argument(
        "--out", type=Path, default=Path("kernelopt-demo.png"), help="the figure (PNG), or a folder for it"
    )
    demo.add_argument("--points", type=int, default=200, help="training points, 60 to 200 (default 200)")
    demo.add_argument("--random-state", type=int, default=0, help="seed of the split (default 0)")
    demo.add_argument("--no-figure", action="store_true", help="print the table only; needs no matplotlib")


def add_certify_options(certify: argparse.ArgumentParser) -> None:
    """Add the options of `kernelopt certify`."""
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
    certify.add_argument("--json", type=Path, metavar="FILE", help="also save the rows, as JSON")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    top = parser()
    options = top.parse_args(arguments)
    try:
        return COMMANDS[options.command](top, options)
    except KerneloptError as error:
        print(f"kernelopt: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kernelopt: interrupted", file=sys.stderr)
        return 130


def demonstrate(top: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Check the options of `kernelopt demo` and run it."""
    if not 60 <= options.points <= 200:
        top.error(f"--points must be between 60 and 200, got {options.points}")
    if options.random_state < 0:
        top.error(f"--random-state must not be negative, got {options.random_state}")
    figure = None if options.no_figure else figure_path(top, options.out)
    return run_demo(options.points, options.random_state, figure)


def certify(top: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Check the options of `kernelopt certify` and run it."""
    if options.size % 2 or not 6 <= options.size <= 60:
        top.error(f"--size must be even and between 6 and 60, got {options.size}")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        top.error(f"--json must be a file in an existing folder, got {options.json}")
    from kernelopt.errors import ParameterError
    from kernelopt.testing import cases, conic_solvers

    try:
        solvers = conic_solvers(options.solver)
    except ParameterError as error:
        top.error(f"--solver: {error}")
    chosen = [case for case in cases(options.size) if case.name.startswith(tuple(options.problem))]
    if not chosen:
        names = ", ".join(case.name for case in cases(options.size))
        top.error(f"--problem must be the beginning of a name, got {options.problem}; there are {names}")
    return run_certify(chosen, solvers, options.json)


def list_installed(top: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Check the kinds of `kernelopt list` and print what is installed of them."""
    from kernelopt.installed import KINDS, listed

    wrong = sorted(set(options.kind) - set(KINDS))
    if wrong:
        top.error(f"a kind must be one of {', '.join(KINDS)}, got {', '.join(wrong)}")
    drawn = plain_table()
    for heading in ("kind", "name", "package", "what it is"):
        drawn.add_column(heading, overflow="fold")
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        for kind in (kind for kind in KINDS if kind in (options.kind or KINDS)):
            for line in listed(kind):
                drawn.add_row(*map(escape, line))
    Console().print(drawn)
    for warning in left_out:
        print(f"kernelopt: {warning.message}", file=sys.stderr)
    return 1 if left_out else 0


def run_certify(chosen: Sequence[Case], solvers: Sequence[str], path: Path | None) -> int:
    """Run the conformance suite, print its table and save its rows; return the exit status."""
    from kernelopt.testing import conformance
    from kernelopt.testing.conformance import save

    started = time.perf_counter()
    console = Console()
    rows: list[ConformanceRow] = []
    shown = progress_on_stderr("{task.completed} rows, {task.description}")
    with warnings.catch_warnings(), shown as progress:
        warnings.simplefilter("ignore")  # the rows hold what the warnings say
        bar = progress.add_task("", total=None)
        for row in conformance(chosen, solvers, lambda what: progress.update(bar, description=what)):
            rows.append(row)
            progress.advance(bar)
    console.print(verdict_table(rows))
    console.print(
        "error: of the claimed value, relative to the true one. gap: certified, from the solver's own point "
        "and multipliers. feas., compl.: largest violation, largest product of a multiplier with its slack."
    )
    counts = Counter(row.verdict for row in rows)
    summary = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    console.print(f"{time.perf_counter() - started:.0f} s; {len(rows)} rows: {summary}")
    if path is not None:
        save(rows, path)
        console.print(f"rows: {path}")
    if counts["false bracket"]:
        print("kernelopt: a certified bracket excludes the true value; please report it", file=sys.stderr)
        return 1
    return 0


def figure_path(top: argparse.ArgumentParser, out: Path) -> Path:
    """Return the path of the figure, or end with an error before the work begins."""
    if importlib.util.find_spec("matplotlib") is None:
        top.error('the figure needs matplotlib: pip install "kernelopt[plot]", or pass --no-figure')
    path = out / "kernelopt-demo.png" if out.is_dir() else out
    if path.suffix.lower() != ".png":
        top.error(f"--out must be a .png file or an existing folder, got {out}")
    if not path.parent.is_dir():
        top.error(f"--out must be in an existing folder, got {path.parent}")
    return path


def run_demo(points: int, random_state: int, figure: Path | None) -> int:
    """Run the demo, print its table and save its figure; return the exit status."""
    from kernelopt import demo

    started = time.perf_counter()
    console = Console()
    data = demo.load(points, random_state)
    console.print(
        f"breast cancer: {data.y.size} training points, {data.y_new.size} test points, "
        f"{len(data.names)} kernels with unit diagonal"
    )
    rows: list[DemoRow] = []
    work = list(demo.tasks(data, GAP_TOLERANCE))
    with progress_on_stderr("{task.completed}/{task.total} {task.description}") as progress:
        bar = progress.add_task("", total=len(work))
        for task in work:
            progress.update(bar, description=task.title)
            rows.append(task.run())
            progress.advance(bar)
    console.print(demo_table(rows))
    console.print(
        "value: omega, twice the risk, at trace n (2n with the ridge); for alignment <K, yy'> at |K| = 1. "
        "acc.: on the test points; for the subset, whose test points are unlabelled, by transduction. "
        "build, solve: seconds. SOC, SDP, QP: second-order, semidefinite, quadratic."
    )
    if figure is not None:
        demo.save_figure(rows, data.names, figure)
        console.print(f"figure: {figure}")
    gaps = [row.solution.gap for row in rows if row.solution is not None]
    console.print(f"{time.perf_counter() - started:.0f} s; largest certified gap {max(gaps):.1e}")
    if max(gaps) > GAP_TOLERANCE:
        print(f"kernelopt: a gap is above {GAP_TOLERANCE:g}", file=sys.stderr)
        return 1
    return 0


def progress_on_stderr(text: str) -> Progress:
    """Return a progress display on standard error, which is erased at the end."""
    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


COMMANDS = {"demo": demonstrate, "certify": certify, "list": list_installed}

if __name__ == "__main__":
    sys.exit(main())
