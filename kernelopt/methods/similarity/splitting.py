"""Fidelities with a proximal operator: the alternating direction method, a splitting variable per kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from kernelopt.certificates.lower.near import Proof
from kernelopt.certificates.lower.splitting import Split
from kernelopt.fidelities import Proximal
from kernelopt.methods.control import Control
from kernelopt.methods.similarity.iterate import (
    Iterate,
    allowance,
    ascent,
    point,
    risk_bounds,
    set_matrix,
)
from kernelopt.structure.nearness import Nearness
from kernelopt.threads import Watch
from kernelopt.validation import Array

STEPS = 100  # accelerated steps of the inner problem in one iteration
CHECK = 5  # iterations between two looks at the bounds
SHARE = 0.5  # of the gap, to which the inner problem is solved
ACCURACY = 0.1  # of the tolerance


class Inner:
    """The K-step: the kernels nearest to given matrices together with the risk."""

    def __init__(self, read: Nearness) -> None:
        self.read, self.inner = read, ascent(read)

    def kernels(self, split: Split, tol: float, watch: Watch) -> tuple[list[Array], float]:
        """Return the K_i nearest to X_i - U_i together with the risk, and the gap of that problem."""
        for i, (X, U) in enumerate(zip(split.X, split.U, strict=True)):
            watch()  # a decomposition follows
            set_matrix(self.inner, self.read, i, X - U)
        _, gap = self.inner.solve(np.full(len(split.X), split.sigma / 2), tol, STEPS, watch)
        return point(self.inner, self.read), gap

    def lower(self, split: Split, upper: float) -> float:
        """Return the bound of U, alpha and gamma; `upper` bounds the traces where they are free."""
        alpha, gamma, learner = self.inner.alpha, self.inner.gamma, self.read.risk.learner
        z = self.read.padded(alpha)
        bound = learner.loss.dual_value(alpha, learner.y)
        for i, block in enumerate(self.read.blocks):
            G = split.sigma * split.U[i] - block.adjoint(z) / (2 * gamma[i])
            bound += self.read.price * split.phi[i] - split.sigma * float(np.vdot(split.U[i], split.X[i]))
            bound += block.linear_minimum(G, self.read.price, upper)
        return bound

    def proof(self, split: Split) -> Proof:
        """Return the dual point of the last step."""
        return Proof(self.inner.alpha.copy(), self.inner.gamma.copy(), split.subgradients())


def by_splitting(read: Nearness, control: Control, proximal: Proximal) -> Iterator[Iterate]:
    """Split K_i = X_i: the K-step is the inner problem, the X-step the proximal operator."""
    split, step = Split(read, proximal), Inner(read)
    inner = step.inner
    tol = np.inf
    for iteration in count():
        K, gap = step.kernels(split, tol, control.check)
        residuals = split.step(K, iteration == 0)
        if iteration % CHECK == CHECK - 1 or iteration < 2 or control.out_of_time:
            upper = risk_bounds(inner, read, gap)[1]
            upper += sum(block.distance(k) for block, k in zip(read.blocks, K, strict=True)) / read.factor
            known = min(upper, (control.upper - read.offset) / read.factor)
            proof = step.proof(split)
            yield Iterate(step.lower(split, known), upper, partial(list, K), proof.alpha, proof.gamma, proof)
            open_gap = (control.upper - control.lower) / read.factor
            tol = max(ACCURACY * allowance(read, control, upper), SHARE * open_gap)
        split.balance(iteration, *residuals)
