"""Sums of absolute values: the alternating direction method, with one splitting variable per kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from kernelopt.solvers.control import Control
from kernelopt.solvers.first_order.iterate import (
    Iterate,
    Proof,
    allowance,
    ascent,
    place,
    point,
    risk_bounds,
)
from kernelopt.spectra import Ascent
from kernelopt.structure.nearness import Nearness
from kernelopt.threads import Watch
from kernelopt.validation import Array

STEPS = 100  # accelerated steps of the inner problem in one iteration
RELAXATION = 1.8
CHECK = 5  # iterations between two looks at the bounds
BALANCE = 10  # iterations between two changes of sigma; more as the iterations grow
SHARE = 0.5  # of the gap, to which the inner problem is solved
ACCURACY = 0.1  # of the tolerance
START = 0.8  # rho / sigma over the mean distance of the entries: see `first_sigma`
LEAST = 0.02


class Split:
    """The variables X_i beside the kernels K_i, with scaled multipliers U_i.

    After every step sigma U_i / price is in the subdifferential of sum_k |X_i - S_ik|: dual feasible
    without clipping.
    """

    def __init__(self, read: Nearness, inner: Ascent) -> None:
        self.read, self.inner = read, inner
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

    def kernels(self, tol: float, watch: Watch) -> tuple[list[Array], float]:
        """Return the K_i nearest to X_i - U_i together with the risk, and the gap of that problem."""
        for i, (X, U) in enumerate(zip(self.X, self.U, strict=True)):
            watch()  # a decomposition follows
            place(self.inner, self.read, i, X - U)
        _, gap = self.inner.solve(np.full(len(self.X), self.sigma / 2), tol, STEPS, watch)
        return point(self.inner, self.read), gap

    def step(self, K: list[Array], first: bool) -> tuple[float, float]:
        """Move X and U; return the primal and the dual residual, both relative."""
        from kernelopt.solvers.first_order.median import to_median  # imports a compiler

        apart = moved = 0.0
        for i, (k, X, U, S) in enumerate(zip(K, self.X, self.U, self.S, strict=True)):
            V = (k if first else RELAXATION * k + (1 - RELAXATION) * X) + U
            new = np.empty_like(X)
            step = self.read.price / self.sigma
            self.phi[i] = to_median(V.ravel(), S.reshape(len(S), -1), step, new.ravel())
            apart += float(((k - new) ** 2).sum())
            moved += float(((new - X) ** 2).sum())
            self.X[i], self.U[i] = new, V - new
        size = sum(float((k**2).sum()) for k in K)
        pull = sum(float((U**2).sum()) for U in self.U)
        return (apart / max(size, 1e-300)) ** 0.5, (moved / max(pull, 1e-300)) ** 0.5

    def balance(self, iteration: int, primal: float, dual: float) -> None:
        """Change sigma where one residual is over three times the other."""
        if iteration - self.changed < BALANCE * (1 + iteration // 200):
            return
        ratio = primal / max(dual, 1e-300)
        if not 1 / 3 <= ratio <= 3:
            factor = min(max(ratio**0.5, 0.5), 2.0)
            self.sigma *= factor
            self.U = [U / factor for U in self.U]
            self.changed = iteration

    def lower(self, upper: float) -> float:
        """Return the bound of U, alpha and gamma; `upper` bounds the traces where they are free."""
        alpha, gamma, learner = self.inner.alpha, self.inner.gamma, self.read.risk.learner
        z = self.read.padded(alpha)
        bound = learner.loss.conjugate(alpha, learner.y)
        for i, block in enumerate(self.read.blocks):
            G = self.sigma * self.U[i] - block.pull(z) / (2 * gamma[i])
            bound += self.read.price * self.phi[i] - self.sigma * float(np.vdot(self.U[i], self.X[i]))
            bound += block.least(G, self.read.price, upper)
        return bound

    def proof(self) -> Proof:
        """Return the dual point of the last step."""
        X, U, scale = list(self.X), list(self.U), self.sigma / self.read.price
        alpha, gamma = self.inner.alpha.copy(), self.inner.gamma.copy()
        return Proof(
            alpha, gamma, lambda: [shares(scale * u, x, S) for u, x, S in zip(U, X, self.S, strict=True)]
        )


def entrywise(read: Nearness, control: Control) -> Iterator[Iterate]:
    """Split K_i = X_i: the K-step is the inner problem, the X-step a median of every entry."""
    inner = ascent(read)
    split = Split(read, inner)
    tol = np.inf
    for iteration in count():
        K, gap = split.kernels(tol, control.check)
        residuals = split.step(K, iteration == 0)
        if iteration % CHECK == CHECK - 1 or iteration < 2 or control.late:
            upper = risk_bounds(inner, read, gap)[1]
            upper += sum(block.distance(k) for block, k in zip(read.blocks, K, strict=True)) / read.factor
            known = min(upper, (control.upper - read.offset) / read.factor)
            proof = split.proof()
            yield Iterate(split.lower(known), upper, partial(list, K), proof.alpha, proof.gamma, proof)
            open_gap = (control.upper - control.lower) / read.factor
            tol = max(ACCURACY * allowance(read, control, upper), SHARE * open_gap)
        split.balance(iteration, *residuals)


def shares(P: Array, X: Array, S: Array) -> list[Array]:
    """Return U_k in the subdifferential of |X - S_k| with sum P: the ties share what is left equally."""
    signs = np.sign(X - S)
    ties = signs == 0
    left = (P - signs.sum(axis=0)) / np.maximum(ties.sum(axis=0), 1)
    return list(np.where(ties, left, signs))
