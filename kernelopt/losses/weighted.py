"""Losses whose samples have weights C."""

from __future__ import annotations

from dataclasses import dataclass

from kernelopt.losses.base import Loss
from kernelopt.losses.weights import Weight, checked_weight


@dataclass(frozen=True, eq=False, repr=False)
class WeightedLoss(Loss):
    """A loss sum_i C_i v(t_i, y_i) with weights C, which are checked.

    Parameters
    ----------
    C : float > 0, array of shape (n,), or scalar cp.Parameter, default 1.0
        Weight of each sample, not divided by n.
    """

    C: Weight = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "C", checked_weight(self.C, "C"))
