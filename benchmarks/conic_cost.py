"""What a conic solve costs: predicted by `kernelopt.methods.sizing.size`, and measured.

Every cell is a problem in words. It is compiled and solved by Clarabel and by SCS, each on one thread and
for at most --cap seconds. Times are processor seconds, so that other work on the machine matters less. With
--bounds also the lower bound is timed that the certificate takes from multipliers. The constants of
`kernelopt/conic/costs.py` were fitted to this table.

    python benchmarks/conic_cost.py [--cap 60] [--only signed,psd] [--solvers CLARABEL,SCS] [--bounds]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cvxpy as cp
import numpy as np

import kernelopt as ko
from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.conic.multipliers import conic_bound
from kernelopt.certificates.lower.minorants import minorants, relaxation
from kernelopt.methods import sizing
from kernelopt.methods.sizing import Size
from kernelopt.structure import Structure

FACTOR = 3.5  # a prediction counts as right within this factor
LOSSES = {
    "hinge": ko.hinge(),
    "squared": ko.squared(),
    "squared_hinge": ko.squared_hinge(),
    "logistic": ko.logistic(),
    "epsilon_insensitive": ko.epsilon_insensitive(),
}
Cell = tuple[str, Callable[[], cp.Problem]]


def gaussians(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return m Gaussian Gram matrices of full rank on n points, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.array([np.exp(-squares / (2 * w**2)) for w in np.geomspace(0.3, 4, m)]), y


def linears(n: int, m: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return m linear Gram matrices on n points, and labels."""
    X = np.random.default_rng(0).normal(size=(m, n, rank))
    y = np.where(X[0, :, 0] > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X @ X.transpose(0, 2, 1), y


def weights(n: int, m: int, loss: str = "hinge", p: float = 1, rank: int | None = None) -> cp.Problem:
    """Second-order cones: weights that are known to be non-negative."""
    Ks, y = gaussians(n, m) if rank is None else linears(n, m, rank)
    mu = cp.Variable(m, nonneg=True)
    K = ko.combine(mu, Ks)
    ball = [ko.trace(K) == n] if p == 1 else ko.lp_ball(mu, p)
    return cp.Problem(cp.Minimize(ko.risk(K, y, LOSSES[loss])), ball)


def several(n: int, m: int) -> cp.Problem:
    """Second-order cones, and constraints that leave the bound no closed form."""
    Ks, y = gaussians(n, m)
    mu = cp.Variable(m, nonneg=True)
    K = ko.combine(mu, Ks)
    return cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), [ko.frobenius(K) <= n, cp.sum(mu) <= 5])


def signed(n: int, m: int) -> cp.Problem:
    """Two semidefinite cones and few variables: weights of any sign."""
    Ks, y = gaussians(n, m)
    mu = cp.Variable(m)
    K = ko.combine(mu, Ks)
    return cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), [K >> 0, ko.trace(K) == n])


def aligned(n: int, m: int) -> cp.Problem:
    """One semidefinite cone and few variables."""
    Ks, y = gaussians(n, m)
    K = ko.combine(cp.Variable(m), Ks)
    return cp.Problem(cp.Maximize(ko.alignment(K, y)), [K >> 0, ko.frobenius(K) <= n])


def psd(n: int, fidelity: str) -> cp.Problem:
    """Two semidefinite cones and a whole matrix of variables."""
    _, y = gaussians(n, 1)
    noise = np.random.default_rng(1).normal(size=(n, n))
    similarity = np.outer(y, y) + 0.15 * (noise + noise.T)
    K = cp.Variable((n, n), PSD=True)
    far = {"l1": cp.sum(cp.abs(K - similarity)), "squared": cp.sum_squares(K - similarity)}[fidelity]
    return cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge()) + far))


