"""What a call with a time limit takes, for every formulation and method, and for the estimators.

Every cell is a call with `time_limit` on seeded synthetic data: a formulation of the catalogue with a method
that applies, or the `fit` of an estimator. Measured is the time of the processor from the call to its return,
with that of solvers in processes of their own: reading the problem, choosing a method and certificates are
part of it, and building the formulation is not. The limit is counted in these seconds too: others may use the
machine. The goal is the limit, a tenth of it, and half a second. Functions that numba compiles are compiled
beforehand, on small problems.

Every cell runs in a process of its own, which is killed after ten times the limit and twenty seconds. Its
memory is limited to `--memory`; sizes that a formulation or a method refuses are said in the table.

    python benchmarks/limits.py [--only lanckriet] [--points 100 500 2000] [--limits 0.05 0.5 2]
        [--memory 6] [--json limits.json [--keep]] [--write docs/methods.md]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from auto_grid import (
    data,
    of_functional,
    of_loss,
    of_margin,
    of_pairs,
    of_similarities,
    of_triplets,
    one_class,
    similarities,
    warm_up,
)
from rich.console import Console

import kernelopt as ko
from formulations import lanckriet, lp_norm, similarity, triplet_lp
from kernelopt import running
from kernelopt.methods.selection import applicable
from kernelopt.structure.structure import Structure

POINTS, LIMITS, KERNELS = (100, 500, 2000), (0.05, 0.5, 2.0), 3
ALLOWED_SHARE, ALLOWED_SECONDS = 0.1, 0.5  # beyond the limit
KILLED_AFTER = (10, 20.0)  # times the limit, and seconds
START, END = "<!-- table: benchmarks/limits.py -->", "<!-- end of the limits -->"
MARKS = {"no point": "e", "refused": "r", "killed": "k", "memory": "m"}
LEGEND = (
    "Seconds of the processor, by n / limit. No mark: bounds came back. e: an error that says what was "
    "missing. r: refused before anything is computed, since the size is predicted not to fit. m: more than "
    "the memory that the benchmark allows. k: killed. **Bold**: more than the limit, a tenth of it and 0.5 s."
)


def rank_one(n):
    """`lanckriet.rank_one` on the six features."""
    _, labels, _, X = data(n, KERNELS)
    return lanckriet.rank_one(X, labels, C=1.0)


def selection(n):
    """`feature_selection` with two widths on each of four features, and two triplets a point."""
    _, labels, _, X = data(n, KERNELS)
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(2.0)], 4)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X[:, :4])
    triplets = ko.sample_triplets(labels, 2 * n, random_state=0)
    return triplet_lp.feature_selection(grams, triplets, [*weak.groups, 4], gamma1=0.1, gamma2=0.02)


def indefinite_svm(n):
    """`indefinite_svm` on one similarity."""
    S, labels, _ = similarities(n, 1)
    return similarity.indefinite_svm(S, labels, rho=0.2)


def formulations():
    """Return a function of n for every formulation, by name."""
    found = {
        f"lanckriet.{name}": partial(lambda name, n: of_margin(getattr(lanckriet, name), n, KERNELS), name)
        for name in ("alignment", "hard_margin", "learned_tau", "soft_margin", "soft_margin_squared")
    }
    found |= {
        f"lanckriet.{name}": partial(
            lambda name, n: of_margin(getattr(lanckriet, name), n, KERNELS, C=1.0), name
        )
        for name in ("block_norm", "qcqp", "sdp")
    }
    found["lanckriet.margin"] = lambda n: of_margin(lanckriet.margin, n, KERNELS, C=1.0, tau=0.5)
    found["lanckriet.rank_one"] = rank_one
    losses = {"primal": ("hinge", {"p": 4 / 3}), "tikhonov": ("logistic", {"p": 3, "penalty": 0.5})}
    losses |= {
        "block_norm": ("squared_hinge", {"r": 1.5}),
        "elastic_net": ("squared_hinge", {"l1": 0.5, "l2": 0.5}),
    }
    for name, (loss, options) in losses.items():
        build = getattr(lp_norm, name)
        found[f"lp_norm.{name}"] = partial(
            lambda build, loss, options, n: of_loss(build, n, KERNELS, loss, **options), build, loss, options
        )
    found["lp_norm.non_isotropic"] = lambda n: of_pairs(n, KERNELS, "hinge")
    found["lp_norm.one_class"] = lambda n: one_class(n, KERNELS)
    near = {
        "single_kernel": "l1",
        "kernel_per_similarity": "frobenius",
        "restricted_spectral": "squared_frobenius",
    }
    for name, fidelity in near.items():
        found[f"similarity.{name}"] = partial(
            lambda name, fidelity, n: of_similarities(
                getattr(similarity, name), n, KERNELS, fidelity, "hinge"
            ),
            name,
            fidelity,
        )
    found["similarity.indefinite_svm"] = indefinite_svm
    found["triplet_lp.kernel_design"] = lambda n: of_triplets(n, KERNELS, "nonnegative")
    found["triplet_lp.kernel_design, psd"] = lambda n: of_triplets(n, KERNELS, "psd")
    found["triplet_lp.feature_selection"] = selection
    found["linear_functional.functional_strategy"] = lambda n: of_functional(n, KERNELS, "free")
    missing = set(ko.catalogue()) - set(found)
    if missing:
        raise SystemExit(f"formulations without a cell: {', '.join(sorted(missing))}")
    return dict(sorted(found.items()))


def estimators():
    """Return a function of n and the limit for the fit of every estimator, by name."""
    kernels = [ko.gaussian(width) for width in np.geomspace(0.5, 4.0, KERNELS)]

    def fit(model, target, n, limit):
        _, labels, targets, X = data(n, KERNELS)
        arguments = {"labels": (X, labels), "targets": (X, targets), "none": (X,)}[target]
        model(kernels, time_limit=limit).fit(*arguments)

    models = {"MKLClassifier": "labels", "MKLRegressor": "targets", "OneClassMKL": "none"}
    return {name: partial(fit, getattr(ko.estimators, name), target) for name, target in models.items()}


def seconds_of(process):
    """Return the seconds of the processor of a process, by its number, and of those that it has started."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = [
            child
            for path in Path(f"/proc/{process}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0.0
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(seconds_of, children))


