"""`method="newton"`: Newton steps on the weights over a working set of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.separability import check_separable
from kernelopt.methods.control import Control
from kernelopt.methods.engine.choice import choose_provider, provider_bytes, provider_name, usual_support
from kernelopt.methods.engine.search import Search
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.methods.engine.working_set import is_sparse
from kernelopt.methods.gap_safe import zero_kernels
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.on_ball import FIXED, ball_outcome
from kernelopt.structure.ball import BallProblem, read_risks_on_ball
from kernelopt.structure.structure import Structure
from kernelopt.validation import whole


@dataclass(frozen=True)
class Newton(Method):
    """Minimises the risk over the weights by Newton steps, with alpha on a working set of points.

    At fixed weights w the machine is trained by SMO, or by Newton's method for a loss whose dual is smooth
    [1]_. The samples whose alpha is free give the second derivatives of the risk as a function of the
    weights, and the quadratic model is minimised over the l_p ball, for any p in [1, inf] [2]_. A working
    set of points grows by those that a check of all points finds outside their margin. Steps are made with
    kernels rounded to float32, until that or the training limits the gap, as it may at large C on kernels of
    low rank; then in float64, with other solvers for the training. All reported bounds are computed in
    float64 from the kernels themselves. The objective may have a linear part, the prices of the weights.

    From points, memory grows with the square of the working set, which ends a little larger than the
    support. Where it would exceed `memory`, or the memory of the machine, the call raises an error, mostly
    long before: the set is met in parts of all points, and its first sizes tell its last one.

    Several risks of one kernel, such as the risks of the classes of a multi-class problem, are minimised
    together: each has its machine, on one working set, and their second derivatives are added.

    At p = 1, for one risk, kernels that are proved to have weight zero at every optimum are named at the end,
    in `Solution.details["dropped"]`: those that the rule of `ko.screen` finds in a small part of the time of
    the call. The search itself drops none. Proofs need a gap near the tolerance, when the search is over.

    Parameters
    ----------
    random_state : int >= 0, default 0
        The seed of the first working set. The result is the same for the same seed.

    References
    ----------
    .. [1] Fan, Chen, Lin, Working set selection using second order information, JMLR 6 (2005).
    .. [2] Chapelle, Rakotomamonjy, Second order optimization of kernel parameters, NIPS Workshop on Kernel
       Learning (2008).
    """

    name = "newton"
    random_state: int = 0

    def __post_init__(self) -> None:
        whole(self.random_state, "random_state", 0, "a whole number that is not negative")

    def match(self, structure: Structure) -> BallProblem | str:
        """Return the problem over an l_p ball; its loss must have second derivatives."""
        read = read_risks_on_ball(structure)
        if isinstance(read, str):
            return read
        origin = np.zeros(read.n)
        for learner in read.learners:
            loss = learner.loss
            if not loss.quadratic and loss.hessian_diag(origin, learner.y) is None:
                wanted = "a piecewise quadratic dual or a `hessian_diag`"
                return f"its loss must have {wanted}, {loss!r} has neither"
        return read

    def remark(self, match: BallProblem) -> str:
        return f"it reads the kernels by the provider {provider_name(match)!r}"

    def cost(self, match: BallProblem) -> Cost:
        m, n, machines = match.reach.size, match.n, len(match.learners)
        seconds = FIXED + machines * (
            SETTINGS.usual_steps * SETTINGS.step_seconds
            + (SETTINGS.training_seconds + SETTINGS.entry_seconds * m) * n**2
        )
        if provider_name(match) == "radial" and n >= SETTINGS.grown:
            seconds = min(seconds, machines * SETTINGS.pair_seconds * n * usual_support(match))
        dense = sum(not is_sparse(each.loss, each.loss.curve(each.y)) for each in match.learners)
        seconds += dense * SETTINGS.factorisation_seconds * n**3
        return Cost(seconds, provider_bytes(match))

    def conclusions(self, match: BallProblem, certificate: Certificate) -> dict[str, Any]:
        if match.p != 1 or match.priced or len(match.learners) > 1:
            return {}
        most = SETTINGS.screening_share * self.cost(match).seconds / SETTINGS.operation_seconds
        return {"dropped": zero_kernels(certificate, match, most)}

    def run(self, match: BallProblem, control: Control) -> Outcome | None:
        for learner in match.learners:
            check_separable(learner)
        with control:
            provider = choose_provider(match, control.memory, control.tol)
            Search(match, control, self.random_state).run(provider)
        return ball_outcome(match, control, "Try method='cutting-plane' or 'exact'.")
