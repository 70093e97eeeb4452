"""What the methods on an l_p ball share: how they end, and what they cost."""

from __future__ import annotations

from kernelopt.solvers.control import Control
from kernelopt.solvers.method import Cost, Outcome
from kernelopt.structure.ball import Ball

FIXED = 5e-3  # seconds of a call, to read the problem and to describe the solution
PASS = 1e-9  # seconds for an entry of a kernel that is read once: eight bytes, at some 8 GB/s


def ball_outcome(read: Ball, control: Control, remedy: str) -> Outcome | None:
    """Return the best weights and alpha that were reported, None if there were none."""
    if control.best is None:
        return None
    alphas = [control.proof]
    return Outcome(
        read.point(control.best),
        alphas,
        solver=control.method,
        iterations=control.iterations,
        remedy=remedy,
    )


def ball_cost(read: Ball, steps: float, step: float, rows: int | None = None) -> Cost:
    """Return the cost of so many steps, each of `step` seconds and of so many rows of all kernels, or all."""
    m, n = read.reach.size, read.y.size
    return Cost(FIXED + steps * (step + PASS * m * n * (n if rows is None else rows)), 8.0 * m * n**2)
