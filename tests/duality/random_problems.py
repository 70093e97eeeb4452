"""Random convex problems: sums, maxima and bounds of norms, squares and risks of affine functions."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import kernelopt as ko
from tests.problems import labels, stack

Ks, y, n = stack(6), labels(6), 3
ATTRIBUTES = {
    "free": {},
    "nonneg": {"nonneg": True},
    "nonpos": {"nonpos": True},
    "bounds": {"bounds": [-1, np.array([0.0, 1, 2])]},
}


def affine(rng, x):
    """One of six affine functions of x."""
    return (
        x,
        x - rng.normal(size=n),
        rng.normal(size=(3, n)) @ x - rng.normal(size=n),
        2 * x,
        rng.normal(size=n) - x,
        rng.normal(size=(2, n)) @ x,
    )[rng.integers(6)]


def convex(rng, x):
    """One of thirteen convex functions of an affine function of x."""
    a = affine(rng, x)
    quotient = cp.quad_over_lin(a, 1 + cp.sum(x)) if x.is_nonneg() else cp.norm2(a) ** 2
    return (
        cp.norm2(a),
        cp.norm1(a),
        cp.norm_inf(a),
        cp.pnorm(a, 3, approx=False),
        cp.sum_squares(a),
        cp.max(a),
        cp.sum(cp.maximum(a, 0)),
        cp.sum(cp.abs(a)),
        cp.square(cp.norm2(a)),
        cp.sum(cp.maximum(a, -a - 1)),
        cp.sum(cp.pos(cp.abs(a) - 0.2)),
        quotient,
        cp.maximum(cp.norm2(a), cp.norm1(a) - 0.5, 0.1),
    )[rng.integers(13)]


def random_problem(seed):
    """A convex problem in three variables with a bounded feasible set, which may be empty."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(ATTRIBUTES)))
    x = cp.Variable(n, name="x", **ATTRIBUTES[kind])
    objective = (0.3 * rng.normal(size=n)) @ x + 0.1 * int(rng.integers(2)) * cp.sum_squares(x)
    for _ in range(rng.integers(1, 4)):
        objective = objective + float(rng.uniform(0.2, 1.5)) * convex(rng, x)
    constraints = [cp.norm_inf(x) <= 5]
    if rng.random() < 0.5:
        constraints.append(convex(rng, x) <= float(rng.uniform(3, 6)))
    if rng.random() < 0.4:
        constraints.append(cp.sum(x) == (-0.5 if kind == "nonpos" else 0.5))
    if rng.random() < 0.3:
        constraints.append(rng.normal(size=(2, n)) @ x <= 3)
    if kind == "nonneg" and rng.random() < 0.35:
        loss = (ko.hinge, ko.squared_hinge, ko.logistic)[rng.integers(3)](1.0)
        risk = ko.risk(ko.combine(x, Ks), y, loss)
        objective = objective + (risk, 2 * risk, cp.square(risk) / 2, cp.maximum(risk, 1.0))[rng.integers(4)]
    if rng.integers(2):
        return cp.Problem(cp.Maximize(-objective), constraints)
    return cp.Problem(cp.Minimize(objective), constraints)
