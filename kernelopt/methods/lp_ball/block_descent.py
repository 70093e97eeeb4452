"""Block coordinate descent for l_p-norm multiple kernel learning (Kloft et al., 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelopt.learner import learn
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost
from kernelopt.methods.on_ball import BallMethod, analytic_weights, ball_cost, best_weights, report_on_ball
from kernelopt.structure.ball import BallProblem
from kernelopt.validation import Array, one_of, whole

INNER = 0.05  # relative gap of a machine, as a share of the current gap
LOOSEST = 1e-2  # the gap from which that share is taken at most: machines need some accuracy from the start


@dataclass(frozen=True)
class BlockDescent(BallMethod):
    """Alternates between the machine at fixed weights and the weights at fixed block norms.

    `update="descent"` uses the weights (17) of [1]_, the minimiser for fixed block norms. The objective
    decreases in every iteration, and converges to the optimum for 1 < p < inf (Proposition 5). The printed
    algorithm refers to (21) in its line 4 instead. `update="best-response"` is that update: the weights that
    maximise the dual for fixed alpha. It does not decrease the objective, and ends in cycles of length two
    for small p or large C. It is provided for teaching.

    Parameters
    ----------
    update : "descent" or "best-response", default "descent"
        The update that descends, or the best response, which may run in circles.
    max_iterations : int > 0, default 1000
        Updates of the weights.

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
    """

    name = "block-descent"
    advice = "At p near 1 the analytic update creeps: try method='cutting-plane', or more max_iterations."
    update: Literal["descent", "best-response"] = "descent"
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        one_of(self.update, "update", ("descent", "best-response"))
        whole(self.max_iterations, "max_iterations")

    def cost(self, match: BallProblem) -> Cost:
        # Measured: the update contracts more slowly the nearer p is to 1, and at p = 1 the number of
        # iterations grows with the square of the number of kernels. A machine with a warm start takes some
        # milliseconds plus O(n^2) operations.
        m, n = match.reach.size, match.y.size
        iterations = min(self.max_iterations, 4 + 10 / (match.p - 1) if match.p > 1 else 3 * m**2)
        return ball_cost(match, iterations, 4e-3 + 2e-8 * n**2)

    def minimise(self, read: BallProblem, control: Control, w: Array, alpha: Array | None) -> None:
        descent = self.update == "descent"
        for _ in control.counted(self.max_iterations):
            accuracy = INNER * min(LOOSEST, max(control.tol, control.gap))
            K = read.grams.combine(read.reach * w)
            machine = learn(K, read.y, read.loss, read.bias, alpha, accuracy)
            alpha, upper = machine.alpha, read.offset + read.factor * machine.value
            s = read.reach * read.grams.forms(alpha)
            if report_on_ball(read, control, w, alpha, s, upper) or (descent and control.stall()):
                return
            w = analytic_weights(w, s, read.p) if descent else best_weights(read, w, s)
