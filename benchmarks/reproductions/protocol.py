"""What the scripts of this folder share: data sets, cells of a study, the checkpoint, the file of results.

A study is a list of cells. A cell is a dict of plain values, such as a data set, a seed and a size, and a
function computes its numbers. Finished cells are lines of a JSON file beside the results, and a run that is
repeated with the same arguments goes on after them. The results are a JSON file with all cells, the tables,
one figure in words for each table of the paper, and the commit, machine and date.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn import datasets
from threadpoolctl import threadpool_limits

import kernelopt as ko

RESULTS = Path(__file__).with_name("results")
BUILT_IN = {  # what scikit-learn ships, for --quick
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "wdbc": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}
Cell = dict[str, Any]
Table = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """The experiments of one paper.

    Attributes
    ----------
    name : str
        Of the file of results.
    text : str
        The docstring of the script.
    needs : tuple of str
        The data sets of the full run.
    repetitions : int
        Of the full run.
    cells : function of (repetitions, quick)
        Returns the cells.
    measure : function of (cell, data sets)
        Returns the numbers of a cell, "gap" among them: the largest certified gap behind its numbers.
    summary : function of the finished cells
        Returns the tables, and one figure in words for each table of the paper.
    drawings : dict
        For each figure of the paper the end of its file's name, and a function of (finished cells, Figure).
    """

    name: str
    text: str
    needs: tuple[str, ...]
    repetitions: int
    cells: Callable[[int, bool], list[Cell]]
    measure: Callable[[Cell, Sets], dict[str, Any]]
    summary: Callable[[list[Cell]], tuple[list[Table], dict[str, str]]]
    drawings: dict[str, Callable[[list[Cell], Any], None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sets:
    """The data sets of a folder, or of scikit-learn where there is no folder."""

    folder: str | None

    def table(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows without a missing value, and their labels or targets."""
        if self.folder is None:
            return BUILT_IN[name](return_X_y=True)
        return read_table(self.folder, name)

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of NAME/NAME.npz."""
        with np.load(Path(str(self.folder), name, f"{name}.npz"), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def letters(self, name: str) -> tuple[list[str], np.ndarray]:
        """Return the rows of one-letter columns as strings, and the last column."""
        rows = read_rows(str(self.folder), name)
        return ["".join(row[:-1]) for row in rows], np.array([row[-1] for row in rows])


def read_rows(folder: str, name: str) -> list[list[str]]:
    """Return the rows of NAME/NAME.csv or NAME.csv.gz, without the head."""
    path = next(Path(folder, name).glob(f"{name}.csv*"))
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


@lru_cache
def read_table(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the complete rows of a table of numbers, and its last column."""
    rows = [row for row in read_rows(folder, name) if all(row)]
    return np.array([row[:-1] for row in rows], dtype=float), np.array([row[-1] for row in rows])


def signs(y: np.ndarray) -> np.ndarray:
    """Return labels of two classes as -1 and 1, the second class in sorted order being 1."""
    _, second = np.unique(y)
    return np.where(y == second, 1.0, -1.0)


