"""Small learning problems for the tests of `solve`."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from tests.problems import labels, points, stack

N = 10


KS = stack(N)


Y = labels(N)


def weights(size=3, name="mu", **attributes):
    return cp.Variable(size, name=name, **(attributes or {"nonneg": True}))


def learning(loss=None, trace=N, y=Y):
    """min risk over the simplex of weights."""
    mu = weights()
    K = ko.combine(mu, KS)
    risk = ko.risk(K, y, loss or ko.hinge(C=1.0))
    return cp.Problem(cp.Minimize(risk), [ko.trace(K) == trace]), mu, risk


X_ALL = points(N + 5, seed=8)


KERNELS = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2)]


def transductive(ridge=False, attributes=None):
    """Kernels on more points than there are labels."""
    grams = ko.Grams.from_kernels(KERNELS, X_ALL)
    mu = weights(3, **(attributes or {}))
    K = ko.combine(mu, grams)
    extra = []
    if ridge:
        tau = cp.Variable(nonneg=True, name="tau")
        K = K + tau * np.eye(N + 5)
        extra = [tau >= 0.1]
    if attributes:
        extra = [K >> 0]
    risk = ko.risk(K, Y, ko.hinge())
    return cp.Problem(cp.Minimize(risk), [ko.trace(K) == N + 5, *extra]), grams, risk
