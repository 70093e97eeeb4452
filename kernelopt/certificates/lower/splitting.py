"""Fidelities split off from kernels: the steps of the alternating direction method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernelopt.fidelities import Proximal
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array

RELAXATION = 1.8
BALANCE = 10  # iterations between two changes of sigma; more as the iterations grow
START = 0.8  # rho / sigma over the mean distance of the entries: see `first_sigma`
LEAST = 0.02


class Split:
    """The variables X_i beside the kernels K_i, with scaled multipliers U_i.

    After every step sigma U_i / price is in the subdifferential of sum_k L(X_i - S_ik): dual feasible
    without projection. phi_i is that sum.
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
        """Return sigma for which price / sigma is of the order of the entries of K - S."""
        far, size = [], []
        for block, S, mean in zip(self.read.blocks, self.S, self.X, strict=True):
            far.append(np.abs(block.piece.nearest(mean) - S).mean())
            size.append(np.abs(S).mean())
        return START * self.read.price / max(float(np.mean(far)), LEAST * float(np.mean(size)), 1e-300)

    def step(self, K: list[Array], first: bool) -> tuple[float, float]:
        """Move X and U; return the primal and the dual residual, both relative."""
        apart = moved = 0.0
        for i, (k, X, U, S) in enumerate(zip(K, self.X, self.U, self.S, strict=True)):
            V = (k if first else RELAXATION * k + (1 - RELAXATION) * X) + U
            new, self.phi[i] = self.proximal.proximal(V, S, self.read.price / self.sigma)
            apart += float(((k - new) ** 2).sum())
            moved += float(((new - X) ** 2).sum())
            self.X[i], self.U[i] = new, V - new
        size = sum(float((k**2).sum()) for k in K)
        change = sum(float((U**2).sum()) for U in self.U)
        return (apart / max(size, 1e-300)) ** 0.5, (moved / max(change, 1e-300)) ** 0.5

    def balance(self, iteration: int, primal: float, dual: float) -> None:
        """Change sigma where one residual is over three times the other."""
        if iteration - self.changed < BALANCE * (1 + iteration // 200):
            return
        ratio = primal / max(dual, 1e-300)
        if not 1 / 3 <= ratio <= 3:
            self.rescale(min(max(ratio**0.5, 0.5), 2.0))
            self.changed = iteration

    def rescale(self, factor: float) -> None:
        """Multiply sigma, and keep the multipliers."""
        self.sigma *= factor
        self.U = [U / factor for U in self.U]

    def subgradients(self) -> Callable[[], list[list[Array]]]:
        """Return what makes U_ik of the last step for every fidelity of every block."""
        X, U, scale = list(self.X), list(self.U), self.sigma / self.read.price
        return partial(all_shares, self.proximal, scale, U, X, self.S)


def all_shares(
    proximal: Proximal, scale: float, U: list[Array], X: list[Array], S: list[Array]
) -> list[list[Array]]:
    """Return `Proximal.shares` of scale * U_i for every block."""
    return [proximal.shares(scale * u, x, s) for u, x, s in zip(U, X, S, strict=True)]
