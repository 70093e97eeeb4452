"""Seconds of every method to certified gaps, for kernels near similarities, next to SCS and Clarabel.

Digits, even against odd; similarities are Gaussian in half of the pixels plus symmetric noise, so
indefinite; hinge loss. For every form (ESKL, EMKL, REKL) and fidelity: seconds until a method has proved
gaps of 1e-2, 1e-3 and 1e-4 (of three runs the median, and the whole call of `solve` with reading and
certificate), and the seconds of the peers on the same problem in plain cvxpy. A peer proves nothing: its
time is that of the loosest tolerance at which its value is as near to the optimum as the gap says, which
we know to 1e-6. The second table varies seed, rho, trace, C and m. Read the ratios, not the seconds.

    python benchmarks/similarity.py [--points 50 100 200 400] [--vary 100] [--output similarity.json]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from formulations import similarity

GAPS = (1e-2, 1e-3, 1e-4)
REFERENCE = 1e-6  # gap to which the optimum is known when a peer is judged
EPS = (1e-2, 1e-3, 1e-4, 1e-5)  # tolerances of SCS, from the loosest
LIMIT, PATIENCE = 120.0, 10.0  # seconds a run may take: of a peer, and of ours
SEMIDEFINITE = 50  # points up to which Clarabel is tried on semidefinite problems
FORMS = {
    "ESKL": similarity.single_kernel,
    "EMKL": similarity.kernel_per_similarity,
    "REKL": similarity.restricted_spectral,
}
RHO = {"squared_frobenius": 0.01, "frobenius": 0.5, "l1": 0.002}
SPECTRAL_L1 = 0.1  # rho of REKL with l1: it sums n differences, not n^2
DISTANCES = {
    "squared_frobenius": cp.sum_squares,
    "frobenius": lambda D: cp.norm(cp.vec(D, order="F"), 2),
    "l1": lambda D: cp.sum(cp.abs(D)),
}


@dataclass(frozen=True)
class Case:
    """One problem: a form, a fidelity, and what the second table varies."""

    form: str
    fidelity: str
    n: int
    m: int = 2
    seed: int = 0
    C: float = 1.0
    rho: float = 1.0  # times the usual one
    trace: float = 1.0  # times n

    @property
    def price(self):
        spectral = self.form == "REKL" and self.fidelity == "l1"
        return self.rho * (SPECTRAL_L1 if spectral else RHO[self.fidelity])

    def data(self):
        """Indefinite similarities of n digits, and even against odd."""
        digits, target = load_digits(return_X_y=True)
        rng = np.random.default_rng(self.seed)
        chosen = rng.permutation(len(digits))[: self.n]
        X, y = digits[chosen] / 16, np.where(target[chosen] % 2 == 0, 1.0, -1.0)
        S = []
        for _ in range(self.m):
            Z = X[:, rng.permutation(64)[:32]]
            squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
            noise = 0.15 * rng.standard_normal((self.n, self.n))
            S.append(np.exp(-2 * squares / squares.mean()) + (noise + noise.T) / 2)
        return np.array(S), y

    def learning(self):
        S, y = self.data()
        options = {"C": self.C, "rho": self.price, "trace": self.trace * self.n, "fidelity": self.fidelity}
        return FORMS[self.form](S, y, **options)

    def plain(self):
        """The same problem as an optimiser would hand it to a conic solver."""
        S, y = self.data()
        n, distance, tau = self.n, DISTANCES[self.fidelity], self.trace * self.n
        f, b, t, cons = 0.0, cp.Variable(), cp.Variable(), []
        if self.form == "ESKL":  # the dual of the machine inside: one matrix inequality of order n + 1
            K, t = cp.Variable((n, n), symmetric=True), cp.Variable()
            up, down = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
            column = cp.reshape(1 + up - down + b * y, (n, 1), order="F")
            corner = cp.reshape(t, (1, 1), order="F")
            inequality = cp.bmat([[cp.multiply(np.outer(y, y), K), column], [column.T, corner]]) >> 0
            value = t / 2 + self.C * cp.sum(down) + self.price * sum(distance(K - s) for s in S)
            return cp.Problem(cp.Minimize(value), [inequality, cp.trace(K) == tau])
        value = t / 2
        for s in S:
            if self.form == "EMKL":
                M = cp.Variable((n + 1, n + 1), PSD=True)
                cons += [M[n, n] <= t, cp.trace(M[:n, :n]) == tau]
                f, value = f + M[:n, n], value + self.price * distance(M[:n, :n] - s)
            else:
                lam, V = np.linalg.eigh(s)
                mu, c, r = cp.Variable(n, nonneg=True), cp.Variable(n), cp.Variable(n)
                cons += [
                    cp.SOC(mu + r, cp.vstack([2 * c, mu - r]), axis=0),
                    cp.sum(r) <= t,
                    cp.sum(mu) == tau,
                ]
                f, value = f + V @ c, value + self.price * distance(mu - lam)
        return cp.Problem(cp.Minimize(value + self.C * cp.sum(cp.pos(1 - cp.multiply(y, f + b)))), cons)


def ours(case, method, limit):
    """Seconds to each gap, to the end of `solve`, and the last gap; medians of three runs."""
    runs = []
    for _ in range(3):
        learning = case.learning()
        started = time.perf_counter()
        found = learning.solve(method, tol=GAPS[-1], time_limit=limit)
        total = time.perf_counter() - started
        reached = [first(found.history, gap) for gap in GAPS]
        runs.append([*reached, total, found.gap])
        if total > 5:
            break
    columns = zip(*runs, strict=True)
    return [None if any(v is None for v in column) else float(np.median(column)) for column in columns]


def first(history, gap):
    """Seconds until the bounds were within a gap, None if they never were."""
    near = (t for t, low, high in history if high - low <= gap * max(1.0, abs(high)))
    return next(near, None)


def peer(case, solver, optimum):
    """Seconds to a value as near to the optimum as each gap, and the last error."""
    settings = [{"eps": eps, "max_iters": 10**6, "time_limit_secs": LIMIT} for eps in EPS]
    settings = settings if solver == "SCS" else [{"time_limit": LIMIT}]
    reached, error = [None] * len(GAPS), float("nan")
    for options in settings:
        problem = case.plain()
        started = time.perf_counter()
        try:
            problem.solve(solver=solver, **options)
        except cp.SolverError:
            break
        spent = time.perf_counter() - started
        if problem.value is None:
            break
        error = abs(problem.value - optimum) / max(1.0, abs(optimum))
        reached = [spent if r is None and error <= g else r for r, g in zip(reached, GAPS, strict=True)]
        if reached[-1] is not None or spent >= LIMIT:
            break
    return [*reached, reached[-1], error]


def compare(case, methods):
    """Every method and every peer on one problem."""
    best = case.learning().solve("first-order-dual", tol=REFERENCE, time_limit=LIMIT)
    optimum = (best.lower + best.upper) / 2
    found = {method: ours(case, method, PATIENCE) for method in methods}
    found["SCS"] = peer(case, "SCS", optimum)
    if case.form == "REKL" or case.n <= SEMIDEFINITE:
        found["CLARABEL"] = peer(case, "CLARABEL", optimum)
    return {"seconds": found, "reference gap": best.gap}


def show(console, title, cells):
    """A row per problem and method: seconds to each gap, with the ratios of the peers' seconds to ours."""
    table = Table(title=title)
    for column in ("problem", "by", *(f"{gap:.0e}" for gap in GAPS), "solve()", "last gap or error"):
        table.add_column(column, justify="left" if column in ("problem", "by") else "right", no_wrap=True)
    for name, cell in cells.items():
        mine = cell["seconds"]["first-order-dual"]
        for by, row in cell["seconds"].items():
            shown = []
            for ours_, theirs in zip(mine[:4], row[:4], strict=True):
                ratio = f" ({theirs / ours_:.0f}x)" if theirs and ours_ and row is not mine else ""
                shown.append("-" if theirs is None else f"{theirs:.3f} s{ratio}")
            table.add_row(name if row is mine else "", by, *shown, f"{row[4]:.0e}")
    console.print(table)


