"""What the language costs: the QCQP through kernelopt against the same problem in raw cvxpy.

Prints build and solve seconds of both and their ratio, for the programme of `formulations.lanckriet.qcqp`
and for the same learning problem in words (`kernelopt.risk`), solved by the same solver with the same
options. Certificates are not part of the comparison. Writes JSON with --out.

    python benchmarks/language_overhead.py [--repeats 3] [--out overhead.json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np
from sklearn.datasets import load_breast_cancer

import kernelopt as ko
from formulations import lanckriet

SIZES = ((200, 5), (400, 10))
OPTIONS = {"solver": cp.CLARABEL, "max_threads": 1}


def data(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return m Gaussian Gram matrices on n tumours, and their labels."""
    X, target = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:n]
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    widths = np.geomspace(0.5, 20, m)
    return np.array([np.exp(-squares / (2 * w**2)) for w in widths]), 2.0 * target[:n] - 1


def by_hand(K: np.ndarray, y: np.ndarray) -> cp.Problem:
    """The QCQP as one would write it in cvxpy: Cholesky factors with pivoting, as ours."""
    from scipy.linalg import lapack

    traces = np.array([np.trace(k) for k in K])
    c = traces.sum()
    alpha, t = cp.Variable(len(y), nonneg=True), cp.Variable()
    signed, constraints = cp.multiply(y, alpha), [y @ alpha == 0, alpha <= 1]
    for k, r in zip(K, traces, strict=True):
        lower, pivots, rank, _ = lapack.dpstrf(k, tol=1e-11 * k.diagonal().max(), lower=1)
        F = np.zeros((len(y), rank))
        F[pivots - 1] = np.tril(lower)[:, :rank]
        constraints.append(cp.sum_squares(np.sqrt(c / r) * F.T @ signed) <= t)
    return cp.Problem(cp.Maximize(2 * cp.sum(alpha) - t), constraints)


def programme(K: np.ndarray, y: np.ndarray) -> cp.Problem:
    """The builder of the paper's programme."""
    return lanckriet.qcqp(K, y, C=1.0).programmes["qcqp"]().problem


def words(K: np.ndarray, y: np.ndarray) -> cp.Problem:
    """The same learning problem in words, expanded."""
    mu = cp.Variable(len(K), nonneg=True)
    kernel = ko.combine(mu, K)
    problem = cp.Problem(
        cp.Minimize(2 * ko.risk(kernel, y, ko.hinge(1.0))),
        [ko.trace(kernel) == float(np.einsum("mii->", K))],
    )
    return ko.expand(problem).problem


def measure(build: object, K: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return value and seconds: build is everything outside the solver's own time."""
    started = time.perf_counter()
    problem = build(K, y)  # type: ignore[operator]
    problem.solve(**OPTIONS)
    total = time.perf_counter() - started
    solve = float(problem.solver_stats.solve_time)
    return {"value": float(problem.solution.opt_val), "build": total - solve, "solve": solve, "total": total}


def main() -> None:
    """Run the sizes, alternating the contestants, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    contestants = {"raw cvxpy": by_hand, "lanckriet.qcqp": programme, "words": words}
    report = []
    for n, m in SIZES:
        K, y = data(n, m)
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
        for _ in range(options.repeats):
            for name, build in contestants.items():
                runs[name].append(measure(build, K, y))
        middle = {name: {k: float(np.median([r[k] for r in rs])) for k in rs[0]} for name, rs in runs.items()}
        print(f"n = {n}, m = {m}: median of {options.repeats}")
        for name, r in middle.items():
            ratio = r["total"] / middle["raw cvxpy"]["total"]
            print(
                f"  {name:15s} value {r['value']:.8f}  build {r['build']:.3f} s  solve {r['solve']:.3f} s  "
                f"total {r['total']:.3f} s  ratio {ratio:.3f}"
            )
        report.append({"n": n, "m": m, **middle})
    if options.out:
        options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
