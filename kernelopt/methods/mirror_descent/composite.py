"""Objectives of risks, fidelities and convex terms: their values, and minorants by subgradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression

from kernelopt.certificates.lower.minorants import Minorant, constant, minorant, near_minorant, total
from kernelopt.errors import MethodError
from kernelopt.fidelities import Radial
from kernelopt.language.penalty import weighted
from kernelopt.methods.mirror_descent.settings import SETTINGS
from kernelopt.methods.mirror_descent.training import TrainedMachine, Trainer
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.decompositions import eigenvalues
from kernelopt.structure.affine import as_matrix, flat
from kernelopt.structure.evaluation import Evaluator
from kernelopt.structure.learning import read_pieces
from kernelopt.structure.nearness import FidelityTerm, read_fidelity
from kernelopt.structure.parts import Budget
from kernelopt.structure.structure import Objective, Point, Structure, WeightedTerm, kept_in_structure
from kernelopt.structure.trees import short
from kernelopt.validation import Array


class DualPoint(NamedTuple):
    """The variables of a minorant of the objective, see `Composite.minorant`.

    Each belongs to a convex set, and at every point of the feasible set the minorant is a concave function
    of them. So the minorant of an average is nowhere below the average of the minorants.

    Attributes
    ----------
    alphas, gammas : lists of arrays, one of each per risk
    subgradients : list of arrays
        U of each fidelity, in the domain of L*, without the price.
    linearization : list of arrays
        An affine function below the other terms: its constant, then its gradient for every piece.
    """

    alphas: list[Array]
    gammas: list[Array]
    subgradients: list[Array]
    linearization: list[Array]

    def combined(self, other: DualPoint, share: float) -> DualPoint:
        """Return (1 - share) self + share other."""
        mixed = [
            [np.asarray((1 - share) * a + share * b) for a, b in zip(mine, others, strict=True)]
            for mine, others in zip(self, other, strict=True)
        ]
        return DualPoint(*mixed)


class EvaluatedPoint(NamedTuple):
    """The objective at a point: an upper bound of its value, the dual point of a minorant, the machines."""

    points: list[Array]
    value: float
    dual: DualPoint
    machines: list[TrainedMachine]


@dataclass(frozen=True, eq=False)
class Composite:
    """offset + sum of factor * risk + price * fidelity + convex terms, over a product of pieces."""

    structure: Structure
    pieces: list[Budget]
    trainers: list[Trainer]
    fidelities: list[tuple[int, FidelityTerm]]  # each with the position of its piece
    other_terms: list[WeightedTerm]
    offset: float

    def evaluate(self, points: list[Array], last: EvaluatedPoint | None, slack: float) -> EvaluatedPoint:
        """Return the objective at a point, where each machine has a gap of about `slack`.

        Training starts at the machines of the last point.
        """
        starts = [None] * len(self.trainers) if last is None else last.machines
        pairs = zip(self.trainers, starts, strict=True)
        machines = [trainer.train(self.point(points), start, slack) for trainer, start in pairs]
        value, linearization = self.linearize_others(points)
        value += self.offset + sum(f.value(points[k]) for k, f in self.fidelities)
        value += sum(t.factor * m.value for t, m in zip(self.trainers, machines, strict=True))
        subgradients = [f.subgradient(points[k]) for k, f in self.fidelities]
        alphas, gammas = [m.alpha for m in machines], [m.gamma for m in machines]
        dual = DualPoint(alphas, gammas, subgradients, linearization)
        return EvaluatedPoint(points, value, dual, machines)

    def linearize_others(self, points: list[Array]) -> tuple[float, list[Array]]:
        """Return the value of the other terms and the affine function below them, by cvxpy's subgradients."""
        value, gradients = 0.0, [np.zeros(X.shape) for X in points]
        if self.other_terms:
            Evaluator(self.structure).write(self.point(points))
        for weights, term in self.other_terms:
            value += float(weights @ flat(term.value))
            slopes = term.grad
            for G, piece in zip(gradients, self.pieces, strict=True):
                slope = slopes.get(piece.variable, 0 * weights)
                if slope is None:
                    raise MethodError(f"{short(term)} has no subgradient at a point that it was asked for.")
                slope = as_matrix(slope, weights.size).T @ weights
                found = np.broadcast_to(slope, piece.variable.size).reshape(G.shape, order="F")
                G += (found + found.T) / 2
        constant = value - sum(float(np.vdot(G, X)) for G, X in zip(gradients, points, strict=True))
        return value, [np.asarray(constant), *gradients]

    def point(self, points: list[Array]) -> Point:
        """Return the values of the variables by their ids."""
        return {piece.variable.id: X for piece, X in zip(self.pieces, points, strict=True)}

    def minorant(self, dual: DualPoint) -> Minorant:
        """Return the affine function of a dual point, which is nowhere above the objective.

        It is the sum of the offset, of the linearization of the other terms, and of

            factor * (l(alpha) - 1/2 sum_i alpha'K_i alpha / gamma_i)   for each risk, see `minorant`,
            price * (<U, X - target> - L*(U))                           for each fidelity, see `Fidelity`,

        where alpha and U are projected on their domains first.
        """
        below = constant(self.offset)
        if self.other_terms:
            rounded = Ball(1.0, SETTINGS.linearization)
            at_zero, *slopes = (Ball(np.ravel(G)) * rounded for G in dual.linearization)
            variables = [piece.variable for piece in self.pieces]
            below = below + Minorant(at_zero.sum(), dict(zip(variables, slopes, strict=True)))
        for trainer, alpha, gamma in zip(self.trainers, dual.alphas, dual.gammas, strict=True):
            below = below + minorant(trainer.risk, alpha, gamma=trainer.inside(gamma), factor=trainer.factor)
        near = zip(self.fidelities, dual.subgradients, strict=True)
        return below + total(near_minorant(term, U) for (_, term), U in near)

    def affine(self, dual: DualPoint, fidelities: bool = True) -> tuple[float, list[Array]]:
        """Return about the constant and the gradients of `minorant`: bounds of the errors take longer.

        Without `fidelities` their terms are left out.
        """
        at_zero, *gradients = (np.array(G) for G in dual.linearization)
        value, slopes = self.offset + float(at_zero), self.point(gradients)
        for trainer, alpha, gamma in zip(self.trainers, dual.alphas, dual.gammas, strict=True):
            alpha, learner = trainer.project(alpha), trainer.risk.learner
            value += trainer.factor * learner.loss.dual_value(alpha, learner.y)
            for parts, each in zip(trainer.risk.weighted, gamma, strict=True):
                for read, grams in parts:
                    c = np.outer(alpha, alpha).ravel() if grams is None else grams.forms(alpha)
                    c = -trainer.factor / (2 * each) * c
                    value += 0.0 if read is None else float(read.constant @ c)
                    for variable, matrix in () if read is None else read.matrices.items():
                        slopes[variable.id] += np.reshape(matrix.T @ c, variable.shape)
        for (k, term), U in zip(self.fidelities, dual.subgradients if fidelities else (), strict=False):
            U = term.fidelity.project(U)
            value -= float(term.conjugate_cost(U).mid)
            gradients[k] += term.price * U
        return value, gradients

    def least(self, dual: DualPoint) -> float:
        """Return about the minimum of `minorant` over the pieces."""
        value, gradients = self.affine(dual)
        return value + sum(lowest(piece, G) for piece, G in zip(self.pieces, gradients, strict=True))

    def sharpened(self, dual: DualPoint, points: list[Array]) -> tuple[float, DualPoint, list[Array]]:
        """Return a dual point with subgradients U that raise its bound: the bound, the point, and the X.

        Only pieces whose fidelities are all `Radial` are changed. Let A be the gradient of all else in the
        minorant. For squares w_i |X - S_i|^2, price_i w_i = v_i, the problem of the piece is

            min over X  <A, X> + sum_i v_i |X - S_i|^2,

        whose solution X is the projection of sum_i v_i S_i / v - A / (2 v) on the piece, v = sum_i v_i. The
        minorant of the gradients U_i = 2 w_i (X - S_i) has the same minimum. Another fidelity h(|X - S_i|) is
        replaced by the square that touches it from above, w_i = 1 / (2 s_i), see `Radial.scale`. Then X and
        the w_i are iterated from `points`.
        """
        (_, gradients), points = self.affine(dual, fidelities=False), list(points)
        subgradients = list(dual.subgradients)
        for k, piece in enumerate(self.pieces):
            near = [(i, f) for i, (position, f) in enumerate(self.fidelities) if position == k]
            radial = [f.fidelity for _, f in near if isinstance(f.fidelity, Radial)]
            if not near or len(radial) < len(near):
                continue
            for _ in range(1 if all(L.quadratic for L in radial) else SETTINGS.reweightings):
                weights = [square_weight(f, L, points[k]) for L, (_, f) in zip(radial, near, strict=True)]
                v = [f.price * w for w, (_, f) in zip(weights, near, strict=True)]
                mean = sum(each * f.target for each, (_, f) in zip(v, near, strict=True)) / sum(v)
                points[k] = piece.project(mean - gradients[k] / (2 * sum(v)))
                for w, (i, f) in zip(weights, near, strict=True):
                    subgradients[i] = 2 * w * (points[k] - f.target)
        sharp = dual._replace(subgradients=subgradients)
        return self.least(sharp), sharp, points