def cells() -> list[Cell]:
    """Return the names and problems of the table."""
    table: list[Cell] = []

    def add(make: Callable[..., cp.Problem], *arguments: Any, **options: Any) -> None:
        said = [*map(str, arguments), *(f"{k}={v:.3g}" if k != "loss" else v for k, v in options.items())]
        table.append((f"{make.__name__} {' '.join(said)}", lambda: make(*arguments, **options)))

    for n, m in ((50, 2), (50, 10), (50, 50), (100, 2), (100, 10), (100, 50), (200, 2), (200, 10), (200, 30)):
        add(weights, n, m)
    for n, m in ((300, 10), (400, 2), (400, 10)):
        add(weights, n, m)
    for n in (100, 200):
        for loss in ("squared", "squared_hinge", "logistic", "epsilon_insensitive"):
            add(weights, n, 10, loss=loss)
        for p in (4 / 3, 2.0):
            add(weights, n, 10, p=p)
    for n, m in ((100, 10), (200, 50), (400, 20), (400, 50)):
        add(weights, n, m, rank=5)
    for n, m in ((100, 10), (200, 30)):
        add(several, n, m)
    for n in (20, 40, 60):
        for m in (4, 40):
            add(signed, n, m)
    for n in (40, 60, 85, 120):
        add(aligned, n, 5)
    for n in (20, 35, 50):
        for fidelity in ("l1", "squared"):
            add(psd, n, fidelity)
    return table


def solved(problem: cp.Problem, solver: str, cap: float) -> dict[str, Any]:
    """Return seconds of compilation and solve, iterations, and whether the cap was met."""
    options = {
        "CLARABEL": {"time_limit": cap, "max_threads": 1},
        "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20000, "time_limit_secs": cap},
    }[solver]
    started = time.process_time()
    explicit = ko.expand(problem).problem
    data, chain, _ = explicit.get_problem_data(solver)
    compiled = time.process_time()
    raw = chain.solve_via_data(explicit, data, False, False, dict(options))
    seconds = time.process_time() - started
    status = raw["info"]["status"] if solver == "SCS" else str(raw.status)
    iterations = raw["info"]["iter"] if solver == "SCS" else raw.iterations
    # An end before the solution says nothing about the time of a solve.
    broken = any(word in status for word in ("time_limit", "MaxTime", "Numerical", "Insufficient"))
    return {
        "compile": compiled - started,
        "seconds": seconds,
        "iterations": iterations,
        "status": status,
        "complete": not broken,
    }


def bounded(problem: cp.Problem) -> float | None:
    """Return the seconds of a lower bound from multipliers, None where the bound has a closed form."""
    structure = Structure(problem)
    if sizing.relaxed_cones(structure) is None:
        return None
    for v in structure.variables:
        v.save_value(np.eye(v.shape[0]) if v.ndim == 2 else np.full(v.shape, 0.1))
    below = minorants(structure, [0.1 * term.learner.y for term in structure.risks])
    relaxed = relaxation(structure, below)
    present = [v for v in structure.variables if any(v is w for w in relaxed.variables())]
    started = time.process_time()
    conic_bound(relaxed, present, known_boxes(structure))
    return time.process_time() - started


def predicted(expected: Size, solver: str) -> float:
    cones = expected.cones
    solve = cones.interior_seconds if solver == "CLARABEL" else cones.first_order_seconds
    return cones.compilation_seconds + solve


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cap", type=float, default=60.0, help="seconds for one solve")
    parser.add_argument("--only", default="", help="cells whose names start with one of these")
    parser.add_argument("--solvers", default="CLARABEL,SCS")
    parser.add_argument("--bounds", action="store_true", help="time the bounds by multipliers too")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    print(f"{'problem':40}{'what':12}{'predicted':>11}{'measured':>11}{'ratio':>8}  iterations, status")
    for name, make in cells():
        if not name.startswith(tuple(arguments.only.split(","))):
            continue
        for what in (*arguments.solvers.split(","), *(["bound"] if arguments.bounds else [])):
            problem = make()
            expected = sizing.size(Structure(problem))
            if what == "bound":
                seconds = bounded(problem)
                if seconds is None:
                    continue
                row = {"seconds": seconds, "complete": True, "iterations": "", "status": ""}
                guess = expected.certification_seconds
            else:
                row, guess = solved(problem, what, arguments.cap), predicted(expected, what)
            ratio = guess / row["seconds"]
            rows.append({"problem": name, "what": what, "predicted": guess, "ratio": ratio, **row})
            print(
                f"{name:40}{what:12}{guess:11.3f}{row['seconds']:11.3f}{ratio:8.2f}"
                f"  {row['iterations']} {row['status']}",
                flush=True,
            )
    for what in dict.fromkeys(row["what"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["what"] == what and row["complete"]]
        right = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios)
        print(f"{what}: {right} of {len(ratios)} complete runs within a factor of {FACTOR:g}")
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
