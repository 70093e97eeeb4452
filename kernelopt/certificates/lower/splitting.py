"""Fidelities split off from kernels: the steps of the alternating direction method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelopt.fidelities import Proximal
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.nearness import Nearness
from kernelopt.validation import Array


@dataclass(frozen=True)
class Settings:
    """Settings of the searches in `near` and of `Split`: numbers of iterations, and relative sizes."""

    reweightings: int = 40  # at most; a conic solve follows a bound that is not `exhausted` then
    splittings: int = 400
    check_every: int = 10  # splitting steps between two bounds: a bound takes as long as some steps
    least_gamma: float = 1e-12  # a smaller gamma_i is raised to it, since the bound has a factor 1 / gamma_i
    least_share: float = 1e-9  # added to each gamma_i over the largest one, for the same reason
    rise: float = 1e-8  # of the bound: the accuracy of the conic solve that this search replaces
    gap_share: float = 1e-2  # of upper - lower: a smaller rise of the bound lowers the gap by 1 % at most
    margin: float = 1e-9  # the computed value of the relaxation plus this is above the exact value
    stall: float = 0.1  # of value - bound of the relaxation: a smaller change of it between checks is a stall
    sigma_factor: float = 4.0  # of sigma after a stall: five such changes multiply sigma by 1000
    least_difference: float = 1e-9  # of |S|: replaces a smaller d = |D| in d / h'(d), which is 0 / 0 at zero
    # Of the penalty sigma of `Split`; its changes are factors.
    relaxation: float = 1.8  # of the kernels: Boyd et al. (2011), section 3.4.3, advise 1.5 to 1.8
    balance_every: int = 10  # iterations at least between two changes of sigma
    slowdown: int = 200  # iterations after which that number has doubled: sigma must become constant
    largest_ratio: float = 3.0  # of the residuals, up to which sigma is kept
    largest_change: float = 2.0
    start: float = 0.8  # price / sigma over the mean distance |K - S| of the entries, by measurement
    least_distance: float = 0.02  # of the mean entry of S: that distance where K is nearly S


SETTINGS = Settings()


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
        # Then price / sigma is of the size of the entries of K - S.
        pairs = list(zip(read.blocks, self.S, strict=True))
        distance = np.mean([np.abs(block.nearest_to_mean - S).mean() for block, S in pairs])
        size = SETTINGS.least_distance * np.mean([np.abs(S).mean() for S in self.S])
        self.sigma = SETTINGS.start * read.price / max(float(distance), float(size), SMALLEST_DIVISOR)
        self.changed = 0

    def step(self, K: list[Array], first: bool) -> tuple[float, float]:
        """Update X and U at the kernels K; return the relative primal and dual residuals."""
        apart = moved = 0.0
        for i, (k, X, U, S) in enumerate(zip(K, self.X, self.U, self.S, strict=True)):
            V = (k if first else X + SETTINGS.relaxation * (k - X)) + U
            new, self.phi[i] = self.proximal.proximal(V, S, self.read.price / self.sigma)
            apart += float(((k - new) ** 2).sum())
            moved += float(((new - X) ** 2).sum())
            self.X[i], self.U[i] = new, V - new
        size = sum(float((k**2).sum()) for k in K)
        change = sum(float((U**2).sum()) for U in self.U)
        return (apart / max(size, SMALLEST_DIVISOR)) ** 0.5, (moved / max(change, SMALLEST_DIVISOR)) ** 0.5

    def balance(self, iteration: int, primal: float, dual: float) -> None:
        """Multiply sigma by about the root of the ratio of the residuals, unless that is near one."""
        if iteration - self.changed < SETTINGS.balance_every * (1 + iteration // SETTINGS.slowdown):
            return
        ratio, most = primal / max(dual, SMALLEST_DIVISOR), SETTINGS.largest_change
        if not 1 / SETTINGS.largest_ratio <= ratio <= SETTINGS.largest_ratio:
            self.rescale(float(np.clip(ratio**0.5, 1 / most, most)))
            self.changed = iteration

    def rescale(self, factor: float) -> None:
        """Multiply sigma by a factor; the multipliers sigma U_i stay the same."""
        self.sigma *= factor
        self.U = [U / factor for U in self.U]

    def subgradients(self) -> Callable[[], list[list[Array]]]:
        """Return a function that computes the U_ik of the last step for every fidelity of every block."""
        shares, scale = self.proximal.shares, self.sigma / self.read.price
        last = list(zip(self.U, self.X, self.S, strict=True))
        return lambda: [shares(scale * U, X, S) for U, X, S in last]
