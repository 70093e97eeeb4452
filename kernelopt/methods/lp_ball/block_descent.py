"""Block coordinate descent for l_p-norm multiple kernel learning (Kloft et al., 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelopt.certificates.separability import check_separable
from kernelopt.learner import learn
from kernelopt.methods.checkpoint import kept
from kernelopt.methods.control import STALLED, Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.on_ball import ball_cost, ball_outcome, warm_start
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import one_of, whole

INNER = 0.05  # relative gap of a machine, as a share of the current gap
LOOSEST = 1e-2  # the gap from which that share is taken at most: machines need some accuracy from the start
REMEDY = "At p near 1 the analytic update creeps: try method='cutting-plane', or more max_iterations."


@dataclass(frozen=True)
class BlockDescent(Method):
    """Alternates between the machine at fixed weights and the weights at fixed block norms.

    `update="descent"` uses the weights (17) of [1]_, the minimiser for fixed block norms. The objective
    decreases in every iteration, and converges to the optimum for 1 < p < inf (Proposition 5). The printed
    algorithm refers to (21) in its line 4 instead. `update="best-response"` is that update: the weights that
    maximise the dual for fixed alpha. It does not decrease the objective, and ends in cycles of length two
    for small p or large C. It is provided for teaching.

    Parameters
    ----------
    update : "descent" or "best-response", default "descent"
    max_iterations : int > 0, default 1000

    References
    ----------
    .. [1] Kloft et al., lp-norm multiple kernel learning, JMLR 12 (2011).
    """

    name = "block-descent"
    update: Literal["descent", "best-response"] = "descent"
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        one_of(self.update, "update", ("descent", "best-response"))
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball, or why it is none."""
        return read_ball(structure)

    def cost(self, match: BallProblem) -> Cost:
        # Measured: the update contracts more slowly the nearer p is to 1, and at p = 1 the number of
        # iterations grows with the square of the number of kernels. A machine with a warm start takes some
        # milliseconds plus O(n^2) operations.
        m, n = match.reach.size, match.y.size
        iterations = min(self.max_iterations, 4 + 10 / (match.p - 1) if match.p > 1 else 3 * m**2)
        return ball_cost(match, iterations, 4e-3 + 2e-8 * n**2)

    def run(self, match: BallProblem, control: Control) -> Outcome | None:
        check_separable(match.learner)
        step = match.analytic_weights if self.update == "descent" else match.best_weights
        w, alpha = warm_start(match, control)
        with control:
            for _ in range(self.max_iterations):
                K = match.grams.combine(match.reach * w)
                accuracy = INNER * min(LOOSEST, max(control.tol, control.gap))
                machine = learn(K, match.y, match.loss, match.bias, alpha, accuracy)
                alpha = machine.alpha
                s = match.reach * match.grams.forms(alpha)
                upper = match.offset + match.factor * machine.value
                lower, theta = match.lower(alpha, s), match.reach * w
                state = kept(w=w, alpha=alpha)
                if control.report(lower, upper, point=theta, proof=alpha, machines=[alpha], state=state):
                    break
                if self.update == "descent" and control.stalled:
                    control.stopped = STALLED
                    break
                w = step(w, s)
            else:
                control.stopped = f"{self.max_iterations} iterations were made"
        return ball_outcome(match, control, REMEDY)
