"""The value of a risk at a combination of kernels, with its first and second derivatives by the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.language.learner import Learner
from kernelopt.learner import learn
from kernelopt.methods.engine.step import free_samples
from kernelopt.methods.engine.training import inverse_hessian
from kernelopt.methods.spectral_master.settings import SETTINGS
from kernelopt.numerics.factors import bordered_solution
from kernelopt.validation import Array, Index


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
    free: Index
    change: Array  # -P (K_i alpha)_F, shape (|F|, m)
    curvature: Array


class Machines:
    """Trains machines at combinations of kernels on the labelled points."""

    def __init__(self, learner: Learner, stack: Array, tol: float) -> None:
        self.learner, self.tol = learner, tol
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
        machine = learn(K, y, loss, self.bias, np.zeros(n) if start is None else start, self.tol)
        cut = self.cut(machine.alpha)
        t = K @ cut.alpha + machine.intercept
        free = free_samples(loss, y, cut.alpha)
        right, M = cut.images[:, free].T, K[np.ix_(free, free)]
        M[np.diag_indices(free.size)] += inverse_hessian(loss, y, t)[free]
        change = np.zeros_like(right)
        if free.size:
            ridge = SETTINGS.ridge * float(np.abs(np.diag(M)).mean())
            while (solution := bordered_solution(M + ridge * np.eye(free.size), right, self.bias)) is None:
                ridge = max(100 * ridge, np.finfo(float).tiny)
            change = -solution[0]
        curvature = -right.T @ change
        return Trained(machine.value, mu, cut, free, change, (curvature + curvature.T) / 2)

    def predicted(self, trained: Trained, mu: Array) -> Array:
        """Return about the alpha at the weights mu, from the derivative at those of `trained`."""
        alpha = trained.cut.alpha.copy()
        alpha[trained.free] += trained.change @ (mu - trained.mu)
        return alpha