def split(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of a random share of n points, and the others."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: round(share * n)], order[round(share * n) :]


def standardised(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the columns that vary on the training rows, with mean zero and deviation one there."""
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    varied = deviation > 0
    return (X[:, varied] - mean[varied]) / deviation[varied]


def solved(problem: Any, *args: Any, **options: Any) -> ko.Solution:
    """Return the solution of a formulation. Its gap is reported where it is above the tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        return problem.solve(*args, **options)


def column(cells: Iterable[Cell], key: str) -> np.ndarray:
    """Return the numbers of one key, over the cells that have it."""
    return np.array([cell[key] for cell in cells if cell.get(key) is not None], dtype=float)


def text_of(values: np.ndarray, digits: int = 1, factor: float = 1.0) -> str:
    """Return the mean and its standard error as text, a dash where there is no number."""
    if not values.size:
        return "–"
    mean = f"{round(factor * values.mean(), digits) + 0.0:.{digits}f}"  # + 0.0: without the sign of -0.0
    error = factor * values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else None
    return mean if error is None else f"{mean} ± {error:.{digits}f}"


def gap_of(cells: Iterable[Cell]) -> str:
    """Return the largest certified gap of cells as text."""
    return f"{column(cells, 'gap').max():.0e}"


def where(cells: Iterable[Cell], **wanted: Any) -> list[Cell]:
    """Return the cells with these values."""
    return [cell for cell in cells if all(cell.get(key) == value for key, value in wanted.items())]


def markdown(table: Table) -> str:
    """Return a table in Markdown."""
    head, rows = table["head"], table["rows"]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def run(study: Study, argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run a study from the command line, and return its results."""
    options = read_options(study, argv)
    if options.results:
        results = json.loads(options.results.read_text(encoding="utf-8"))
    else:
        cells = [
            cell
            for cell in study.cells(options.repetitions, options.quick)
            if not options.only
            or any(cell[key] in options.only for key in ("set", "experiment") if key in cell)
        ]
        finished = finish(study, cells, Sets(options.data), options)
        options.repetitions = max(cell["seed"] for cell in finished) + 1
        results = {
            "study": study.name,
            **circumstances(options),
            "figures": {},
            "tables": [],
            "cells": finished,
        }
    results["tables"], results["figures"] = study.summary(results["cells"])
    for table in results["tables"]:
        print(f"\n{table['title']}\n\n{markdown(table)}")
    output = options.results or options.output
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.figure:
        drawn(study, results["cells"], options.figure)
    return results


def drawn(study: Study, cells: list[Cell], path: Path) -> None:
    """Write the figures of a study."""
    from matplotlib.figure import Figure

    for end, draw in study.drawings.items():
        figure = Figure(figsize=(7.5, 6), layout="constrained")
        draw(cells, figure)
        figure.savefig(path.with_stem(path.stem + end), dpi=130)


def read_options(study: Study, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=study.text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets, NAME/NAME.csv and NAME/NAME.npz")
    parser.add_argument("--quick", action="store_true", help="seconds, on what scikit-learn ships")
    parser.add_argument("--repetitions", type=int, help=f"default {study.repetitions}, with --quick 2")
    parser.add_argument("--only", nargs="*", default=[], help="data sets or experiments")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes, -1 for one a core")
    parser.add_argument("--output", type=Path, help="JSON of results; cells are kept beside it, in .jsonl")
    parser.add_argument(
        "--finished", action="store_true", help="tables of the finished cells of --output alone"
    )
    parser.add_argument("--results", type=Path, help="tables and figures anew of this JSON; nothing is run")
    parser.add_argument("--figure", type=Path, help="PNG, PDF or SVG of the paper's figures")
    options = parser.parse_args(argv)
    if options.quick:
        options.data = None
    elif options.data is None and options.results is None:
        parser.error(f"pass --data FOLDER with {', '.join(study.needs)}; or --quick")
    if options.repetitions is None:
        options.repetitions = 2 if options.quick else study.repetitions
    return options


def finish(study: Study, cells: list[Cell], sets: Sets, options: argparse.Namespace) -> list[Cell]:
    """Return all cells with their numbers, those of the checkpoint and those that are computed now."""
    checkpoint = options.output.with_suffix(".jsonl") if options.output else None
    known = {}
    if checkpoint and checkpoint.exists():
        lines = checkpoint.read_text(encoding="utf-8").splitlines()
        known = {key_of(cell, cells[0]): cell for cell in map(json.loads, lines)}
    if options.finished:
        cells = [cell for cell in cells if key_of(cell, cells[0]) in known]
    left = [cell for cell in cells if key_of(cell, cells[0]) not in known]
    began = time.perf_counter()
    tasks = (joblib.delayed(measured)(study.measure, cell, sets) for cell in left)
    parallel = joblib.Parallel(options.n_jobs, return_as="generator_unordered")
    for count, cell in enumerate(parallel(tasks), 1):
        known[key_of(cell, cells[0])] = cell
        print(f"{count} of {len(left)}, {time.perf_counter() - began:.0f} s: {cell}"[:150], file=sys.stderr)
        if checkpoint:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            with checkpoint.open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")
    return [known[key_of(cell, cells[0])] for cell in cells]


def key_of(cell: Cell, pattern: Cell) -> str:
    """Return what tells cells apart: the values of the keys that every cell begins with."""
    return json.dumps({key: cell.get(key) for key in pattern})


def measured(measure: Callable[[Cell, Sets], dict[str, Any]], cell: Cell, sets: Sets) -> Cell:
    """Return a cell with its numbers and the processor seconds that they took, on one thread of BLAS."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.errors.ConditionWarning)  # triplets that contradict each other
        began = time.process_time()
        found = measure(cell, sets)
        return cell | found | {"seconds": round(time.process_time() - began, 3)}


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """Return the commit, the machine, the date, the versions and the size of a run."""
    folder = Path(__file__).parent
    command = [shutil.which("git") or "git", "rev-parse", "HEAD"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    commit = said.stdout.strip()
    return {
        "commit": commit or "unknown",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {name: __import__(name).__version__ for name in ("numpy", "scipy", "sklearn", "cvxpy")},
        "repetitions": options.repetitions,
        "quick": options.quick,
    }
