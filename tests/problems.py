"""Seeded data, and every loss once more as the textbooks write it: what several test files share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

import kernelopt as ko

TAU, EPS = 0.4, 0.2


def points(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def labels(n, seed=0):
    """Labels that depend on the points of the same seed, with noise; both classes occur."""
    y = np.sign(points(n, seed=seed)[:, 0] + 0.5 * np.random.default_rng(seed + 100).normal(size=n))
    y[:2] = 1.0, -1.0
    return y


def targets(n, seed=0):
    return points(n, seed=seed)[:, 0] + 0.3 * np.random.default_rng(seed + 100).normal(size=n)


def sample_weights(n, seed=0):
    return np.random.default_rng(seed + 200).uniform(0.5, 2.0, n)


def stack(n, seed=0):
    """Three kernels of full rank, rank 2 and rank 1, mean diagonal near one."""
    X = points(n, seed=seed)
    wide = np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 2)
    return np.array([wide, X[:, :2] @ X[:, :2].T, np.outer(X[:, 2], X[:, 2])])


def positive_definite(n, seed=0):
    return stack(n, seed)[0] + 0.3 * stack(n, seed)[1]


class Case(NamedTuple):
    """A loss, its formula, and its dual l(a) with its domain (lp_norm_mkl.md, section 3)."""

    name: str
    make: Callable[..., ko.Loss]  # of C
    kind: str
    value: Callable[..., float]  # of t, y, C
    dual: Callable[..., tuple[Any, list[Any]]]  # of a, y, C

    def y(self, n, seed=0):
        return {"labels": labels, "targets": targets}.get(self.kind, lambda n, _: np.ones(n))(n, seed)

    def loss(self, C):
        return self.make() if self.name == "hard_margin" else self.make(C=C)


def rounded(t, y, C):
    m = np.maximum(1 - y * t, 0)
    return float(np.where(m <= TAU * C, m**2 / (2 * TAU), C * m - TAU * C**2 / 2).sum())


def box(a, y, C):
    return [cp.multiply(y, a) >= 0, cp.multiply(y, a) <= C]


def entropy(a, y, C):
    v = cp.multiply(y / C, a)
    return C @ (cp.entr(v) + cp.entr(1 - v)), []


def ridge(a, C):
    return cp.sum_squares(cp.multiply(1 / np.sqrt(2 * C), a))


CASES = (
    Case(
        "hinge",
        ko.hinge,
        "labels",
        lambda t, y, C: C @ np.maximum(1 - y * t, 0),
        lambda a, y, C: (y @ a, box(a, y, C)),
    ),
    Case(
        "squared_hinge",
        ko.squared_hinge,
        "labels",
        lambda t, y, C: C @ np.maximum(1 - y * t, 0) ** 2 / 2,
        lambda a, y, C: (y @ a - ridge(a, C), [cp.multiply(y, a) >= 0]),
    ),
    Case(
        "huberized_hinge",
        lambda C: ko.huberized_hinge(C, TAU),
        "labels",
        rounded,
        lambda a, y, C: (y @ a - TAU / 2 * cp.sum_squares(a), box(a, y, C)),
    ),
    Case(
        "hard_margin",
        ko.hard_margin,
        "labels",
        lambda t, y, C: 0.0 if (y * t >= 1).all() else np.inf,
        lambda a, y, C: (y @ a, [cp.multiply(y, a) >= 0]),
    ),
    Case("logistic", ko.logistic, "labels", lambda t, y, C: C @ np.log1p(np.exp(-y * t)), entropy),
    Case(
        "squared",
        ko.squared,
        "targets",
        lambda t, y, C: C @ (t - y) ** 2 / 2,
        lambda a, y, C: (y @ a - ridge(a, C), []),
    ),
    Case(
        "epsilon_insensitive",
        lambda C: ko.epsilon_insensitive(C, EPS),
        "targets",
        lambda t, y, C: C @ np.maximum(np.abs(t - y) - EPS, 0),
        lambda a, y, C: (y @ a - EPS * cp.norm1(a), [cp.abs(a) <= C]),
    ),
    Case(
        "one_class",
        ko.one_class,
        "none",
        lambda t, y, C: C @ np.maximum(1 - t, 0),
        lambda a, y, C: (cp.sum(a), [a >= 0, a <= C]),
    ),
)


def solved(problem):
    """The optimal value by Clarabel, by a tight SCS where Clarabel gives up."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            problem.solve(solver=cp.CLARABEL, warm_start=False)
        except (cp.SolverError, UserWarning):
            problem.solve(solver=cp.SCS, eps=1e-9, max_iters=200_000, warm_start=False)
    assert problem.status == cp.OPTIMAL, problem.status
    return float(problem.solution.opt_val)
