"""The learning problems of `engine.py` and `growth.py`, and processes in which one run is measured.

Odd digits against even ones, of MNIST where a folder with it is given and otherwise those of scikit-learn,
which beyond their 1797 points are repeated with noise. The kernels are Gaussian, in one of two families:

* widths: exp(-|x - z|^2 / (r^m s)) for m = 0..M-1 with r = 1.2 at M = 50. On the digits of scikit-learn s is
  one; on MNIST it makes the middle kernel 1/e at the median distance. For other M the range of widths is
  kept. So these matrices are near each other and span few dimensions numerically.
* subsets: one kernel on 16 random pixels for each m. The matrices are linearly independent.

The matrices are made with numpy alone, so that a peer in an environment without kernelopt gets the same.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time

import numpy as np

RATIO, KERNELS = 1.2, 50  # of consecutive squared widths, for this number of kernels
PIXELS = 16  # of each kernel of the family "subsets"
NOISE = 0.12  # standard deviation of the noise on repeated digits, whose pixels are in [0, 1]
PAIRS = 1000  # points among which the median distance is found


def digits(n, folder=None):
    """Return n points with entries in [0, 1], and labels of either sign."""
    rng = np.random.default_rng(0)
    if folder is None:
        from sklearn.datasets import load_digits

        X, digit = load_digits(return_X_y=True)
        chosen = rng.permutation(
            np.concatenate([np.arange(len(X)), rng.integers(0, len(X), max(0, n - len(X)))])
        )
        chosen = chosen[:n]
        X = X[chosen] / 16
        if n > len(digit):
            X += NOISE * rng.standard_normal(X.shape)
    else:
        sys.path.insert(0, str(folder))
        from load import load

        X, digit = load("mnist", split=True)[:2]
        chosen = rng.permutation(len(X))[:n]
        X = X[chosen] / 255
    return np.ascontiguousarray(X, dtype=float), np.where(digit[chosen] % 2 == 1, 1.0, -1.0)


def squared_distances(X):
    """Return all |x - z|^2, exactly symmetric."""
    squares = (X**2).sum(axis=1)
    D = X @ X.T
    D *= -2
    D += squares[:, None] + squares
    np.maximum(D, 0, out=D)
    D = (D + D.T) / 2
    np.fill_diagonal(D, 0)
    return D


def parameters(family, X, m):
    """Return (pixels, g) for each kernel exp(-g |x - z|^2) on these pixels; pixels is None for all."""
    rng = np.random.default_rng(1)
    if family == "subsets":
        varying = np.flatnonzero(X.var(axis=0) > 0)
        chosen = [np.sort(rng.choice(varying, PIXELS, replace=False)) for _ in range(m)]
        return [(pixels, 1 / (2 * X[:, pixels].var(axis=0).sum())) for pixels in chosen]
    steps = np.linspace(0, KERNELS - 1, m)
    if X.shape[1] <= 64:
        return [(None, RATIO**-k) for k in steps]
    D = squared_distances(X[rng.permutation(len(X))[:PAIRS]])
    median = np.median(D[np.triu_indices(len(D), 1)])
    return [(None, RATIO ** (KERNELS / 2 - k) / median) for k in steps]


def matrices(family, X, m, dtype=np.float64):
    """Return the kernel matrices, shape (m, n, n), read-only."""
    Ks = np.empty((m, len(X), len(X)), dtype=dtype)
    D = squared_distances(X) if family == "widths" else None
    for K, (pixels, g) in zip(Ks, parameters(family, X, m), strict=True):
        squares = D if pixels is None else squared_distances(X[:, pixels])
        for row, distances in zip(K, squares, strict=True):
            row[:] = np.exp(-g * distances)
    Ks.setflags(write=False)
    return Ks


def functions(family, X, m):
    """Return the kernels as those of kernelopt."""
    import kernelopt as ko

    found = []
    for pixels, g in parameters(family, X, m):
        kernel = ko.gaussian(np.sqrt(1 / (2 * g)))
        found.append(kernel if pixels is None else ko.on_columns(kernel, pixels))
    return found


def _send(pipe, run, arguments):
    try:
        found = run(*arguments)
    except MemoryError:
        found = {"note": "no memory"}
    found["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    pipe.send(found)


def in_process(run, *arguments):
    """Return what `run` finds in a process of its own, with the peak of its resident memory.

    A process that is killed, for want of memory, leaves a note instead.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, run, arguments))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = None
    process.join()
    return found or {"note": f"ended with code {process.exitcode}"}


def first_below(run, tol):
    """Return seconds and gap of the first entry of a history with a gap of at most `tol`, or of the last."""
    if "history" not in run:
        return run
    gaps = [(upper - lower) / abs(upper) for _, lower, upper in run["history"]]
    k = next((k for k, gap in enumerate(gaps) if gap <= tol), len(gaps) - 1)
    found = {"seconds": run["history"][k][0], "gap": gaps[k], "solves": k + 1, "capped": gaps[k] > tol}
    return found | {"peak MB": run["peak MB"]}


def engine(family, source, n, m, p, tol, repeats=3, limit=120.0, folder=None, dtype="float64"):
    """Run the whole call of method="newton": from the array or the points to the certified solution.

    `source` is "array" or "points". Of several runs the seconds are the median, the rest
    that of the last. With an array `streaming pass` has the seconds of `Ks.sum()`, a unit for the others.
    """
    import warnings

    import kernelopt as ko
    from formulations import lp_norm

    warnings.simplefilter("ignore", ko.ConvergenceWarning)
    X, y = digits(n, folder)
    if source == "array":
        Ks = matrices(family, X, m, np.dtype(dtype))
        warm = min(n, 500)
        few = np.ascontiguousarray(Ks[:, :warm, :warm])
        few.setflags(write=False)

        def given(size=n):
            return Ks if size == n else few
    else:
        kernels, warm = functions(family, X, m), min(n, 300)

        def given(size=n):
            return ko.Grams.from_kernels(kernels, X[:size])

    def call(size, last):
        formulation = lp_norm.primal(given(size), y[:size], p=p)
        return formulation.solve("newton", tol=tol, time_limit=limit, callback=last.update)

    stream = np.nan
    if source == "array":
        began = time.process_time()
        Ks.sum()
        stream = time.process_time() - began
    call(warm, {})  # numba compiles, or reads its machine code from the disk
    seconds, last = [], {}
    for _ in range(repeats):
        began = time.process_time()
        try:
            solution = call(n, last)
        except ko.errors.MethodError as error:  # the method does not take a problem of this size
            return {"note": str(error)[:120]}
        seconds.append(time.process_time() - began)
    return {
        "seconds": float(np.median(seconds)),
        "streaming pass": stream,
        "gap": solution.certificate.gap,
        "value": solution.value,
        "status": solution.status,
        "solves": last.get("solves"),
        "passes": last.get("passes"),
        "provider": last.get("provider"),
        "support": int(np.count_nonzero(solution.alpha)),
        "certificate seconds": solution.certify_time,
        "MB of matrices": 8e-6 * m * n * n * (0.5 if dtype == "float32" else 1) if source == "array" else 0.0,
    }
