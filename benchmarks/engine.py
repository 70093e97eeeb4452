"""The goals of method="newton", against the peers that anybody could use instead.

Every time is that of the user's whole call, `lp_norm.primal(K, y, p=p).solve("newton", tol=...)`, from the
array or the points to the float64 certificate, whose gap is listed. It is compared with that of a peer on the
same kernels in the same run; `mkl_problems.py` describes the kernels and `mkl_peers.py` the peers. Hinge loss
with C = 1.

* P1 p = 1 to 1e-3 and P2, P3 p = 4/3, 2, 4 to 1e-5, n = 2000, M = 50, against libsvm and the analytic update:
  P2 on independent kernels ("subsets"), P3 on kernels that span few dimensions ("widths").
* P6 1e-5 from a float64 array, against the same kernels rounded to a float32 array: what float64 costs.
* P7 p = 1 to 1e-2, n = 1000, M = 50, against SimpleMKL's algorithm, from the array and from the points.
* P8 p = 2 to 1e-3, n = 2000, M = 50, against EasyMKL of MKLpy (of another objective, and not certified).
* P9 p = 1 to 1e-6, n = 400, M = 10, against conic solvers through cvxpy. `error` is the distance of their
  value from ours.
* P12 machines trained until 1e-4, and P13 passes over the M n^2 entries until 1e-3, for all p.

Times are seconds of the processor on one thread, and of ours the median of several. Each run is a process of
its own, and MB is the peak of its resident memory, its matrices included. ">=": the peer had not
met the gap when its time was up. A peer that is not installed is named as such, and has no row of figures.
MKLpy needs torch: install both in an environment of their own and give its interpreter.

    python benchmarks/engine.py [--goals P1 P9] [--repeats 3] [--cap 90] [--easymkl-python PATH]
        [--points 2000] [--output engine.json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from mkl_peers import conic, easymkl, libsvm_loop, reduced_gradient
from mkl_problems import engine, first_below, in_process
from rich.console import Console
from rich.table import Table

NORMS = (1.0, 4 / 3, 2.0, 4.0)
LIMIT = 150.0  # seconds that a run of ours may take
TIGHTEST = {1.0: 1e-3}  # gap to which the loop around libsvm is run at this p; at others 1e-5


@dataclass(frozen=True)
class Cell:
    """One comparison: a goal on `quantity`, which is "ratio", "solves" or "passes"."""

    goal: str
    family: str
    source: str
    n: int
    m: int
    p: float
    tol: float
    peer: str
    wanted: float | None
    quantity: str = "ratio"


def cells(n):
    """Return the cells of all goals; the larger ones have n points."""
    found = [
        Cell("P1", "widths", "array", n, 50, 1.0, 1e-3, "libsvm loop", 100),
        Cell("P1", "subsets", "array", n, 50, 1.0, 1e-3, "libsvm loop", 40),
    ]
    for goal, family, ratios in (("P2", "subsets", (15, 8, 5)), ("P3", "widths", (40, 20, 12))):
        for p, ratio in zip(NORMS[1:], ratios, strict=True):
            found.append(Cell(goal, family, "array", n, 50, p, 1e-5, "libsvm loop", ratio))
    for p in NORMS:
        found.append(Cell("P6", "subsets", "array", n, 50, p, 1e-5, "float32 array", 1.1))
    for source, ratio in (("array", 300), ("points", 1000)):
        found.append(Cell("P7", "widths", source, n // 2, 50, 1.0, 1e-2, "reduced gradient", ratio))
    found.append(Cell("P8", "widths", "array", n, 50, 2.0, 1e-3, "EasyMKL", 15))
    for solver, ratio in (("CLARABEL", 1000), ("SCS", None), ("CVXOPT", None)):
        found.append(Cell("P9", "widths", "array", n // 5, 10, 1.0, 1e-6, solver, ratio))
    for family in ("widths", "subsets"):
        for p in NORMS:
            found.append(Cell("P12", family, "array", n, 50, p, 1e-4, "libsvm loop", 6, "solves"))
    for family in ("widths", "subsets"):
        for p in NORMS:
            found.append(Cell("P13", family, "array", n, 50, p, 1e-3, "libsvm loop", 1.5, "passes"))
    return found


@dataclass
class Runs:
    """The runs of a session, each made once."""

    repeats: int
    cap: float
    python: str
    console: Console
    done: dict = field(default_factory=dict)

    def of(self, run, *arguments):
        """Return what a run finds in a process of its own."""
        key = (run.__name__, *arguments)
        if key not in self.done:
            with self.console.status(" ".join(map(str, key))):
                self.done[key] = in_process(run, *arguments)
        return self.done[key]

    def ours(self, cell, dtype="float64"):
        """Return the run of the engine in a cell."""
        problem = (cell.family, cell.source, cell.n, cell.m, cell.p, cell.tol)
        return self.of(engine, *problem, self.repeats, LIMIT, None, dtype)

    def peer(self, cell):
        """Return seconds, gap and a note of the peer, and whether its time was up."""
        problem = (cell.family, cell.n, cell.m)
        if cell.peer == "float32 array":
            return self.ours(cell, "float32")
        if cell.peer == "EasyMKL":
            return self.of(easymkl, self.python, *problem)
        if cell.peer == "libsvm loop":
            tol = TIGHTEST.get(cell.p, 1e-5)
            return first_below(self.of(libsvm_loop, *problem, cell.p, tol, self.cap), cell.tol)
        if cell.peer == "reduced gradient":
            return first_below(self.of(reduced_gradient, *problem, cell.tol, self.cap), cell.tol)
        return self.of(conic, cell.peer, *problem, self.cap)


def compare(cell, ours, peer):
    """Return the figures of a cell as one flat record."""
    row = vars(cell) | {f"own {name}": value for name, value in ours.items()}
    row |= {f"peer {name}": value for name, value in peer.items()}
    if "seconds" in ours and "seconds" in peer:
        row["ratio"] = peer["seconds"] / ours["seconds"]
        if cell.peer == "float32 array":
            row["ratio"] = 1 / row["ratio"]
        if "value" in peer and cell.peer != "float32 array":
            row["error"] = abs(peer["value"] - ours["value"]) / abs(ours["value"])
    reached = row.get("ratio") if cell.quantity == "ratio" else ours.get(cell.quantity)
    at_most = cell.quantity != "ratio" or cell.peer == "float32 array"
    if cell.wanted is not None and reached is not None:
        met = reached <= cell.wanted if at_most else reached >= cell.wanted
        if met or not (cell.quantity == "ratio" and peer.get("capped")):  # else the cap leaves it open
            row["met"] = met and ours["gap"] <= cell.tol
    return row


def printed(row):
    """Return the entries of a row of the table."""

    def number(name, form):
        value = row.get(name)
        return "-" if value is None else format(value, form)

    bound = ">=" if row.get("peer capped") else ""
    theirs = f"{bound}{row['peer seconds']:.3g} s" if "peer seconds" in row else row.get("peer note", "-")
    sign = "<=" if row["quantity"] != "ratio" or row["peer"] == "float32 array" else ">="
    wanted = "-" if row["wanted"] is None else f"{row['quantity']} {sign} {row['wanted']:g}"
    return [
        f"{row['family']}, {row['source']}, n={row['n']}",
        f"{row['p']:.2f}",
        f"{row['tol']:.0e}",
        number("own seconds", ".3g"),
        number("own gap", ".0e"),
        number("own solves", "d"),
        number("own passes", ".2f"),
        number("own peak MB", ".0f"),
        number("own provider", ""),
        row["peer"],
        theirs,
        f"{bound}{row['ratio']:.3g}x" if "ratio" in row else "-",
        wanted,
        {True: "yes", False: "no"}.get(row.get("met"), "-"),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--goals", nargs="*")
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cap", type=float, default=90.0)
    parser.add_argument("--easymkl-python", default=sys.executable)
    parser.add_argument("--output", type=Path, default=Path("engine.json"))
    chosen = parser.parse_args()
    console, rows = Console(width=170), []
    runs = Runs(chosen.repeats, chosen.cap, chosen.easymkl_python, console)
    asked = [cell for cell in cells(chosen.points) if not chosen.goals or cell.goal in chosen.goals]
    for goal in dict.fromkeys(cell.goal for cell in asked):
        table = Table(title=goal)
        columns = ("kernels", "p", "asked", "s", "gap", "solves", "passes", "MB", "provider")
        for column in (*columns, "peer", "its seconds", "ratio", "wanted", "met"):
            table.add_column(column, no_wrap=column != "its seconds")
        for cell in asked:
            if cell.goal == goal:
                rows.append(compare(cell, runs.ours(cell), runs.peer(cell)))
                table.add_row(*printed(rows[-1]))
                chosen.output.write_text(json.dumps(rows, indent=1))
        console.print(table)
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
