"""What an iteration of the first-order dual methods knows: a point, its machine, and a dual point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.spectra import Ascent
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


@dataclass(frozen=True, eq=False)
class Iterate:
    """Bounds of one iteration in units of the risk, the point and the machine of the upper bound, the proof.

    The machine is f = sum_i K_i alpha / gamma_i + b; the values of the variables are made when wanted.
    """

    lower: float
    upper: float
    X: Callable[[], list[Array]]
    alpha: Array
    gamma: Array
    proof: Proof


def ascent(read: Nearness) -> Ascent:
    """Return the inner problem over alpha and gamma, without its matrices B."""
    learner = read.risk.learner
    totals = [block.total for block in read.blocks]
    diagonal = read.blocks[0].V is not None
    return Ascent(learner.loss, learner.y, learner.bias is not None, read.n_points, totals, diagonal)


def set_matrix(inner: Ascent, read: Nearness, i: int, B: Array) -> None:
    """Put B_i, a matrix or a spectrum, into the inner problem: one eigendecomposition for a matrix."""
    V = read.blocks[i].V
    if V is None:
        lam, Q = np.linalg.eigh(B)
        inner.set_spectrum(i, Q, lam)
    else:
        inner.set_spectrum(i, V, B)


def point(inner: Ascent, read: Nearness) -> list[Array]:
    """Return the values of the variables that the inner problem ended with."""
    each = inner.kernel if read.blocks[0].V is None else inner.spectrum
    return [each(i) for i in range(len(read.blocks))]


@dataclass(frozen=True, eq=False)
class Response:
    """The values of the variables that are best at alpha and gamma, for weights W_i and matrices B_i.

    And U = kappa (X - S) / s: the derivative of the fidelity, which is that of |X - S|^2 / (2 s) + s / 2.
    """

    read: Nearness
    B: list[Array]
    W: Array
    alpha: Array
    gamma: Array
    s: list[Array]
    kappa: float = 1.0

    def X(self) -> list[Array]:
        """Return the values, one decomposition for each matrix the first time."""
        return self._X

    @cached_property
    def _X(self) -> list[Array]:
        z = self.read.padded(self.alpha)
        each = zip(self.read.blocks, self.B, 4 * self.W * self.gamma, strict=True)
        return [block.piece.nearest(B + block.adjoint(z) / c) for block, B, c in each]

    def U(self) -> list[list[Array]]:
        """Return U for every fidelity of every block."""
        return [
            [self.kappa * (x - f.target) / scale for f, scale in zip(block.fidelities, s, strict=True)]
            for block, x, s in zip(self.read.blocks, self._X, self.s, strict=True)
        ]


def risk_bounds(inner: Ascent, read: Nearness, gap: float) -> tuple[float, float]:
    """Return l(alpha), and the value of the risk's machine: the primal value of the inner problem."""
    learner = read.risk.learner
    linear = learner.loss.dual_value(inner.alpha, learner.y)
    return linear, gap + linear - float((inner.forms / inner.gamma).sum()) / 2


def allowance(read: Nearness, control: Control, upper: float) -> float:
    """Return the gap that the tolerance allows, in units of the risk."""
    return control.tol * max(abs(read.factor * upper + read.offset), control.floor) / read.factor
