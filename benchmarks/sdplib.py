"""What solvers claim on SDPLIB, what is proved about it, and what the proof costs.

A semidefinite programme of the library is read from its file, solved by a solver through cvxpy, and certified
from the values and dual values that the solver has left. Every solver runs in a process of its own and may
take `--limit` seconds. Measured is processor time: of `problem.solve(solver=...)`, with cvxpy's compilation,
and of `certify(problem)`. The goal is a certificate in a tenth of the solver's time.

The claimed gap is |p - d| / max(1, |p|), from the solver's own primal and dual objective values p and d. The
proved gap is the gap of the certificate. Where the dual has no interior point, there is no lower bound. The
problem is then certified again for |x_i| <= R, R = 1000 max(1, max_i |x_i|) at the feasible point: the table
says so by a star, and the bound holds if an optimum lies in that box.

`--vsdp` is the table of VSDP 2020 for the library (its columns name, sname, fL and fU, fp = -c'x), from the
sources of its manual. Its bounds are printed beside ours.

    python benchmarks/sdplib.py --data DIR [--quick] [--only truss] [--solver SCS] [--limit 120] [--rows 300]
        [--vsdp table.csv] [--output sdplib.json] [--figure sdplib.png]
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import platform
import time
import warnings
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table

import kernelopt as ko

SOLVERS = ("CLARABEL", "SCS", "CVXOPT", "MOSEK")
QUICK = ("truss1", "truss4", "control1", "hinf1", "infd1", "infp1")
GOAL, RADIUS, REPEATS = 0.1, 1e3, 2
EXACT, LEAST = 1e-16, 1e-12  # what a gap of zero is drawn as, and the least gap that is drawn
COLUMNS = (
    "problem",
    "solver",
    "status",
    "claimed",
    "seconds",
    "certificate",
    "share",
    "lower",
    "upper",
    "gap",
)


@dataclass
class Row:
    """What a solver claims about a problem, and what is proved; seconds of the processor."""

    problem: str
    solver: str
    published: str
    status: str = "no answer"
    value: float = float("nan")
    claimed: float = float("nan")  # relative gap of the solver's own objective values
    seconds: float = float("nan")
    certificate: float = float("nan")
    lower: float = -float("inf")
    upper: float = float("inf")
    gap: float = float("inf")
    assumed: float = float("inf")  # the bound of |x_i| that the lower bound assumes
    reason: str = ""

    @property
    def share(self):
        """Seconds of the certificate over those of the solver."""
        return self.certificate / self.seconds


def measured(path, solver, published):
    """Solve and certify a problem by one solver, in this process."""
    warnings.simplefilter("ignore")
    row, problem = Row(path.name.partition(".")[0], solver, published), ko.read_sdpa(path)
    row.seconds = timed(lambda: attempt(problem, solver, row))
    row.value = float("nan") if problem.value is None else float(problem.value)
    row.claimed = claimed(problem)
    bounds = None
    for _ in range(REPEATS):
        found = certified(problem, row, bounds)
    if found.lower == -np.inf and found.point and "unbounded" not in row.status:
        ((x, point),) = found.point.items()
        row.assumed = RADIUS * max(1.0, float(np.abs(point).max()))
        certified(problem, row, {x: (-row.assumed, row.assumed)})
    return row


def attempt(problem, solver, row):
    """Run the solver; a failure is its status."""
    try:
        problem.solve(solver=solver)
        row.status = problem.status
    except (cp.SolverError, ValueError, ArithmeticError) as error:
        row.status = type(error).__name__


def certified(problem, row, bounds):
    """Certify what the solver has left, and note the bounds and the least time so far."""
    started = time.process_time()
    found = ko.certify(problem, bounds=bounds)
    row.certificate = float(np.fmin(row.certificate, time.process_time() - started))
    row.lower, row.upper, row.gap, row.reason = found.lower, found.upper, found.gap, found.reason
    return found


def timed(run):
    """Return the processor time of a call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def claimed(problem):
    """Return |p - d| / max(1, |p|) with p = c'x and d = -sum_k <F_k(0), Z_k>, F_k the matrix of block k.

    Of a diagonal block, an inequality, cvxpy keeps -F_k(0).
    """
    (x,) = problem.variables()
    if x.value is None or any(c.dual_value is None for c in problem.constraints):
        return float("nan")
    primal, point = float(problem.objective.args[0].value), x.value
    x.value = np.zeros(x.shape)
    signs = [-1 if isinstance(c, cp.constraints.PSD) else 1 for c in problem.constraints]
    parts = [np.sum(c.expr.value * c.dual_value) for c in problem.constraints]
    dual = float(np.dot(signs, parts))
    x.value = point
    return float(abs(primal - dual) / max(1.0, abs(primal)))


def send(path, solver, published, sender):
    """Send a row to the process that waits for it."""
    sender.send(measured(path, solver, published))


