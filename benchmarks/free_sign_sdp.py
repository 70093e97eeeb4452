"""Lanckriet's free-sign programme: "spectral-master" against conic solvers, in one process.

min omega(K(mu)) over weights mu of any sign with K(mu) >> 0 on all N points and tr K(mu) = N. Half of the
points are labelled, odd digits against even ones. The kernels are Gaussian and linear ones of 24 pixels, all
centred and of trace N. The families "collinear" are five Gaussians of all pixels with widths up to 320.

Times are processor seconds of the user's whole call, from the arrays to the certified solution. A peer gets
the linear matrix inequality of Lanckriet et al. (2004), Theorem 21, through cvxpy, with the kernels stacked,
which compiles fastest. `gap` is certified by kernelopt. `error` is the relative distance of the value that a
peer returns from that of ours, and `least` the least eigenvalue of its K(mu) over the largest. Interior
points need a time that grows like N^6: Clarabel is run up to 60 points.

    python benchmarks/free_sign_sdp.py [--only 200] [--repeats 3] [--no-peers] [--json free_sign_sdp.json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np
from sklearn.datasets import load_digits

from formulations import lanckriet

TOL, PIXELS, INTERIOR_POINTS = 1e-5, 24, 60
WIDE = (20.0, 40.0, 80.0, 160.0, 320.0)  # the squared distances of the digits are 1 to 30
CELLS = (
    ("ordinary", 60, 5),
    ("ordinary", 200, 5),
    ("ordinary", 400, 10),
    ("ordinary", 1000, 10),
    ("collinear", 200, 5),
    ("collinear", 400, 5),
)
WITH_PEERS = 200  # points up to which the first-order peers are run
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SCS": ("SCS", {}),
    "SCS 1e-6": ("SCS", {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20000}),
    "CVXOPT": ("CVXOPT", {}),
    "Clarabel": ("CLARABEL", {}),
}


@dataclass
class Row:
    """One run, or the median of several: of ours, or of a peer."""

    family: str
    points: int
    kernels: int
    solver: str
    seconds: float
    value: float
    gap: float | None = None
    iterations: int | None = None
    note: str = ""
    error: float | None = None
    least: float | None = None
    ratio: float | None = None


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels in [0, 1], in a fixed random order, and labels: odd against even."""
    X, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order] / 16, np.where(digit[order] % 2 == 1, 1.0, -1.0)


def family(name: str, N: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centred kernels of trace N, and the labels of the first half of the points."""
    X, y = digits()[0][:N], digits()[1][:N]
    rng, H = np.random.default_rng(0), np.eye(N) - 1 / N
    kernels = []
    for i in range(m):
        Z = X[:, rng.permutation(64)[:PIXELS]] if name == "ordinary" else X
        squares = np.maximum((Z**2).sum(1)[:, None] + (Z**2).sum(1) - 2 * Z @ Z.T, 0.0)
        width = 2.0 ** (i % 4) if name == "ordinary" else WIDE[i]
        K = Z @ Z.T if name == "ordinary" and i % 2 else np.exp(-squares / width)
        K = H @ K @ H
        kernels.append((K + K.T) * (N / 2 / np.trace(K)))
    return np.array(kernels), y[: N // 2]


def ours(name: str, kernels: np.ndarray, y: np.ndarray, repeats: int) -> Row:
    """Return the median run of the whole call."""
    runs = []
    for _ in range(repeats):
        began = time.process_time()
        formulation = lanckriet.soft_margin(kernels, y, weights="free", trace=float(len(kernels[0])))
        solution = formulation.solve("spectral-master", tol=TOL)
        runs.append(time.process_time() - began)
    certificate = solution.certificate
    return Row(
        name,
        len(kernels[0]),
        len(kernels),
        "spectral-master",
        float(np.median(runs)),
        solution.value,
        certificate.gap,
        solution.iterations,
        certificate.reason,
    )


def peer(name: str, kernels: np.ndarray, y: np.ndarray, label: str, own: Row) -> Row:
    """Return the run of a conic solver on the linear matrix inequality."""
    solver, options = PEERS[label]
    m, N, n = len(kernels), len(kernels[0]), y.size
    row = Row(name, N, m, label, np.nan, np.nan)
    if solver not in cp.installed_solvers():
        row.note = "not installed"
        return row
    began = time.process_time()
    mu, t, lam = cp.Variable(m), cp.Variable(), cp.Variable()
    nu, delta = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    K = cp.reshape(kernels.reshape(m, -1).T @ mu, (N, N), order="C")
    signed = (np.outer(y, y) * kernels[:, :n, :n]).reshape(m, -1)
    G = cp.reshape(signed.T @ mu, (n, n), order="C")
    column = cp.reshape(1 + nu - delta + lam * y, (n, 1), order="C")
    corner = cp.reshape(t - 2 * cp.sum(delta), (1, 1), order="C")
    constraints = [K >> 0, cp.bmat([[G, column], [column.T, corner]]) >> 0]
    constraints.append(np.trace(kernels, axis1=1, axis2=2) @ mu == N)
    problem = cp.Problem(cp.Minimize(t), constraints)
    try:
        problem.solve(solver=solver, **options)
    except cp.SolverError as error:
        row.note = str(error)[:60]
    row.seconds = time.process_time() - began
    row.ratio = row.seconds / own.seconds
    if mu.value is not None:
        eigenvalues = np.linalg.eigvalsh(np.tensordot(mu.value, kernels, 1))
        row.value, row.least = float(problem.value), float(eigenvalues[0] / eigenvalues[-1])
        row.error, row.note = abs(row.value - own.value) / own.value, problem.status
    return row


def main() -> None:
    """Run the cells, print a line for each run, and write them as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=int, help="run the cells of this many points")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, help="file to write")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    ours("warm-up", *family("ordinary", 320, 3), repeats=1)  # numba compiles, cvxpy is imported
    rows = []
    for name, N, m in CELLS:
        if chosen.only not in (None, N):
            continue
        kernels, y = family(name, N, m)
        own = ours(name, kernels, y, chosen.repeats)
        runs = [own]
        if not chosen.no_peers and N <= WITH_PEERS:
            labels = [label for label in PEERS if label != "Clarabel" or N <= INTERIOR_POINTS]
            runs += [peer(name, kernels, y, label, own) for label in labels]
        for row in runs:
            print({k: v for k, v in asdict(row).items() if v not in (None, "")}, flush=True)
        rows += runs
        if chosen.json:
            chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
