"""Dual averaging with entropies: von Neumann's over matrices of a given trace, Shannon's over vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from kernelopt.structure.pieces import Piece
from kernelopt.validation import Array

BOLD = 4.0  # the adaptive rate over that of the best bound: measured


class Memory:
    """The gradients of one piece so far, added up: X = reach * P with P = exp(-rate * sum) / trace."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.reach = piece, np.asarray(piece.reach, dtype=float)
        self.sum: Array = np.zeros(piece.variable.shape)
        self.last: Array = np.zeros(piece.variable.shape)

    def add(self, G: Array, weight: float) -> None:
        """Add weight times the gradient by P."""
        self.sum, self.last = self.sum + weight * G, G

    def point(self, rate: float, ahead: float = 0.0) -> Array:
        """Return X, with `ahead` times the last gradient added for this once."""
        values, V = self.spectrum(ahead)
        powers = -rate * values
        top = max(float(powers.max()), 0.0 if self.piece.at_most else -np.inf)
        p = np.exp(powers - top)
        p /= p.sum() + (np.exp(-top) if self.piece.at_most else 0.0)  # a coordinate of gradient zero
        if V is None:
            return np.asarray(self.reach * p)
        X = (V * (self.reach * p)) @ V.T
        return np.asarray((X + X.T) / 2)

    def spectrum(self, ahead: float) -> tuple[Array, Array | None]:
        """Return the eigenvalues and eigenvectors of the sum; a vector itself and None."""
        total = self.sum + ahead * self.last
        return scipy.linalg.eigh(total, check_finite=False) if self.piece.is_matrix else (total, None)

    def half_range(self, G: Array) -> float:
        """Return the norm of G dual to the trace norm, on a fixed trace: half the range of its spectrum."""
        values = scipy.linalg.eigvalsh(G, check_finite=False) if self.piece.is_matrix else G
        values = np.append(values, 0.0) if self.piece.at_most else values
        return float(np.ptp(values)) / 2

    @property
    def entropy(self) -> float:
        """The entropy of the centre."""
        return float(np.log(self.piece.variable.shape[0] + self.piece.at_most))


class Printed(Memory):
    """Algorithms 1 and 2 as printed: eigenvalues add up in their order, with the last gradient's vectors."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        if piece.is_matrix:
            self.values, self.added = np.zeros(len(self.sum)), np.zeros(len(self.sum))
            self.vectors = np.eye(len(self.sum))

    def add(self, G: Array, weight: float) -> None:
        super().add(G, weight)
        if self.piece.is_matrix:
            self.added, self.vectors = scipy.linalg.eigh(G, check_finite=False)
            self.values = self.values + weight * self.added

    def spectrum(self, ahead: float) -> tuple[Array, Array | None]:
        if not self.piece.is_matrix:
            return super().spectrum(ahead)
        return self.values + ahead * self.added, self.vectors


class StepRule(ABC):
    """A sequence of points, driven by gradients.

    Attributes
    ----------
    points : list of arrays
        Where the next gradients are to be taken, by piece.
    newest : list of arrays
        The newest points of the memories, of which `points` may be an average.
    """

    def __init__(self, memories: Sequence[Memory], horizon: int) -> None:
        self.memories, self.horizon = memories, horizon
        self.points = self.newest = [memory.point(0.0) for memory in memories]

    @abstractmethod
    def move(self, gradients: Sequence[Array]) -> float:
        """Take the gradients at `points`, go to the next, and return the weight of those left."""


class Constant(StepRule):
    """The step of the theorem: eta = sqrt(2 log n / T) / Lambda for T iterations, the same for all pieces.

    Lambda is the largest half range of the spectrum of a gradient so far (risks of several kernels have no
    bound of it beforehand), and min_t f(X_t) - f* <= sum_i tau_i Lambda sqrt(2 log n / T), with traces or
    largest entries tau_i. Kundu et al. (2010) print m T for m pieces under the root, which is slower.
    """

    def __init__(self, memories: Sequence[Memory], horizon: int) -> None:
        super().__init__(memories, horizon)
        self.root = float(np.sqrt(2 * max(memory.entropy for memory in memories) / horizon))
        self.largest = 0.0

    def move(self, gradients: Sequence[Array]) -> float:
        scaled = [m.reach / m.reach.max() * G for m, G in zip(self.memories, gradients, strict=True)]
        ranges = [memory.half_range(G) for memory, G in zip(self.memories, scaled, strict=True)]
        self.largest = max(self.largest, *ranges)
        eta = self.root / self.largest if self.largest > 0 else 0.0
        for memory, G in zip(self.memories, scaled, strict=True):
            memory.add(G, eta)
        self.points = self.newest = [memory.point(1.0) for memory in self.memories]
        return eta


class Adaptive(StepRule):
    r"""Dual averaging whose gradients are taken at the averages Z_t of its points X_t, both with weights t.

    X_{t+1} has the gradients G_1, ..., G_t in its memory and G_t once more, for G_{t+1} to come, at the rate
    4 sqrt(log n / sum_s s^2 |G_s - G_{s-1}|^2) by every piece. With the regret R_t of the points, the average
    of the minorants is within R_t / (1 + ... + t) of f(Z_t), since
    t (X_t - Z_t) = (1 + ... + (t - 1)) (Z_t - Z_{t-1}): of order 1 / sqrt(t) in general. Where the gradients
    come to rest the rate stays up, and the order is 1 / t^2.

    References
    ----------
    .. [1] A. Cutkosky, Anytime online-to-batch, optimism and acceleration, ICML 2019.
    """

    def __init__(self, memories: Sequence[Memory], horizon: int) -> None:
        super().__init__(memories, horizon)
        self.count = 0
        self.squares = np.zeros(len(memories))

    def move(self, gradients: Sequence[Array]) -> float:
        self.count += 1
        weight, newest = float(self.count), []
        for i, (memory, gradient) in enumerate(zip(self.memories, gradients, strict=True)):
            G = np.asarray(memory.reach * gradient)
            self.squares[i] += (weight * memory.half_range(G - memory.last)) ** 2
            rate = BOLD * np.sqrt(memory.entropy / self.squares[i]) if self.squares[i] > 0 else 0.0
            memory.add(G, weight)
            newest.append(memory.point(rate, ahead=weight + 1))
        share = 2 / (weight + 2)
        self.points = [Z + share * (X - Z) for Z, X in zip(self.points, newest, strict=True)]
        self.newest = newest
        return weight
