"""How the triplet programme grows, and what it costs to write it out naively.

T in {200, 2000, 20000} triplets and m in {30, 300} kernels on 150 points of scikit-learn's digits, weak
Gaussians on single pixels and the identity: seconds to build the programme, seconds to solve it to a
certified gap, and the peak memory of a process of its own: by column generation, by HiGHS on the whole
programme, and written entry by entry in cvxpy. Read the ratios, not the seconds.

    python benchmarks/triplet_lp.py [--limit 120] [--output triplet_lp.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

POINTS, GAMMA1, GAMMA2 = 150, 0.1, 0.01
OURS, WORDS, NAIVE = "kernelopt", "kernelopt, HiGHS on the whole programme", "entry by entry in cvxpy"


def data(size, kernels):
    """Kernels on the digits' liveliest pixels, and triplets of their labels."""
    from sklearn.datasets import load_digits

    import kernelopt as ko

    digits = load_digits()
    chosen = np.random.default_rng(0).permutation(len(digits.data))[:POINTS]
    X, y = digits.data[chosen] / 16, digits.target[chosen]
    pixels = np.argsort(-X.var(axis=0))[: -(-kernels // 6)]
    weak = ko.per_feature([ko.gaussian(w) for w in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)], pixels.size)
    functions = [*weak[: kernels - 1], ko.identity()]
    return ko.Grams.from_kernels(functions, X[:, pixels]), ko.sample_triplets(y, size, random_state=0)


def naive(grams, triplets):
    """The programme as one would type it: a kernel expression of n x n entries, one constraint per row."""
    import cvxpy as cp

    alpha, eps = cp.Variable(len(grams)), cp.Variable(len(triplets), nonneg=True)
    points = np.unique(triplets)
    K = sum(alpha[p] * gram for p, gram in enumerate(grams))
    constraints = [K[i, j] - K[i, k] + eps[t] >= 1 for t, (i, j, k) in enumerate(triplets)]
    constraints += [K[i, i] >= cp.sum(cp.abs(cp.hstack([K[i, j] for j in points if j != i]))) for i in points]
    trace = cp.sum(cp.hstack([K[i, i] for i in points]))
    objective = cp.sum(eps) + GAMMA1 * cp.norm1(alpha) + GAMMA2 * trace
    return cp.Problem(cp.Minimize(objective), constraints)


def run(name, size, kernels, pipe):
    """Build and solve once in this process, and send back the seconds and the memory."""
    import cvxpy as cp

    from formulations import triplet_lp

    warnings.simplefilter("ignore")
    grams, triplets = data(size, kernels)
    np.asarray(grams)  # evaluated beforehand: it is the same for all
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    if name == NAIVE:
        problem = naive(grams, triplets)
        built = time.perf_counter()
        pipe.send({"build": built - started})
        problem.get_problem_data(cp.HIGHS)
        value, gap = problem.solve(solver=cp.HIGHS), float("nan")
    else:
        programme = triplet_lp.kernel_design(grams, triplets, gamma1=GAMMA1, gamma2=GAMMA2)
        built = time.perf_counter()
        pipe.send({"build": built - started})
        options = {"solver": "HIGHS"} if name == WORDS else {}
        solution = programme.solve(**options)
        value, gap = solution.value, solution.gap
    pipe.send(
        {
            "solve": time.perf_counter() - built,
            "value": float(value),
            "gap": float(gap),
            "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3,
        }
    )


def cell(name, size, kernels, limit):
    """What a process of its own reported within the limit."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(name, size, kernels, theirs))
    process.start()
    theirs.close()
    found, deadline = {}, time.perf_counter() + limit
    try:
        while "solve" not in found and ours.poll(max(0.0, deadline - time.perf_counter())):
            found.update(ours.recv())
    except EOFError:
        pass
    process.terminate()
    process.join()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a cell may take")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--kernels", type=int, nargs="+", default=[30, 300])
    parser.add_argument("--output", default="triplet_lp.json")
    chosen = parser.parse_args()
    console, report = Console(width=130), {}
    shown = Table(
        title=f"triplet LP on {POINTS} points; ratios to '{NAIVE}'; - is more than {chosen.limit:g} s"
    )
    for column in ("T", "m", "method", "build", "solve", "MB", "value", "gap"):
        shown.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for size in chosen.sizes:
        for kernels in chosen.kernels:
            cells = {}
            for name in (NAIVE, WORDS, OURS):
                with console.status(f"T = {size}, m = {kernels}: {name}"):
                    cells[name] = cell(name, size, kernels, chosen.limit)
            for name, found in cells.items():
                row = []
                for part in ("build", "solve"):
                    mine, theirs = found.get(part), cells[NAIVE].get(part)
                    ratio = "" if name == NAIVE or not (mine and theirs) else f" ({theirs / mine:.0f}x)"
                    row.append("-" if mine is None else f"{mine:.2f} s{ratio}")
                numbers = [
                    f"{found[k]:{f}}" if k in found else "-"
                    for k, f in (("megabytes", ".0f"), ("value", ".6g"), ("gap", ".0e"))
                ]
                shown.add_row(str(size), str(kernels), name, *row, *numbers)
                report[f"T={size}, m={kernels}, {name}"] = found
    console.print(shown)
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
