"""What the certificate costs: its share of the whole call, by route, in one run.

Every cell is solved by "auto" to a certified gap of 1e-5. The share is the time spent on certificates
(`certify_time`, those that a method makes itself included) over the time from the arrays to the solution. The
goal is a share of less than 10 % from n = 1000 on. The formulations of similarities have semidefinite
variables of order n, so they are run at a fifth of the points, and the goal is not asked of them there.

The functions that numba compiles are compiled beforehand. A cell is run three times, and the run of the
median share counts.

    python benchmarks/certificates.py [--points 1000] [--kernels 10] [--only lp_norm] [--json costs.json]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cvxpy as cp
from auto_grid import (
    FIDELITIES,
    answers,
    data,
    of_functional,
    of_loss,
    of_margin,
    of_pairs,
    of_similarities,
    of_triplets,
    one_class,
    warm_up,
)
from rich.console import Console
from rich.table import Table

import kernelopt as ko
from formulations import lanckriet, lp_norm, similarity

TOL, GOAL, LARGE, REPEATS = 1e-5, 0.1, 1000, 3


@dataclass
class Cost:
    """Seconds from the arrays to the solution, and of its certificates."""

    name: str
    n: int
    method: str
    route: str
    seconds: float
    certifying: float
    gap: float

    @property
    def share(self):
        """The part of the time that its certificates take."""
        return self.certifying / self.seconds


class Problem:
    """A problem in words, solved like a formulation."""

    def __init__(self, problem):
        self.problem = problem

    def solve(self, method="auto", **options):
        """Solve it by kernelopt."""
        return ko.solve(self.problem, method, **options)


def compared(n, m):
    """A risk under a trace, with two entries of the kernel compared: no closed form bounds it."""
    K = ko.combine(mu := cp.Variable(m, nonneg=True), grams := ko.Grams.from_array(data(n, m)[0]))
    near = ko.entries(K, [0], [1]) >= ko.entries(K, [0], [2])
    risk = ko.risk(K, answers(n, m, "hinge"), ko.hinge(1.0))
    return Problem(cp.Problem(cp.Minimize(risk + cp.sum_squares(mu)), [ko.trace(K) == grams.n_points, near]))


def shared(n, m):
    """Two risks that share their weights in an l_2 ball."""
    K = ko.combine(mu := cp.Variable(m, nonneg=True), data(n, m)[0])
    y = answers(n, m, "hinge")
    risks = ko.risk(K, y, ko.hinge(1.0)) + ko.risk(K, -y, ko.squared_hinge(0.5))
    return Problem(cp.Problem(cp.Minimize(risks), ko.lp_ball(mu, 2)))


def cells(n, m):
    """Yield the name of every cell, its number of points, and what builds it."""
    for name in ("soft_margin", "soft_margin_squared", "hard_margin", "learned_tau", "alignment"):
        yield f"lanckriet.{name}", n, partial(of_margin, getattr(lanckriet, name), n, m)
    for p in (1.0, 4 / 3, 2.0, float("inf")):
        for loss in ("hinge", "squared_hinge", "logistic", "epsilon_insensitive"):
            yield f"lp_norm.primal p={p:.3g} {loss}", n, partial(of_loss, lp_norm.primal, n, m, loss, p=p)
    yield "lp_norm.tikhonov", n, partial(of_loss, lp_norm.tikhonov, n, m, "hinge", p=2.0, penalty=0.5)
    yield "lp_norm.elastic_net", n, partial(of_loss, lp_norm.elastic_net, n, m, "hinge", l1=0.5, l2=0.5)
    yield "lp_norm.non_isotropic", n, partial(of_pairs, n, m, "hinge")
    yield "lp_norm.one_class", n, partial(one_class, n, m)
    yield "two risks", n, partial(shared, n, m)
    yield "compared entries", n, partial(compared, n, m)
    for weights in ("free", "nonnegative", "simplex"):
        yield f"linear_functional {weights}", n, partial(of_functional, n, m, weights)
    for cone in ("dominant", "nonnegative"):
        yield f"triplet_lp.kernel_design {cone}", n, partial(of_triplets, n, m, cone)
    for name in ("single_kernel", "kernel_per_similarity", "restricted_spectral"):
        for fidelity in FIDELITIES:
            builder, fifth = getattr(similarity, name), n // 5
            build = partial(of_similarities, builder, fifth, 3, fidelity, "hinge")
            yield f"similarity.{name} {fidelity}", fifth, build


def measured(name, n, build):
    """Return the run of the median share."""
    runs = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        solution = build().solve(tol=TOL)
        seconds, certificate = time.perf_counter() - started, solution.certificate
        spent = solution.certify_time
        runs.append(Cost(name, n, solution.method, certificate.route, seconds, spent, solution.gap))
    return sorted(runs, key=lambda run: run.share)[REPEATS // 2]


def summary(costs):
    """Return the worst share of every route, of the cells that have a goal."""
    large = [cost for cost in costs if cost.n >= LARGE]
    for route in sorted({cost.route for cost in large}):
        worst = max((cost for cost in large if cost.route == route), key=lambda cost: cost.share)
        yield f"{route}: worst share from n = {LARGE} on {worst.share:.1%}, {worst.name} (goal {GOAL:.0%})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=LARGE)
    parser.add_argument("--kernels", type=int, default=10)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--json", help="file to write")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    warm_up(lambda build, method: build().solve(method, time_limit=1.0))
    console, costs = Console(width=140), []
    table = Table(title="seconds from the arrays to the solution, and the share of the certificates")
    for column in ("cell", "n", "method", "route", "seconds", "certificates", "share", "gap"):
        table.add_column(column, justify="left" if column in ("cell", "method", "route") else "right")
    for name, n, build in cells(chosen.points, chosen.kernels):
        if chosen.only not in name:
            continue
        cost = measured(name, n, build)
        costs.append(cost)
        row = [name, f"{n}", cost.method, cost.route, f"{cost.seconds:.3g}", f"{cost.certifying:.3g}"]
        row += [f"{cost.share:.1%}", f"{cost.gap:.0e}"]
        table.add_row(*row)
        console.print("  ".join(row), highlight=False, soft_wrap=True)
        if chosen.json:
            Path(chosen.json).write_text(json.dumps([asdict(cost) for cost in costs], indent=1))
    console.print(table)
    for line in summary(costs):
        console.print(line, highlight=False)


if __name__ == "__main__":
    main()
