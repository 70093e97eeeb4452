"""The loss of quantile regression."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt import Loss
from kernelopt.extend import Curve, positive, weights


@dataclass(frozen=True, eq=False, repr=False)
class quantile(Loss):
    """The loss of quantile regression, sum_i C_i (share (y_i - t_i)_+ + (1 - share) (t_i - y_i)_+).

    Its dual is l(a) = y'a on -(1 - share) C_i <= a_i <= share C_i.
    """

    kind = "targets"
    C: weights.Weight = 1.0
    share: float = 0.5

    def __post_init__(self):
        object.__setattr__(self, "C", weights.checked_weight(self.C, "C"))
        object.__setattr__(self, "share", positive(self.share, "share", below=1))

    def expression(self, fit, y):
        return weights.weighted_sum(self.C, self.share * cp.pos(y - fit) + (1 - self.share) * cp.pos(fit - y))

    def curve(self, y):
        C, zero = weights.per_sample(self.C, y.size), np.zeros(y.size)
        return Curve(y, zero, zero, -(1 - self.share) * C, self.share * C)
