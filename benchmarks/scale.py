"""How far method="newton" goes from points in the memory of one machine: n = 25,000 to 200,000.

Two sets of data, odd against even digits, 50 Gaussian kernels whose squared widths are a geometric sequence
around the median squared distance, hinge loss with C = 1, to a certified gap of 1e-3:

* the digits of scikit-learn, repeated with noise, d = 64;
* with `--data FOLDER` also MNIST in 64 principal components, repeated with noise beyond its 60,000 points.

Beside the processor seconds of the whole call on one thread and the peak of resident memory stand predicted
ones: those of `kernelopt.explain` before the call, which knows n alone, and the memory that follows from the
number of support vectors at its end. `before` is the memory of the process with the data, before the call,
and is part of each memory. A slope is the one of the least-squares line through the logarithms.
Every run is a process of its own.

    python benchmarks/scale.py [--data FOLDER] [--points 25000 50000 100000 200000] [--norms 1 2]
        [--output scale.json] [--figure scale.pdf]
    python benchmarks/scale.py --draw scale.json --figure scale.pdf
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np

KERNELS, RATIO, GAP, WIDTH = 50, 1.2, 1e-3, 64
DIGITS, MNIST = "digits with noise", "MNIST-like"
NOISE = {DIGITS: 0.1, MNIST: 0.3}  # of digits in [0, 1]; of MNIST in standard deviations of its components
COLORS = {1.0: "#0072b2", 2.0: "#d55e00"}
STYLES = {DIGITS: ("-", "o"), MNIST: ("--", "s")}


def data(name, n, folder):
    """Points and labels; those beyond the data are others of them with noise."""
    rng = np.random.default_rng(0)
    if name == DIGITS:
        from sklearn.datasets import load_digits

        digits = load_digits()
        X, digit, repeated = digits.data / 16, digits.target, True
        scale = NOISE[DIGITS]
    else:
        sys.path.insert(0, str(folder))
        from load import load

        images, digit = load("mnist", split=True)[:2]
        images = images / 255.0
        centred = images - images.mean(axis=0)
        _, vectors = np.linalg.eigh(centred.T @ centred)
        X, repeated = centred @ vectors[:, ::-1][:, :WIDTH], n > len(images)
        scale = NOISE[MNIST] * X.std()
    chosen = rng.permutation(np.resize(np.arange(len(X)), max(n, len(X))))[:n]
    X = X[chosen] + scale * rng.standard_normal((n, WIDTH)) if repeated else X[chosen]
    return X, np.where(digit[chosen] % 2 == 1, 1.0, -1.0)


def widths(X):
    """Widths with 2 width^2 = median squared distance * RATIO^k."""
    from scipy.spatial.distance import pdist

    chosen = np.random.default_rng(1).permutation(len(X))[:1000]
    median = np.median(pdist(X[chosen], "sqeuclidean"))
    return np.sqrt(median * RATIO ** np.arange(-KERNELS // 2, KERNELS // 2) / 2)


def memory():
    """The peak resident memory of this process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def run(name, n, p, folder):
    """One call from points to the certified solution, with what was predicted of it."""
    import kernelopt as ko
    from formulations import lp_norm
    from kernelopt.methods.engine.family import family
    from kernelopt.methods.engine.method import Newton
    from kernelopt.methods.engine.radial import radial_bytes
    from kernelopt.structure.structure import Structure

    X, y = data(name, n, folder)
    sizes = widths(X)
    kernels = [ko.gaussian(width) for width in sizes]
    lp_norm.primal(ko.Grams.from_kernels(kernels, X[:3500]), y[:3500], p=p).solve("newton", tol=1e-2)
    before, began, wall = memory(), time.process_time(), time.perf_counter()
    grams = ko.Grams.from_kernels(kernels, X)
    built = lp_norm.primal(grams, y, p=p)
    solution = built.solve("newton", tol=GAP)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    method, structure = Newton(), Structure(built.problem)
    cost = method.cost(method.match(structure))
    support = int(np.count_nonzero(solution.alpha))
    return {
        "data": name,
        "n": n,
        "p": p,
        "seconds": seconds,
        "wall": wall,
        "predicted seconds": cost.seconds,
        "GB": memory(),
        "before": before,
        "predicted GB": before + cost.memory / 1e9,
        "GB of the support": before + radial_bytes(family(grams.storage), support, KERNELS, n) / 1e9,
        "support": support,
        "gap": solution.gap,
        "status": solution.status,
    }


