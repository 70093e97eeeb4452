"""Twelve problems of textbooks, with named data."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from tests.duality.generic import least, most, named

rng = np.random.default_rng(0)
A, b, c = rng.normal(size=(4, 3)), rng.normal(size=4) + 2, rng.uniform(0.5, 1, size=3)
X = rng.normal(size=(8, 2))
y = np.sign(X[:, 0] + 0.3 * rng.normal(size=8))
W = np.abs(rng.normal(size=(4, 4)))
W = W + W.T
G = rng.normal(size=(3, 3))
G = G + G.T
POINTS = rng.normal(size=(6, 2))
KERNELS = np.array([X @ X.T + 0.1 * np.eye(8), np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))])


def data(value, name):
    return cp.Constant(value, name=name)


def x(*shape, **attributes):
    return cp.Variable(*(shape or (3,)), name="x", **attributes)


def linear():
    v = x()
    return most(data(A.T @ np.ones(4), "c") @ v, data(A, "A") @ v <= data(b, "b"))


def lasso():
    v = x()
    return least(cp.sum_squares(data(A, "A") @ v - data(b, "b")) / 2 + 0.3 * cp.norm1(v))


def ridge():
    v = x()
    return least(cp.sum_squares(data(A, "A") @ v - data(b, "b")) / 2 + 0.25 * cp.sum_squares(v))


def support_vectors():
    w, bias, xi = cp.Variable(2, name="w"), cp.Variable(name="b"), cp.Variable(8, nonneg=True, name="xi")
    margin = cp.multiply(data(y, "y"), data(X, "X") @ w + bias) >= 1 - xi
    return least(cp.sum_squares(w) / 2 + 2 * cp.sum(xi), named(margin, "margin"))


def logistic_regression():
    w = cp.Variable(2, name="w")
    loss = cp.sum(cp.logistic(-cp.multiply(data(y, "y"), data(X, "X") @ w)))
    return least(loss + 0.5 * cp.sum_squares(w))


def max_cut():
    Z = cp.Variable((4, 4), PSD=True, name="X")
    return most(cp.trace(data(np.diag(W.sum(1)) - W, "L") @ Z) / 4, cp.diag(Z) == 1)


def ellipsoid():
    Z = cp.Variable((2, 2), PSD=True, name="X")
    points = [data(p, f"a{i + 1}") for i, p in enumerate(POINTS)]
    return least(-cp.log_det(Z), *(a @ Z @ a <= 1 for a in points))


def maximum_entropy():
    p = cp.Variable(3, name="p")
    return most(cp.sum(cp.entr(p)), data(A, "A") @ p <= data(A @ np.ones(3) / 3 + 0.01, "b"), cp.sum(p) == 1)


def basis_pursuit():
    v = x(4)
    return least(cp.norm1(v), data(A.T, "A") @ v == data(b[:3], "b"))


def nearest_correlation():
    Z = cp.Variable((3, 3), PSD=True, name="X")
    return least(cp.sum_squares(Z - data(G, "G")) / 2, cp.diag(Z) == 1)


def trust_region():
    v = x()
    square = cp.quad_form(v, data(A.T @ A, "P"))
    return least(square + data(c, "q") @ v, cp.sum_squares(v) <= 1, cp.sum(v) == 0.5, v[0] >= 0.1)


def lp_learning():
    theta = cp.Variable(2, nonneg=True, name="theta")
    return least(ko.risk(ko.combine(theta, KERNELS), y, ko.hinge(1.0)), *ko.lp_ball(theta, 4 / 3))


def soft_margin():
    mu = cp.Variable(2, name="mu")
    K = ko.combine(mu, KERNELS)
    trace = named(ko.trace(K) == 8, "trace")
    return least(2 * ko.risk(K, y, ko.hinge(1.0)), trace, named(K >> 0, "cone"))
