"""`first-order-dual`: what it needs, and its loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import cvxpy as cp

from kernelopt.errors import InputError
from kernelopt.solvers.finish import settle
from kernelopt.solvers.first_order.certificate import certificate
from kernelopt.solvers.first_order.entrywise import entrywise
from kernelopt.solvers.first_order.frobenius import frobenius
from kernelopt.solvers.first_order.iterate import Iterate
from kernelopt.solvers.first_order.squared import squared
from kernelopt.solvers.nearness import Nearness, read_nearness
from kernelopt.solvers.progress import Callback, Progress
from kernelopt.solvers.registry import Method, required
from kernelopt.solvers.sizing import size
from kernelopt.solvers.solution import Solution
from kernelopt.solvers.spectrahedra import size_multipliers
from kernelopt.spectra.ascent import quadratic_curve
from kernelopt.validation import Array, positive

ROUNDING = 1e-11  # relative, of the sums in the loop against the dense algebra of the certificate
SMALL = 10  # points up to which "auto" is exact: a conic solve is done before a compiler is imported
LARGE = 5.0  # predicted seconds of an exact solve
REMEDY = "Try method='exact' if it fits, or accept the bounds."
ITERATE: dict[str, Callable[[Nearness, Progress], Iterator[Iterate]]] = {
    "l1": entrywise,
    "frobenius": frobenius,
    "squared_frobenius": squared,
}


def first_order_dual(
    problem: cp.Problem,
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    max_iterations: int = 10_000,
) -> Solution:
    """Learn kernels near similarities by accelerated steps on the dual.

    For fixed alpha the best kernel is the projection of a fixed matrix plus a multiple of zz', a rank-one
    update of one eigendecomposition. The squared Frobenius norm needs that one alone; for the Frobenius
    norm the weights of squares are iterated; for entrywise absolute values it is the K-step of an
    alternating direction method. Every report is certified: the duals of all three are free, or cost one
    smallest eigenvalue.
    """
    read = required(read_nearness(problem), "first-order-dual")
    positive(max_iterations, "max_iterations")
    best: Iterate
    with Progress("first-order-dual", tol, time_limit, callback, verbose) as progress:
        for iterate in ITERATE[read.kind](read, progress):
            lower, upper = (read.factor * bound + read.offset for bound in (iterate.lower, iterate.upper))
            slack = ROUNDING * abs(upper)
            if progress.best is None or upper + slack < progress.upper:
                best = iterate
            point: dict[int, Array] = {}
            if callback is not None:  # making it costs a decomposition
                point = {b.piece.variable.id: x for b, x in zip(read.blocks, iterate.X(), strict=True)}
            if progress.report(lower - slack, upper + slack, point=point, proof=iterate.proof):
                break
            if progress.iterations >= max_iterations:
                progress.stopped = f"{max_iterations} iterations were made"
                break
    found, least = certificate(problem, read, best, progress.proof)
    duals = size_multipliers(problem, [block.piece for block in read.blocks], least)
    return settle(problem, progress, found, [(best.alpha, 1 / best.gamma)], duals, REMEDY)


def obstacles(problem: cp.Problem) -> list[str]:
    """Return what stands in the way: the form of the problem, or a loss with another dual."""
    read = read_nearness(problem)
    if isinstance(read, str):
        return [read]
    learner = read.risk.learner
    try:
        quadratic_curve(learner.loss, learner.y)
    except InputError:
        return [
            f"its loss must be one of the hinges or the squared loss, not {learner.loss!r} ('mirror-descent' "
            "and 'exact' take any)"
        ]
    return []


def suits(problem: cp.Problem) -> bool:
    """Whether "auto" takes it: from some points on, but where its bounds are weak only for large problems."""
    read = read_nearness(problem)
    if isinstance(read, str):
        return False
    weak = read.kind == "l1" and any(block.total is None for block in read.blocks)
    return size(problem).seconds > LARGE if weak else read.n_points > SMALL


FIRST_ORDER_DUAL = Method("first-order-dual", obstacles, first_order_dual, suits)
