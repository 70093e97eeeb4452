"""Convex problems of every cone, attribute and kind of term, each as a function that makes it."""
# ruff: noqa: B008 - every problem has variables of its own, which are made once

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
from cvxpy.constraints import ExpCone, PowCone3D, PowConeND

import kernelopt as ko
from formulations import lanckriet, linear_functional, lp_norm, similarity, triplet_lp
from tests.problems import labels, stack, targets

rng = np.random.default_rng(1)
A, b, c = rng.normal(size=(6, 4)), rng.normal(size=6), rng.uniform(0.5, 1.5, size=4)
M = A[:3, :3] + A[:3, :3].T
MODULES = (lanckriet, linear_functional, lp_norm, similarity, triplet_lp)
ENTRIES = {entry.name: entry for module in MODULES for entry in module.CATALOGUE}
n = 8
y, v, Ks = labels(n), targets(n), stack(n)


def x(*shape, **attributes):
    return cp.Variable(*(shape or (4,)), name="x", **attributes)


def least(objective, *constraints):
    return cp.Problem(cp.Minimize(objective), list(constraints))


def most(objective, *constraints):
    return cp.Problem(cp.Maximize(objective), list(constraints))


def named(constraint, label):
    return constraint.set_label(label)


PROBLEMS = {
    "linear": lambda x=x(nonneg=True): least(
        c @ x, named(A[:3] @ x >= -1, "rows"), named(cp.sum(x) == 2, "total")
    ),
    "linear, maximized": lambda x=x(nonneg=True): most(c @ x, named(cp.sum(x) <= 2.5, "total"), x <= 1),
    "least squares": lambda x=x(): least(
        cp.sum_squares(A @ x - b), named(cp.sum(x) == 1, "total"), named(x <= 0.5, "cap")
    ),
    "quadratic form": lambda x=x(nonneg=True): least(
        cp.quad_form(x, A.T @ A + np.eye(4)) - x[0], named(cp.sum(x) == 1, "total")
    ),
    "lasso": lambda x=x(): least(cp.sum_squares(A @ x - b) / 2 + 0.3 * cp.norm1(x)),
    "norm ball": lambda x=x(): least(c @ x, named(cp.norm(A @ x - b) <= 3, "ball")),
    "second-order cone": lambda x=x(), t=cp.Variable(name="t"): least(
        t + 0.1 * x[0], named(cp.SOC(t, A @ x - b), "cone")
    ),
    "columns of cones": lambda x=x((3, 2)), t=cp.Variable(2, name="t"): least(
        cp.sum(t) + 0.2 * cp.sum(x), named(cp.SOC(t, x - np.ones((3, 2)), axis=0), "cone")
    ),
    "norms of rows": lambda x=x((3, 2)): least(
        cp.sum(cp.norm(x - A[:3, :2], 2, axis=1)), named(cp.sum(x) == 1, "total")
    ),
    "spectrahedron": lambda x=x((3, 3), PSD=True): least(cp.trace(M @ x), named(cp.trace(x) == 1, "trace")),
    "matrix inequality": lambda x=x((3, 3), symmetric=True): least(
        cp.trace(M @ x), named(cp.trace(x) == 1, "trace"), named(x >> 0, "cone")
    ),
    "linear matrix inequality": lambda x=x(2): least(
        x[1], named(M + x[1] * np.eye(3) + x[0] * np.diag([1.0, -1, 0]) >> 0, "cone"), x[0] <= 1
    ),
    "NSD": lambda x=x((2, 2), NSD=True): most(cp.trace(x), named(x[0, 1] == 1, "corner")),
    "largest eigenvalue": lambda x=x(3): least(cp.lambda_max(M + cp.diag(x)), cp.sum(x) == 0),
    "nuclear norm": lambda x=x((3, 2)): least(cp.normNuc(x), cp.trace(x[:2]) == 1, x[2, 1] == 0.5),
    "log-determinant": lambda x=x((2, 2), PSD=True): least(
        -cp.log_det(x) + cp.trace(np.array([[2, 0.5], [0.5, 1]]) @ x)
    ),
    "log-sum-exp": lambda x=x(): least(cp.log_sum_exp(A @ x) + cp.sum_squares(x) / 2),
    "entropy": lambda x=x(): most(cp.sum(cp.entr(x)) - c @ x, named(cp.sum(x) == 1, "simplex")),
    "logistic": lambda x=x(): least(cp.sum(cp.logistic(A @ x)) + 0.1 * cp.norm2(x)),
    "relative entropy": lambda x=x(pos=True): least(cp.sum(cp.kl_div(x, c)), A[:2] @ x == A[:2] @ np.ones(4)),
    "exponential cone": lambda x=x(3): least(
        x[2], named(ExpCone(x[0], x[1], x[2]), "cone"), x[0] == 1, x[1] == 2
    ),
    "powers": lambda x=x(nonneg=True): least(
        cp.sum(cp.power(x, 1.5, approx=False)), named(cp.sum(x) >= 2, "total")
    ),
    "norm of a non-negative vector": lambda x=x(nonneg=True): least(cp.norm2(x - 1) + 0.3 * cp.sum(x)),
    "sizes of a non-negative vector": lambda x=x(nonneg=True): least(
        cp.norm1(x - c) + cp.sum(cp.abs(x - 2 * c)) / 2 + 0.3 * cp.sum(x)
    ),
    "p-norm": lambda x=x(): least(cp.pnorm(A @ x - b, 3, approx=False)),
    "geometric mean": lambda x=x(3): most(cp.geo_mean(x, approx=False), cp.sum(x) <= 3, x[0] <= 0.5),
    "power cone": lambda x=x(3): least(
        x[0] + 2 * x[1], named(PowCone3D(x[0], x[1], x[2], 0.3), "cone"), x[2] == 1
    ),
    "power cone of many": lambda x=x(3), z=cp.Variable(name="z"): least(
        c[:3] @ x, named(PowConeND(x, z, np.array([0.2, 0.3, 0.5])), "cone"), z == 1
    ),
    "reciprocals": lambda x=x(3): least(cp.sum(cp.inv_pos(x)) + c[:3] @ x),
    "quotient": lambda x=x(), z=cp.Variable(name="z"): least(cp.quad_over_lin(A @ x - b, z) + z, z <= 2),
    "inverse": lambda x=x(2), w=cp.Variable(2, name="w", nonneg=True): least(
        cp.matrix_frac(x + np.array([1.0, 2]), np.eye(2) + cp.diag(w)) + cp.sum(w) + cp.norm1(x)
    ),
    "squares as constraints": lambda x=x(): least(
        c @ x, named(cp.sum_squares(A @ x - b) <= 9, "ball"), named(cp.square(x[0]) <= 1, "square")
    ),
    "maxima": lambda x=x(): least(cp.max(A @ x - b) + cp.sum(cp.maximum(x, -x - 1, 0.2))),
    "huber": lambda x=x(): least(cp.sum(cp.huber(A @ x - b, 0.5))),
    "largest and variation": lambda x=x(): least(cp.sum_largest(A @ x - b, 2) + cp.tv(x)),
    "bounds": lambda x=x(bounds=[-1, np.array([1, 2, np.inf, 0])]): least(
        (c - 1.2) @ x + 0.1 * cp.norm_inf(x) + 0.01 * cp.sum_squares(x)
    ),
    "nonpos": lambda x=x(nonpos=True): most(c @ x, named(A @ x <= 1, "rows"), cp.sum(x) == -1),
    "diagonal": lambda x=x((3, 3), diag=True): least(
        cp.sum_squares(cp.vec(x - A[:3, :3], order="F")) + cp.trace(x), cp.trace(x) == 1
    ),
    "sparse": lambda x=x((3, 3), sparsity=([0, 1, 2], [1, 1, 0])): least(
        cp.sum_squares(cp.vec(x - A[:3, :3], order="F")), cp.sum(x) == 1
    ),
    "PSD and nonneg": lambda x=x((3, 3), PSD=True, nonneg=True): least(
        cp.trace(M @ x), named(cp.trace(x) == 1, "trace")
    ),
    "nearest PSD matrix": lambda x=x((3, 3), PSD=True): least(cp.sum_squares(x - M)),
    "nearest symmetric matrix": lambda x=x((3, 3), symmetric=True, nonneg=True): least(
        cp.sum_squares(x - M), cp.trace(x) == 1
    ),
    "matrix of numbers": lambda x=x((3, 2), nonneg=True): least(
        cp.sum_squares(x - A[:3, :2]) + cp.norm(x, "fro"), cp.sum(x, axis=0) == 1
    ),
    "elastic net": lambda x=x(): least(
        cp.sum_squares(A @ x - b) / 2 + 0.3 * cp.norm1(x) + 0.2 * cp.sum_squares(x)
    ),
    "elastic net with weights": lambda x=x(): least(
        c @ x + cp.norm1(cp.multiply(c, x)) / 2 + cp.sum_squares(cp.multiply(b[:4], x)),
        named(A[:2] @ x == 1, "rows"),
    ),
    "elastic net as a constraint": lambda x=x(): least(
        c @ x, named(0.3 * cp.norm1(x) + 0.2 * cp.sum_squares(x) <= 1, "elastic")
    ),
    "elastic net of non-negative weights": lambda x=x(nonneg=True): least(
        (c - 1.2) @ x + 0.05 * cp.norm1(x) + 0.2 * cp.sum_squares(x), named(cp.sum(x) <= 1, "total")
    ),
    "elastic net of a symmetric matrix": lambda x=x((3, 3), symmetric=True): least(
        cp.sum_squares(x) + 0.3 * cp.sum(cp.abs(x)) - cp.trace(M @ x), named(cp.trace(x) == 1, "trace")
    ),
    "a norm and its square": lambda x=x(): least(c @ x + 0.3 * cp.norm2(x) + cp.sum_squares(x) / 2),
    "a norm and its square, non-negative": lambda x=x(nonneg=True): least(
        (c - 1.2) @ x + 0.1 * cp.norm2(x) + cp.sum_squares(x) / 2
    ),
    "sparse group lasso": lambda x=x(): least(
        cp.sum_squares(A @ x - b) / 2 + 0.3 * cp.norm1(x) + 0.2 * cp.norm2(x)
    ),
    "norms in a norm": lambda x=x(), z=cp.Variable(2, name="z"): least(
        cp.square(cp.pnorm(cp.hstack([2 * cp.norm2(z), cp.norm_inf(x)]), 4 / 3, approx=False)) / 2
        + cp.sum(z)
        - 1.5 * x[0],
        named(A[:2] @ x == z + 1, "fit"),
    ),
    "a squared sum of absolute values": lambda x=x(): least(
        cp.square(cp.norm1(x)) + cp.sum_squares(x) + c @ x
    ),
    "weights in a box": lambda x=x(bounds=[0, np.array([1.0, 2, 0.5, 1])]): least(
        (c - 1.2) @ x, named(A[:2] @ x <= 1, "rows")
    ),
    "reciprocals and a price": lambda x=x(3, nonneg=True): least(
        cp.square(cp.sum(cp.inv_pos(1 + x))) + c[:3] @ x / 5
    ),
    "feasibility": lambda x=x(2): least(0, named(x >= 1, "above")),
    "constant": lambda x=x(2): least(cp.sum_squares(x) + 3.0),
}


