"""Seeded data, and every loss once more as the textbooks write it: what several test files share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from cvxpy.reductions.solvers.conic_solvers.scs_conif import SCS

import kernelopt as ko
from kernelopt.methods.selection import METHODS, applicable

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


def crossed(losses, others, thorough=("hinge", "squared"), usual=()):
    """Pairs of a loss and another choice, where a problem is the sum of what each of them adds to it.

    Every other choice with the thorough losses, one with corners and one smooth; every loss with the usual
    other choices; and every other choice with one more loss, in turn.
    """
    losses, others = list(losses), list(others)
    pairs = [(loss, other) for loss in thorough for other in others]
    pairs += [(loss, other) for loss in losses for other in usual]
    pairs += [(losses[k % len(losses)], other) for k, other in enumerate(others)]
    return list(dict.fromkeys(pairs))


class Case(NamedTuple):
    """A loss, its formula, and its dual l(a) with its domain (Kloft 1.3)."""

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


class Verified:
    """A conic solver whose answer counts by the error of its value, not by the status that it states.

    At the same tolerance a solver ends "solved" on one machine and "almost solved" on another.
    """

    def __init__(self, accuracy):
        self.accuracy = accuracy

    def name(self):
        return f"VERIFIED_{super().name()}"

    def solve_via_data(self, data, *args, **kwargs):
        found = super().solve_via_data(data, *args, **kwargs)
        pair = (found[k] for k in "xsy") if isinstance(found, dict) else (found.x, found.s, found.z)
        error = self.error = value_error(data, *map(np.asarray, pair), upper=self.UPPER)
        status = cp.OPTIMAL if error <= self.accuracy else cp.SOLVER_ERROR
        self.STATUS_MAP = dict.fromkeys(type(self).STATUS_MAP, status)
        return found


class VerifiedClarabel(Verified, CLARABEL):
    UPPER = True  # the triangle of a matrix that it takes, column by column


class VerifiedSCS(Verified, SCS):
    UPPER = False


def value_error(data, x, s, z, upper):
    """How far x'Px/2 + q'x is from the optimum over A x + s = b, s in a cone, relative to max(1, value).

    To first order, from x and the multipliers z alone: the gap; what each equation is missed by, times its
    multiplier; what stationarity is missed by, times the variable; and how far a part is outside its cone,
    times the length of the other side. Factors below one count as one, so that nothing is taken for right
    because it is multiplied by zero. Not a number where the solver has no such pair.
    """
    A, b, q = data["A"], data["b"], data["c"]
    Px = data["P"] @ x if data.get("P") is not None else 0 * x
    error = abs(x @ Px + q @ x + b @ z)
    error += np.maximum(np.abs(z), 1) @ np.abs(A @ x + s - b)
    error += np.maximum(np.abs(x), 1) @ np.abs(Px + A.T @ z + q)
    start = 0
    for size, primal, dual in cones(data["dims"], upper):
        one, two = s[start : start + size], z[start : start + size]
        error += max(1.0, np.linalg.norm(two)) * max(primal(one), 0.0)
        error += max(1.0, np.linalg.norm(one)) * max(dual(two), 0.0)
        start += size
    assert start == s.size
    return error / max(1.0, abs(x @ Px / 2 + q @ x))


def cones(dims, upper):
    """The size of every cone, and functions that say how far outside it and its dual a point is."""
    if dims.zero:
        yield dims.zero, np.linalg.norm, lambda z: 0.0
    if dims.nonneg:
        yield dims.nonneg, *[lambda s: np.linalg.norm(np.minimum(s, 0))] * 2
    for n in dims.soc:
        yield n, *[lambda s: np.linalg.norm(s[1:]) - s[0]] * 2
    for n in dims.psd:
        rows, columns = np.tril_indices(n)[::-1] if upper else np.triu_indices(n)

        def indefinite(s, n=n, rows=rows, columns=columns):
            S = np.zeros((n, n))
            S[rows, columns] = S[columns, rows] = s / np.where(rows == columns, 1.0, np.sqrt(2))
            return -np.linalg.eigvalsh(S)[0]

        yield n * (n + 1) // 2, indefinite, indefinite
    for _ in range(dims.exp):
        yield 3, exponential, lambda z: exponential((z[0] - z[1], -z[0], z[2]))
    for a in dims.p3d:
        power = np.array([a, 1 - a])
        yield (
            3,
            lambda s, p=power: max(-s[:2].min(), abs(s[2]) - np.prod(np.maximum(s[:2], 0) ** p)),
            lambda z, p=power: max(-z[:2].min(), abs(z[2]) - np.prod(np.maximum(z[:2] / p, 0) ** p)),
        )


def exponential(s):
    """How far s is outside the closure of y exp(x / y) <= z, y > 0."""
    x, y, z = s
    with np.errstate(over="ignore"):
        return y * np.exp(x / y) - z if y > 0 else max(-y, x, -z)


def tolerances(value):
    return dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), value)


# What to try, and the error of the value that is accepted from it. It is overstated, ten times and more.
WAYS = (tolerances(1e-10), tolerances(1e-9), {}, {"use_quad_obj": False}, {"equilibrate_enable": False})
CLARABEL_RUNGS = tuple((VerifiedClarabel, way, accuracy) for accuracy in (1e-7, 1e-6) for way in WAYS)
SCS_RUNGS = ((VerifiedSCS, {"eps": 1e-9, "max_iters": 200_000}, 1e-6),)
# A multiplier is in error by the root of the error of the value: never the usual tolerances.
MULTIPLIER_RUNGS = ((VerifiedClarabel, WAYS[0], 1e-6), *SCS_RUNGS)


def solved(problem, attempts=(*CLARABEL_RUNGS, *SCS_RUNGS), **options):
    """The optimal value of a reference, by the first solver whose error is small by a primal-dual pair.

    Variables and multipliers are left in the problem. Never compare with what one solver calls optimal.
    """
    for solver, settings, accuracy in attempts:
        with suppress(cp.SolverError), np.errstate(all="ignore"):  # cvxpy evaluates |u|^2 / w at zero
            problem.solve(solver=solver(accuracy), warm_start=False, **settings, **options)
            return float(problem.solution.opt_val)
    raise AssertionError("no solver proves its value")


def why_not(method, problem):
    """What stands in the way of a method, in words; empty where it applies."""
    match = METHODS[method].match(ko.Structure(problem))
    return match if isinstance(match, str) else ""


def fastest(problem):
    """The name of the method that "auto" tries first."""
    return applicable(ko.Structure(problem))[0].method.name


def overlap(one, two, slack=1e-9):
    """Whether the brackets of two solutions of one problem have a point in common."""
    slack *= max(1.0, abs(two.value))
    return one.lower <= two.upper + slack and one.upper >= two.lower - slack


def conjugate(p):
    """The exponent q with 1/p + 1/q = 1."""
    return np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)


def by_blocks(Ks, y, loss, bias, norm=2):
    """The optimal value over f = sum_m L_m w_m + b, with half the square of a norm of the |w_m|."""
    roots = [vectors * np.sqrt(np.maximum(values, 0.0)) for values, vectors in map(np.linalg.eigh, Ks)]
    w = [cp.Variable(len(y)) for _ in roots]
    f = sum(L @ v for L, v in zip(roots, w, strict=True)) + (cp.Variable() if bias else 0.0)
    lengths = cp.hstack([cp.norm2(v) for v in w])
    size = cp.norm(lengths, norm) if norm in (1, 2, np.inf) else cp.pnorm(lengths, norm, approx=False)
    return solved(cp.Problem(cp.Minimize(loss.expression(f, y) + cp.square(size) / 2)))


def other(kind, *fields, **methods):
    """An object whose methods are others; each is a function of the right object and its arguments."""

    def bound(change):
        return lambda self, *arguments: change(kind(*fields), *arguments)

    return type("Other", (kind,), {name: bound(change) for name, change in methods.items()})(*fields)
