"""Risks, fidelities and convex terms over spectrahedra and simplices: values, subgradients and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.errors import MethodError
from kernelopt.fidelities import Radial
from kernelopt.methods.mirror_descent.minorant import CompositeMinorant
from kernelopt.methods.mirror_descent.training import Trained, Trainer, read_kernel
from kernelopt.numerics.rounding import gamma
from kernelopt.structure.affine import flat
from kernelopt.structure.fidelities import FidelityTerm, read_fidelity
from kernelopt.structure.pieces import Piece, centre, read_pieces
from kernelopt.structure.structure import Structure, once
from kernelopt.structure.trees import nodes, number, short, summands
from kernelopt.threads import Watch
from kernelopt.validation import Array

FEW_ROUNDINGS = 64  # beside one per term, more than a term of a minorant takes in its last operations
PROJECTIONS = 3  # for the weights of the squares that stand for Frobenius norms
SHORT = 1e-9  # a distance, relative to its target, below which the weight of a norm grows no more


class Dual(NamedTuple):
    """What a minorant is made of: members of convex sets, on which the minorant is concave.

    So an average of duals makes a minorant that is nowhere below the average of theirs.
    """

    alphas: list[Array]
    shares: list[Array]
    slopes: list[Array]  # of the fidelities, without their prices
    plane: list[Array]  # below the other terms: a constant, and a gradient for every piece

    def towards(self, other: Dual, share: float) -> Dual:
        """Return (1 - share) self + share other."""
        mixed = [
            [np.asarray((1 - share) * a + share * b) for a, b in zip(mine, others, strict=True)]
            for mine, others in zip(self, other, strict=True)
        ]
        return Dual(*mixed)


class CompositeEvaluation(NamedTuple):
    """The objective at a point: its value, the dual of a subgradient, and the machines trained there."""

    points: list[Array]
    value: float
    dual: Dual
    machines: list[Trained]


@dataclass(frozen=True, eq=False)
class Composite:
    """offset + sum of factor * risk + price * fidelity + c * convex term, over a product of pieces."""

    structure: Structure
    pieces: list[Piece]
    trainers: list[Trainer]
    fidelities: list[tuple[int, FidelityTerm]]  # each with the position of its piece
    others: list[tuple[float, cp.Expression]]
    offset: float

    def evaluate(
        self, points: list[Array], last: CompositeEvaluation | None, slack: float, watch: Watch | None = None
    ) -> CompositeEvaluation:
        """Return the objective at a point, every machine trained from the last, up to a gap of `slack`."""
        starts = [None] * len(self.trainers) if last is None else last.machines
        machines = [
            trainer.train(points, start, slack, watch)
            for trainer, start in zip(self.trainers, starts, strict=True)
        ]
        value, plane = self.others_at(points)
        value += self.offset + sum(f.value(points[k]) for k, f in self.fidelities)
        value += sum(t.factor * m.value for t, m in zip(self.trainers, machines, strict=True))
        slopes = [f.subgradient(points[k]) for k, f in self.fidelities]
        dual = Dual([m.alpha for m in machines], [m.shares for m in machines], slopes, plane)
        return CompositeEvaluation(points, value, dual, machines)

    def others_at(self, points: list[Array]) -> tuple[float, list[Array]]:
        """Return the value of the other terms, and the affine function below them of cvxpy's subgradients."""
        value, gradients = 0.0, [np.zeros(X.shape) for X in points]
        if self.others:
            self.write(points)
        for c, term in self.others:
            value += c * number(term)
            for G, slope in zip(gradients, subgradient(term, self.pieces), strict=True):
                G += c * slope
        constant = value - sum(float(np.vdot(G, X)) for G, X in zip(gradients, points, strict=True))
        return value, [np.asarray(constant), *gradients]

    def write(self, points: list[Array]) -> None:
        """Give the variables their values."""
        for piece, X in zip(self.pieces, points, strict=True):
            piece.variable.save_value(X)

    def minorant(self, dual: Dual) -> CompositeMinorant:
        """Return the affine function below the objective that a dual stands for."""
        constant, gradients = self.offset + float(dual.plane[0]), [G.copy() for G in dual.plane[1:]]
        size, error = abs(self.offset) + abs(float(dual.plane[0])), 0.0
        sizes, errors = [float(np.linalg.norm(G)) for G in gradients], [0.0] * len(gradients)
        for trainer, alpha, shares in zip(self.trainers, dual.alphas, dual.shares, strict=True):
            below = trainer.below(alpha, shares, gradients)
            constant += below
            gain, error_below = trainer.below_errors(alpha, shares, errors)
            size, error = size + gain + abs(below), error + error_below
        for (k, term), U in zip(self.fidelities, dual.slopes, strict=True):
            U = term.fidelity.project(U)
            paid = term.paid(U)
            constant -= paid
            gradients[k] += term.price * U
            sizes[k] += term.price * float(np.linalg.norm(U))
            size, error = size + abs(paid), error + term.paid_error(U)
        # What the risks added to a gradient is no larger than the gradient and all else in it.
        rounding = gamma(FEW_ROUNDINGS + len(self.trainers) + len(self.fidelities))
        totals = [s + float(np.linalg.norm(G)) for s, G in zip(sizes, gradients, strict=True)]
        gradient_errors = tuple(
            (1 + rounding) * e + rounding * s for e, s in zip(errors, totals, strict=True)
        )
        return CompositeMinorant(
            constant, tuple(gradients), (1 + rounding) * error + rounding * size, gradient_errors
        )

    def lower(self, dual: Dual) -> float:
        """Return the bound that a dual proves."""
        return self.minorant(dual).bound(self.pieces)[0]

    def sharpened(self, dual: Dual, points: list[Array]) -> tuple[Dual, list[Array]]:
        """Return a dual with better slopes for its alphas, and the points at which they are subgradients.

        It changes the pieces whose fidelities are all `Radial`. Let A be the gradient of the minorant of all
        other terms there. The minimum of <A, X> + sum_i w_i |X - S_i|^2 is attained at the projection of the
        weighted mean of the S_i minus A / (2 sum_i w_i), and the slopes 2 w_i (X - S_i) give a minorant with
        the same minimum. For the squared norm this is exact. A norm is majorised by such a square with
        w_i = 1 / (2 |X - S_i|), and the step is repeated from `points`.
        """
        bare = dual._replace(slopes=[np.zeros_like(U) for U in dual.slopes])
        gradients, slopes, points = self.minorant(bare).gradients, list(dual.slopes), list(points)
        for k, piece in enumerate(self.pieces):
            near = [(i, f) for i, (at, f) in enumerate(self.fidelities) if at == k]
            radial = [f.fidelity for _, f in near if isinstance(f.fidelity, Radial)]
            if not near or len(radial) < len(near):
                continue
            for _ in range(1 if all(L.quadratic for L in radial) else PROJECTIONS):
                weights = [majorant_weight(f, L, points[k]) for L, (_, f) in zip(radial, near, strict=True)]
                total = sum(f.price * w for w, (_, f) in zip(weights, near, strict=True))
                mean = sum(f.price * w * f.target for w, (_, f) in zip(weights, near, strict=True)) / total
                points[k] = piece.nearest(mean - gradients[k] / (2 * total))
                for w, (i, f) in zip(weights, near, strict=True):
                    slopes[i] = 2 * w * (points[k] - f.target)
        return dual._replace(slopes=slopes), points