def weights(**attributes):
    return cp.Variable(3, name="mu", **(attributes or {"nonneg": True}))


def learned(mu, loss=None, target=y):
    return ko.risk(ko.combine(mu, Ks), target, ko.hinge(1.0) if loss is None else loss)


def square_kernel():
    return cp.Variable((n, n), PSD=True, name="K")


def two_blocks(mu, loss, norm):
    return ko.risk([ko.combine(mu[:2], Ks[:2]), ko.combine(mu[2:], Ks[2:])], y, loss, norm=norm)


def signed(loss, mu):
    K = ko.combine(mu, Ks)
    return K, named(ko.trace(K) == 8, "trace"), named(K >> 0, "cone"), ko.risk(K, y, loss)


def free_sign(mu):
    _, trace, cone, risk = signed(ko.squared_hinge(1.0), mu)
    return least(risk, trace, cone)


def free_sign_labelled(mu):
    K, trace, cone, _ = signed(ko.hinge(1.0), mu)
    return least(cp.square(ko.risk(K[:n, :n], y[:5], ko.huberized_hinge(1.0, 0.4))), trace, cone)


def worse_task(mu):
    risks = [learned(mu), learned(mu, ko.squared(0.5), v)]
    return least(cp.maximum(*risks), *ko.lp_ball(mu, 1))


