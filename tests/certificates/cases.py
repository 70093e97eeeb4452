"""Problems written twice, with risks and in plain cvxpy: their values are known without a certificate."""

from __future__ import annotations

import warnings
from functools import cache
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog, nnls

import kernelopt as ko
from kernelopt.certificates.boxes import known_boxes
from kernelopt.certificates.lower.minorants import relaxation
from tests.problems import labels, points, solved, stack

N, SMALL = 8, 6
KS = stack(N)
SIZES = KS.trace(axis1=1, axis2=2)
Y = labels(N)
X = points(N)
OTHER = np.sign(X[:, 1])
V = points(N, N, seed=3)
SOLVER_ERROR = 3e-7  # of the hand-written optimum, relative to max(1, |optimum|)


class Library:
    """The words of kernelopt."""

    kernel = staticmethod(ko.combine)
    trace = staticmethod(ko.trace)
    entries = staticmethod(ko.entries)
    frobenius = staticmethod(ko.frobenius)
    alignment = staticmethod(ko.alignment)

    @staticmethod
    def risk(K, y=Y, C=1.0, **options):
        return ko.risk(K, y, ko.hinge(C=C), **options)

    @staticmethod
    def ball(theta, p):
        return ko.lp_ball(theta, p)


class ByHand:
    """The same in plain cvxpy, semidefinite throughout."""

    trace = staticmethod(cp.trace)

    @staticmethod
    def kernel(mu, grams):
        return cp.sum([mu[i] * K for i, K in enumerate(grams)])

    @staticmethod
    def entries(K, i, j):
        return cp.hstack([K[a, b] for a, b in zip(i, j, strict=True)])

    @staticmethod
    def frobenius(K):
        return cp.norm(K, "fro")

    @staticmethod
    def alignment(K, y):
        return y @ K @ y

    @staticmethod
    def risk(K, y=Y, C=1.0, norm=2):
        kernels = K if isinstance(K, list) else [K]
        fs, b = [cp.Variable(len(y)) for _ in kernels], cp.Variable()
        squares = [cp.matrix_frac(f, kernel) for f, kernel in zip(fs, kernels, strict=True)]
        half = cp.max(cp.hstack(squares)) / 2 if norm == np.inf else cp.sum(squares) / 2
        return half + C * cp.sum(cp.pos(1 - cp.multiply(y, cp.sum(fs) + b)))

    @staticmethod
    def ball(theta, p):
        return [theta >= 0, cp.norm_inf(theta) <= 1 if p == np.inf else cp.pnorm(theta, p, approx=False) <= 1]


def weights(size=3):
    return cp.Variable(size, nonneg=True, name="mu")


def weighted(objective, constraints=lambda w, mu, K: [], sense=cp.Minimize, nonneg=True):
    """A problem in the weights of KS."""

    def build(w):
        mu = cp.Variable(3, nonneg=nonneg, name="mu")
        K = w.kernel(mu, KS)
        return cp.Problem(sense(objective(w, mu, K)), constraints(w, mu, K))

    return build


def ball(p):
    return weighted(lambda w, mu, K: w.risk(K), lambda w, mu, K: w.ball(mu, p))


def spectrahedron(w):
    K = cp.Variable((SMALL, SMALL), PSD=True, name="K")
    return cp.Problem(cp.Minimize(w.risk(K, Y[:SMALL])), [w.trace(K) == SMALL])


def comparisons(w):
    mu = weights()
    K = w.kernel(mu, KS)
    near, far = w.entries(K, [0, 1], [2, 5]), w.entries(K, [4, 6], [6, 7])
    objective = w.risk(K) + 0.1 * cp.sum_squares(mu)
    return cp.Problem(cp.Minimize(objective), [w.trace(K) == N, near + 0.05 <= far, mu[1] >= 0.1])


def fidelity(kind):
    """A PSD variable near an indefinite similarity."""

    def build(w):
        K = cp.Variable((SMALL, SMALL), PSD=True, name="K")
        S = np.random.default_rng(5).normal(size=(SMALL, SMALL))
        S = (S + S.T) / 2
        distance = {
            "squared": lambda: cp.sum_squares(K - S),
            "frobenius": lambda: cp.norm(K - S, "fro"),
            "entries": lambda: cp.sum(cp.abs(K - S)),
        }[kind]()
        return cp.Problem(cp.Minimize(w.risk(K, Y[:SMALL]) + 0.7 * distance))

    return build


