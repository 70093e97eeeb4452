"""Machines of a risk at given kernels, and the affine minorants of the risk that their alphas give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kernelopt.learner import blocks_at, learn
from kernelopt.methods.mirror_descent.settings import SETTINGS
from kernelopt.numerics.ball import Ball
from kernelopt.numerics.norms import conjugate_exponent, minimizing_weights
from kernelopt.structure.evaluation import Given
from kernelopt.structure.structure import Point, RiskTerm
from kernelopt.validation import Array


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
    machine: Given


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

    @cached_property
    def p(self) -> float:
        """The exponent p of |gamma|_p <= 1, infinite where all gamma_i are 1."""
        return np.inf if len(self.risk.kernels) == 1 else conjugate_exponent(self.risk.learner.norm / 2)

    def project(self, alpha: Array) -> Array:
        """Return the projection of alpha on the domain of the dual."""
        learner = self.risk.learner
        return learner.loss.project(alpha, learner.y, learner.has_intercept)

    def inside(self, gamma: Array) -> Array | None:
        """Return gamma with |gamma|_p <= 1 in exact arithmetic; None where all gamma_i are 1."""
        if np.isinf(self.p):
            return None
        return (Ball(gamma) / float(Ball(gamma).norm(self.p).above)).below

    def train(self, point: Point, last: TrainedMachine | None, slack: float) -> TrainedMachine:
        """Return the machine at a point, started at the last one, with a gap of about `slack`.

        `slack` is in units of the objective. As the value at the new point is not known, it is compared with
        the last value. For several gamma, l(alpha) - 1/2 sum_i alpha'K_i alpha / gamma_i is maximised
        alternately: over alpha this is the dual at the kernel sum_i K_i / gamma_i, and the best gamma are the
        `minimizing_weights` of the lengths sqrt(alpha'K_i alpha). The value and the minorant are valid
        wherever the alternation ends.
        """
        learner, Ks = self.risk.learner, self.risk.kernels_at(point)
        y, loss, bias = learner.y, learner.loss, learner.has_intercept
        size = 0.0 if last is None else self.factor * abs(last.value)
        accuracy = min(SETTINGS.loosest, slack / size) if 0 < size < np.inf else SETTINGS.loosest
        if np.isinf(self.p):
            start = None if last is None else last.alpha
            one = learn(np.asarray(sum(Ks)), y, loss, bias, start, accuracy)
            return TrainedMachine(one.value, one.alpha, np.ones(len(Ks)), (one.alpha, None))
        gamma = minimizing_weights(np.ones(len(Ks)), self.p) if last is None else last.gamma
        alpha = np.zeros(y.size) if last is None else last.alpha
        value, attained = np.inf, (np.zeros(y.size), np.ones(len(Ks)))
        for _ in range(SETTINGS.rounds):
            alpha = learn(
                np.tensordot(1 / gamma, np.asarray(Ks), 1), y, loss, bias, alpha, accuracy / 2
            ).alpha
            machine = blocks_at(Ks, alpha, 1 / gamma, y, loss, bias, learner.norm)
            if machine.value < value:
                value, attained = machine.value, (machine.alpha, 1 / gamma)
            forms = np.array([float(alpha @ K @ alpha) for K in Ks])
            gamma = minimizing_weights(np.sqrt(np.maximum(forms, 0.0)), self.p, SETTINGS.smallest_gamma)
            bound = loss.dual_value(alpha, y) - float(forms @ (1 / gamma)) / 2
            if value - bound <= accuracy * abs(value):
                break
        return TrainedMachine(value, alpha, gamma, attained)