def two_risks_of_one_kernel(K):
    first, second = ko.risk(K, y, ko.hinge(1.0)), ko.risk(K[:6, :6], v[:6], ko.squared(1.0))
    return least(0.5 * first + second, named(cp.trace(K) == 3, "trace"))


class Bent(ko.Fidelity):
    """A fidelity that states its conjugate as a number only."""

    def expression(self, D):
        return cp.sum(cp.huber(D, 0.3))

    def subgradient(self, D):
        return np.clip(2 * D, -0.6, 0.6)

    def conjugate(self, U):
        return float((U**2).sum() / 4)


def near(K, fidelity):
    return least(ko.risk(K, y, ko.hinge(1.0)) + 0.3 * fidelity)


def idle(mu):
    """A maximum of which one risk is never the larger one."""
    risks = [learned(mu), learned(mu, ko.squared(0.01), v)]
    return least(cp.maximum(*risks), *ko.lp_ball(mu, 2))


def scaled_by_parameter(mu):
    size = cp.Parameter(nonneg=True, name="size", value=2.0)
    return least(ko.risk(ko.combine(size * mu, Ks), y, ko.hinge(1.0)), *ko.lp_ball(mu, 2))


def comparing(mu):
    K = ko.combine(mu, Ks)
    hinges = ko.triplet_hinge(K, [[0, 1, 2], [3, 4, 5]])
    rows = named(ko.entries(K, [0, 1], [2, 3]) <= 0.5, "entries")
    return least(ko.risk(K, y, ko.hinge(1.0)) + 0.1 * cp.sum(hinges), rows, *ko.lp_ball(mu, 1))


