"""The data of a risk, and the machines at given kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np

from kernelopt.language.penalty import Form, Penalty
from kernelopt.language.terms import dense
from kernelopt.learner import Machine, blocks_at, learn, learn_blocks, machine_at
from kernelopt.losses import Loss
from kernelopt.numerics.decompositions import nearest_psd
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Learner:
    """The data of a risk, which `expand`, the certificate and the methods read.

    Attributes
    ----------
    kernels : tuple of cvxpy expressions
    y : array of shape (n,)
    loss : Loss
    norm : float
    penalties : tuple of Penalty
    bias : cp.Variable or None
    fit : cvxpy expression of shape (n,)
        The predictions f + b on the labelled points.
    half_square : cvxpy expression
        1/2 |(|f_m|)_m|_norm^2.
    summed_loss : cvxpy expression
        The loss of `fit`.
    """

    kernels: tuple[cp.Expression, ...]
    y: Array
    loss: Loss
    norm: float
    penalties: tuple[Penalty, ...]
    bias: cp.Variable | None
    fit: cp.Expression
    half_square: cp.Expression
    summed_loss: cp.Expression

    @cached_property
    def n(self) -> int:
        """The number of labelled points."""
        return self.y.size

    @cached_property
    def has_intercept(self) -> bool:
        """Whether there is an unpenalised intercept b."""
        return self.bias is not None

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The cone of each kernel: "fixed", "second-order cone" or "semidefinite"."""
        return tuple(part.form for part in self.penalties)

    def train(self, Ks: list[Array]) -> Machine:
        """Return the machine at the kernels Ks on the labelled points.

        Its value is infinite if a kernel has an eigenvalue below -1e-8 of its largest one, or if a hard
        margin cannot be met.
        """
        clipped = [nearest_psd((K + K.T) / 2) for K in Ks]
        kernels = [K for K in clipped if K is not None]
        if len(kernels) < len(Ks):
            return Machine(np.inf, np.zeros(self.n), np.nan, np.zeros((len(Ks), self.n)))
        if len(kernels) == 1:
            return learn(kernels[0], self.y, self.loss, self.has_intercept)
        return learn_blocks(kernels, self.y, self.loss, self.has_intercept, self.norm)

    def is_determined(self, scales: Array | None) -> bool:
        """Whether alpha and scales determine a machine: several kernels need scales unless the norm is 2."""
        return len(self.kernels) == 1 or self.norm == 2 or scales is not None

    def at(self, Ks: Sequence[Any], alpha: Array, scales: Array | None = None) -> Machine:
        """Return the machine f = sum_i scales_i K_i alpha + b at the kernels Ks, with the best b.

        The kernels are arrays, or objects that compute K @ alpha. All scales are one by default.
        """
        bias = self.has_intercept
        if len(Ks) == 1:
            return machine_at(Ks[0], alpha, self.y, self.loss, bias)
        scales = np.ones(len(Ks)) if scales is None else scales
        return blocks_at(Ks, alpha, scales, self.y, self.loss, bias, self.norm)


def on_labelled(kernels: Sequence[cp.Expression], n: int) -> list[Array]:
    """Return the current values of kernels on the first n points; their variables must have values."""
    return [dense(K)[:n, :n] for K in kernels]
