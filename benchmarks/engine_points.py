"""Newton's method from points against one support vector machine of scikit-learn on the same points.

MNIST, odd against even digits, 50 Gaussian kernels whose squared widths are a geometric sequence around the
median squared distance, hinge loss with C = 1, p in {1, 2}, gap 1e-3. The time of ours is that of the whole
call, from the points to the certified Solution. The peer is `SVC(kernel="rbf", gamma=0.02, C=1,
cache_size=2000)`: one kernel, one fit, and no certificate. Without MNIST the digits of scikit-learn are
repeated with noise. Times are seconds of the processor, on one thread. Every run is a process of its own, so
that its peak of memory is its own. Read the ratios, not the seconds.

    python benchmarks/engine_points.py [--data FOLDER] [--points 10000] [--norms 1 2] [--output FILE]
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

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
KERNELS, RATIO, GAP = 50, 1.2, 1e-3
NOISE = 0.1  # of the digits that are repeated, whose entries lie in [0, 1]


def data(n, folder):
    """Points, labels and the name of the data."""
    import numpy as np

    rng = np.random.default_rng(0)
    if folder:
        sys.path.insert(0, str(folder))
        from load import load

        X, t = load("mnist", split=True)[:2]
        chosen = rng.permutation(len(X))[:n]
        return X[chosen].astype(float) / 255, np.where(t[chosen] % 2 == 1, 1.0, -1.0), "mnist"
    from sklearn.datasets import load_digits

    digits = load_digits()
    chosen = rng.permutation(np.resize(np.arange(len(digits.data)), max(n, len(digits.data))))[:n]
    X = digits.data[chosen] / 16 + NOISE * rng.standard_normal((n, digits.data.shape[1]))
    return X, np.where(digits.target[chosen] % 2 == 1, 1.0, -1.0), "digits with noise"


def widths(X):
    """Widths with 2 width^2 = median squared distance * RATIO^k."""
    import numpy as np
    from scipy.spatial.distance import pdist

    chosen = np.random.default_rng(1).permutation(len(X))[:1000]
    median = np.median(pdist(X[chosen], "sqeuclidean"))
    return np.sqrt(median * RATIO ** np.arange(-KERNELS // 2, KERNELS // 2) / 2)


def ours(n, p, folder):
    """The whole call: build the stack, solve, certify."""
    import kernelopt as ko
    from formulations import lp_norm

    X, y, name = data(n, folder)
    sizes = widths(X)
    small = slice(0, 600)
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in sizes], X[small])
    lp_norm.primal(grams, y[small], p=p).solve("newton", tol=1e-2)  # compiles
    before, started, wall = memory(), time.process_time(), time.perf_counter()
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in sizes], X)
    built = lp_norm.primal(grams, y, p=p)
    seen = {}
    found = built.solve("newton", tol=GAP, callback=seen.update)
    return {
        "data": name,
        "seconds": time.process_time() - started,
        "wall": time.perf_counter() - wall,
        "status": found.status,
        "gap": found.gap,
        "provider": seen.get("provider"),
        "passes": seen.get("passes"),
        "solves": seen.get("solves"),
        "support": int((found.alpha != 0).sum()),
        "memory_before": before,
        "memory": memory(),
    }


def peer(n, p, folder):
    """One fit of scikit-learn's support vector machine."""
    from sklearn.svm import SVC

    X, y, name = data(n, folder)
    started = time.process_time()
    machine = SVC(kernel="rbf", gamma=0.02, C=1.0, cache_size=2000).fit(X, y)
    return {
        "data": name,
        "seconds": time.process_time() - started,
        "support": len(machine.support_),
        "memory": memory(),
    }


def memory():
    """The peak resident memory of this process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def alone(task, *arguments):
    """Return the result of a task in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with load.py and MNIST")
    parser.add_argument("--points", type=int, nargs="+", default=[10_000])
    parser.add_argument("--norms", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--output", type=Path, default=Path("engine_points.json"))
    chosen = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    rows = []
    for n in chosen.points:
        base = alone(peer, n, None, chosen.data)
        print(f"n = {n}: SVC {base['seconds']:.2f} s, {base['support']} support vectors", flush=True)
        for p in chosen.norms:
            run = alone(ours, n, p, chosen.data)
            rows.append(
                {"n": n, "p": p, "ratio": run["seconds"] / base["seconds"], "newton": run, "svc": base}
            )
            print(
                f"  p = {p:g}: {run['seconds']:.2f} s, ratio {rows[-1]['ratio']:.3f}, certified gap "
                f"{run['gap']:.1e}, {run['provider']}, {run['support']} support vectors, "
                f"{run['passes']:.2f} passes, {run['memory']:.2f} GB",
                flush=True,
            )
            chosen.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
