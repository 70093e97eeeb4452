"""How the triplet programme grows, and what it costs to write it out naively.

Triplets of the labels of scikit-learn's digits, with weak Gaussians on single pixels and the identity as
kernels. Each method runs in a process of its own: seconds to build the programme, seconds to solve it to a
certified gap, seconds of the processor for both, and the peak memory.

* cone="dominant": by the interior-point method, by column generation, by HiGHS on the whole programme (the
  peer), and written entry by entry in cvxpy.
* cone="psd": by the interior-point method, and by SCS on the semidefinite programme (the peer).

Read the ratios to the peer, not the seconds. They are ratios of the seconds of the processor: those of the
clock depend on what else the machine does. "> r" means that the peer was ended at the limit.

The default sizes take two minutes or three. `--large` adds those of the goals: 20 000 triplets and 300
kernels on 150 points, and for cone="psd" 2000 triplets and 90 kernels on 85 points.

    python benchmarks/triplet_lp.py [--large] [--limit 20] [--output triplet_lp.json]
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

GAMMA1, GAMMA2 = 0.1, 0.01
SIZES = [  # cone, points, triplets, kernels
    ("dominant", 60, 500, 30),
    ("dominant", 100, 2000, 100),
    ("psd", 30, 200, 30),
    ("psd", 40, 500, 60),
]
GOALS = [("dominant", 150, 20_000, 300), ("psd", 85, 2000, 90)]
NAIVE = "entry by entry in cvxpy"
HIGHS, SCS = "HiGHS on the whole programme", "SCS on the semidefinite programme"
OPTIONS = {  # of `solve`
    HIGHS: {"solver": "HIGHS"},
    SCS: {"solver": "SCS"},
    "column-generation": {"method": "column-generation"},
    "interior-point": {"method": "interior-point"},
}
METHODS = {
    "dominant": (HIGHS, NAIVE, "column-generation", "interior-point"),  # the peer first
    "psd": (SCS, "interior-point"),
}


def data(size, kernels, points):
    """Kernels on the digits' liveliest pixels, and triplets of their labels."""
    from sklearn.datasets import load_digits

    import kernelopt as ko

    digits = load_digits()
    chosen = np.random.default_rng(0).permutation(len(digits.data))[:points]
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


def run(name, cone, points, size, kernels, pipe):
    """Build and solve once in this process, and send back the seconds and the memory."""
    import cvxpy as cp

    from formulations import triplet_lp

    warnings.simplefilter("ignore")
    grams, triplets = data(size, kernels, points)
    np.asarray(grams)  # evaluated beforehand: it is the same for all
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, processor = time.perf_counter(), time.process_time()
    pipe.send({"before": processor})  # the limit counts from here
    if name == NAIVE:
        problem = naive(grams, triplets)
        built = time.perf_counter()
        pipe.send({"build": built - started})
        problem.get_problem_data(cp.HIGHS)
        value, gap = problem.solve(solver=cp.HIGHS), float("nan")
    else:
        programme = triplet_lp.kernel_design(grams, triplets, gamma1=GAMMA1, gamma2=GAMMA2, cone=cone)
        built = time.perf_counter()
        pipe.send({"build": built - started})
        solution = programme.solve(**OPTIONS[name])
        value, gap = solution.value, solution.gap
    pipe.send(
        {
            "solve": time.perf_counter() - built,
            "processor": time.process_time() - processor,
            "value": float(value),
            "gap": float(gap),
            "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3,
        }
    )


def cell(name, case, limit):
    """What a process of its own reported within the limit."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = context.Process(target=run, args=(name, *case, theirs))
    process.start()
    theirs.close()
    found = {}
    try:
        found.update(ours.recv())  # when the data are there
        deadline = time.perf_counter() + limit
        while "solve" not in found and ours.poll(max(0.0, deadline - time.perf_counter())):
            found.update(ours.recv())
    except EOFError:
        pass
    process.terminate()
    process.join()
    if "before" in found:  # also of a process that was ended: what it has spent without imports and data
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime
        found["spent"] = whole - found.pop("before")
    return found


def ratio(found, peer):
    """The seconds of the processor of the peer over those of a method, or a bound of it."""
    if "processor" not in found or "spent" not in peer:
        return ""
    over = "" if "processor" in peer else "> "
    return f"{over}{peer.get('processor', peer['spent']) / found['processor']:.3g}x"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds that a cell may take once it has its data"
    )
    parser.add_argument("--large", action="store_true", help="also the sizes of the goals")
    parser.add_argument("--output", default="triplet_lp.json")
    chosen = parser.parse_args()
    console, report = Console(width=130), {}
    shown = Table(
        title=f"triplet programmes; ratios of processor time to the peer; - is more than {chosen.limit:g} s"
    )
    for column in (
        "cone",
        "n",
        "T",
        "m",
        "method",
        "build",
        "solve",
        "processor",
        "ratio",
        "MB",
        "value",
        "gap",
    ):
        shown.add_column(column, justify="left" if column in ("cone", "method") else "right", no_wrap=True)
    formats = {
        "build": ".2f",
        "solve": ".2f",
        "processor": ".2f",
        "megabytes": ".0f",
        "value": ".6g",
        "gap": ".0e",
    }
    for case in SIZES + chosen.large * GOALS:
        cone, *sizes = case
        points, size, kernels = sizes
        peer = {}
        for name in METHODS[cone]:
            with console.status(f"{cone}, n = {points}, T = {size}, m = {kernels}: {name}"):
                found = cell(name, case, chosen.limit)
            peer = found if name == METHODS[cone][0] else peer
            compared = ratio(found, peer)
            texts = {key: f"{found[key]:{f}}" if key in found else "-" for key, f in formats.items()}
            times = [texts[key] for key in ("build", "solve", "processor")]
            others = [texts[key] for key in ("megabytes", "value", "gap")]
            shown.add_row(cone, *map(str, sizes), name, *times, compared, *others)
            report[f"{cone}, n={points}, T={size}, m={kernels}, {name}"] = {**found, "ratio": compared}
    console.print(shown)
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