def lowest(piece: Budget, G: Array) -> float:
    """Return about the minimum of <G, X> over a piece."""
    reach = piece.reach(piece.variable)
    least = reach * eigenvalues(G)[0] if piece.is_matrix else np.min(reach * G)
    return float(min(least, 0.0) if piece.at_most else least)


def square_weight(term: FidelityTerm, radial: Radial, X: Array) -> float:
    """Return w = 1 / (2 s(|X - S|)): w |X - S|^2 plus a constant touches the fidelity from above at X."""
    length, size = (float(np.linalg.norm(D)) for D in (X - term.target, term.target))
    return float(1 / (2 * radial.scale(np.array([max(length, SETTINGS.min_distance * (size or 1.0))]))[0]))


@kept_in_structure
def read_composite(structure: Structure) -> Composite | str:
    """Read a problem as a `Composite` over bounded pieces, or say what stands in the way."""
    objective = structure.objective
    if structure.maximize:
        return "its objective must be minimised"
    if structure.unset:
        return structure.unset
    if objective is None:
        return "a risk must enter the objective times a positive number, not inside another function"
    pieces = read_pieces(structure)
    if isinstance(pieces, str):
        return pieces
    if not pieces:
        return "it has no variable"
    free = [piece.variable.name() for piece in pieces if np.isinf(piece.total)]
    if free:
        return f"no constraint fixes or bounds the trace or the sum of {', '.join(free)}"
    positions = {piece.variable.id: k for k, piece in enumerate(pieces)}
    offset, fidelities, other_terms = 0.0, list[tuple[int, FidelityTerm]](), list[WeightedTerm]()
    for weights, e in (*objective.affine_terms, *objective.terms):
        near = read_fidelity(weights, e)
        if e.is_constant():
            offset += float(weights @ flat(e.value))
        elif near is None:
            other_terms.append((weights, e))
        elif near.price > 0:
            fidelities.append((positions[near.variable.id], near))
    trainers = read_trainers(objective)
    if isinstance(trainers, str):
        return trainers
    without = [short(term) for _, term in other_terms if not has_subgradient(term, pieces)]
    if without:
        return (
            f"cvxpy has no subgradient of {', '.join(without)} in the middle of the set: write it with other "
            "atoms, as max(abs(X)) for norm_inf(X)"
        )
    return Composite(structure, pieces, trainers, fidelities, other_terms, offset)