def used():
    """Return the seconds of the processor of this process and of those that it has started."""
    children = seconds_of("self") - sum(os.times()[:2])
    return time.process_time() + max(0.0, children)


def measured(call, memory, pipe):
    """Send the seconds that a call takes and what came back."""
    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e9), int(memory * 1e9)))
    warnings.simplefilter("ignore")
    running.clock = used
    began, what = used(), ""
    try:
        call()
    except ko.SolverError as error:
        what, text = "no point", str(error)
    except ko.errors.MethodError as error:
        what, text = "refused", str(error)
    except MemoryError as error:
        what, text = "memory", str(error)
    pipe.send({"seconds": used() - began, "what": what} | ({"text": text} if what else {}))


def cell(call, limit, memory):
    """Return what a call in a process of its own takes; the process has what this one has computed."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=measured, args=(call, memory, theirs))
    process.start()
    theirs.close()
    factor, more = KILLED_AFTER
    killed = False
    while not ours.poll(0.05):
        if seconds_of(process.pid) > factor * limit + more:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
            break
    try:
        found = ours.recv()
    except EOFError:
        found = {"seconds": factor * limit + more, "what": "killed"}
    process.join()
    return found | {"met": found["seconds"] <= (1 + ALLOWED_SHARE) * limit + ALLOWED_SECONDS and not killed}


def of_formulation(name, build, n, chosen, take):
    """Measure every method that applies to a formulation on n points, in a process that has built it."""
    formulation = build(n)
    methods = [c.method.name for c in applicable(Structure(formulation.problem))]
    for method in sorted(methods):
        for limit in chosen.limits:
            call = partial(formulation.solve, method, time_limit=limit)
            take({"row": name, "method": method, "n": n, "limit": limit} | cell(call, limit, chosen.memory))


def of_estimator(name, fit, n, chosen, take):
    """Measure the fit of an estimator on n points."""
    data(n, KERNELS)
    for limit in chosen.limits:
        call = partial(fit, n, limit)
        take({"row": name, "method": "auto", "n": n, "limit": limit} | cell(call, limit, chosen.memory))


def run(chosen, console):
    """Measure the chosen cells, and return them with those that are kept, sorted by name."""
    rows = json.loads(chosen.json.read_text()) if chosen.keep else []

    def place(row):
        return row["row"], row["method"], row["n"], row["limit"]

    def take(row):
        rows[:] = sorted([*(other for other in rows if place(other) != place(row)), row], key=place)
        mark = "" if row["met"] else "  above the goal"
        console.print(
            f"{row['row']} {row['method']} n={row['n']} limit={row['limit']:g}: {row['seconds']:.2f} s "
            f"{row['what']}{mark}",
            highlight=False,
        )
        if chosen.json:
            chosen.json.write_text(json.dumps(rows, indent=1))

    work = [(of_formulation, *item) for item in formulations().items()]
    work += [(of_estimator, *item) for item in estimators().items()]
    for measure, name, make in work:
        if not any(part in name for part in chosen.only):
            continue
        for n in chosen.points:
            try:
                measure(name, make, n, chosen, take)
            except MemoryError as error:
                console.print(f"{name} n={n}: {error}", highlight=False)
            data.cache_clear()
            similarities.cache_clear()
    return rows


def table(rows):
    """Return the cells as a table in Markdown, with the share that met the goal."""
    columns = sorted({(row["n"], row["limit"]) for row in rows})
    lines = [
        "| | method | " + " | ".join(f"{n} / {limit:g}" for n, limit in columns) + " |",
        "|---" * (2 + len(columns)) + "|",
    ]
    for name, method in dict.fromkeys((row["row"], row["method"]) for row in rows):
        found = {(r["n"], r["limit"]): r for r in rows if (r["row"], r["method"]) == (name, method)}
        cells = []
        for column in columns:
            row = found.get(column)
            if row is None:
                cells.append("")
                continue
            text = f"{row['seconds']:.2f}" + (f" {MARKS[row['what']]}" if row["what"] else "")
            cells.append(text if row["met"] else f"**{text}**")
        lines.append(f"| `{name}` | {method} | " + " | ".join(cells) + " |")
    met = sum(row["met"] for row in rows)
    return "\n".join([*lines, "", f"{LEGEND} {met} of {len(rows)} cells meet it."])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--points", nargs="*", type=int, default=POINTS)
    parser.add_argument("--limits", nargs="*", type=float, default=LIMITS)
    parser.add_argument("--memory", type=float, default=6.0, help="GB that a cell may take")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the cells of --json that are not chosen")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    chosen = parser.parse_args()
    console = Console()
    warnings.simplefilter("ignore")
    warm_up(lambda build, method: build().solve(method, time_limit=20.0))
    rows = run(chosen, console)
    console.print(table(rows), highlight=False)
    if chosen.write:
        page = chosen.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        _, _, after = rest.partition(END)
        chosen.write.write_text(f"{before}{START}\n\n{table(rows)}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
