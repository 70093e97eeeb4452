"""The value of a risk at a combination of kernels, with its first and second derivatives by the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from kernelopt.language.learner import Learner
from kernelopt.learner import learn, lower_bound, machine_at
from kernelopt.learner.quadratic import BOUND_TOLERANCES, active_set
from kernelopt.learner.single import SMALL
from kernelopt.threads import Watch
from kernelopt.validation import Array, Mask

FREE = 1e-7  # relative distance from its bounds at which an entry of alpha counts as free
RIDGE = 1e-10  # of the mean diagonal: added to singular matrices of the second derivative


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

    def __init__(self, learner: Learner, stack: Array, tol: float, watch: Watch) -> None:
        self.learner, self.tol, self.watch = learner, tol, watch
        self.stack = np.ascontiguousarray(stack[:, : learner.n, : learner.n])
        self.bias = learner.bias is not None

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
        machine = None
        if start is not None and loss.quadratic:
            for boundary in BOUND_TOLERANCES:
                alpha = active_set(K, loss.curve(y), self.bias, start, boundary)
                if alpha is None:
                    continue
                near = machine_at(K, alpha, y, loss, self.bias)
                if near.value - lower_bound(K, near.alpha, y, loss) <= self.tol * abs(near.value):
                    machine = near
                    break
        if machine is None:
            warm = start if n > SMALL or not loss.quadratic else None
            machine = learn(K, y, loss, self.bias, warm, self.tol, self.watch)
        cut = self.cut(machine.alpha)
        free, diagonal = self.free(K, cut.alpha, machine.intercept)
        right = cut.images[:, free].T
        change = -bordered_solution(K[np.ix_(free, free)], diagonal, right, self.bias)
        curvature = -right.T @ change
        return Trained(machine.value, mu, cut, free, change, (curvature + curvature.T) / 2)

    def free(self, K: Array, alpha: Array, intercept: float) -> tuple[Mask, Array]:
        """Return which entries of alpha change with the kernel, and minus the second derivatives of l."""
        loss, y = self.learner.loss, self.learner.y
        if not loss.quadratic:
            second = loss.hessian_diag(K @ alpha + intercept, y)
            if second is None:
                return np.zeros(alpha.size, dtype=bool), np.zeros(0)
            free = np.asarray(second > 0)
            return free, 1 / second[free]
        _, curvature, l1, lower, upper = loss.curve(y)
        width = np.where(np.isfinite(upper - lower), upper - lower, np.abs(alpha).max(initial=0.0))
        margin = FREE * width
        free = (alpha > lower + margin) & (alpha < upper - margin) & ~((l1 > 0) & (np.abs(alpha) <= margin))
        return free, curvature[free]

    def predicted(self, trained: Trained, mu: Array) -> Array:
        """Return about the alpha at the weights mu, from the derivative at those of `trained`."""
        alpha = trained.cut.alpha.copy()
        alpha[trained.free] += trained.change @ (mu - trained.mu)
        return alpha


def bordered_solution(K: Array, diagonal: Array, right: Array, bias: bool) -> Array:
    """Return the X of (K + diag) X + 1 b' = right with 1'X = 0, or without b where there is no intercept."""
    if not len(K):
        return np.zeros_like(right)
    M = K + np.diag(diagonal)
    ridge = RIDGE * float(np.abs(np.diag(M)).mean())
    while True:
        try:
            factor = sl.cho_factor(M + ridge * np.eye(len(M)), lower=True, check_finite=False)
            break
        except sl.LinAlgError:
            ridge = max(100 * ridge, np.finfo(float).tiny)
    X: Array = sl.cho_solve(factor, right, check_finite=False)
    if bias:
        ones = sl.cho_solve(factor, np.ones(len(M)), check_finite=False)
        X = X - np.outer(ones, X.sum(axis=0)) / ones.sum()
    return X
