"""`kernelopt demo`: a formulation of each of the five papers on breast cancer data, side by side."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelopt.cli.output import Output, number
from kernelopt.running import Call

if TYPE_CHECKING:
    from kernelopt.cli.demo.rows import Row

GAP_TOLERANCE = 1e-5  # relative: of every solve of the demo, and of its exit status
HEADER = ("learned", "method", "value", "lower", "gap", "s", "score", "plain")
LEGEND = (
    "value: an upper bound of the optimum, which is at least lower; each formulation has its own objective. "
    "score: the accuracy on test points. plain: the score without learning a kernel, by the mean of the "
    "kernels, or by the similarity as it is. s: seconds."
)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the parser of the command."""
    demo = commands.add_parser(
        "demo",
        parents=[shared],
        help="learn kernels by a formulation of each of the five papers, with certified bounds",
        description="Learn kernels on scikit-learn's breast cancer data by one formulation of each of the "
        "five papers, print a table with certified bounds and the scores on test points, and save a figure "
        "of weights and scores. Takes less than a minute. Exit status: 0 if every gap is certified to 1e-5, "
        "1 if not, 2 on wrong use.",
    )
    demo.add_argument(
        "--out", type=Path, default=Path("kernelopt-demo.png"), help="the figure (PNG), or a folder for it"
    )
    demo.add_argument("--points", type=int, default=200, help="training points, 60 to 200 (default 200)")
    demo.add_argument("--random-state", type=int, default=0, help="seed of the split (default 0)")
    demo.add_argument("--no-figure", action="store_true", help="print the table only; needs no matplotlib")
    demo.set_defaults(run=run, parser=demo)


def run(options: argparse.Namespace) -> int:
    """Check the options, learn the kernels, print the table and save the figure; return the exit status."""
    wrong = options.parser.error
    if not 60 <= options.points <= 200:
        wrong(f"--points must be between 60 and 200, got {options.points}")
    if options.random_state < 0:
        wrong(f"--random-state must not be negative, got {options.random_state}")
    figure = None if options.no_figure else figure_path(options)
    from kernelopt.cli.demo import rows as work

    started, output = time.perf_counter(), Output(options.json)
    data = work.load(options.points, options.random_state)
    output.line(
        f"breast cancer: {data.y.size} training points, {data.y_new.size} test points, "
        f"{len(data.kernels)} kernels with unit diagonal"
    )
    rows: dict[str, Row] = {}
    call = Call()
    with closing(call), call:
        for title, learned in work.ROWS.items():
            call.stage = f"{len(rows) + 1} of {len(work.ROWS)}, {title}"
            rows[title] = learned(data, GAP_TOLERANCE)
    if call.interrupted:  # by a handler of the caller's own
        raise KeyboardInterrupt
    gaps = [row.solution.gap for row in rows.values() if row.solution is not None]
    output.table(HEADER, [cells(*item) for item in rows.items()], numbers=6)
    output.line(LEGEND)
    if figure is not None:
        from kernelopt.cli.demo.figure import save_figure

        save_figure(rows, list(data.kernels), figure)
        output.line(f"figure: {figure}")
    seconds = time.perf_counter() - started
    output.line(f"{seconds:.0f} s; largest certified gap {max(gaps):.1e}")
    output.document(
        {
            "kernels": list(data.kernels),
            "rows": [document(title, row) for title, row in rows.items()],
            "figure": figure and str(figure),
        }
    )
    if max(gaps) > GAP_TOLERANCE:
        print(f"kernelopt: a gap is above {GAP_TOLERANCE:g}", file=sys.stderr)
        return 1
    return 0


def figure_path(options: argparse.Namespace) -> Path:
    """Return the path of the figure, or end with an error before the work begins."""
    wrong, out = options.parser.error, options.out
    if importlib.util.find_spec("matplotlib") is None:
        wrong('the figure needs matplotlib: pip install "kernelopt[plot]", or pass --no-figure')
    path = Path(out / "kernelopt-demo.png" if out.is_dir() else out)
    if path.suffix.lower() != ".png":
        wrong(f"--out must be a .png file or an existing folder, got {out}")
    if not path.parent.is_dir():
        wrong(f"--out must be in an existing folder, got {path.parent}")
    return path


def cells(title: str, row: Row) -> list[str]:
    """Return a row as text."""
    lower, gap = (None, None) if row.solution is None else (row.solution.lower, row.solution.gap)
    return [
        title,
        row.method,
        number(row.value, "#.6g"),
        number(lower, "#.6g"),
        number(gap, ".0e"),
        number(row.seconds, ".2f"),
        number(row.score, ".3f"),
        number(row.plain, ".3f"),
    ]


def document(title: str, row: Row) -> dict[str, Any]:
    """Return a row for `--json`."""
    found = {"title": title, **vars(row)}
    solution = found.pop("solution")
    names = ("lower", "upper", "gap", "weights")
    return {**found, **({} if solution is None else {name: getattr(solution, name) for name in names})}