def read_trainers(objective: Objective) -> list[Trainer] | str:
    """Read the risks with their factors, or say what stands in the way."""
    trainers = []
    for term, factor in zip(objective.risks, objective.factors, strict=True):
        if not factor > 0:
            return f"{term.node.name()} must have a positive factor in the objective"
        if len(term.kernels) > 1 and term.learner.norm < 2:
            return f"the block norm of a risk must be at least 2, got norm={term.learner.norm:g}"
        for K in term.kernels:
            added = K.args if isinstance(K, AddExpression) else [K]
            if not all(isinstance(arg, cp.Variable) or weighted(arg) is not None for arg in added):
                return (
                    f"the kernel {short(K)} must be a PSD variable or a combination with non-negative "
                    "weights, or a sum of these"
                )
        trainers.append(Trainer(factor, term))
    return trainers


def has_subgradient(term: cp.Expression, pieces: list[Budget]) -> bool:
    """Whether cvxpy knows a value and a subgradient of a term in the middle of the set."""
    for piece in pieces:
        piece.variable.save_value((piece.start() or {})[piece.variable.id])
    try:
        slopes, value = term.grad.values(), term.value
    except NotImplementedError:
        return False
    return value is not None and bool(np.isfinite(value).all()) and all(s is not None for s in slopes)
