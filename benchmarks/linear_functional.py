"""Seconds and memory of the linear functional strategy, next to l_p MKL and kernel ridge on the average.

Two classes in thirty dimensions, the dictionary of the paper (ten Gaussians and three polynomials on all
features and on each) cut to M kernels. Training seconds from the points on, kernels included: the strategy
with one and two jobs (alpha = 0.005, direct route), l_p MKL (p = 4/3, C = 100, "interleaved" to a gap of
1e-3), and the peer, scikit-learn's KernelRidge on the plain average of the same kernels. A second table has
the peak memory beyond the data at n = 2000, M = 200. Every cell is a process of its own, with one thread of
BLAS; read the ratios, not the seconds.

    python benchmarks/linear_functional.py [--points 200 2000] [--kernels 13 130 403]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

PEER = "kernel ridge on the average"
LFS, JOBS, MKL = "LFS", "LFS, 2 jobs", "l_p MKL, p = 4/3"
METHODS = (PEER, LFS, JOBS, MKL)
WIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
ALPHA, C, LIMIT = 0.005, 100.0, 120.0


def data(points, kernels):
    """Grams of the first kernels of the dictionary, and labels."""
    from sklearn.datasets import make_classification

    import kernelopt as ko

    X, y = make_classification(points, 30, n_informative=10, n_redundant=5, flip_y=0.05, random_state=0)
    base = [ko.gaussian(w) for w in WIDTHS] + [ko.polynomial(k) for k in (1, 2, 3)]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    dictionary = [*base, *ko.per_feature(base, 30)][:kernels]
    return ko.Grams.from_kernels(dictionary, X).normalize("trace"), np.where(y == 1, 1.0, -1.0)


def average(grams):
    """The plain average of kernels that are not kept."""
    total = np.zeros(grams.shape[1:])
    for i in range(len(grams)):
        total += grams.block(slice(0, grams.n_points)).gram(i)
    return total / len(grams)


def train(name, grams, y):
    """Train once; return a note."""
    import kernelopt as ko
    from formulations import linear_functional, lp_norm

    if name == PEER:
        from sklearn.kernel_ridge import KernelRidge

        KernelRidge(alpha=len(y) * ALPHA, kernel="precomputed").fit(average(grams), y)
        return ""
    if name == MKL:
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = lp_norm.primal(grams, y, p=4 / 3, loss=ko.hinge(C)).solve(
            "interleaved", tol=1e-3, time_limit=LIMIT
        )
        return f"gap {solution.gap:.0e}"
    strategy = linear_functional.functional_strategy(
        grams, y, regularization=ALPHA, n_jobs=2 if name == JOBS else 1
    )
    return f"rank {strategy.solve_directly().rank}"


def run(name, points, kernels, pipe):
    """Run one cell and send back its seconds, the memory beyond the data and a note."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        train(name, *data(60, 13))  # imports, and compiled loops
        grams, y = data(points, kernels)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        clock = time.perf_counter()
        note = train(name, grams, y)
        seconds = time.perf_counter() - clock
    pipe.send((seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3, note))


def cell(name, points, kernels):
    """Seconds, MB beyond the data, and a note, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(name, points, kernels, theirs))
    process.start()
    theirs.close()
    try:
        seconds, memory, note = ours.recv()
    except EOFError:
        seconds, memory, note = float("nan"), float("nan"), "failed"
    process.join()
    return {"seconds": seconds, "megabytes": memory, "note": note}


def show(console, title, cells):
    """One table: a row per size and method, with the ratio to the peer."""
    shown = Table(title=title)
    for column in ("n", "M", "method", "seconds", "of the peer's", "MB", "all matrices, MB", ""):
        shown.add_column(column, justify="left" if column in ("method", "") else "right", no_wrap=True)
    for (n, M, name), found in cells.items():
        times = found["seconds"] / cells[n, M, PEER]["seconds"]
        ratio = "" if name == PEER else f"{times:.1f}x"
        whole = 8 * M * n**2 / 1e6
        row = (f"{found['seconds']:.2f}", ratio, f"{found['megabytes']:.0f}", f"{whole:.0f}", found["note"])
        shown.add_row(str(n), str(M), name, *row)
    console.print(shown)


def main():
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that are started
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--kernels", type=int, nargs="+", default=[13, 130, 403])
    parser.add_argument(
        "--memory", type=int, nargs=2, default=[2000, 200], help="n and M of the second table"
    )
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--output", default="linear_functional.json")
    chosen = parser.parse_args()
    console, report = Console(width=130), {}
    tables = {
        f"training seconds, next to {PEER}": [(n, M) for n in chosen.points for M in chosen.kernels],
        "peak memory beyond the data": [tuple(chosen.memory)],
    }
    for title, sizes in tables.items():
        cells = {}
        for n, M in sizes:
            for name in (m for m in METHODS if m == PEER or m in chosen.methods):
                with console.status(f"{title}: n = {n}, M = {M}, {name}"):
                    cells[n, M, name] = found = cell(name, n, M)
                print(f"n = {n}, M = {M}, {name}: {found['seconds']:.2f} s", file=sys.stderr)
        show(console, title, cells)
        report[title] = {f"n={n}, M={M}, {name}": found for (n, M, name), found in cells.items()}
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
