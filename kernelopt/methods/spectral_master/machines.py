"""The value of a risk at a combination of kernels, with its first and second derivatives by the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernelopt.language.learner import Learner
from kernelopt.learner import Machine, learn, lower_bound, machine_at
from kernelopt.learner import settings as learner_settings
from kernelopt.methods.spectral_master.settings import SETTINGS
from kernelopt.numerics.decompositions import bordered_solution
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.validation import Array, Mask


class Cut(NamedTuple):
    """The affine minorant constant + slope'mu of the risk at alpha, with the images K_i alpha.

    It is l(alpha) - 1/2 sum_i mu_i alpha'K_i alpha.
    """

    alpha: Array
    images: Array
    slope: Array
    constant: float


class Trained(NamedTuple):
    """A machine at weights mu: its primal value, its cut, and a model of the derivative of alpha by mu.

    alpha changes by -P (sum_i dmu_i K_i alpha) on the entries `free`; `curvature` is the second derivative of
    the risk by mu, (K_i alpha)_F' P (K_j alpha)_F.
    """

    value: float
    mu: Array
    cut: Cut
    free: Mask
    change: Array  # -P (K_i alpha)_F, shape (|F|, m)
    curvature: Array


class Machines:
    """Trains machines at combinations of kernels on the labelled points."""

    def __init__(self, learner: Learner, stack: Array, tol: float) -> None:
        self.learner, self.tol = learner, tol
        self.stack = np.ascontiguousarray(stack[:, : learner.n, : learner.n])
        self.bias = learner.has_intercept

    def cut(self, alpha: Array) -> Cut:
        """Return the cut at alpha, projected on the domain of the dual."""
        learner, m = self.learner, len(self.stack)
        alpha = learner.loss.project(alpha, learner.y, self.bias)
        images = (self.stack.reshape(-1, alpha.size) @ alpha).reshape(m, -1)
        return Cut(alpha, images, -(images @ alpha) / 2, learner.loss.dual_value(alpha, learner.y))

    def train(self, mu: Array, start: Array | None = None) -> Trained:
        """Return the machine at K(mu), which must be PSD; `start` is an alpha that may be near."""
        loss, y = self.learner.loss, self.learner.y
        n = y.size
        K = (mu @ self.stack.reshape(mu.size, -1)).reshape(n, n)
        K = (K + K.T) / 2
        machine = self.newton(K, np.zeros(n) if start is None else start)
        if machine is None:
            warm = start if n > learner_settings.SETTINGS.small or not loss.quadratic else None
            machine = learn(K, y, loss, self.bias, warm, self.tol)
        cut = self.cut(machine.alpha)
        free, diagonal = self.free(K, cut.alpha, machine.intercept)
        right = cut.images[:, free].T
        change = -ridged_solution(K[np.ix_(free, free)], diagonal, right, self.bias)[0]
        curvature = -right.T @ change
        return Trained(machine.value, mu, cut, free, change, (curvature + curvature.T) / 2)

    def newton(self, K: Array, start: Array) -> Machine | None:
        """Return the machine at K by active sets from a near alpha, None where they do not end at it.

        An entry is free where alpha plus the scaled derivative of the dual is between its bounds, and at the
        nearer bound otherwise. The free entries solve a linear system. This is Newton's method for the
        conditions of optimality, and ends in a few steps from a point that is near.
        """
        loss, y = self.learner.loss, self.learner.y
        if not loss.quadratic or loss.curve(y).l1.any():
            return None
        linear, curvature, _, lower, upper = loss.curve(y)
        step = 1 / max(float(np.mean(np.diag(K) + curvature)), SMALLEST_DIVISOR)
        alpha = loss.project(start, y, self.bias)
        f = K @ alpha
        b = loss.intercept(f, y) if self.bias else 0.0
        last = None
        for _ in range(SETTINGS.newton_steps):
            check()
            trial = alpha + step * (linear - curvature * alpha - f - b)
            free = (trial > lower) & (trial < upper)
            if last is not None and np.array_equal(free, last):
                break
            last = free
            alpha = np.where(free, 0.0, np.where(trial <= lower, lower, upper))
            if not free.any():
                return None
            right = (linear - K @ alpha)[free]
            block = K[np.ix_(free, free)]
            solution = ridged_solution(block, curvature[free], right, self.bias, -float(alpha.sum()))
            alpha[free], b = solution
            f = K @ alpha
        machine = machine_at(K, alpha, y, loss, self.bias)
        gap = machine.value - lower_bound(K, machine.alpha, y, loss)
        return machine if gap <= self.tol * abs(machine.value) else None

    def free(self, K: Array, alpha: Array, intercept: float) -> tuple[Mask, Array]:
        """Return which entries of alpha change with the kernel, and minus the second derivatives of l."""
        loss, y = self.learner.loss, self.learner.y
        if not loss.quadratic:
            second = loss.hessian_diag(K @ alpha + intercept, y)
            if second is None:
                return np.zeros(alpha.size, dtype=bool), np.zeros(0)
            free = np.asarray(second > 0)
            return free, 1 / second[free]
        curve = loss.curve(y)
        free = curve.free(alpha, SETTINGS.free)
        return free, curve.curvature[free]

    def predicted(self, trained: Trained, mu: Array) -> Array:
        """Return about the alpha at the weights mu, from the derivative at the weights of `trained`."""
        alpha = trained.cut.alpha.copy()
        alpha[trained.free] += trained.change @ (mu - trained.mu)
        return alpha


def ridged_solution(
    K: Array, diagonal: Array, right: Array, bias: bool, total: float = 0.0
) -> tuple[Array, Any]:
    """Return `bordered_solution` of K + diag and, where that is singular, of its sum with a larger ridge."""
    if not len(K):
        return np.zeros_like(right), 0.0
    M = K + np.diag(diagonal)
    ridge = SETTINGS.ridge * float(np.abs(np.diag(M)).mean())
    while (found := bordered_solution(M + ridge * np.eye(len(M)), right, bias, total)) is None:
        ridge = max(100 * ridge, np.finfo(float).tiny)
    return found
