"""The method "first-order-dual" for kernels near similarity matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates import Certificate
from kernelopt.certificates.lower.near import lower_bound
from kernelopt.fidelities import Proximal, Radial
from kernelopt.methods.control import Control
from kernelopt.methods.method import Cost, Method, Outcome
from kernelopt.methods.results import closed_certificate
from kernelopt.methods.similarity.schemes import Iterate, admm_iterates, reweighted_iterates
from kernelopt.methods.similarity.settings import SETTINGS
from kernelopt.methods.sizing import CLOSED_SECONDS
from kernelopt.numerics.decompositions import SECONDS, semidefinite_beyond
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.nearness import Block, Nearness, read_nearness
from kernelopt.structure.structure import Structure, every_multiplier
from kernelopt.validation import Array, whole
from kernelopt.witnesses.near import NearWitness

REMEDY = "Try method='exact' if it fits, or accept the bounds."


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
        Steps of the dual ascent.
    """

    name = "first-order-dual"
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        whole(self.max_iterations, "max_iterations")

    def match(self, structure: Structure) -> Nearness | str:
        """Read the kernels and their fidelities; the loss must be one of the hinges or the squared loss."""
        problem = read_nearness(structure)
        if isinstance(problem, str):
            return problem
        learner, any_of = problem.risk.learner, "('mirror-descent' and 'exact' take any)"
        if not isinstance(problem.fidelity, Radial | Proximal):
            return (
                f"its fidelity {problem.fidelity!r} states neither a scale nor a proximal operator {any_of}"
            )
        curve = learner.loss.curve(learner.y)
        bounded = np.isfinite(curve.lower) & np.isfinite(curve.upper) | (curve.curvature > 0)
        if not learner.loss.quadratic or curve.l1.any() or not bounded.all():
            return f"its loss must be one of the hinges or the squared loss, not {learner.loss!r} {any_of}"
        return problem

    def cost(self, match: Nearness) -> Cost:
        N, m, fidelity = match.n_points, len(match.blocks), match.fidelity
        # Decompositions of each kernel: measured, to a gap of 1e-5
        iterations = 3 if fidelity.quadratic else 15
        if not isinstance(fidelity, Radial):
            iterations = 750 if any(block.total is None for block in match.blocks) else 150
        learns_matrices = match.blocks[0].V is None
        one = SETTINGS.fixed_seconds + (
            SETTINGS.decomposition_seconds * N**3 if learns_matrices else SETTINGS.passes_seconds * N**2
        )
        # For each matrix the product that forms it, the proof that it is PSD, the least eigenvalue of the
        # bound, and the enclosure of its fidelities.
        proof = (
            (SECONDS.product + SECONDS.factors + SECONDS.values) * float(N) ** 3
            + SETTINGS.enclosure_seconds * N**2
            if learns_matrices
            else 0.0
        )
        certification = CLOSED_SECONDS + m * proof
        return Cost(
            SETTINGS.start_seconds + m * iterations * one, certified=True, certification=certification
        )

    def run(self, match: Nearness, control: Control) -> Outcome | None:
        best: Iterate | None = None
        radial = isinstance(match.fidelity, Radial)
        iterates: Any = reweighted_iterates if radial else admm_iterates
        with control:
            runs = iterates(match, control, match.fidelity)
            for _, iterate in zip(control.counted(self.max_iterations), runs, strict=False):
                lower, upper = (match.factor * b + match.offset for b in (iterate.lower, iterate.upper))
                slack = SETTINGS.bound_rounding * abs(upper)
                if best is None or upper + slack < control.upper:
                    best = iterate
                point: dict[int, Array] = {}
                if control.callback is not None:  # a decomposition
                    point = {b.piece.variable.id: x for b, x in zip(match.blocks, iterate.X(), strict=True)}
                if control.report(
                    lower - slack, upper + slack, point=point, proof=iterate.proof, state=iterate.state
                ):
                    break
        if best is None:
            return None
        with control.certifying():
            certificate, known = certify_iterate(match, best, control.proof or best.proof)
        return Outcome(
            {v.id: x for v, x in certificate.point.items()},
            multipliers=every_multiplier(match.structure, known),
            certificate=certificate,
            solver=self.name,
            iterations=control.iterations,
            remedy=REMEDY,
        )


def certify_iterate(
    problem: Nearness, best: Iterate, proof: NearWitness
) -> tuple[Certificate, dict[int, float]]:
    """Return the certificate of a primal and a dual point, and the multipliers of the traces by position.

    Of the iterations only the two points are used. The upper bound is the objective at X, see `feasible`,
    with the risk of the machine of alpha and gamma. The lower bound is that of `lower_bound`.
    """
    X = [feasible(block, x) for block, x in zip(problem.blocks, best.X(), strict=True)]
    point = {block.piece.variable.id: x for block, x in zip(problem.blocks, X, strict=True)}
    upper, machines = Evaluator(problem.structure, [(best.alpha, 1 / best.gamma)]).outward(point)
    lower = lower_bound(problem, proof, upper)
    certificate = closed_certificate(problem.structure, lower.value, upper, point, [proof.alpha], machines)
    return certificate, dict(lower.multipliers)


def feasible(block: Block, X: Array) -> Array:
    """Return X made positive semidefinite beyond rounding, or non-negative, and scaled to its trace."""
    if block.V is None:
        X = (X + X.T) / 2
        margin = SETTINGS.roundings * (len(X) + 2) * np.finfo(float).eps * float(np.trace(X))
        if not semidefinite_beyond(X, margin):
            X = block.piece.project(X)
        size = float(np.trace(X))
    else:
        X = np.maximum(X, 0.0)
        size = float(X.sum())
    return X if block.total is None or not size > 0 else X * (block.total / size)
