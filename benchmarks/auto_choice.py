"""Whether "auto" takes the fastest method, and whether the predicted seconds are right.

Every cell of a grid is a formulation on seeded synthetic data, with its number of points n, of kernels m
and its loss. Each method that applies solves it to a certified gap of 1e-5 and no further, unless it is
predicted to take more than 20 times as long as the one predicted fastest. Measured is the processor time of
the whole call `formulation.solve(method)`, certification and all threads included, since other processes
disturb it less than the time of a clock. The best method in hindsight is the fastest that met the tolerance.

Runs of less than half a second are made twice, and the faster one counts.

The functions that numba compiles are compiled beforehand, on small problems, and not counted: a process
pays for them once.

Three numbers are printed at the end: the total time of "auto" over the total of the best methods (the goal
is 1.5); the worst cell (3), of those where "auto" takes more than 0.1 s and of all; and the share of the
predictions that are right to a factor of four (90 %), of the first methods and of all that were run to an
end of their own. In cells of a few hundredths of a second "auto" prefers "exact", whose weights are the most
precise, to methods that are 0.02 s faster.

    python benchmarks/auto_choice.py [--quick] [--only lp_norm] [--limit 60] [--json auto_choice.json]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from auto_grid import grid, warm_up
from rich.console import Console
from rich.table import Table

from kernelopt.methods.selection import applicable
from kernelopt.structure.structure import Structure

TOL = 1e-5
HOPELESS = 20.0  # times the prediction of the fastest, beyond which a method is not run
LATE = 0.9  # share of the time limit from which a call that missed the tolerance was ended by it
TOTAL, WORST, RIGHT, FACTOR = 1.5, 3.0, 0.9, 4.0  # the goals
NOISY = 0.5  # seconds up to which a run is repeated: what else the machine does slows it by some 10 ms
WARMING = 1.0  # seconds a method may take on a problem that is solved beforehand, beside the compilation
SHORT = 0.1  # seconds of "auto", up to which a cell is too short for the goal of the worst


@dataclass
class Run:
    """A method on a cell: predicted and measured seconds, and the certified gap."""

    method: str
    predicted: float
    measured: float = float("nan")
    gap: float = float("inf")
    iterations: int | None = None
    ended: bool = False  # by itself, not by the time limit
    failure: str = ""

    @property
    def good(self):
        """Whether it met the tolerance."""
        return self.gap <= TOL

    @property
    def off(self):
        """Measured over predicted seconds."""
        return self.measured / self.predicted


@dataclass
class Cell:
    """A problem with the runs of its methods, in the order of "auto", and the time of "auto"."""

    name: str
    runs: list[Run] = field(default_factory=list)
    auto: float = float("nan")
    auto_gap: float = float("inf")

    @property
    def best(self):
        """The fastest run that met the tolerance, None if none did."""
        return min((run for run in self.runs if run.good), key=lambda run: run.measured, default=None)

    @property
    def ratio(self):
        """The time of "auto" over the best; 1 where no method met the tolerance."""
        return self.auto / self.best.measured if self.best else 1.0


def timed(build, method, limit, predicted=float("nan")):
    """Return the run of a method on a formulation, the faster of two where it is short."""
    first = once(build(), method, limit, predicted)
    if first.measured > NOISY:
        return first
    return min(first, once(build(), method, limit, predicted), key=lambda run: run.measured)


def once(formulation, method, limit, predicted):
    """Return a run of a method on a formulation."""
    run = Run(method, predicted)
    started, clock = processor_seconds(), time.perf_counter()
    try:
        solution = formulation.solve(method, tol=TOL, time_limit=limit)
        run.gap, run.iterations = solution.gap, solution.iterations
    except Exception as error:  # one cell must not end the others
        run.failure = f"{type(error).__name__}: {error}"
    run.measured = processor_seconds() - started
    late = time.perf_counter() - clock >= LATE * limit and not run.good
    run.ended = not late and not run.failure
    return run


def processor_seconds():
    """Return the processor time of this process and of those that it started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def measured(name, build, limit):
    """Run the methods of a cell."""
    cell = Cell(name)
    problem = build().problem
    found = applicable(Structure(problem))
    for candidate in found:
        name, seconds = candidate.method.name, candidate.seconds
        worth = seconds <= HOPELESS * found[0].seconds
        cell.runs.append(timed(build, name, limit, seconds) if worth else Run(name, seconds))
    first = cell.runs[0]
    if first.good and first.measured > 1:  # "auto" would do the same once more
        cell.auto, cell.auto_gap = first.measured, first.gap
    else:
        auto = timed(build, "auto", limit)
        cell.auto, cell.auto_gap = auto.measured, auto.gap
    return cell


def row(cell):
    """Return the row of a cell: each method as measured / predicted seconds, * where it met the tolerance."""
    runs = [
        f"{r.method} {r.measured:.2g}/{r.predicted:.2g}{'*' if r.good else f' ({r.gap:.0e})'}"
        if np.isfinite(r.measured)
        else f"{r.method} -/{r.predicted:.2g}"
        for r in cell.runs
    ]
    best = cell.best.method if cell.best else "none"
    return [cell.name, best, f"{cell.auto:.3g}", f"{cell.ratio:.2f}", f"{cell.auto_gap:.0e}", ", ".join(runs)]


def summary(cells):
    """Return the lines on the three goals."""
    solved = [cell for cell in cells if cell.best]
    auto, best = sum(cell.auto for cell in solved), sum(cell.best.measured for cell in solved)
    worst = max(solved, key=lambda cell: cell.ratio)
    long = max((cell for cell in solved if cell.auto > SHORT), key=lambda cell: cell.ratio, default=None)
    first = [run for cell in cells for run in cell.runs[:1] if run.ended]
    every = [run for cell in cells for run in cell.runs if run.ended]
    shares = [np.mean([1 / FACTOR <= run.off <= FACTOR for run in runs]) for runs in (first, every)]
    missed = [cell.name for cell in solved if cell.auto_gap > TOL]
    return [
        f"{len(cells)} cells, {len(cells) - len(solved)} of them solved to {TOL:g} by no method",
        f"total of auto over total of the best: {auto / best:.2f} (goal {TOTAL})",
        f"worst cell above {SHORT:g} s: {f'{long.ratio:.2f}, {long.name}' if long else 'none'} "
        f"(goal {WORST}); of all cells: {worst.ratio:.2f}, {worst.name}, {worst.auto:.2g} s",
        f"predictions within a factor of {FACTOR:g}: {shares[0]:.0%} of the chosen methods, "
        f"{shares[1]:.0%} of all (goal {RIGHT:.0%})",
        f"cells in which auto missed the tolerance that a method met: {', '.join(missed) or 'none'}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the cells of a few seconds")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a method may take")
    parser.add_argument("--json", help="file to write")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    console, cells = Console(width=220), []
    warm_up(partial(timed, limit=WARMING))
    for name, build in grid(chosen.quick):
        if chosen.only in name:
            cells.append(measured(name, build, chosen.limit))
            console.print("  ".join(row(cells[-1])), highlight=False, soft_wrap=True)
            if chosen.json:
                Path(chosen.json).write_text(json.dumps([asdict(cell) for cell in cells], indent=1))
    table = Table(title="processor seconds, measured/predicted; * met the tolerance")
    for column in ("cell", "best", "auto", "ratio", "gap", "methods in the order of auto"):
        table.add_column(column, justify="right" if column in ("auto", "ratio", "gap") else "left")
    for cell in cells:
        table.add_row(*row(cell))
    console.print(table)
    for line in summary(cells):
        console.print(line, highlight=False)


if __name__ == "__main__":
    main()