def majorant_weight(term: FidelityTerm, radial: Radial, X: Array) -> float:
    """Return the weight w of the square w |X - S|^2 that stands for a fidelity at X."""
    length, size = (float(np.linalg.norm(D)) for D in (X - term.target, term.target))
    return float(1 / (2 * radial.scale(np.array([max(length, SHORT * (size or 1.0))]))[0]))


def subgradient(term: cp.Expression, pieces: list[Piece]) -> list[Array]:
    """Return a subgradient of a convex term at the current point, by every piece."""
    slopes, found = term.grad, []
    for piece in pieces:
        slope, shape = slopes.get(piece.variable, 0.0), piece.variable.shape
        if slope is None:
            raise MethodError(f"{short(term)} has no subgradient at a point that it was asked for.")
        G = np.broadcast_to(flat(slope), piece.variable.size).reshape(shape, order="F")
        found.append((G + G.T) / 2)
    return found


@once
def read_composite(structure: Structure) -> Composite | str:
    """Read a problem as a `Composite` over bounded pieces, or say what stands in the way."""
    if structure.maximize:
        return "its objective must be minimised"
    if structure.unset:
        return structure.unset
    pieces = read_pieces(structure)
    if isinstance(pieces, str):
        return pieces
    if not pieces:
        return "it has no variable"
    free = [piece.variable.name() for piece in pieces if piece.reach is None]
    if free:
        return f"no constraint fixes or bounds the trace or the sum of {', '.join(free)}"
    positions = {piece.variable.id: k for k, piece in enumerate(pieces)}
    factors = {id(term.stand_in): 0.0 for term in structure.risks}
    fidelities, others, offset = list[tuple[int, FidelityTerm]](), list[tuple[float, cp.Expression]](), 0.0
    for c, term in summands(structure.lifted.objective.args[0]):
        price = number(c)
        near = None if id(term) in factors else read_fidelity(price, term)
        if id(term) in factors:
            factors[id(term)] += price
        elif term.is_constant():
            offset += price * number(term)
        elif near is not None:
            fidelities += [(positions[near.variable.id], near)] if near.price > 0 else []
        elif any(id(node) in factors for node in nodes(term)):
            return f"a risk must enter the objective times a positive number, not inside {short(term)}"
        else:
            others.append((price, term))
    trainers = read_trainers(structure, factors, pieces)
    if isinstance(trainers, str):
        return trainers
    rough = [short(term) for _, term in others if not has_subgradient(term, pieces)]
    if rough:
        return (
            f"cvxpy has no subgradient of {', '.join(rough)} in the middle of the set: write it with other "
            "atoms, as max(abs(X)) for norm_inf(X)"
        )
    return Composite(structure, pieces, trainers, fidelities, others, offset)


def read_trainers(
    structure: Structure, factors: dict[int, float], pieces: list[Piece]
) -> list[Trainer] | str:
    """Read the risks with their factors, or say what stands in the way."""
    trainers = []
    for term in structure.risks:
        factor = factors[id(term.stand_in)]
        if not factor > 0:
            return f"{term.node.name()} must have a positive factor in the objective"
        if len(term.kernels) > 1 and term.learner.norm < 2:
            return f"the block norm of a risk must be at least 2, got norm={term.learner.norm:g}"
        kernels = []
        for K in term.kernels:
            kernel = read_kernel(K, term.learner.n, pieces)
            if kernel is None:
                return (
                    f"the kernel {short(K)} must be a PSD variable or a combination with non-negative "
                    "weights, or a sum of these"
                )
            kernels.append(kernel)
        trainers.append(Trainer(factor, term, kernels))
    return trainers


def has_subgradient(term: cp.Expression, pieces: list[Piece]) -> bool:
    """Whether cvxpy knows a value and a subgradient of a term in the middle of the set."""
    for piece in pieces:
        piece.variable.save_value(centre(piece))
    try:
        slopes, value = term.grad.values(), term.value
    except NotImplementedError:
        return False
    return value is not None and bool(np.isfinite(value).all()) and all(s is not None for s in slopes)