RISKS = {
    "bounded": lambda mu=weights(): least(cp.sum(mu), named(learned(mu) <= 3, "budget")),
    "squared": lambda mu=weights(): least(cp.square(learned(mu)), *ko.lp_ball(mu, 2)),
    "maximum of two": lambda mu=weights(): worse_task(mu),
    "PSD variable": lambda K=square_kernel(): least(
        ko.risk(K, y, ko.logistic(1.0)), named(cp.trace(K) <= 4, "trace")
    ),
    "PSD variable, bounded": lambda K=square_kernel(): least(
        cp.trace(K), named(ko.risk(K, y, ko.logistic(1.0)) <= 3, "budget")
    ),
    "two risks of a PSD variable": lambda K=square_kernel(): two_risks_of_one_kernel(K),
    "near a matrix": lambda K=square_kernel(): least(
        ko.risk(K, y, ko.hinge(1.0)), named(ko.fidelity(K, Ks[0] - 0.3 * np.eye(n)) <= 0.5, "near")
    ),
    "free signs": lambda mu=weights(symmetric=False): free_sign(mu),
    "free signs, unlabelled points": lambda mu=weights(symmetric=False): free_sign_labelled(mu),
    "fixed kernels, block norm": lambda: least(ko.risk([Ks[0], Ks[1]], y, ko.hinge(1.0), norm=1.5)),
    "block norm": lambda mu=weights(): least(two_blocks(mu, ko.hinge(1.0), 4), *ko.lp_ball(mu, 2)),
    "block norm, bounded": lambda mu=weights(): least(
        cp.sum(mu), named(two_blocks(mu, ko.squared_hinge(1.0), 4) <= 2, "budget")
    ),
    "ridge and fixed part": lambda mu=weights(), tau=cp.Variable(nonneg=True, name="tau"): least(
        ko.risk(ko.combine(mu, Ks) + tau * np.eye(n) + 0.1 * Ks[0], y, ko.hard_margin()) + tau,
        *ko.lp_ball(mu, 2),
    ),
    "two losses, priced": lambda mu=weights(): least(
        learned(mu, ko.epsilon_insensitive(2.0, 0.1), v)
        + 2 * learned(mu, ko.one_class(0.4), None)
        + 0.5 * cp.norm1(mu)
    ),
    "a bound that is met anyway": lambda mu=weights(): least(
        cp.sum_squares(mu - 1), named(learned(mu, ko.squared_hinge(1.0)) <= 50, "budget")
    ),
    "a term that does not count": lambda mu=weights(): idle(mu),
    "a kernel with a parameter": lambda mu=weights(): scaled_by_parameter(mu),
    "a fidelity of one's own": lambda K=square_kernel(): near(K, ko.fidelity(K, Ks[0], Bent())),
    "a fidelity as absolute values": lambda K=square_kernel(): near(K, cp.sum(cp.abs(K - Ks[0]))),
    "a fidelity as a norm": lambda K=square_kernel(): near(K, cp.norm(K - Ks[0], "fro")),
    "squares of a PSD variable": lambda K=square_kernel(): near(K, cp.sum_squares(K - Ks[0])),
    "comparisons": lambda mu=weights(): comparing(mu),
    "alignment, maximized": lambda mu=weights(): most(
        ko.alignment(ko.combine(mu, Ks), y), named(ko.frobenius(ko.combine(mu, Ks)) <= 1, "length")
    ),
    "risk, maximized with a minus": lambda mu=weights(): most(-2 * learned(mu) - cp.sum(mu)),
    "elastic net of kernel weights": lambda mu=weights(): least(
        learned(mu) + cp.norm1(mu) / 2 + cp.sum_squares(mu) / 4
    ),
    "reciprocal price": lambda mu=weights(): least(
        learned(mu, ko.squared_hinge(1.0)) + 0.3 * cp.sum(cp.inv_pos(1 - 0.5 * mu))
    ),
    "reciprocal price and a ball": lambda mu=weights(): least(
        learned(mu) + 0.3 * cp.sum(cp.inv_pos(1 - 0.5 * mu)), *ko.lp_ball(mu, 2)
    ),
    "one fixed kernel": lambda: least(ko.risk(Ks[0], y, ko.hinge(1.0))),
    "quadratic price": lambda mu=weights(): least(
        learned(mu) + 0.1 * cp.sum_squares(mu), *ko.lp_ball(mu, 4), mu[0] <= mu[1]
    ),
}


def table_at(problem, point, **options):
    """The certificate of a point, and the rows of its table of conditions by kind and place."""

    class Solved:
        certificate = ko.certify(problem, point, **options)

    return Solved.certificate, {(c.kind, c.where): c for c in ko.kkt_table(Solved(), problem).conditions}


@cache
def pair(name):
    """A problem and its dual."""
    problem = {**PROBLEMS, **RISKS}[name]()
    return problem, ko.dualize(problem)
