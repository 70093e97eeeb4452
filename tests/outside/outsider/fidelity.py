"""The entrywise function of Huber as a fidelity."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt import Fidelity
from kernelopt.extend import positive


@dataclass(frozen=True)
class huber(Fidelity):
    """The sum of d^2 / 2 where |d| <= delta, and of delta |d| - delta^2 / 2 elsewhere."""

    delta: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "delta", positive(self.delta, "delta"))

    def expression(self, D):
        return cp.sum(cp.huber(D, self.delta)) / 2

    def subgradient(self, D):
        return np.clip(D, -self.delta, self.delta)

    def conjugate(self, U):
        return float(np.vdot(U, U)) / 2

    def project(self, U):
        return np.clip(U, -self.delta, self.delta)
