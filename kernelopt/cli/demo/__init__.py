"""Learn kernels by a formulation of each of the five papers, with certified bounds.

Learn kernels on scikit-learn's breast cancer data by one formulation of each of the five papers, print a
table with certified bounds and the scores on test points, and save a figure of weights and scores. Takes
less than a minute. Exit status: 0 if every gap is certified to 1e-5, 1 if not, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelopt.cli.output import Output, check_out, say
from kernelopt.cli.usage import Parser
from kernelopt.running import user_call

if TYPE_CHECKING:
    from kernelopt.cli.demo.rows import Row

GAP_TOLERANCE = 1e-5  # relative: of every solve of the demo, and of its exit status
COLUMNS = {
    "learned": ("title", ""),
    "method": ("method", ""),
    "value": ("value", "#.6g"),
    "lower": ("lower", "#.6g"),
    "gap": ("gap", ".0e"),
    "s": ("seconds", ".2f"),
    "score": ("score", ".3f"),
    "plain": ("plain", ".3f"),
}
LEGEND = (
    "value: an upper bound of the optimum, which is at least lower; each formulation has its own objective. "
    "score: the accuracy on test points. plain: the score without learning a kernel, by the mean of the "
    "kernels, or by the similarity as it is. s: seconds."
)


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add, figure = parser.add_argument, Path("kernelopt-demo.png")
    add("--out", type=Path, default=figure, help="the figure (PNG), or a folder for it")
    add("--points", type=int, default=200, help="training points, 60 to 200 (default 200)")
    add("--random-state", type=int, default=0, help="seed of the split (default 0)")
    add("--no-figure", action="store_true", help="print the table only; needs no matplotlib")


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
    data = work.load(options.points, options.random_state, GAP_TOLERANCE)
    output.line(
        f"breast cancer: {data.y.size} training points, {data.y_new.size} test points, "
        f"{len(data.kernels)} kernels with unit diagonal"
    )
    rows: dict[str, Row] = {}
    with user_call() as call:
        for title, learned in work.ROWS.items():
            call.stage = f"{len(rows) + 1} of {len(work.ROWS)}, {title}"
            rows[title] = learned(data)
    largest = max(row.solution.gap for row in rows.values() if row.solution is not None)
    documents = [document(title, row) for title, row in rows.items()]
    output.rows(COLUMNS, documents, numbers=6)
    output.line(LEGEND)
    if figure is not None:
        save_figure(rows, list(data.kernels), figure)
        output.line(f"figure: {figure}")
    numba = f" (numba: {call.compiling:.0f} s, in no row; it compiles once on a machine)"
    numba = numba if call.compiling else ""
    output.line(f"{time.perf_counter() - started:.0f} s{numba}; largest certified gap {largest:.1e}")
    shown = figure and str(figure)
    output.document({"kernels": list(data.kernels), "rows": documents, "figure": shown})
    if largest > GAP_TOLERANCE:
        say(f"a gap is above {GAP_TOLERANCE:g}")
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
    check_out(options.parser, path)
    return path


def document(title: str, row: Row) -> dict[str, Any]:
    """Return a row for `--json`."""
    found = {"title": title, **vars(row)}
    solution = found.pop("solution")
    names = ("lower", "upper", "gap", "weights") if solution is not None else ()
    return found | {name: getattr(solution, name) for name in names}


def save_figure(rows: Mapping[str, Row], names: Sequence[str], path: Path) -> None:
    """Save a figure of the weights and the scores of the learned kernels, a line per formulation."""
    import numpy as np
    from matplotlib.figure import Figure

    from kernelopt.figures import STYLE, legend_below
    from kernelopt.plotting import plot_weights

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    found = {title.partition(":")[0]: row for title, row in rows.items() if row.solution is not None}
    solutions: dict[str, Any] = {authors: row.solution for authors, row in found.items()}
    weighted = {authors: s for authors, s in solutions.items() if np.size(s.weights) == len(names)}
    plot_weights(weighted, names, ax=left)
    places, scores, plain = range(len(found)), *np.array([[r.score, r.plain] for r in found.values()]).T
    right.hlines(places, plain, scores, color="0.6", linewidth=1.5, zorder=1)
    right.plot(plain, places, "o", mfc="white", color="0.3", label="without learning the kernel")
    right.plot(scores, places, "o", color=STYLE.dark, label="with the learned kernel")
    tuned = "RBF SVM, 5-fold CV"
    right.axvline(rows[tuned].score, color="0.3", linestyle="--", linewidth=1, label=tuned)
    right.set_yticks(places, [f"{a}\ngap {s.gap:.0e}" for a, s in solutions.items()], fontsize=8)
    right.set(ylim=(len(found) - 0.5, -0.5), xlabel="accuracy on test points", title="Scores")
    right.locator_params(axis="x", nbins=4)
    legend_below(right)
    figure.suptitle("Breast cancer data: a kernel by a formulation of each paper")
    figure.savefig(path, dpi=130)
