"""Dual averaging with entropies: von Neumann's for matrices of given trace, Shannon's for vectors.

References
----------
.. [1] Y. Nesterov, Primal-dual subgradient methods for convex problems, Math. Programming 120 (2009).
.. [2] A. Cutkosky, Anytime online-to-batch, optimism and acceleration, ICML 2019.
.. [3] Kundu et al. (2010), Algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelopt.methods.checkpoint import State
from kernelopt.methods.mirror_descent.settings import SETTINGS
from kernelopt.numerics.decompositions import eigenpairs, eigenvalues
from kernelopt.structure.parts import Budget
from kernelopt.validation import Array

FIXED = ("piece", "reach", "as_printed", "iterates", "horizon")  # attributes that do not change


class EntropyIterate:
    """One piece of the feasible set with the weighted sum S of its gradients.

    The iterate of dual averaging is X = reach * P with P = exp(-rate S) / tr exp(-rate S), the minimiser of
    rate <S, P> - entropy(P) over tr P = 1. For a constraint tr P <= 1 the denominator is 1 + tr exp(-rate S).
    """

    def __init__(self, piece: Budget, as_printed: bool = False) -> None:
        self.piece, self.reach = piece, piece.reach(piece.variable)
        self.as_printed = as_printed and piece.is_matrix
        self.sum: Array = np.zeros(piece.variable.shape)
        self.last: Array = np.zeros(piece.variable.shape)
        if self.as_printed:
            self.values, self.added = np.zeros(len(self.sum)), np.zeros(len(self.sum))
            self.vectors = np.eye(len(self.sum))

    def add(self, G: Array, weight: float) -> None:
        """Add weight times a gradient with respect to P to the sum.

        As printed in Algorithms 1 and 2 of [3]_, sorted eigenvalues are added, and the eigenvectors belong to
        the last gradient.
        """
        self.sum, self.last = self.sum + weight * G, G
        if self.as_printed:
            self.added, self.vectors = eigenpairs(G, check_finite=False)
            self.values = self.values + weight * self.added

    def point(self, rate: float, ahead: float = 0.0) -> Array:
        """Return X for the sum S + ahead * (last gradient)."""
        values, V = self.spectrum(ahead)
        powers = -rate * values
        top = max(float(powers.max()), 0.0 if self.piece.at_most else -np.inf)
        p = np.exp(powers - top)
        p /= p.sum() + (np.exp(-top) if self.piece.at_most else 0.0)  # 1 - tr P, with gradient zero
        if V is None:
            return np.asarray(self.reach * p)
        X = (V * (self.reach * p)) @ V.T
        return np.asarray((X + X.T) / 2)

    def spectrum(self, ahead: float) -> tuple[Array, Array | None]:
        """Return the eigenvalues and eigenvectors of S + ahead * (last gradient), or a vector and None."""
        total = self.sum + ahead * self.last
        if self.as_printed:
            return self.values + ahead * self.added, self.vectors
        return eigenpairs(total, check_finite=False) if self.piece.is_matrix else (total, None)

    def half_range(self, G: Array) -> float:
        """Return half the range of the spectrum of G: the dual norm to the trace norm, modulo I."""
        values = eigenvalues(G) if self.piece.is_matrix else G
        values = np.append(values, 0.0) if self.piece.at_most else values
        return float(np.ptp(values)) / 2

    @property
    def entropy(self) -> float:
        """The entropy of the centre, the largest one over the piece: log n, or log(n + 1) for tr P <= 1."""
        return float(np.log(self.piece.variable.shape[0] + self.piece.at_most))


class Steps:
    """The rules that map gradients to the next points.

    The constant step is eta = sqrt(2 log n / T) / Lambda for T iterations, the same for all pieces. Lambda is
    the largest half range of the spectrum of a gradient so far, since no bound of it is known in advance for
    risks of several kernels. The theorem is min_t f(X_t) - f* <= sum_i tau_i Lambda sqrt(2 log n / T), where
    tau_i is the trace or the largest entry of piece i. Kundu et al. [3]_ print m T in place of T for m
    pieces, which gives a smaller step.

    The adaptive step is dual averaging with gradients G_t at weighted averages Z_t of the iterates X_t, with
    weights t [2]_. The iterate X_{t+1} is computed from the weighted sum of G_1, ..., G_t plus (t + 1) G_t, a
    prediction of the next term (optimism). The rate of a piece is 4 sqrt(log n / sum_s s^2 |G_s - G_{s-1}|^2)
    for s <= t. Since t (X_t - Z_t) = (1 + ... + (t - 1)) (Z_t - Z_{t-1}), the average of the minorants is
    within R_t / (1 + ... + t) of f(Z_t), where R_t is the regret of the iterates. The gap is of order
    1 / sqrt(t) in general. It is of order 1 / t^2 if the gradients converge so fast that the sum in the rate
    stays bounded.

    Attributes
    ----------
    points : list of arrays
        The points at which the next gradients are taken, one per piece.
    newest : list of arrays
        The newest iterates; `points` may be averages of iterates.
    """

    def __init__(self, iterates: Sequence[EntropyIterate], horizon: int | None = None) -> None:
        """Take the constant step for a horizon of T iterations, and the adaptive step without one."""
        self.iterates, self.horizon = iterates, horizon
        self.points = self.newest = [iterate.point(0.0) for iterate in iterates]
        self.largest = 0.0  # Lambda
        self.count = 0
        self.variations = np.zeros(len(iterates))  # sqrt(sum_s s^2 |G_s - G_{s-1}|^2); squares may underflow

    def move(self, gradients: Sequence[Array]) -> float:
        """Take the gradients at `points`, compute the next points, and return the weight of the gradients."""
        if self.horizon is None:
            return self._adaptive(gradients)
        scaled = [m.reach / m.reach.max() * G for m, G in zip(self.iterates, gradients, strict=True)]
        ranges = [iterate.half_range(G) for iterate, G in zip(self.iterates, scaled, strict=True)]
        self.largest = max(self.largest, *ranges)
        root = float(np.sqrt(2 * max(iterate.entropy for iterate in self.iterates) / self.horizon))
        eta = root / self.largest if self.largest > 0 else 0.0
        for iterate, G in zip(self.iterates, scaled, strict=True):
            iterate.add(G, eta)
        self.points = self.newest = [iterate.point(1.0) for iterate in self.iterates]
        return eta

    def _adaptive(self, gradients: Sequence[Array]) -> float:
        self.count += 1
        weight, newest = float(self.count), []
        for i, (iterate, gradient) in enumerate(zip(self.iterates, gradients, strict=True)):
            G = np.asarray(iterate.reach * gradient)
            change = weight * iterate.half_range(G - iterate.last)
            self.variations[i] = length = np.hypot(self.variations[i], change)
            rate = SETTINGS.rate_factor * np.sqrt(iterate.entropy) / length if length > 0 else 0.0
            iterate.add(G, weight)
            newest.append(iterate.point(rate, ahead=weight + 1))
        share = 2 / (weight + 2)
        self.points = [Z + share * (X - Z) for Z, X in zip(self.points, newest, strict=True)]
        self.newest = newest
        return weight

    def state(self) -> State:
        """Return the points and the sums of the gradients."""
        return changing(self) | {"sums": [changing(iterate) for iterate in self.iterates]}

    def restore(self, state: State) -> None:
        """Take up the points and the sums of an earlier run."""
        for owner, known in zip((self, *self.iterates), (state, *state["sums"]), strict=True):
            for name in changing(owner):
                setattr(owner, name, known[name])


def changing(owner: object) -> State:
    """Return the attributes that change between iterations."""
    return {name: value for name, value in vars(owner).items() if name not in FIXED}
