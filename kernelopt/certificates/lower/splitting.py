"""Fidelities split off from kernels: the steps of the alternating direction method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernelopt.fidelities import Proximal
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array

RELAXATION = 1.8  # of the kernels: Boyd et al. (2011), section 3.4.3, advise 1.5 to 1.8
BALANCE_EVERY = 10  # iterations at least between two changes of sigma
SLOWDOWN = 200  # iterations after which that number has doubled: sigma must become constant for convergence
LARGEST_RATIO = 3.0  # of the residuals, up to which sigma is kept
LARGEST_CHANGE = 2.0  # factor of one change of sigma
START = 0.8  # price / sigma over the mean distance |K - S| of the entries; found by measurement
SMALLEST_DISTANCE = 0.02  # of the mean entry of S: that distance where K is nearly S


class Split:
    """The alternating direction method for K_i = X_i: fidelities of X_i, and scaled multipliers U_i.

    After every step sigma U_i / price is in the subdifferential of phi_i = sum_k L(X_i - S_ik), so that it is
    dual feasible without projection. The penalty parameter sigma
    follows the ratio of the residuals: [1]_, section 3.4.1.

    References
    ----------
    .. [1] Boyd et al., Distributed optimization and statistical learning via the alternating direction method
       of multipliers, Foundations and Trends in Machine Learning 3 (2011).
    """

    def __init__(self, read: Nearness, proximal: Proximal) -> None:
        self.read, self.proximal = read, proximal
        self.S = [block.targets for block in read.blocks]
        self.X = [S.mean(axis=0) for S in self.S]
        self.U = [np.zeros_like(X) for X in self.X]
        self.phi = [0.0] * len(self.X)
        self.sigma = self.first_sigma()
        self.changed = 0

    def first_sigma(self) -> float:
        """Return the sigma for which price / sigma is of the size of the entries of K - S."""
        distances, sizes = [], []
        for block, S in zip(self.read.blocks, self.S, strict=True):
            distances.append(np.abs(block.nearest_to_mean - S).mean())
            sizes.append(np.abs(S).mean())
        distance = max(float(np.mean(distances)), SMALLEST_DISTANCE * float(np.mean(sizes)))
        return START * self.read.price / max(distance, SMALLEST_DIVISOR)

    def step(self, K: list[Array], first: bool) -> tuple[float, float]:
        """Update X and U at the kernels K; return the relative primal and dual residuals."""
        apart = moved = 0.0
        for i, (k, X, U, S) in enumerate(zip(K, self.X, self.U, self.S, strict=True)):
            V = (k if first else RELAXATION * k + (1 - RELAXATION) * X) + U
            new, self.phi[i] = self.proximal.proximal(V, S, self.read.price / self.sigma)
            apart += float(((k - new) ** 2).sum())
            moved += float(((new - X) ** 2).sum())
            self.X[i], self.U[i] = new, V - new
        size = sum(float((k**2).sum()) for k in K)
        change = sum(float((U**2).sum()) for U in self.U)
        return (apart / max(size, SMALLEST_DIVISOR)) ** 0.5, (moved / max(change, SMALLEST_DIVISOR)) ** 0.5

    def balance(self, iteration: int, primal: float, dual: float) -> None:
        """Multiply sigma by about the root of the ratio of the residuals, unless that is near one."""
        if iteration - self.changed < BALANCE_EVERY * (1 + iteration // SLOWDOWN):
            return
        ratio = primal / max(dual, SMALLEST_DIVISOR)
        if not 1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO:
            self.rescale(min(max(ratio**0.5, 1 / LARGEST_CHANGE), LARGEST_CHANGE))
            self.changed = iteration

    def rescale(self, factor: float) -> None:
        """Multiply sigma by a factor; the multipliers sigma U_i stay the same."""
        self.sigma *= factor
        self.U = [U / factor for U in self.U]

    def subgradients(self) -> Callable[[], list[list[Array]]]:
        """Return a function that computes the U_ik of the last step for every fidelity of every block."""
        X, U, scale = list(self.X), list(self.U), self.sigma / self.read.price
        return partial(all_shares, self.proximal, scale, U, X, self.S)


def all_shares(
    proximal: Proximal, scale: float, U: list[Array], X: list[Array], S: list[Array]
) -> list[list[Array]]:
    """Return `Proximal.shares` of scale * U_i for every block."""
    return [proximal.shares(scale * u, x, s) for u, x, s in zip(U, X, S, strict=True)]