def variations(n):
    """One thing at a time, around the usual problem."""
    for form in FORMS:
        for fidelity in RHO:
            usual = Case(form, fidelity, n)
            changes = [{"seed": 1}, {"seed": 2}, {"rho": 0.1}, {"rho": 10.0}, {"trace": 0.3}, {"trace": 3.0}]
            changes += [{"C": 0.1}, {"C": 10.0}, {"m": 1}, {"m": 3}]
            for change in changes:
                label = ", ".join(f"{key} {value:g}" for key, value in change.items())
                yield f"{form} {fidelity}, {label}", replace(usual, **change)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="*", default=[50, 100, 200, 400])
    parser.add_argument("--vary", type=int, default=100, help="points of the second table, 0 for none")
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--output", default="similarity.json")
    chosen = parser.parse_args()
    console, report = Console(width=170), {}
    warnings.simplefilter("ignore")  # what is not reached is a cell of the table
    with threadpool_limits(1, user_api="blas"):
        for fidelity in RHO:
            for form in FORMS:
                Case(form, fidelity, 30).learning().solve("first-order-dual", tol=1e-2)  # compile the loops
        for n in chosen.points:
            cells = {}
            for form in chosen.forms:
                for fidelity in RHO:
                    with console.status(f"n = {n}: {form} {fidelity}"):
                        case = Case(form, fidelity, n)
                        cells[f"{form} {fidelity}"] = compare(case, ("first-order-dual", "mirror-descent"))
            show(console, f"n = {n}, m = 2: seconds, and times first-order-dual", cells)
            report[f"n={n}"] = cells
            Path(chosen.output).write_text(json.dumps(report, indent=1))
        cells = {}
        for name, case in variations(chosen.vary) if chosen.vary else ():
            if case.form in chosen.forms:
                with console.status(name):
                    cells[name] = compare(case, ("first-order-dual",))
        if cells:
            show(console, f"n = {chosen.vary}: other data and settings", cells)
            report["variations"] = cells
    Path(chosen.output).write_text(json.dumps(report, indent=1))
    console.print(f"written: {chosen.output}")


if __name__ == "__main__":
    main()