def with_ridge(w):
    mu, tau = weights(), cp.Variable(nonneg=True, name="tau")
    K = w.kernel(mu, KS) + tau * np.eye(N)
    return cp.Problem(cp.Minimize(w.risk(K)), [SIZES @ mu + N * tau == N])


def spectral(w):
    mu = weights(N)
    return cp.Problem(cp.Minimize(w.risk(V @ cp.diag(mu) @ V.T) + 0.05 * cp.sum_squares(mu)), [mu <= 1])


def several_kernels(w):
    mu, scale = weights(), cp.Variable(nonneg=True, name="scale")
    kernels = [w.kernel(mu, KS), scale * (KS[1] + np.eye(N))]
    return cp.Problem(cp.Minimize(w.risk(kernels, norm=np.inf)), [SIZES @ mu + N * scale <= 2 * N])


def linear_programme():
    rng = np.random.default_rng(2)
    A, b, c = rng.normal(size=(5, 4)), rng.uniform(1, 2, 5), rng.normal(size=4)
    x = cp.Variable(4, name="x")
    value = linprog(c, A, b, bounds=(-3, 3)).fun
    return cp.Problem(cp.Minimize(c @ x), [A @ x <= b, x <= 3, x >= -3]), value


def quadratically_constrained():
    """max c'x over the ellipsoid x'Px <= 1: sqrt(c'P^-1 c)."""
    rng = np.random.default_rng(3)
    A, c = rng.normal(size=(4, 4)), rng.normal(size=4)
    P = A @ A.T + np.eye(4)
    x = cp.Variable(4, name="x")
    return cp.Problem(cp.Maximize(c @ x), [cp.quad_form(x, P) <= 1]), np.sqrt(c @ np.linalg.solve(P, c))


def quadratic_programme():
    """The projection of c on the probability simplex, by sorting."""
    c = np.array([0.9, 0.4, -0.3, 0.2])
    x = cp.Variable(4, name="x")
    threshold = (0.9 + 0.4 + 0.2 - 1) / 3
    value = np.sum((np.maximum(c - threshold, 0) - c) ** 2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - c)), [x >= 0, cp.sum(x) == 1]), value


def semidefinite():
    """min <M, K> with tr K = 1 and one entry more: the smallest eigenvalue, with free variables."""
    M = points(5, 5, seed=4)
    M = M + M.T
    K = cp.Variable((5, 5), symmetric=True, name="K")
    return cp.Problem(cp.Minimize(cp.trace(M @ K)), [K >> 0, cp.trace(K) == 1]), np.linalg.eigvalsh(M)[0]


def exponential_cone():
    """min c'x - entropy(x) on the simplex: -log sum exp(-c)."""
    c = np.array([0.3, -1.0, 2.0, 0.1])
    x = cp.Variable(4, name="x")
    objective = c @ x - cp.sum(cp.entr(x))
    return cp.Problem(cp.Minimize(objective), [cp.sum(x) == 1]), -np.log(np.exp(-c).sum())


def inactive_exponential_cones():
    """Exponential cones that are far from tight, next to one that is."""
    x = cp.Variable(3, name="x")
    constraints = [cp.exp(x) <= np.array([1.0, 50.0, 90.0]), x <= np.array([5.0, 1.0, 1.5])]
    return cp.Problem(cp.Maximize(cp.sum(x)), constraints), 2.5


def power_cone():
    """The least c'x over the 4/3-ball: -|c|_4."""
    c = np.array([0.3, -1.0, 2.0, 0.1])
    x = cp.Variable(4, name="x")
    ball = cp.pnorm(x, 4 / 3, approx=False) <= 1
    return cp.Problem(cp.Minimize(c @ x), [ball]), -np.linalg.norm(c, 4)


def best_alignment():
    """max q'mu with mu'S mu <= 1, mu >= 0, is sqrt(max 2 q'm - m'Sm over m >= 0): least squares."""
    mu = weights()
    K = ko.combine(mu, KS)
    S = np.einsum("aij,bij->ab", KS, KS)
    q = np.einsum("aij,i,j->a", KS, Y, Y)
    R = np.linalg.cholesky(S).T
    m, _ = nnls(R, np.linalg.solve(R.T, q))
    value = np.sqrt(2 * q @ m - m @ S @ m)
    return cp.Problem(cp.Maximize(ko.alignment(K, Y)), [ko.frobenius(K) <= 1]), value


