"""The machines of the risks on the working set: their training at fixed weights, and `Step`, their bounds."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.language.learner import Learner
from kernelopt.learner import learn
from kernelopt.learner.newton import newton_steps
from kernelopt.learner.single import has_smooth_dual
from kernelopt.learner.smo import smo_rounds
from kernelopt.losses.curve import Curve
from kernelopt.methods.engine.provider import Block
from kernelopt.methods.engine.settings import SETTINGS
from kernelopt.numerics.decompositions import bordered_solution
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.ball import BallProblem
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
    intercept : float
    dual : float
        l(alpha).
    """

    alpha: Array
    f: Array
    value: float
    intercept: float
    dual: float

    @property
    def lower(self) -> float:
        """l(alpha) - 1/2 alpha'K_w alpha, a lower bound of all values at these weights."""
        return self.dual - float(self.alpha @ self.f) / 2

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the value."""
        return (self.value - self.lower) / max(abs(self.value), SMALLEST_DIVISOR)


def machine(data: Learner, alpha: Array, f: Array) -> Trained:
    """Return the machine of alpha with K_w alpha = f."""
    primal = data.loss.primal(f, float(alpha @ f) / 2, data.y, data.has_intercept)
    return Trained(alpha, f, primal.value, primal.intercept, data.loss.dual_value(alpha, data.y))


def train(data: Learner, block: Block, unit: float, alpha: Array, f: Array, share: float) -> Trained:
    """Return a machine at the kernel unit * block whose gap is at most `share` of its value.

    It starts from alpha and f = K_w alpha. Only changes of alpha are multiplied by the block, so the error of
    f is the block's error times the change. The gap may stay larger where rounding limits it. A block in
    float64 is used for problems that are badly conditioned. Where SMO or Newton's method from alpha fail on
    it, all solvers of `kernelopt.learner` are tried.
    """
    steps, smooth = training_steps(data, block, unit, alpha, f), has_smooth_dual(data.loss, data.y)
    best = machine(data, *next(steps))
    while best.gap > share and (step := sent(steps, SETTINGS.share_of_training * share / best.gap)):
        trial = machine(data, *step)
        best = trial if not smooth or trial.gap < best.gap else best  # SMO goes on improving alpha
    if block.dtype == np.float32 or best.gap <= share:
        return best
    K = unit * block.astype(float)
    found = learn(K, data.y, data.loss, data.has_intercept, best.alpha, share).alpha
    return min(best, machine(data, found, K @ found), key=lambda trained: trained.gap)


Training = Generator[tuple[Array, Array], float | None, None]


def sent(steps: Training, ratio: float) -> tuple[Array, Array] | None:
    """Return the next step, or None; by how much the gap is to fall is sent, where that is a number."""
    try:
        return steps.send(ratio if ratio > 0 else None)
    except StopIteration:
        return None


def training_steps(data: Learner, block: Block, unit: float, alpha: Array, f: Array) -> Training:
    """Yield alpha and K_w alpha of SMO, or for a smooth dual the start and the steps of Newton's method.

    SMO runs in the variable unit * alpha: a product with a power of two is exact. It takes the ratio of the
    gap that is needed and the present one, see `smo_rounds`.
    """
    bias = data.has_intercept
    if has_smooth_dual(data.loss, data.y):
        yield alpha, f
        yield from newton_steps(block, data.y, data.loss, bias, alpha, f, unit)
        return
    linear, curvature, l1, lower, upper = data.loss.curve(data.y)
    a, g = unit * alpha, f + curvature * alpha - linear
    scaled = Curve(linear, curvature / unit, l1, lower * unit, upper * unit)
    rounds, ratio = smo_rounds(block, scaled, bias, a, g), None
    with suppress(StopIteration):
        while True:
            rounds.send(ratio)
            ratio = yield a / unit, g - curvature * (a / unit) + linear


@dataclass
class Step:
    """The trained machines of the r risks with the forms of all kernels, on the working set of k points.

    Attributes
    ----------
    w : array of shape (m,)
    trained : list of r Trained
    images : array of shape (r, m, k)
        K_m alpha on the working set.
    s : array of shape (r, m)
        alpha'K_m alpha.
    slope : array of shape (m,)
        The derivatives c - s / 2 of risk + c'w, with the sum of the risks times their shares.
    risk : float
        The risk on the working set.
    value, lower : float
        Bounds of the minimum of risk + c'w, with the risk of the working set.
    least : float
        A lower bound of risk + c'w at the weights w.
    """

    w: Array
    trained: list[Trained]
    images: Array
    s: Array
    slope: Array
    risk: float
    value: float
    lower: float
    least: float

    @classmethod
    def of(cls, read: BallProblem, samples: Sequence[Learner], w: Array, alpha: Array, images: Array) -> Step:
        """Return the bounds and derivatives at the weights w and dual variables with their images."""
        rows = list(zip(samples, alpha, images, strict=True))
        trained = [machine(each, a, w @ found) for each, a, found in rows]
        s = np.array([np.maximum(found @ a, 0.0) for _, a, found in rows])
        values = np.array([(each.value, each.lower, each.dual) for each in trained])
        risk, least, dual = (np.array(read.shares) @ values).tolist()
        price, slope = float(read.linear @ w), read.linear - read.total(s) / 2
        return cls(w, trained, images, s, slope, risk, risk + price, dual - read.most(s), least + price)

    @property
    def alpha(self) -> Array:
        """The dual variables of the machines, shape (r, k)."""
        return np.array([each.alpha for each in self.trained])

    @property
    def t(self) -> Array:
        """The predictions on the working set, with the intercepts, shape (r, k)."""
        return np.array([each.f + each.intercept for each in self.trained])

    @property
    def gap(self) -> float:
        """The distance of the bounds, relative to the value."""
        return relative_gap(self.lower, self.value)

    @property
    def gap_of_training(self) -> float:
        """The distance of the bounds at the weights w, relative to the value."""
        return relative_gap(self.least, self.value)


def projected(data: Sequence[Learner], alpha: Array) -> Array:
    """Return the projection of each row of alpha on the domain of the dual of its risk."""
    pairs = zip(data, alpha, strict=True)
    return np.array([each.loss.project(row, each.y, each.has_intercept) for each, row in pairs])


def second_derivatives(M: Array, unit: float, images: Array, diagonal: Array, bias: bool) -> Array | None:
    """Return the Hessian of the value of the learning problem as a function of the weights, shape (m, m).

    With F the samples whose alpha is inside its bounds, it is G_F' P G_F. There the columns of G_F are the
    images (K_m alpha)_F, and P is the inverse of unit M + diag(diagonal), with a border of ones if there is
    an intercept. M is K_w[F, F] / unit, and is overwritten. The diagonal has one over the second derivative
    of the loss at each sample, and a ridge. It is None where M is not definite in its numbers.
    """
    m, size = images.shape
    if size <= bias:
        return np.zeros((m, m))
    M[np.diag_indices(size)] += diagonal / unit
    solution = bordered_solution(M, images.T, bias)
    return None if solution is None else np.asarray(images @ solution[0] / unit)


def way_back(before: float, after: float) -> float:
    """Return the share of a step that is kept where a convex function rises at its end.

    `before` and `after` are the derivatives along the step at its two ends. The secant through them has its
    zero there.
    """
    zero = before / (before - after) if after > 0 > before else SETTINGS.shortest_back
    return min(max(zero, SETTINGS.shortest_back), SETTINGS.longest_back)
