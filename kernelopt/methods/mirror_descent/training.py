"""Machines of a risk at given kernels, and the affine minorants of the risk that their alphas give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.add_expr import AddExpression

from kernelopt.certificates.lower.minorants import dual_value_of, form_change, form_errors
from kernelopt.grams import Grams
from kernelopt.language.penalty import weighted
from kernelopt.learner import blocks_at, learn
from kernelopt.numerics.norms import conjugate_exponent, minimizing_weights
from kernelopt.numerics.rounding import NORM_ROUNDINGS, gamma, norm_above
from kernelopt.structure.affine import Affine, affine
from kernelopt.structure.pieces import Piece
from kernelopt.structure.structure import RiskTerm
from kernelopt.validation import Array

SMALLEST_GAMMA = 1e-12  # relative to the largest gamma: K / gamma must stay finite
LOOSEST = 1e-2  # the largest relative gap to which a machine is trained
ROUNDS = 2  # alternations between alpha and gamma at a point; they continue at the next point


class LinearPart(NamedTuple):
    """A summand of a kernel that is linear in one variable: the matrix X itself, or sum_j (M x)_j K_j.

    Attributes
    ----------
    position : int
        The position of the variable among the pieces.
    grams : Grams or None
        The K_j; None where the summand is the matrix itself.
    M : sparse array or None
    """

    position: int
    grams: Grams | None = None
    M: Any = None


@dataclass(frozen=True, eq=False)
class AffineKernel:
    """A kernel on the n labelled points as an affine function of the variables: parts plus a constant.

    Attributes
    ----------
    n : int
    parts : list of LinearPart
    fixed : list of (weights, Grams)
        The combinations that make up the constant part.
    """

    n: int
    parts: list[LinearPart]
    fixed: list[tuple[Array, Grams]]

    @cached_property
    def constant(self) -> Array:
        """The constant part, shape (n, n)."""
        return np.asarray(sum((grams.combine(w) for w, grams in self.fixed), np.zeros((self.n, self.n))))

    def at(self, points: list[Array]) -> Array:
        """Return the kernel at a point, shape (n, n)."""
        K = self.constant.copy()
        for position, grams, M in self.parts:
            X = points[position]
            K += X[: self.n, : self.n] if grams is None else grams.combine(M @ X)
        return K

    def add_form(self, alpha: Array, weight: float, gradients: list[Array]) -> float:
        """Add the gradient of weight * alpha'K alpha by the variables to `gradients`; return its constant.

        The quadratic form is affine in the variables. Its constant is weight * alpha'(constant part) alpha.
        """
        for position, grams, M in self.parts:
            if grams is None:
                gradients[position][: self.n, : self.n] += weight * np.outer(alpha, alpha)
            else:
                gradients[position] += weight * (M.T @ grams.forms(alpha))
        return weight * float(alpha @ self.constant @ alpha)

    def add_form_errors(self, alpha: Array, weight: float, perturbation: float, errors: list[float]) -> float:
        """Add bounds of the errors of `add_form` to `errors`, and return that of the constant.

        They are errors in the Frobenius norm: those of rounding in the forms alpha'K_j alpha, and those of a
        change of one entry of alpha by `perturbation`. Roundings of single products are not included.
        """

        def of_forms(grams: Grams) -> Array:
            sizes = grams.magnitudes[:, : self.n]
            return form_errors(sizes, alpha) + form_change(sizes, alpha, perturbation)

        of_entry = 2 * perturbation * float(np.abs(alpha).max(initial=0.0)) + perturbation * perturbation
        for position, grams, M in self.parts:
            size = self.n * of_entry if grams is None else norm_above(abs(M).T @ of_forms(grams))
            errors[position] += weight * size
        return weight * sum(float(np.abs(w) @ of_forms(grams)) for w, grams in self.fixed)


class TrainedMachine(NamedTuple):
    """A machine at a point, with the alpha and gamma of a minorant of the risk.

    Attributes
    ----------
    value : float
        The loss plus half the squared norm of the machine: an upper bound of the risk.
    alpha, gamma : arrays of shapes (n,) and (m,)
        The dual point of the minorant in `Trainer`.
    machine : (alpha, scales)
        The machine, as `Learner.at` takes it.
    """

    value: float
    alpha: Array
    gamma: Array
    machine: tuple[Array, Array | None]


@dataclass(frozen=True, eq=False)
class Trainer:
    """A risk times a factor: machines at given kernels, and affine minorants.

    For every alpha in the domain of the dual, and the gamma below,

        factor * risk(K_1, ..., K_m) >= factor * (l(alpha) - 1/2 sum_i alpha'K_i alpha / gamma_i).

    For one kernel, or norm 2, all gamma_i are 1. For norm > 2 they are any gamma > 0 with |gamma|_p <= 1,
    where p = norm / (norm - 2) is conjugate to norm / 2; it is 1 for norm=inf.
    """

    factor: float
    risk: RiskTerm
    kernels: list[AffineKernel]

    @cached_property
    def p(self) -> float:
        """The exponent p of |gamma|_p <= 1, infinite where all gamma_i are 1."""
        return np.inf if len(self.kernels) == 1 else conjugate_exponent(self.risk.learner.norm / 2)

    def project(self, alpha: Array) -> Array:
        """Return the projection of alpha on the domain of the dual."""
        learner = self.risk.learner
        return learner.loss.project(alpha, learner.y, learner.bias is not None)

    def add_minorant(self, alpha: Array, gammas: Array, gradients: list[Array]) -> float:
        """Add the gradient of the minorant of `feasible` values to `gradients`; return its constant."""
        learner = self.risk.learner
        constant = self.factor * learner.loss.dual_value(alpha, learner.y)
        for kernel, gamma_i in zip(self.kernels, gammas, strict=True):
            constant += kernel.add_form(alpha, -self.factor / (2 * gamma_i), gradients)
        return constant

    def add_minorant_errors(self, alpha: Array, gammas: Array, errors: list[float]) -> tuple[float, float]:
        """Add bounds of the errors of the gradient of `add_minorant` to `errors`.

        Returns
        -------
        size, error : float
            factor * |l(alpha)|, and a bound of the error of the constant. Neither includes the roundings of
            the last operations.
        """
        gain, perturbation = dual_value_of(self.risk.learner, alpha)
        error = self.factor * gain.error
        for kernel, gamma_i in zip(self.kernels, gammas, strict=True):
            error += kernel.add_form_errors(alpha, self.factor / (2 * gamma_i), perturbation, errors)
        return self.factor * abs(gain.value), error

    def feasible(self, alpha: Array, gammas: Array) -> tuple[Array, Array]:
        """Return the projection of alpha, and a gamma with |gamma|_p <= 1 in exact arithmetic.

        The given gamma has |gamma|_p <= 1 up to rounding.
        """
        share = 1.0 if np.isinf(self.p) else 1 - gamma(gammas.size + NORM_ROUNDINGS)
        return self.project(alpha), gammas * share

    def train(self, points: list[Array], last: TrainedMachine | None, slack: float) -> TrainedMachine:
        """Return the machine at a point, started at the last one, with a gap of about `slack`.

        `slack` is in units of the objective. As the value at the new point is not known, it is compared with
        the last value.
        """
        learner = self.risk.learner
        size = 0.0 if last is None else self.factor * abs(last.value)
        accuracy = min(LOOSEST, slack / size) if 0 < size < np.inf else LOOSEST
        Ks = [kernel.at(points) for kernel in self.kernels]
        start = None if last is None else last.alpha
        if self.p < np.inf:
            gammas = minimizing_weights(np.ones(len(Ks)), self.p) if last is None else last.gamma
            return self._alternate(Ks, start, gammas, accuracy)
        K, bias = np.asarray(sum(Ks)), learner.bias is not None
        one = learn(K, learner.y, learner.loss, bias, start=start, tol=accuracy)
        return TrainedMachine(one.value, one.alpha, np.ones(len(Ks)), (one.alpha, None))

    def _alternate(
        self, Ks: list[Array], alpha: Array | None, gammas: Array, accuracy: float
    ) -> TrainedMachine:
        """Maximise l(alpha) - 1/2 sum_i alpha'K_i alpha / gamma_i alternately over alpha and over gamma.

        For fixed gamma this is the dual at the kernel sum_i K_i / gamma_i. For fixed alpha the best gamma are
        the `minimizing_weights` of the lengths sqrt(alpha'K_i alpha).
        The value and the minorant are valid wherever the alternation ends.
        """
        learner = self.risk.learner
        y, loss, bias = learner.y, learner.loss, learner.bias is not None
        value, attained = np.inf, (np.zeros(y.size), np.ones(len(Ks)))
        alpha = np.zeros(y.size) if alpha is None else alpha
        for _ in range(ROUNDS):
            K = np.tensordot(1 / gammas, np.asarray(Ks), 1)
            alpha = learn(K, y, loss, bias, start=alpha, tol=accuracy / 2).alpha
            machine = blocks_at(Ks, alpha, 1 / gammas, y, loss, bias, learner.norm)
            if machine.value < value:
                value, attained = machine.value, (machine.alpha, 1 / gammas)
            forms = np.array([float(alpha @ K @ alpha) for K in Ks])
            gammas = minimizing_weights(np.sqrt(np.maximum(forms, 0.0)), self.p, SMALLEST_GAMMA)
            bound = loss.dual_value(alpha, y) - float(forms @ (1 / gammas)) / 2
            if value - bound <= accuracy * abs(value):
                break
        return TrainedMachine(value, alpha, gammas, attained)


def read_kernel(K: cp.Expression, n: int, pieces: list[Piece]) -> AffineKernel | None:
    """Return a kernel as a sum of PSD variables, weighted Gram matrices and constants, or None."""
    positions = {piece.variable.id: k for k, piece in enumerate(pieces)}
    kernel = AffineKernel(n, [], [])
    for arg in K.args if isinstance(K, AddExpression) else [K]:
        if isinstance(arg, cp.Variable):
            kernel.parts.append(LinearPart(positions[arg.id]))
            continue
        terms = weighted(arg)
        if terms is None:
            return None
        for weights, grams in terms:
            block = grams.block(slice(0, n)) if n < grams.n_points else grams
            read = read_weights(weights)
            if read is None:
                return None
            kernel.parts.extend(LinearPart(positions[v.id], block, M) for v, M in read.matrices.items())
            if read.constant.any():
                kernel.fixed.append((read.constant, block))
    return kernel


def read_weights(weights: cp.Expression) -> Affine | None:
    """Return weights as an affine function of vectors, or None."""
    read = affine(weights)
    return None if read is None or any(v.ndim != 1 for v in read.matrices) else read