def limited(path, solver, published, limit):
    """Return the row of a solver that runs in a process of its own, at most `limit` seconds of the clock."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=send, args=(path, solver, published, sender))
    process.start()
    sender.close()  # the end of the process is then the end of the pipe
    row = Row(path.name.partition(".")[0], solver, published, status=f"more than {limit:g} s")
    if receiver.poll(limit):
        try:
            row = receiver.recv()
        except EOFError:
            row.status = "the process ended"
    process.kill()
    process.join()
    return row


def listed(chosen):
    """Return the paths of the chosen problems with their published optima."""
    with (chosen.data / "optima.csv").open() as file:
        entries = list(csv.DictReader(file))
    found = []
    for entry in entries:
        name = entry["problem"]
        wanted = name in QUICK if chosen.quick else int(entry["rows"]) <= chosen.rows
        if wanted and chosen.only in name:
            found.append((chosen.data / f"{name}.dat-s", entry["published_optimum"]))
    return found


def published_bounds(path):
    """Return VSDP's bounds of each problem, the narrowest over its solvers; its fL and fU bound -c'x."""
    found = {}
    if path is not None:
        with path.open() as file:
            for entry in csv.DictReader(file):
                lower, upper = -float(entry["fU"] or "nan"), -float(entry["fL"] or "nan")
                old = found.get(entry["name"], (np.nan, np.nan))
                found[entry["name"]] = (np.fmax(old[0], lower), np.fmin(old[1], upper))
    return found


def shown(rows, vsdp):
    """Return the table of all rows."""
    table = Table(title="seconds of the processor; * for |x_i| <= R")
    for name in (*COLUMNS, "published", *(("VSDP's lower", "VSDP's upper") if vsdp else ())):
        table.add_column(name, justify="left" if name in ("problem", "solver", "status") else "right")
    for row in rows:
        star = "*" if np.isfinite(row.assumed) else ""
        numbers = [f"{row.seconds:.3g}", f"{row.certificate:.3g}", f"{row.share:.2f}"]
        bounds = [f"{row.lower:.9g}{star}", f"{row.upper:.9g}", f"{row.gap:.0e}", row.published]
        theirs = [f"{bound:.9g}" for bound in vsdp.get(row.problem, (np.nan, np.nan))] if vsdp else []
        table.add_row(row.problem, row.solver, row.status, f"{row.claimed:.0e}", *numbers, *bounds, *theirs)
    return table


def summary(rows, vsdp):
    """Return a line for each solver, and one beside VSDP."""
    lines = []
    for solver in dict.fromkeys(row.solver for row in rows):
        own = [row for row in rows if row.solver == solver and np.isfinite(row.certificate)]
        free = [row for row in own if np.isinf(row.assumed)]
        proved = sum(row.gap <= 1e-6 for row in free)
        refuted = [row.problem for row in own if row.status == "optimal" and row.lower == row.upper == np.inf]
        wrong = [
            r.problem for r in own if r.status == "optimal" and not r.lower - 1 <= r.value <= r.upper + 1
        ]
        share = np.median([row.share for row in own]) if own else np.nan
        cheap = sum(row.share <= GOAL for row in own)
        lines.append(
            f"{solver}: {len(own)} problems, {sum(r.status == 'optimal' for r in own)} claimed optimal, "
            f"{proved} proved to 1e-6, {sum(r.lower > -np.inf for r in free)} with a lower bound without R; "
            f"certificate over solver {share:.2f} in the median, {cheap} of {len(own)} at most {GOAL:g}"
            + (f"; claimed an optimum where there is none: {', '.join(refuted)}" if refuted else "")
            + (f"; values outside of the bounds by more than 1: {', '.join(wrong)}" if wrong else "")
        )
    if vsdp:
        names = [name for name in vsdp if any(row.problem == name for row in rows)]
        theirs = [name for name in names if vsdp[name][0] > -np.inf]
        ours = [
            name
            for name in names
            if any(r.lower > -np.inf and np.isinf(r.assumed) for r in rows if r.problem == name)
        ]
        lines.append(
            f"lower bounds without R on {len(names)} problems: VSDP {len(theirs)}, "
            f"kernelopt {len(ours)}; only VSDP: {', '.join(sorted(set(theirs) - set(ours))) or 'none'}; "
            f"only kernelopt: {', '.join(sorted(set(ours) - set(theirs))) or 'none'}"
        )
    return lines


def draw(rows, path):
    """Draw claimed against proved gaps; above the diagonal a solver claims more than its answer proves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
    for marker, solver in zip("osD^", dict.fromkeys(row.solver for row in rows), strict=False):
        own = [r for r in rows if r.solver == solver and r.claimed >= 0 and np.isinf(r.assumed)]
        x = [max(r.claimed, LEAST) for r in own]
        y = [min(max(r.gap, LEAST), 10.0) for r in own]
        ax.plot(x, y, marker, label=solver, alpha=0.7, markersize=7, linestyle="none")
    ax.plot([LEAST, 10], [LEAST, 10], color="0.6", linewidth=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="gap that the solver claims", ylabel="gap that is proved")
    ax.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1.0, 10.0], ["1e-12", "1e-9", "1e-6", "1e-3", "1", "none"])
    ax.set_title("SDPLIB: what solvers claim, and what their answers prove")
    ax.legend()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.dat-s and optima.csv")
    parser.add_argument("--quick", action="store_true", help="six small problems")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--rows", type=int, default=300, help="the most rows of a problem")
    parser.add_argument("--solver", action="append", help="a solver; by default all that are installed")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a solver and its certificate")
    parser.add_argument("--vsdp", type=Path, help="the table of VSDP")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--figure", type=Path, help="PNG file to write")
    chosen = parser.parse_args()
    solvers = chosen.solver or [name for name in SOLVERS if name in cp.installed_solvers()]
    console, vsdp, rows = Console(width=220), published_bounds(chosen.vsdp), []
    for path, published in listed(chosen):
        for solver in solvers:
            row = limited(path, solver, published, chosen.limit)
            rows.append(row)
            values = [f"{f.name} {getattr(row, f.name)}" for f in fields(Row)[3:]]
            console.print(row.problem, solver, ", ".join(values), highlight=False, soft_wrap=True)
            if chosen.output:
                about = {
                    "date": date.today().isoformat(),
                    "machine": platform.processor() or platform.machine(),
                }
                text = json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1)
                chosen.output.write_text(text)
    console.print(shown(rows, vsdp))
    for line in summary(rows, vsdp):
        console.print(line, highlight=False)
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
