"""Training on the working set at fixed weights, from the predictions of the present alpha."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernelopt.learner import learn
from kernelopt.learner.newton import newton_steps
from kernelopt.learner.single import has_smooth_dual
from kernelopt.learner.smo import smo_rounds
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.methods.engine.provider import Block
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.validation import Array


@dataclass
class Trained:
    """A machine on the working set.

    Attributes
    ----------
    alpha, f : arrays of shape (k,)
        The dual variable, and K_w alpha without the intercept.
    value : float
        The primal value, with the best intercept.
    lower : float
        l(alpha) - 1/2 alpha'K_w alpha, a lower bound of all values at these weights.
    intercept : float
    """

    alpha: Array
    f: Array
    value: float
    lower: float
    intercept: float

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the value."""
        return (self.value - self.lower) / max(abs(self.value), SMALLEST_DIVISOR)


@dataclass(frozen=True)
class Samples:
    """The loss on the samples of the working set."""

    loss: Loss
    y: Array
    bias: bool

    def machine(self, alpha: Array, f: Array) -> Trained:
        """Return the machine of alpha with K_w alpha = f."""
        half_square = float(alpha @ f) / 2
        primal = self.loss.primal(f, half_square, self.y, self.bias)
        lower = self.loss.dual_value(alpha, self.y) - half_square
        return Trained(alpha, f, primal.value, lower, primal.intercept)

    def train(self, block: Block, unit: float, alpha: Array, f: Array, share: float) -> Trained:
        """Return a machine at the kernel unit * block whose gap is at most `share` of its value.

        It starts from alpha and f = K_w alpha. Only changes of alpha are multiplied by the block, so the
        error of f is the block's error times the change. The gap may stay larger where rounding limits it.
        A block in float64 is used for problems that are badly conditioned. Where SMO or Newton's method from
        alpha fail on it, all solvers of `kernelopt.learner` are tried.
        """
        steps, smooth = self._steps(block, unit, alpha, f), has_smooth_dual(self.loss, self.y)
        best = self.machine(*next(steps))
        while best.gap > share and (step := next(steps, None)):
            trial = self.machine(*step)
            best = trial if not smooth or trial.gap < best.gap else best  # SMO goes on improving alpha
        if block.dtype == np.float32 or best.gap <= share:
            return best
        K = unit * block.astype(float)
        found = learn(K, self.y, self.loss, self.bias, best.alpha, share).alpha
        return min(best, self.machine(found, K @ found), key=lambda machine: machine.gap)

    def _steps(self, block: Block, unit: float, alpha: Array, f: Array) -> Iterator[tuple[Array, Array]]:
        """Yield alpha and K_w alpha of SMO, or for a smooth dual the start and the steps of Newton's method.

        SMO runs in the variable unit * alpha: a product with a power of two is exact.
        """
        if has_smooth_dual(self.loss, self.y):
            yield alpha, f
            yield from newton_steps(block, self.y, self.loss, self.bias, alpha, f, unit)
            return
        linear, curvature, l1, lower, upper = self.loss.curve(self.y)
        a, g = unit * alpha, f + curvature * alpha - linear
        scaled = Curve(linear, curvature / unit, l1, lower * unit, upper * unit)
        for _ in smo_rounds(block, scaled, self.bias, a, g):
            yield a / unit, g - curvature * (a / unit) + linear
