"""`method="newton"`: Newton steps on the weights over a working set of points."""

from __future__ import annotations

from dataclasses import dataclass

from kernelopt.certificates.separability import check_separable
from kernelopt.methods.control import Control
from kernelopt.methods.engine.choice import choose_provider
from kernelopt.methods.engine.search import Search
from kernelopt.methods.lp_ball.ball_methods import ball_cost, ball_outcome
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.structure.ball import BallProblem, read_ball
from kernelopt.structure.structure import Structure


@dataclass(frozen=True)
class Newton(Method):
    """Minimises the risk over the weights by Newton steps, with alpha on a working set of points.

    Parameters
    ----------
    random_state : int, default 0
        The seed of the first working set.
    """

    name = "newton"
    random_state: int = 0

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball, or why it is none."""
        return read_ball(structure)

    def cost(self, match: BallProblem) -> Cost:
        return ball_cost(match, 3.0, 1e-2)

    def run(self, match: BallProblem, control: Control) -> Outcome | None:
        check_separable(match.learner, control.check)
        with control:
            provider = choose_provider(match, control.memory, control)
            Search(match, provider, control, self.random_state).run()
        return ball_outcome(match, control, "Try method='cutting-plane' or 'exact'.")
