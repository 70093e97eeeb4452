"""Seconds and memory of every method to certified gaps, next to what one would write without them.

Digits, odd against even, 1000 points, 50 Gaussian kernels of widths sqrt(1.2^k / 2), hinge loss with
C = 1, p in {1, 4/3, 2, 4}: seconds until lower and upper bounds are within 1e-2, 1e-3 and 1e-5, and
the peak memory beyond the data, for every method of kernelopt and for its peer, the loop that anybody
would write: libsvm at the combined kernel, then the analytic update of the weights. `smooth-dual` needs a
smooth loss: a second table has the squared hinge. At 400 points the dual is also handed to cvxpy and
Clarabel as one problem. Every cell is a process of its own; read the ratios, not the seconds.

    python benchmarks/lp_norm_methods.py [--points 1000] [--kernels 50] [--output lp_norm_methods.json]
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
from mkl_peers import analytic_updates
from rich.console import Console
from rich.table import Table

GAPS = (1e-2, 1e-3, 1e-5)
NORMS = (1.0, 4 / 3, 2.0, 4.0)
PEER, CONIC, LAZY = "libsvm + analytic update", "cvxpy + Clarabel", "interleaved, kernels on the fly"
OURS = ("block-descent", "interleaved", LAZY, "cutting-plane", "cutting-plane, Taylor")
LIMIT = 60.0  # seconds a run may take


def data(points, kernels):
    """Points, labels and kernel functions."""
    from sklearn.datasets import load_digits

    import kernelopt as ko

    digits = load_digits()
    chosen = np.random.default_rng(0).permutation(len(digits.data))[:points]
    X, y = digits.data[chosen] / 16, np.where(digits.target[chosen] % 2 == 1, 1.0, -1.0)
    return X, y, [ko.gaussian(np.sqrt(1.2**k / 2)) for k in range(kernels)]


def clarabel(Ks, y, p):
    """The dual as one conic problem in plain cvxpy; it has no history, one certified end."""
    import cvxpy as cp

    import kernelopt as ko

    started = time.perf_counter()
    n = len(y)
    a, s = cp.Variable(n, nonneg=True), cp.Variable(len(Ks))
    size = cp.max(s) if p == 1 else cp.pnorm(s, p / (p - 1), approx=False)
    roots = []
    for K in Ks:
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-11 * values[-1]
        roots.append((vectors[:, keep] * np.sqrt(values[keep])).T * y)
    forms = [cp.sum_squares(L @ a) <= s[m] for m, L in enumerate(roots)]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - size / 2), [y @ a == 0, a <= 1, *forms])
    problem.solve(solver=cp.CLARABEL)
    spent = time.perf_counter() - started
    theta = cp.Variable(len(Ks), nonneg=True)
    primal = cp.Problem(cp.Minimize(ko.risk(ko.combine(theta, Ks), y, ko.hinge())), ko.lp_ball(theta, p))
    alpha = y * a.value
    shares = np.maximum(np.einsum("i,mij,j->m", alpha, Ks, alpha), 0)
    if p == 1:
        shares = np.maximum([float(np.ravel(c.dual_value)[0]) for c in forms], 0)
    weights = shares / shares.sum() if p == 1 else shares ** (1 / (p - 1))
    certificate = ko.certify(primal, weights=weights / np.linalg.norm(weights, p), alpha=alpha)
    return [(spent, certificate.lower, certificate.upper)]


def run(name, p, loss_name, points, kernels, pipe):
    """Run one cell and send back its history and the memory beyond the data."""
    import cvxpy as cp

    import kernelopt as ko

    X, y, functions = data(points, kernels)
    grams = ko.Grams.from_kernels(functions, X)
    if name != LAZY:
        grams = ko.Grams.from_array(np.array(grams))
    loss = {"hinge": ko.hinge, "squared_hinge": ko.squared_hinge}[loss_name](1.0)
    warnings.simplefilter("ignore", ko.ConvergenceWarning)

    def solve(n, tol, limit):
        theta = cp.Variable(kernels, nonneg=True)
        stack = grams.block(slice(0, n)) if n < points else grams
        problem = cp.Problem(
            cp.Minimize(ko.risk(ko.combine(theta, stack), y[:n], loss)), ko.lp_ball(theta, p)
        )
        method, _, variant = name.partition(", ")
        options = {"master": "taylor"} if variant == "Taylor" else {}
        return ko.solve(problem, method, tol=tol, time_limit=limit, **options).history

    if name not in (PEER, CONIC):
        solve(100, 1e-4, None)  # compile the loops
    Ks = np.asarray(grams) if name in (PEER, CONIC) else None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == PEER:
        history = analytic_updates(Ks, y, p, GAPS[-1], LIMIT, time.perf_counter).history
    elif name == CONIC:
        history = clarabel(Ks, y, p)
    else:
        history = solve(points, GAPS[-1], LIMIT)
    pipe.send((history, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3))


def cell(name, p, loss, points, kernels):
    """Seconds to every gap (None where it was not reached) and MB beyond the data."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(name, p, loss, points, kernels, theirs))
    process.start()
    theirs.close()
    try:
        history, memory = ours.recv()
    except EOFError:
        history, memory = [], float("nan")
    process.join()
    reached = [
        next((t for t, lower, upper in history if upper - lower <= gap * max(1.0, abs(upper))), None)
        for gap in GAPS
    ]
    best = min(((u - low) / max(1.0, abs(u)) for _, low, u in history), default=float("nan"))
    return {"seconds": reached, "megabytes": memory, "gap": best}


def show(console, title, peer, cells):
    """One table: a row per method and p, with the ratio to the peer's seconds."""
    shown = Table(title=title)
    for column in ("p", "method", *(f"{gap:.0e}" for gap in GAPS), "MB", "last gap"):
        shown.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for (p, name), found in cells.items():
        row = []
        for mine, theirs in zip(found["seconds"], cells[p, peer]["seconds"], strict=True):
            ratio = "" if not (mine and theirs) or name == peer else f" ({theirs / mine:.1f}x)"
            row.append("-" if mine is None else f"{mine:.2f} s{ratio}")
        shown.add_row(f"{p:.2f}", name, *row, f"{found['megabytes']:.0f}", f"{found['gap']:.0e}")
    console.print(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--conic-points", type=int, default=400)
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--output", default="lp_norm_methods.json")
    chosen = parser.parse_args()
    console, report = Console(width=130), {}
    smooth = ("block-descent", "interleaved", "cutting-plane", "smooth-dual")
    tables = {
        "hinge": ("hinge", PEER, (PEER, *OURS), chosen.points, NORMS),
        "squared hinge": ("squared_hinge", "block-descent", smooth, chosen.points, NORMS[1:]),
        "hinge, one conic problem": ("hinge", CONIC, (CONIC, *OURS[:4]), chosen.conic_points, NORMS),
    }
    for title, (loss, peer, names, points, norms) in tables.items():
        cells = {}
        for p in norms:
            for name in names:
                if name.endswith("Taylor") and p == 1:
                    continue
                with console.status(f"{title}: p = {p:.2f}, {name}"):
                    cells[p, name] = cell(name, p, loss, points, chosen.kernels)
        show(console, f"{title}: n = {points}, M = {chosen.kernels}; ratios to {peer}", peer, cells)
        report[title] = {f"p={p:g}, {name}": found for (p, name), found in cells.items()}
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
