"""A loss on some of the samples, as the working set needs it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from kernelopt.errors import InputError
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.validation import Array, Index


class RestrictedLoss(Loss):
    """The loss of some samples, defined by the part of the curve of a piecewise quadratic loss.

    Its methods take arrays of these samples. The labels that they ask for are not used.
    """

    def __init__(self, curve: Curve, samples: Index) -> None:
        self.part = Curve(*(np.ascontiguousarray(of[samples]) for of in curve))

    def curve(self, y: Array) -> Curve:
        return self.part

    def expression(self, fit: cp.Expression, y: Array) -> cp.Expression:
        raise InputError("a restricted loss has numbers only, got a cvxpy expression. Use the whole loss.")


def is_sparse(loss: Loss, curve: Curve) -> bool:
    """Whether a dual variable is zero on an interval of predictions, so that points can be left out.

    That is known of a piecewise quadratic loss whose entries of alpha have a bound at zero or an l1 term. A
    loss with a value of its own, such as the hard margin, is not the one of its curve.
    """
    own = any(
        getattr(type(loss), name) is not getattr(Loss, name) for name in ("value", "primal", "response")
    )
    at_zero = (curve.lower == 0) | (curve.upper == 0) | (curve.l1 > 0)
    return loss.quadratic and not own and bool(at_zero.all())
