"""Mirror descent with matrix and vector entropies, for any risks and convex terms, certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.gap import floor
from kernelopt.certificates.separability import check_separable
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.mirror_descent.composite import Composite, Dual, Evaluation, read_composite
from kernelopt.methods.mirror_descent.dual_averaging import Adaptive, Constant, Memory, Printed, StepRule
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.pieces import size_multipliers
from kernelopt.structure.structure import RiskTerm, Structure
from kernelopt.threads import Watch
from kernelopt.validation import one_of, whole

LOOK = 5  # iterations between two looks at the bounds
INNER = 0.01  # the gap of a machine, as a share of that of the problem
WEIGHT_ITERATIONS, SMOOTH_ITERATIONS = 200, 100  # expected to 1e-5
STEP = 1.5e-3  # seconds of an iteration beside its machines and decompositions
REMEDY = (
    "Sums of absolute values have bounds that come in like 1 / sqrt(iterations): try 'first-order-dual' or "
    "'exact' where they apply, or more max_iterations."
)
STEPS: dict[str, type[StepRule]] = {"adaptive": Adaptive, "theorem": Constant}
UPDATES: dict[str, type[Memory]] = {"averaging": Memory, "as-printed": Printed}


@dataclass(frozen=True)
class MirrorDescent(Method):
    """Minimises over PSD matrices and non-negative vectors of given size, by one eigendecomposition a step.

    For risks with any loss, plus any convex terms with subgradients. `step="theorem"` is the constant step
    for a horizon of `max_iterations`, its points judged alone; "adaptive" has no horizon, looks beside its
    points now and then, and is far faster in practice.

    `update="as-printed"` is for teaching. Algorithms 1 and 2 of Kundu et al. (2010) multiply the eigenvalues
    of the last matrix by exp(-eta d), d those of the gradient, and put the gradient's eigenvectors in place
    of the matrix's own. That is the mirror step only where both commute and are sorted alike, as vectors
    do; otherwise the matrix forgets its eigenvectors, and stalls.

    The lower bound is the best of those of single points, of the average of their duals, and of both with
    the slopes of Frobenius norms and of their squares chosen anew by projection.

    Parameters
    ----------
    step : "adaptive" or "theorem", default "adaptive"
    update : "averaging" or "as-printed", default "averaging"
    max_iterations : int > 0, default 1000
    """

    name = "mirror-descent"
    step: Literal["adaptive", "theorem"] = "adaptive"
    update: Literal["averaging", "as-printed"] = "averaging"
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        one_of(self.step, "step", STEPS)
        one_of(self.update, "update", UPDATES)
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Composite | str:
        """Read risks and convex terms over bounded spectrahedra and simplices."""
        return read_composite(structure)

    def cost(self, match: Composite) -> Cost:
        order = max((p.variable.shape[0] for p in match.pieces if p.is_matrix), default=0)
        points = max((t.risk.learner.n for t in match.trainers), default=0)
        weights = sum(p.variable.size for p in match.pieces if not p.is_matrix)
        machines = len(match.trainers) * (2e-3 + 2e-8 * points**2) + 2e-9 * weights * points**2
        eigen = sum(p.is_matrix for p in match.pieces) * (3e-4 + 6e-9 * order**3)
        # Risks over weights alone took 80 to 330 iterations to 1e-5, smooth losses beside squared distances
        # about 100; other problems seldom reach it at all.
        weighing = not (order or match.fidelities or match.others)
        squares = not match.others and all(f.fidelity.quadratic for _, f in match.fidelities)
        smooth = squares and all(has_smooth_loss(trainer.risk) for trainer in match.trainers)
        few = SMOOTH_ITERATIONS if smooth else WEIGHT_ITERATIONS
        iterations = min(self.max_iterations, few if weighing or smooth else self.max_iterations)
        return Cost(iterations * (STEP + machines + eigen), certified=True)

    def run(self, match: Composite, control: Control) -> Outcome | None:
        for trainer in match.trainers:
            check_separable(trainer.risk.learner, control.check)
        memories = [UPDATES[self.update](piece) for piece in match.pieces]
        steps = STEPS[self.step](memories, self.max_iterations)
        beside = (self.step, self.update) == ("adaptive", "averaging")
        search = Search(match, steps, beside, control.check)
        best: Evaluation | None = None
        with control:
            for count in range(self.max_iterations):
                looking = count % LOOK == 0 or count == self.max_iterations - 1 or control.late
                slack = INNER * max(control.tol, control.gap) * max(abs(control.upper), control.floor)
                found, lower, proof = search.step(slack, looking)
                if best is None or found.value < control.upper:
                    best = found
                point = {piece.variable.id: X for piece, X in zip(match.pieces, found.points, strict=True)}
                if control.report(lower, found.value, point=point, proof=proof):
                    break
            else:
                control.stopped = f"{self.max_iterations} iterations were made"
        if best is None:
            return None
        with control.certifying():
            certificate, least = certified(match, best, control.proof or best.dual)
        return Outcome(
            {piece.variable.id: X for piece, X in zip(match.pieces, best.points, strict=True)},
            multipliers=size_multipliers(match.structure, match.pieces, least),
            certificate=certificate,
            solver=self.name,
            iterations=control.iterations,
            remedy=REMEDY,
        )


def has_smooth_loss(term: RiskTerm) -> bool:
    """Whether the dual of a loss is strongly concave, so that the risk is smooth in its kernel."""
    loss, y = term.learner.loss, term.learner.y
    return not loss.quadratic or bool(np.all(loss.curve(y).curvature > 0))


class Search:
    """A sequence of points, the average of its duals, and points beside it."""

    def __init__(self, read: Composite, steps: StepRule, beside: bool, watch: Watch) -> None:
        self.read, self.steps, self.watch = read, steps, watch
        self.here: Evaluation | None = None
        self.average: Dual | None = None
        self.weight = 0.0
        self.with_beside = beside
        self.beside: Evaluation | None = None

    def step(self, slack: float, looking: bool) -> tuple[Evaluation, float, Dual]:
        """Go a step, and return the best point seen; when looking a bound too, and the dual behind it."""
        self.here = here = self.read.evaluate(self.steps.points, self.here, slack, self.watch)
        self.watch()
        weight = self.steps.move(self.read.minorant(here.dual).gradients)
        self.weight += weight
        share = weight / self.weight if self.weight > 0 else 1.0
        self.average = here.dual if self.average is None else self.average.towards(here.dual, share)
        return self._look(here, self.average, slack) if looking else (here, -np.inf, self.average)

    def _look(self, here: Evaluation, average: Dual, slack: float) -> tuple[Evaluation, float, Dual]:
        """Bound the optimum by the averaged dual and by those of points; try a point beside the sequence.

        That is its newest point, with the kernels that the averaged dual asks for where there are such.
        """
        start = self.steps.newest if self.with_beside else here.points
        self.watch()
        proof, points = self.read.sharpened(average, start)
        seen = [here]
        if self.with_beside:
            self.beside = self.read.evaluate(points, self.beside, slack, self.watch)
            seen.append(self.beside)
        proofs = [proof]
        for at in seen:
            self.watch()  # every one of these takes eigendecompositions
            proofs.append(self.read.sharpened(at.dual, at.points)[0])
        bounds = []
        for each in proofs:
            self.watch()
            bounds.append(self.read.lower(each))
        best = int(np.argmax(bounds))
        return min(seen, key=lambda at: at.value), bounds[best], proofs[best]


def certified(read: Composite, best: Evaluation, proof: Dual) -> tuple[Certificate, list[float]]:
    """Return bounds from a point with its machines and from a dual alone, and the sigma of every piece."""
    point = {piece.variable.id: X for piece, X in zip(read.pieces, best.points, strict=True)}
    upper, machines = Evaluator(read.structure, [m.machine for m in best.machines]).outward(point)
    lower, least = read.minorant(proof).bound(read.pieces)
    return Certificate(
        lower,
        upper,
        "closed",
        feasible=True,
        point={variable: point[variable.id] for variable in read.structure.user_variables},
        alphas=tuple(t.project(alpha) for t, alpha in zip(read.trainers, proof.alphas, strict=True)),
        machines=machines,
        floor=floor(read.structure),
    ), least