def alone(*arguments):
    """Return a run in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, arguments)


def curves(rows):
    """Yield the data, p and the rows of every curve."""
    for name, p in dict.fromkeys((row["data"], row["p"]) for row in rows):
        yield name, p, [row for row in rows if (row["data"], row["p"]) == (name, p)]


def slope(rows, what):
    """Return the slope of the logarithm of a number over log n, or None of one run."""
    if len(rows) < 2:
        return None
    n, values = (np.log([row[key] for row in rows]) for key in ("n", what))
    return float(np.polyfit(n, values, 1)[0])


def show(row):
    """Print one run."""
    print(
        f"{row['data']}, p = {row['p']:g}, n = {row['n']:,}: {row['seconds']:.1f} s (predicted "
        f"{row['predicted seconds']:.0f}), {row['GB']:.2f} GB (predicted {row['predicted GB']:.2f}, by the "
        f"support {row['GB of the support']:.2f}), {row['support']:,} support vectors, gap {row['gap']:.0e}",
        flush=True,
    )


def draw(rows, path):
    """Draw seconds and memory over n, both axes logarithmic, with the predicted ones thin."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for ax, what, predicted in zip(
        axes, ("seconds", "GB"), ("predicted seconds", "GB of the support"), strict=True
    ):
        for name, p, mine in curves(rows):
            (line, marker), color = STYLES[name], COLORS.get(p, "#009e73")
            n, steep = [row["n"] for row in mine], slope(mine, what)
            label = f"{name}, p = {p:g}" + ("" if steep is None else f": slope {steep:.2f}")
            ax.plot(n, [row[what] for row in mine], line, marker=marker, color=color, label=label)
            ax.plot(n, [row[predicted] for row in mine], ":", color=color, linewidth=1)
        ticks = sorted({row["n"] for row in rows})
        ax.set(xscale="log", yscale="log", xlabel="number of points n")
        ax.set_ylabel("processor seconds" if what == "seconds" else "peak memory, GB")
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.minorticks_off()
        ax.grid(which="major", color="#dddddd", linewidth=0.6)
        ax.legend(fontsize=8, frameon=False)
    figure.suptitle(f"50 Gaussians, gap {GAP:.0e}; dotted: predicted", fontsize=10)
    figure.savefig(path, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with load.py and MNIST")
    parser.add_argument("--points", type=int, nargs="+", default=[25_000, 50_000, 100_000, 200_000])
    parser.add_argument("--norms", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--output", type=Path, default=Path("scale.json"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--draw", type=Path, help="a JSON file of an earlier run, which is drawn only")
    chosen = parser.parse_args()
    rows = json.loads(chosen.draw.read_text()) if chosen.draw else []
    for name in [] if chosen.draw else [DIGITS, *([MNIST] if chosen.data else [])]:
        for p in chosen.norms:
            for n in chosen.points:
                rows.append(alone(name, n, p, chosen.data))
                show(rows[-1])
                chosen.output.write_text(json.dumps(rows, indent=1))
    for name, p, mine in curves(rows):
        found = [slope(mine, what) for what in ("seconds", "GB", "support")]
        if None not in found:
            print(
                f"{name}, p = {p:g}: slopes in n of seconds {found[0]:.2f}, GB {found[1]:.2f}, "
                f"support {found[2]:.2f}"
            )
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
