"""Mirror descent with matrix and vector entropies, for any risks and convex terms, certified."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Literal, TypeVar

import cvxpy as cp
import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.certify import uncrossed
from kernelopt.errors import ParameterError
from kernelopt.reading import risks
from kernelopt.solvers.composite import Composite, Dual, Evaluation, read_composite
from kernelopt.solvers.dual_averaging import Adaptive, Constant, Memory, Printed, Walk
from kernelopt.solvers.finish import settle
from kernelopt.solvers.progress import Callback, Progress
from kernelopt.solvers.registry import Method, required
from kernelopt.solvers.separability import check_separable
from kernelopt.solvers.solution import Solution
from kernelopt.solvers.spectrahedra import size_multipliers
from kernelopt.validation import positive

LOOK = 5  # iterations between two looks at the bounds
INNER = 0.01  # the gap of a machine, as a share of that of the problem
REMEDY = (
    "Sums of absolute values have bounds that come in like 1 / sqrt(iterations): try 'first-order-dual' or "
    "'exact' where they apply, or more max_iterations."
)
STEPS: dict[str, type[Walk]] = {"adaptive": Adaptive, "theorem": Constant}
UPDATES: dict[str, type[Memory]] = {"averaging": Memory, "as-printed": Printed}
T = TypeVar("T")


def mirror_descent(
    problem: cp.Problem,
    *,
    tol: float = 1e-5,
    time_limit: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    step: Literal["adaptive", "theorem"] = "adaptive",
    update: Literal["averaging", "as-printed"] = "averaging",
    max_iterations: int = 1000,
) -> Solution:
    """Minimise over PSD matrices and non-negative vectors of given size, by one eigendecomposition a step.

    For risks with any loss, plus any convex terms with subgradients. `step="theorem"` is the constant step
    for a horizon of `max_iterations`, its points judged alone; "adaptive" has no horizon, looks beside its
    points now and then, and is far faster in practice.

    `update="as-printed"` is for teaching. Algorithms 1 and 2 of Kundu et al. (2010) multiply the eigenvalues
    of the last matrix by exp(-eta d), d those of the gradient, and put the gradient's eigenvectors in place
    of the matrix's own. That is the mirror step only where both commute and are sorted alike, as vectors
    do; otherwise the matrix forgets its eigenvectors, and stalls.

    The lower bound is the best of those of single points, of the average of their duals, and of both with
    the slopes of Frobenius norms and of their squares chosen anew by projection.
    """
    read = required(read_composite(problem), "mirror-descent")
    positive(max_iterations, "max_iterations")
    remember = chosen("update", update, UPDATES)
    walking = chosen("step", step, STEPS)
    for node in risks(problem):
        check_separable(node)
    walk = walking([remember(piece) for piece in read.pieces], max_iterations)
    best: Evaluation
    search = Search(read, walk, beside=(step, update) == ("adaptive", "averaging"))
    with Progress("mirror-descent", tol, time_limit, callback, verbose) as progress:
        for count in range(max_iterations):
            looking = count % LOOK == 0 or count == max_iterations - 1
            slack = INNER * max(tol, progress.gap) * max(1.0, abs(progress.upper))
            found, lower, proof = search.step(slack, looking)
            if progress.best is None or found.value < progress.upper:
                best = found
            point = {piece.variable.id: X for piece, X in zip(read.pieces, found.points, strict=True)}
            if progress.report(lower, found.value, point=point, proof=proof):
                break
        else:
            progress.stopped = f"{max_iterations} iterations were made"
    certificate, least = certified(problem, read, best, progress.proof)
    duals = size_multipliers(problem, read.pieces, least)
    return settle(problem, progress, certificate, [m.machine for m in best.machines], duals, REMEDY)


class Search:
    """A walk, the average of its duals, and points beside it."""

    def __init__(self, read: Composite, walk: Walk, beside: bool) -> None:
        self.read, self.walk = read, walk
        self.here: Evaluation | None = None
        self.average: Dual | None = None
        self.weight = 0.0
        self.with_beside = beside
        self.beside: Evaluation | None = None

    def step(self, slack: float, looking: bool) -> tuple[Evaluation, float, Dual]:
        """Go a step, and return the best point seen; when looking a bound too, and the dual behind it."""
        self.here = here = self.read.evaluate(self.walk.points, self.here, slack)
        weight = self.walk.move(self.read.minorant(here.dual).gradients)
        self.weight += weight
        share = weight / self.weight if self.weight > 0 else 1.0
        self.average = here.dual if self.average is None else self.average.towards(here.dual, share)
        return self._look(here, self.average, slack) if looking else (here, -np.inf, self.average)

    def _look(self, here: Evaluation, average: Dual, slack: float) -> tuple[Evaluation, float, Dual]:
        """Bound the optimum by the averaged dual and by those of points; try a point beside the walk.

        That is its newest point, with the kernels that the averaged dual asks for where there are such.
        """
        start = self.walk.newest if self.with_beside else here.points
        proof, points = self.read.sharpened(average, start)
        seen = [here]
        if self.with_beside:
            self.beside = self.read.evaluate(points, self.beside, slack)
            seen.append(self.beside)
        proofs = [proof, *(self.read.sharpened(at.dual, at.points)[0] for at in seen)]
        bounds = [self.read.lower(each) for each in proofs]
        best = int(np.argmax(bounds))
        return min(seen, key=lambda at: at.value), bounds[best], proofs[best]


def certified(
    problem: cp.Problem, read: Composite, best: Evaluation, proof: Dual
) -> tuple[Certificate, list[float]]:
    """Return bounds from a point with its machines and from a dual alone, and the sigma of every piece."""
    read.write(best.points)
    with ExitStack() as stack:
        for node, trained in zip(risks(problem), best.machines, strict=True):
            stack.enter_context(node.pinned(*trained.machine))
        upper = float(problem.objective.value)
    lower, least = read.minorant(proof).bound(read.pieces)
    reason = ""
    if lower > upper:
        lower, upper, reason = uncrossed(lower, upper, maximize=False)
    point = {piece.variable: X for piece, X in zip(read.pieces, best.points, strict=True)}
    alphas = tuple(t.admitted(alpha) for t, alpha in zip(read.trainers, proof.alphas, strict=True))
    found = Certificate(lower, upper, "closed", reason=reason, feasible=True, point=point, alphas=alphas)
    return found, least


def chosen(option: str, name: Any, choices: dict[str, T]) -> T:
    """Return what an option names."""
    if name not in choices:
        names = " or ".join(map(repr, choices))
        raise ParameterError(f"{option} must be {names}, got {name!r}.")
    return choices[name]


def obstacles(problem: cp.Problem) -> list[str]:
    """Return what stands in the way of reading a problem as a `Composite`."""
    read = read_composite(problem)
    return [read] if isinstance(read, str) else []


MIRROR_DESCENT = Method("mirror-descent", obstacles, mirror_descent, lambda problem: False)
