"""`first-order-dual`: what it needs, and its loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kernelopt.errors import InputError
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.similarity.certificate import certificate
from kernelopt.methods.similarity.iterate import Iterate
from kernelopt.methods.similarity.radial import by_scales
from kernelopt.methods.similarity.spectra.ascent import quadratic_curve
from kernelopt.methods.similarity.splitting import by_splitting
from kernelopt.methods.similarity.squared import squared
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.pieces import size_multipliers
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array, whole

ROUNDING = 1e-11  # relative, of the sums in the loop against the dense algebra of the certificate
REMEDY = "Try method='exact' if it fits, or accept the bounds."


class Loop(NamedTuple):
    """The iterations for a fidelity, and what they were measured to take to 1e-5."""

    iterates: Callable[[Nearness, Control], Iterator[Iterate]]
    decompositions: int
    free: int = 1  # times as many where the trace is free


def loop_of(fidelity: Fidelity) -> Loop | None:
    """Return the iterations for a fidelity by what it states, None where it does not state enough."""
    if isinstance(fidelity, Radial):
        if fidelity.quadratic:
            return Loop(partial(squared, radial=fidelity), 3)
        return Loop(partial(by_scales, radial=fidelity), 15)
    if isinstance(fidelity, Proximal):
        return Loop(partial(by_splitting, proximal=fidelity), 150, 5)  # its bounds come in slowly there
    return None


class Match(NamedTuple):
    """The problem as read, and the iterations for its fidelity."""

    structure: Structure
    read: Nearness
    loop: Loop


@dataclass(frozen=True)
class FirstOrderDual(Method):
    """Learns kernels near similarities by accelerated steps on the dual.

    For fixed alpha the best kernel is the projection of a fixed matrix plus a multiple of zz', a rank-one
    update of one eigendecomposition. The squared Frobenius norm needs that one alone; for the Frobenius
    norm the weights of squares are iterated; for entrywise absolute values it is the K-step of an
    alternating direction method. A fidelity of one's own is iterated like the Frobenius norm where it is
    `Radial`, and like absolute values where it is `Proximal`. Every report is certified: the duals of all
    three are free, or cost one smallest eigenvalue.

    Parameters
    ----------
    max_iterations : int > 0, default 10,000
    """

    name = "first-order-dual"
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Match | str:
        """Read the kernels and their fidelities; the loss must be one of the hinges or the squared loss."""
        read = read_nearness(structure)
        if isinstance(read, str):
            return read
        loop = loop_of(read.fidelity)
        if loop is None:
            return (
                f"its fidelity {read.fidelity!r} states neither a scale nor a proximal operator "
                "('mirror-descent' and 'exact' take any)"
            )
        learner = read.risk.learner
        try:
            quadratic_curve(learner.loss, learner.y)
        except InputError:
            return (
                f"its loss must be one of the hinges or the squared loss, not {learner.loss!r} "
                "('mirror-descent' and 'exact' take any)"
            )
        return Match(structure, read, loop)

    def cost(self, match: Match) -> Cost:
        _, read, loop = match
        N, m = read.n_points, len(read.blocks)
        free = any(block.total is None for block in read.blocks)
        iterations = loop.decompositions * (loop.free if free else 1)
        # An eigendecomposition and some passes over a matrix; over spectra passes alone.
        matrix = 2e-4 + (3e-9 * N**3 if read.blocks[0].V is None else 2e-8 * N**2)
        return Cost(5e-3 + m * iterations * matrix, certified=True)

    def run(self, match: Match, control: Control) -> Outcome | None:
        structure, read, loop = match
        best: Iterate | None = None
        with control:
            for iterate in loop.iterates(read, control):
                lower, upper = (read.factor * bound + read.offset for bound in (iterate.lower, iterate.upper))
                slack = ROUNDING * abs(upper)
                if best is None or upper + slack < control.upper:
                    best = iterate
                point: dict[int, Array] = {}
                if control.callback is not None:  # making it costs a decomposition
                    point = {b.piece.variable.id: x for b, x in zip(read.blocks, iterate.X(), strict=True)}
                if control.report(lower - slack, upper + slack, point=point, proof=iterate.proof):
                    break
                if control.iterations >= self.max_iterations:
                    control.stopped = f"{self.max_iterations} iterations were made"
                    break
        if best is None:
            return None
        with control.certifying():
            found, least = certificate(structure, read, best, control.proof or best.proof)
        return Outcome(
            {v.id: x for v, x in found.point.items()},
            multipliers=size_multipliers(structure, [block.piece for block in read.blocks], least),
            certificate=found,
            solver=self.name,
            iterations=control.iterations,
            remedy=REMEDY,
        )