class Made(NamedTuple):
    problem: cp.Problem
    optimum: float


simplex = weighted(
    lambda w, mu, K: w.risk(K),
    lambda w, mu, K: [w.trace(K) == N],
)
trace_at_most = weighted(
    lambda w, mu, K: w.risk(K),
    lambda w, mu, K: [w.trace(K) <= N],
)
bounded_risk = weighted(
    lambda w, mu, K: w.trace(K),
    lambda w, mu, K: [w.risk(K) <= 2.5],
)


LEARNING = {
    "simplex": (simplex, "closed"),
    "trace at most": (trace_at_most, "closed"),
    "ball 1": (ball(1), "closed"),
    "ball 4/3": (ball(4 / 3), "closed"),
    "ball 2": (ball(2), "closed"),
    "ball inf": (ball(np.inf), "closed"),
    "spectrahedron": (spectrahedron, "closed"),
    "with ridge": (with_ridge, "closed"),
    "several kernels": (several_kernels, "closed"),
    "maximised": (
        weighted(lambda w, mu, K: -w.risk(K), lambda w, mu, K: [mu @ SIZES == N], cp.Maximize),
        "closed",
    ),
    "two risks": (
        weighted(
            lambda w, mu, K: w.risk(K) + 0.5 * w.risk(K, OTHER, C=2.0), lambda w, mu, K: [w.trace(K) == N]
        ),
        "closed",
    ),
    "comparisons": (comparisons, "conic"),
    "bounded risk": (bounded_risk, "conic"),
    "budgeted pair": (
        weighted(lambda w, mu, K: w.risk(K), lambda w, mu, K: [w.risk(K, OTHER) <= 6.0, w.trace(K) <= 2 * N]),
        "conic",
    ),
    "squared risk": (
        weighted(lambda w, mu, K: cp.square(w.risk(K)) + cp.sum(mu), lambda w, mu, K: [cp.sum(mu) <= 2]),
        "conic",
    ),
    "floored risk": (
        weighted(
            lambda w, mu, K: cp.maximum(w.risk(K), 3) + 0.1 * w.trace(K), lambda w, mu, K: [cp.sum(mu) <= 2]
        ),
        "conic",
    ),
    "maximised with a price": (
        weighted(
            lambda w, mu, K: 1 - w.risk(K) - cp.sum_squares(mu), lambda w, mu, K: [mu <= 2], cp.Maximize
        ),
        "conic",
    ),
    "free sign": (
        weighted(lambda w, mu, K: w.risk(K), lambda w, mu, K: [K >> 0, w.trace(K) == N], nonneg=False),
        "closed",
    ),
    "squared fidelity": (fidelity("squared"), "closed"),
    "frobenius fidelity": (fidelity("frobenius"), "closed"),
    "fidelity by entries": (fidelity("entries"), "closed"),
    "spectral": (spectral, "conic"),
}


PLAIN = {
    "linear programme": linear_programme,
    "quadratically constrained": quadratically_constrained,
    "quadratic programme": quadratic_programme,
    "semidefinite": semidefinite,
    "exponential cone": exponential_cone,
    "inactive exponential cones": inactive_exponential_cones,
    "power cone": power_cone,
    "best alignment": best_alignment,
}


@cache
def optimum(name):
    return solved(LEARNING[name][0](ByHand)) if name in LEARNING else float(PLAIN[name]()[1])


def made(name):
    problem = LEARNING[name][0](Library) if name in LEARNING else PLAIN[name]()[0]
    return Made(problem, optimum(name))


def relaxed_value(structure, below, **options):
    """The minimum with the positive parts of minorants in the place of risks, by cvxpy and Clarabel."""
    problem = relaxation(structure, below, known_boxes(structure))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, **options)
    return float(problem.value)


def encloses(certificate, value, slack=SOLVER_ERROR):
    slack *= max(1.0, abs(value))
    return certificate.lower <= value + slack and certificate.upper >= value - slack


def visible(problem):
    hidden = {v.id for node in risk_nodes(problem) for v in node.args[0].variables()}
    outer = {v.id for node in risk_nodes(problem) for K in node.learner.kernels for v in K.variables()}
    return [v for v in problem.variables() if v.id not in hidden or v.id in outer]


def risk_nodes(problem):
    return [written.risk for written in ko.expand(problem).risks]
