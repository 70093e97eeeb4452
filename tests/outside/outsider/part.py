"""The set {x >= 0: the sum of the k largest entries is at most a number}, whose support function is known."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from kernelopt.extend import Ball, Part


@dataclass(frozen=True, eq=False)
class TopSum(Part):
    variables: tuple[cp.Variable, ...]
    k: int
    total: float
    at: int

    @classmethod
    def recognise(cls, constraint, at):
        left, right = constraint.args[0], constraint.args[-1]
        if not isinstance(left, cp.sum_largest) or left.axis is not None or not right.is_constant():
            return None
        x = left.args[0]
        known = isinstance(x, cp.Variable) and x.is_nonneg() and left.k == int(left.k)
        return cls((x,), int(left.k), float(right.value), at) if known and right.value > 0 else None

    def support(self, s):
        b = np.maximum(s[self.variables[0]].above, 0.0)
        return float((Ball(max(b.max(), (Ball(b).sum() / self.k).above)) * self.total).above)

    def multiplier(self, support):
        return support / self.total
