"""Training on the working set at fixed weights, from the predictions of the present alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelopt.learner.decomposition import smo_rounds
from kernelopt.learner.quadratic import interior_points
from kernelopt.learner.single import newton_points
from kernelopt.losses import Loss
from kernelopt.losses.curve import Curve
from kernelopt.methods.engine.provider import Block
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.numerics.factors import bordered_solution
from kernelopt.numerics.rounding import TINY
from kernelopt.running import check
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
        return (self.value - self.lower) / max(abs(self.value), TINY)


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
        alpha fail on it, the solvers of `kernelopt.learner` follow, which do not start from alpha.
        """
        curve = self.loss.curve(self.y)
        bounded = np.isfinite(curve.lower).any() or np.isfinite(curve.upper).any() or curve.l1.any()
        if self.loss.quadratic and bounded:
            trained = self._decompose(block, unit, curve, alpha, f, share)
        else:
            trained = self._newton(block, unit, alpha, f, share)
        if block.dtype == np.float32 or trained.gap <= share:
            return trained
        return self._anew(unit * block.astype(float), trained, share)

    def _anew(self, K: Array, best: Trained, share: float) -> Trained:
        """Return the best machine of solvers that need no start, where the gap of `best` is too large."""
        loss, y, bias = self.loss, self.y, self.bias
        if loss.quadratic:
            points = interior_points(K, y, loss, bias)
        else:
            points = newton_points(K, y, loss, bias, np.zeros(y.size))
        for alpha in points:
            feasible = loss.project(alpha, y, bias)
            trial = self.machine(feasible, K @ feasible)
            best = trial if trial.gap < best.gap else best
            if best.gap <= share:
                break
        return best

    def _decompose(
        self, block: Block, unit: float, curve: Curve, alpha: Array, f: Array, share: float
    ) -> Trained:
        """Train by SMO in the variable unit * alpha: a product with a power of two is exact."""
        a, g = unit * alpha, f + curve.curvature * alpha - curve.linear
        scaled = Curve(curve.linear, curve.curvature / unit, curve.l1, curve.lower * unit, curve.upper * unit)
        trained = self.machine(alpha, f)
        for _ in smo_rounds(block, scaled, self.bias, a, g):
            alpha = a / unit
            trained = self.machine(alpha, g - curve.curvature * alpha + curve.linear)
            if trained.value - trained.lower <= share * abs(trained.value):
                break
        return trained

    def _newton(self, block: Block, unit: float, alpha: Array, f: Array, share: float) -> Trained:
        """Train by Newton's method on a = response(K_w a + b), with a line search on the primal value.

        The primal value is known for any a. Its projection on the domain of the dual, which is no direction
        of descent, gives the machine of a step, with its bounds.
        """
        best, a = self.machine(alpha, f), alpha
        value, b = best.value, best.intercept
        for _ in range(SETTINGS.newton_steps):
            check()
            if best.value - best.lower <= share * abs(best.value):
                break
            t = f + b
            inverse = inverse_hessian(self.loss, self.y, t)
            residual = inverse * (self.loss.response(t, self.y) - a)
            M = block.astype(float)
            M[np.diag_indices(len(M))] += inverse / unit
            solution = bordered_solution(M, residual / unit, self.bias, -a.sum())
            if solution is None or not np.isfinite(solution[0]).all():
                break
            direction = solution[0]
            change, length, start = product(block, unit, direction), 1.0, (a, f, value)
            while length > SETTINGS.shortest_step:
                a, f = start[0] + length * direction, start[1] + length * change
                value, _, b = self.loss.primal(f, float(a @ f) / 2, self.y, self.bias)
                if value < start[2]:
                    break
                length /= 2
            else:
                break
            feasible = self.loss.project(a, self.y, self.bias)
            trial = self.machine(feasible, f + product(block, unit, feasible - a))
            if trial.value - trial.lower < best.value - best.lower:
                best = trial
        return best


def product(block: Block, unit: float, d: Array) -> Array:
    """Return unit * block @ d, computed in the numbers of the block with d scaled to one."""
    size = float(np.abs(d).max(initial=0.0))
    if not size > 0:
        return np.zeros(d.size)
    return np.asarray((unit * size) * (block @ (d / size).astype(block.dtype)).astype(float))


def inverse_hessian(loss: Loss, y: Array, t: Array) -> Array:
    """Return one over the second derivative of the loss at each sample, which is the curvature of -l."""
    if loss.quadratic:
        return np.asarray(loss.curve(y).curvature)
    hessian = np.asarray(loss.hessian_diag(t, y), dtype=float)
    least = SETTINGS.smallest_hessian * float(hessian.max())
    return np.asarray(1 / np.maximum(hessian, least if least > TINY else 1.0))  # 1: where all are flat
