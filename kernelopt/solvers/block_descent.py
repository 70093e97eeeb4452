"""Block coordinate descent for l_p-norm multiple kernel learning: a machine, then its best weights."""

from __future__ import annotations

from typing import Literal

import cvxpy as cp

from kernelopt.errors import ParameterError
from kernelopt.machine import learn
from kernelopt.solvers.ball import obstacles, read_ball
from kernelopt.solvers.finish import conclude
from kernelopt.solvers.progress import Callback, Progress
from kernelopt.solvers.registry import Method, required
from kernelopt.solvers.separability import check_separable
from kernelopt.solvers.solution import Solution
from kernelopt.validation import positive

INNER = 0.05  # accuracy of a machine, as a share of the gap that is left
LOOSEST = 1e-2
REMEDY = "At p near 1 the analytic update creeps: try method='cutting-plane', or more max_iterations."


def block_descent(
    problem: cp.Problem,
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    update: Literal["descent", "best-response"] = "descent",
    max_iterations: int = 1000,
) -> Solution:
    """Alternate between the machine at fixed weights and the weights at fixed block norms.

    The update (17) of Kloft et al. (2011), monotone in the upper bound and convergent for 1 < p < inf
    (Proposition 5; the algorithm's printed line 4 points to (21) instead). `update="best-response"` is
    (21), the best weights for alpha held fixed: it is no descent, and runs into 2-cycles for small p or
    large C. It is here to teach.
    """
    read = required(read_ball(problem), "block-descent")
    if update not in ("descent", "best-response"):
        raise ParameterError(f"update must be 'descent' or 'best-response', got {update!r}.")
    check_separable(read.risk)
    positive(max_iterations, "max_iterations")
    step = read.analytic if update == "descent" else read.best_response
    w, alpha = read.start, None
    with Progress("block-descent", tol, time_limit, callback, verbose) as progress:
        for _ in range(max_iterations):
            K = read.grams.combine(read.reach * w)
            accuracy = INNER * min(LOOSEST, max(tol, progress.gap))
            machine = learn(K, read.y, read.loss, read.bias, start=alpha, tol=accuracy)
            alpha = machine.alpha
            s = read.reach * read.grams.forms(alpha)
            upper = read.offset + read.factor * machine.value
            if progress.report(read.lower(alpha, s), upper, point=read.reach * w, proof=alpha):
                break
            w = step(w, s)
        else:
            progress.stopped = f"{max_iterations} iterations were made"
    return conclude(problem, progress, {read.theta: progress.best}, [progress.proof], REMEDY)


BLOCK_DESCENT = Method("block-descent", obstacles, block_descent, lambda problem: False)
