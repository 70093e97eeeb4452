"""What the methods on an l_p ball share: how they end, and what they cost."""

from __future__ import annotations

import numpy as np

from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Outcome
from kernelopt.numerics.norms import lp_length
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array

FIXED = 5e-3  # seconds of a call, to read the problem and to describe the solution
PASS = 1e-9  # seconds for an entry of a kernel that is read once: eight bytes, at some 8 GB/s
EQUAL = 1e-3  # share of equal weights in the start: a weight that is zero would stay zero


def warm_start(read: BallProblem, control: Control) -> tuple[Array, Array | None]:
    """Return weights in the unit ball and alpha to start from: those of an earlier method, if there was one.

    Otherwise the weights are equal, and alpha is None.
    """
    earlier = control.start
    if earlier is None:
        return read.start, None
    weights = np.maximum(read.weights(earlier.point) / read.reach, 0.0)
    mixed = (1 - EQUAL) * weights + EQUAL * read.start
    alpha = None if earlier.alphas is None else np.asarray(earlier.alphas[0], dtype=float)
    return mixed / max(1.0, lp_length(mixed, read.p)), alpha


def ball_outcome(read: BallProblem, control: Control, remedy: str) -> Outcome | None:
    """Return the best weights and alpha that were reported, None if there were none."""
    if control.best is None:
        return None
    return Outcome(
        read.point(control.best),
        [control.proof],
        [(control.machines[0], None)],
        solver=control.method,
        iterations=control.iterations,
        remedy=remedy,
    )


def ball_cost(read: BallProblem, steps: float, step: float, rows: int | None = None) -> Cost:
    """Return the cost of so many steps, each of `step` seconds and of so many rows of all kernels, or all."""
    m, n = read.reach.size, read.y.size
    return Cost(FIXED + steps * (step + PASS * m * n * (n if rows is None else rows)), 8.0 * m * n**2)
