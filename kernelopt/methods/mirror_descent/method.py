"""The method "mirror-descent": risks and convex terms over spectrahedra and simplices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.lower.closed import bound_over
from kernelopt.certificates.separability import check_separable
from kernelopt.fidelities import l1
from kernelopt.methods.checkpoint import State
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.mirror_descent.composite import Composite, DualPoint, EvaluatedPoint, read_composite
from kernelopt.methods.mirror_descent.dual_averaging import EntropyIterate, Steps
from kernelopt.methods.mirror_descent.settings import SETTINGS
from kernelopt.methods.results import closed_certificate
from kernelopt.running import check
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.structure import RiskTerm, Structure, every_multiplier
from kernelopt.validation import one_of, whole

SLOW = "Sums of absolute values have bounds that come in like 1 / sqrt(iterations)."


@dataclass(frozen=True)
class MirrorDescent(Method):
    """Minimises over PSD matrices and non-negative vectors of bounded size by mirror descent with entropies.

    It applies to risks with any loss, plus convex terms with subgradients. An iteration takes one
    eigendecomposition for each matrix. `step="theorem"` is the constant step for a horizon of
    `max_iterations`. `step="adaptive"` needs no horizon and is far faster in practice. It also evaluates the
    objective at points beside the sequence when it reports.

    `update="as-printed"` is provided for teaching. Algorithms 1 and 2 of Kundu et al. (2010) multiply the
    eigenvalues of the last matrix by exp(-eta d), where d are the eigenvalues of the gradient, and replace
    the eigenvectors by the eigenvectors of the gradient. That is the mirror step only if both matrices
    commute and their eigenvalues are sorted alike, as for vectors. Otherwise the iteration loses the
    eigenvectors of the matrix, and does not converge.

    The lower bound is the minimum of an affine minorant of the objective over the feasible set. A report
    takes the largest of the bounds of several minorants: the minorants of the evaluated points, and the
    minorant of the weighted average of all dual points so far. In each minorant the subgradients of `Radial`
    fidelities are replaced by better subgradients, see `Composite.sharpened`.

    Parameters
    ----------
    step : "adaptive" or "theorem", default "adaptive"
        Adaptive steps, or the constant step of the theorem.
    update : "averaging" or "as-printed", default "averaging"
        Averages of the iterates, or the update as it is printed, for teaching.
    max_iterations : int > 0, default 1000
        Steps.
    """

    name = "mirror-descent"
    step: Literal["adaptive", "theorem"] = "adaptive"
    update: Literal["averaging", "as-printed"] = "averaging"
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        one_of(self.step, "step", ("adaptive", "theorem"))
        one_of(self.update, "update", ("averaging", "as-printed"))
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Composite | str:
        """Return the problem as risks and convex terms over bounded pieces, or the reason why it is none."""
        return read_composite(structure)

    def cost(self, match: Composite) -> Cost:
        order = max((p.variable.shape[0] for p in match.pieces if p.is_matrix), default=0)
        points = max((t.risk.learner.n for t in match.trainers), default=0)
        weights = sum(p.variable.size for p in match.pieces if not p.is_matrix)
        machines = len(match.trainers) * (2e-3 + 2e-8 * points**2) + 2e-9 * weights * points**2
        eigen = sum(p.is_matrix for p in match.pieces) * (3e-4 + 6e-9 * order**3)
        # Measured iterations to a gap of 1e-5: 80 to 330 for risks over weights alone, about 100 for smooth
        # losses with squared distances. Other problems rarely reach that gap.
        weights_alone = not (order or match.fidelities or match.other_terms)
        squares = not match.other_terms and all(f.fidelity.quadratic for _, f in match.fidelities)
        smooth = squares and all(has_smooth_loss(trainer.risk) for trainer in match.trainers)
        few = SETTINGS.smooth_iterations if smooth else SETTINGS.weight_iterations
        iterations = min(self.max_iterations, few if weights_alone or smooth else self.max_iterations)
        return Cost(iterations * (SETTINGS.step_seconds + machines + eigen), certified=True)

    def run(self, match: Composite, control: Control) -> Outcome | None:
        for trainer in match.trainers:
            check_separable(trainer.risk.learner)
        iterates = [EntropyIterate(piece, self.update == "as-printed") for piece in match.pieces]
        steps = Steps(iterates, self.max_iterations if self.step == "theorem" else None)
        use_extra = (self.step, self.update) == ("adaptive", "averaging")
        run = MirrorDescentRun(match, steps, use_extra)
        best: EvaluatedPoint | None = None
        if control.resumed:
            run.restore(control.resumed)
        with control:
            for count in control.counted(self.max_iterations):
                last = count == self.max_iterations - 1 or control.out_of_time
                gap = max(control.tol, control.gap) * max(abs(control.upper), control.floor)
                found, lower, proof = run.step(
                    SETTINGS.machine_accuracy * gap, last or count % SETTINGS.report_every == 0
                )
                if best is None or found.value < control.upper:
                    best = found
                point = match.point(found.points)
                if control.report(lower, found.value, point=point, proof=proof, state=run.state):
                    break
        if best is None:
            return None
        with control.certifying():
            certificate, known = certify_dual(match, best, control.proof or best.dual)
        return Outcome(
            match.point(best.points),
            multipliers=every_multiplier(match.structure, known),
            certificate=certificate,
            solver=self.name,
            iterations=control.iterations,
            remedy=remedy(match, control.alternatives),
        )


def remedy(match: Composite, alternatives: Callable[[], tuple[str, ...]]) -> str:
    """Return what to try where the gap stays above the tolerance.

    `alternatives` returns the names of the methods that apply.
    """
    more = "Give kernelopt.solve more max_iterations"
    if not any(isinstance(term.fidelity, l1) for _, term in match.fidelities):
        return f"{more}."
    faster = "'first-order-dual'" if "first-order-dual" in alternatives() else "'exact'"
    return f"{SLOW} {more}, or method={faster}."


def has_smooth_loss(term: RiskTerm) -> bool:
    """Whether the dual of the loss is strongly concave, so that the risk is smooth in its kernel."""
    loss, y = term.learner.loss, term.learner.y
    return not loss.quadratic or bool(np.all(loss.curve(y).curvature > 0))


class MirrorDescentRun:
    """The state of a run: the sequence of points, the average of its dual variables, and extra points.

    Attributes
    ----------
    here : EvaluatedPoint or None
        The objective at the current points.
    average : DualPoint or None
        The weighted average of the dual points so far.
    extra : EvaluatedPoint or None
        The objective at the last extra point, which is not part of the sequence.
    """

    def __init__(self, problem: Composite, steps: Steps, use_extra: bool) -> None:
        self.problem, self.steps = problem, steps
        self.here: EvaluatedPoint | None = None
        self.average: DualPoint | None = None
        self.weight = 0.0
        self.use_extra = use_extra
        self.extra: EvaluatedPoint | None = None

    def step(self, slack: float, reporting: bool) -> tuple[EvaluatedPoint, float, DualPoint]:
        """Make one step; return the best evaluated point, a lower bound, and the dual point that proves it.

        The bound is minus infinity unless `reporting`. Then it is the largest of the bounds of the averaged
        dual point and of the dual points of the evaluated points. `slack` is the allowed gap of the machines.
        """
        self.here = here = self.problem.evaluate(self.steps.points, self.here, slack)
        check()
        weight = self.steps.move(self.problem.affine(here.dual)[1])
        self.weight += weight
        share = weight / self.weight if self.weight > 0 else 1.0
        self.average = here.dual if self.average is None else self.average.combined(here.dual, share)
        if not reporting:
            return here, -np.inf, self.average
        # The extra point is the newest iterate, with the pieces that `sharpened` replaces for the average.
        check()
        start = self.steps.newest if self.use_extra else here.points
        lower, proof, points = self.problem.sharpened(self.average, start)
        evaluated = [here]
        if self.use_extra:
            self.extra = self.problem.evaluate(points, self.extra, slack)
            evaluated.append(self.extra)
        for at in evaluated:
            check()  # each of these bounds takes eigendecompositions
            bound, dual, _ = self.problem.sharpened(at.dual, at.points)
            lower, proof = (bound, dual) if bound > lower else (lower, proof)
        best = min(evaluated, key=lambda at: at.value)
        return best, lower - SETTINGS.bound_rounding * max(abs(lower), abs(best.value)), proof

    def state(self) -> State:
        """Return the state of the sequence, and of the average of its dual variables."""
        average = None if self.average is None else list(self.average)
        return {"weight": self.weight, "average": average, **self.steps.state()}

    def restore(self, state: State) -> None:
        """Go on from a state. Machines start anew."""
        self.weight = state["weight"]
        self.steps.restore(state)
        self.average = None if state["average"] is None else DualPoint(*state["average"])


def certify_dual(
    problem: Composite, best: EvaluatedPoint, proof: DualPoint
) -> tuple[Certificate, dict[int, float]]:
    """Return the certificate of a point and a dual point, and the multipliers of its constraints."""
    point = problem.point(best.points)
    upper, machines = Evaluator(problem.structure, [m.machine for m in best.machines]).outward(point)
    lower = bound_over(problem.pieces, problem.minorant(proof))
    alphas = [t.project(alpha) for t, alpha in zip(problem.trainers, proof.alphas, strict=True)]
    certificate = closed_certificate(problem.structure, lower.value, upper, point, alphas, machines)
    return certificate, dict(lower.multipliers)
