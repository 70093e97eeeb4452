"""The method "first-order-dual" for kernels near similarity matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelopt.errors import InputError
from kernelopt.fidelities import Fidelity, Proximal, Radial
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.similarity.admm import admm_iterates
from kernelopt.methods.similarity.certificate import certify_iterate
from kernelopt.methods.similarity.iterate import Iterate
from kernelopt.methods.similarity.reweighted import reweighted_iterates
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.methods.similarity.spectra.ascent import quadratic_curve
from kernelopt.methods.similarity.squared import squared_iterates
from kernelopt.methods.sizing import CLOSED_SECONDS
from kernelopt.numerics.decompositions import FACTORS, PRODUCT, VALUES
from kernelopt.structure.nearness import Nearness, read_nearness
from kernelopt.structure.structure import Structure, every_multiplier
from kernelopt.validation import Array, whole

REMEDY = "Try method='exact' if it fits, or accept the bounds."


class Scheme(NamedTuple):
    """An iteration for one kind of fidelity, and its cost in eigendecompositions of each kernel."""

    iterates: Callable[[Nearness, Control], Iterator[Iterate]]
    decompositions: int  # measured, to a gap of 1e-5
    free_trace_factor: int = 1  # how many times as many where a trace is free, measured


def scheme_of(fidelity: Fidelity) -> Scheme | None:
    """Return the scheme for the methods that a fidelity has, None if it has neither of the two protocols."""
    if isinstance(fidelity, Radial):
        if fidelity.quadratic:
            return Scheme(partial(squared_iterates, radial=fidelity), 3)
        return Scheme(partial(reweighted_iterates, radial=fidelity), 15)
    if isinstance(fidelity, Proximal):
        return Scheme(partial(admm_iterates, proximal=fidelity), 150, 5)
    return None


class Match(NamedTuple):
    """The problem as kernels near similarities, and the scheme for its fidelity."""

    structure: Structure
    problem: Nearness
    scheme: Scheme


@dataclass(frozen=True)
class FirstOrderDual(Method):
    """Learns kernels near similarity matrices by accelerated gradient ascent on the dual.

    All schemes rest on the problem with squared Frobenius distances, the inner problem of `Ascent`. There the
    best kernel at a given alpha is the projection of B + c zz' on the PSD matrices of given trace. One
    eigendecomposition of the fixed matrix B serves for all alpha, since zz' has rank one.

    * Squared Frobenius norm: the inner problem is the problem, and B the mean of the similarities.
    * Frobenius norm, and every `Radial` fidelity: iteratively reweighted squares; each iteration solves an
      inner problem.
    * Entrywise absolute values, and every `Proximal` fidelity: the alternating direction method of
      multipliers, whose minimisation over the kernels is an inner problem.

    Every report has a lower bound, of the dual point of the iteration. It needs no decomposition in the first
    two schemes, and one smallest eigenvalue for each kernel in the third.

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
        problem = read_nearness(structure)
        if isinstance(problem, str):
            return problem
        scheme = scheme_of(problem.fidelity)
        if scheme is None:
            return (
                f"its fidelity {problem.fidelity!r} states neither a scale nor a proximal operator "
                "('mirror-descent' and 'exact' take any)"
            )
        learner = problem.risk.learner
        try:
            quadratic_curve(learner.loss, learner.y)
        except InputError:
            return (
                f"its loss must be one of the hinges or the squared loss, not {learner.loss!r} "
                "('mirror-descent' and 'exact' take any)"
            )
        return Match(structure, problem, scheme)

    def cost(self, match: Match) -> Cost:
        _, problem, scheme = match
        N, m = problem.n_points, len(problem.blocks)
        free = any(block.total is None for block in problem.blocks)
        iterations = scheme.decompositions * (scheme.free_trace_factor if free else 1)
        learns_matrices = problem.blocks[0].V is None
        one = SETTINGS.fixed_seconds + (
            SETTINGS.decomposition_seconds * N**3 if learns_matrices else SETTINGS.passes_seconds * N**2
        )
        # For each matrix the product that forms it, the proof that it is PSD, the least eigenvalue of the
        # bound, and the enclosure of its fidelities.
        proof = (
            (PRODUCT + FACTORS + VALUES) * float(N) ** 3 + SETTINGS.enclosure_seconds * N**2
            if learns_matrices
            else 0.0
        )
        certification = CLOSED_SECONDS + m * proof
        return Cost(
            SETTINGS.start_seconds + m * iterations * one, certified=True, certification=certification
        )

    def run(self, match: Match, control: Control) -> Outcome | None:
        structure, problem, scheme = match
        best: Iterate | None = None
        with control:
            for iterate in scheme.iterates(problem, control):
                bounds = np.array([iterate.lower, iterate.upper])
                lower, upper = (problem.factor * bounds + problem.offset).tolist()
                slack = SETTINGS.bound_rounding * abs(upper)
                if best is None or upper + slack < control.upper:
                    best = iterate
                point: dict[int, Array] = {}
                if control.callback is not None:  # a decomposition
                    point = {b.piece.variable.id: x for b, x in zip(problem.blocks, iterate.X(), strict=True)}
                stop = control.report(
                    lower - slack, upper + slack, point=point, proof=iterate.proof, state=iterate.state
                )
                if stop:
                    break
                if control.iterations >= self.max_iterations:
                    control.stopped = f"{self.max_iterations} iterations were made"
                    break
        if best is None:
            return None
        with control.certifying():
            certificate, known = certify_iterate(structure, problem, best, control.proof or best.proof)
        return Outcome(
            {v.id: x for v, x in certificate.point.items()},
            multipliers=every_multiplier(structure, known),
            certificate=certificate,
            solver=self.name,
            iterations=control.iterations,
            remedy=REMEDY,
        )
