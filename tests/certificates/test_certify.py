"""Certificates: bounds that hold for any candidate, tight after a solve, on problems of one's own making.

Every problem is written twice: once with the words of the library, once by hand in plain cvxpy, where a
risk is min over f, b of C sum pos(1 - y (f + b)) + 1/2 f'K^-1 f, a semidefinite programme.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

import kernelopt as ko
from tests.problems import labels, points, solved, stack

N, SMALL = 8, 6
KS = stack(N)
SIZES = KS.trace(axis1=1, axis2=2)
Y = labels(N)
X = points(N)
OTHER = np.sign(X[:, 1])
V = points(N, N, seed=3)
SOLVER_ERROR = 3e-7  # of the hand-written optimum, relative to max(1, |optimum|)


# ---------------------------------------------------------------- each problem in two languages


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


def simplex(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.risk(K)), [w.trace(K) == N])


def at_most_a_trace(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.risk(K)), [w.trace(K) <= N])


def ball(p):
    def build(w):
        theta = weights()
        return cp.Problem(cp.Minimize(w.risk(w.kernel(theta, KS))), w.ball(theta, p))

    return build


def spectrahedron(w):
    K = cp.Variable((SMALL, SMALL), PSD=True, name="K")
    return cp.Problem(cp.Minimize(w.risk(K, Y[:SMALL])), [w.trace(K) == SMALL])


def two_risks(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.risk(K) + 0.5 * w.risk(K, OTHER, C=2.0)), [w.trace(K) == N])


def comparisons(w):
    mu = weights()
    K = w.kernel(mu, KS)
    near, far = w.entries(K, [0, 1], [2, 5]), w.entries(K, [4, 6], [6, 7])
    objective = w.risk(K) + 0.1 * cp.sum_squares(mu)
    return cp.Problem(cp.Minimize(objective), [w.trace(K) == N, near + 0.05 <= far, mu[1] >= 0.1])


def bounded_risk(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.trace(K)), [w.risk(K) <= 2.5])


def squared_risk(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(cp.square(w.risk(K)) + cp.sum(mu)), [cp.sum(mu) <= 2])


def floored_risk(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(cp.maximum(w.risk(K), 3) + 0.1 * w.trace(K)), [cp.sum(mu) <= 2])


def maximised(w):
    mu = weights()
    return cp.Problem(cp.Maximize(-w.risk(w.kernel(mu, KS))), [mu @ SIZES == N])


def maximised_with_a_price(w):
    mu = weights()
    return cp.Problem(cp.Maximize(1 - w.risk(w.kernel(mu, KS)) - cp.sum_squares(mu)), [mu <= 2])


def free_sign(w):
    mu = cp.Variable(3, name="mu")
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.risk(K)), [K >> 0, w.trace(K) == N])


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


def budgeted_pair(w):
    mu = weights()
    K = w.kernel(mu, KS)
    return cp.Problem(cp.Minimize(w.risk(K)), [w.risk(K, OTHER) <= 6.0, w.trace(K) <= 2 * N])


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


LEARNING = {
    "simplex": (simplex, "closed"),
    "trace at most": (at_most_a_trace, "closed"),
    "ball 1": (ball(1), "closed"),
    "ball 4/3": (ball(4 / 3), "closed"),
    "ball 2": (ball(2), "closed"),
    "ball inf": (ball(np.inf), "closed"),
    "spectrahedron": (spectrahedron, "closed"),
    "with ridge": (with_ridge, "closed"),
    "several kernels": (several_kernels, "closed"),
    "maximised": (maximised, "closed"),
    "two risks": (two_risks, "closed"),
    "comparisons": (comparisons, "conic"),
    "bounded risk": (bounded_risk, "conic"),
    "budgeted pair": (budgeted_pair, "conic"),
    "squared risk": (squared_risk, "conic"),
    "floored risk": (floored_risk, "conic"),
    "maximised with a price": (maximised_with_a_price, "conic"),
    "free sign": (free_sign, "conic"),
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
NAMES = [*LEARNING, *PLAIN]
named = pytest.mark.parametrize("name", NAMES)


@cache
def optimum(name):
    return solved(LEARNING[name][0](ByHand)) if name in LEARNING else float(PLAIN[name]()[1])


def made(name):
    problem = LEARNING[name][0](Library) if name in LEARNING else PLAIN[name]()[0]
    return Made(problem, optimum(name))


def encloses(certificate, value, slack=SOLVER_ERROR):
    slack *= max(1.0, abs(value))
    return certificate.lower <= value + slack and certificate.upper >= value - slack


def visible(problem):
    hidden = {v.id for node in risk_nodes(problem) for v in node.args[0].variables()}
    outer = {v.id for node in risk_nodes(problem) for K in node.learner.kernels for v in K.variables()}
    return [v for v in problem.variables() if v.id not in hidden or v.id in outer]


def risk_nodes(problem):
    return [written.risk for written in ko.expand(problem).risks]


# ----------------------------------------------------------------------------- after a solve


@named
def test_bounds_are_tight_after_a_solve(name):
    problem, value = made(name)
    solution = ko.solve(problem, "exact")  # another method brings bounds of another route
    certificate = solution.certificate
    assert encloses(certificate, value)
    assert certificate.gap <= 1e-5
    assert solution.status == "optimal"
    routes = {"best alignment": "closed"}
    assert certificate.route == (LEARNING[name][1] if name in LEARNING else routes.get(name, "conic"))
    assert solution.value == pytest.approx(value, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["simplex", "comparisons", "free sign", "semidefinite", "two risks"])
def test_the_bound_needs_no_help_from_the_solver_that_was_used(name):
    """A first-order solver leaves points off the constraints: both bounds are repaired."""
    problem, value = made(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = ko.solve(problem, solver="SCS")
    assert encloses(solution.certificate, value)
    assert solution.gap <= 1e-3


def test_a_psd_variable_with_non_negative_entries_is_bounded_tightly():
    """min |K - S|^2 + tr K over K PSD and K >= 0: at K = diag(1/2) + the positive entries off it."""
    S = np.array([[1, -0.5, 0.2], [-0.5, 1, 0.3], [0.2, 0.3, 1]])
    K = cp.Variable((3, 3), PSD=True, nonneg=True)
    solution = ko.solve(cp.Problem(cp.Minimize(cp.sum_squares(K - S) + cp.trace(K))))
    value = 3 * (0.25 + 0.5) + 2 * 0.25
    assert encloses(solution.certificate, value)
    assert solution.gap <= 1e-5


@pytest.mark.parametrize("attributes", [{"diag": True}, {"sparsity": [(0, 1), (0, 1)]}])
def test_sparse_matrix_attributes_are_refused_with_the_way_out(attributes):
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.Variable((2, 2), **attributes) - np.eye(2))))
    with pytest.raises(ko.ParameterError, match="cp.diag"):
        ko.certify(problem)


@pytest.mark.parametrize("attributes", [{"symmetric": True}, {"NSD": True}])
def test_matrix_attributes_are_honoured_or_named(attributes):
    """Least |X - A|^2 over the set of the attribute, which holds A."""
    A = np.array([[-1.0, 0.5], [0.5, -2.0]])
    value = 0.0
    X = cp.Variable((2, 2), **attributes)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X - A)))
    solved(problem)
    certificate = ko.certify(problem)
    assert encloses(certificate, value)
    assert certificate.upper == pytest.approx(value, abs=1e-6)
    assert certificate.lower == pytest.approx(value, abs=1e-6) or certificate.reason


@pytest.mark.parametrize("attributes", [{"complex": True}, {"hermitian": True}])
def test_complex_variables_are_refused_or_bounded(attributes):
    X = cp.Variable((2, 2), **attributes)
    problem = cp.Problem(cp.Minimize(cp.norm(X - np.eye(2), "fro")), [cp.real(cp.trace(X)) <= 1])
    value = np.sqrt(0.5)
    try:
        certificate = ko.certify(problem)
    except ko.InputError:
        return
    assert encloses(certificate, value)


# --------------------------------------------------------------------------- garbage candidates


def garbage(problem, kind, rng):
    """Values for the variables and the alphas of a problem from which nothing can be expected."""
    values: dict[Any, Any] = {}
    for variable in visible(problem):
        x = rng.normal(size=variable.shape)
        values[variable] = {
            "random": x,
            "negative": -np.abs(x),
            "zero": 0 * x,
            "huge": 1e9 * x,
            "extreme": 1e300 * np.sign(x),
            "tiny": 1e-30 * np.abs(x),
            "nan": np.where(np.arange(x.size).reshape(x.shape) == 0, np.nan, x),
            "infinite": np.full(x.shape, np.inf),
        }[kind]
    alphas = []
    for node in risk_nodes(problem):
        a = rng.normal(size=node.learner.n)
        alphas.append(
            {
                "random": a,
                "negative": -np.abs(a),
                "zero": 0 * a,
                "huge": 1e9 * a,
                "extreme": 1e300 * np.sign(a),
                "tiny": 1e-30 * a,
                "nan": np.where(np.arange(a.size) % 2, np.nan, a),
                "infinite": np.where(a > 0, np.inf, -np.inf),
            }[kind]
        )
    return values, alphas


KINDS = ["random", "negative", "zero", "huge", "extreme", "tiny", "nan", "infinite"]


@named
def test_garbage_never_breaks_a_bound(name):
    problem, value = made(name)
    rng = np.random.default_rng(NAMES.index(name))
    kinds = KINDS if name in ("simplex", "comparisons", "free sign", "linear programme") else KINDS[:6:2]
    for kind in kinds:
        values, alphas = garbage(problem, kind, rng)
        certificate = ko.certify(problem, values, alpha=alphas or None)
        assert encloses(certificate, value), (kind, str(certificate))
        assert certificate.gap >= 0
    values, _ = garbage(problem, "random", rng)
    assert encloses(ko.certify(problem, values), value)


any_float = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(weights=st.lists(any_float, min_size=3, max_size=3), alpha=st.lists(any_float, min_size=N, max_size=N))
def test_any_floats_are_a_candidate(weights, alpha):
    problem, value = made("simplex")
    certificate = ko.certify(problem, weights=weights, alpha=alpha)
    assert encloses(certificate, value)
    assert np.isfinite(certificate.upper)


@given(
    weights=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    alpha=st.lists(st.floats(-2, 2), min_size=N, max_size=N),
    p=st.sampled_from([1, 4 / 3, 2, np.inf]),
)
def test_any_candidate_of_a_ball_has_finite_bounds(weights, alpha, p):
    problem, value = made({1: "ball 1", 2: "ball 2", np.inf: "ball inf"}.get(p, "ball 4/3"))
    certificate = ko.certify(problem, weights=weights, alpha=alpha)
    assert encloses(certificate, value)
    assert np.isfinite(certificate.gap)
    assert certificate.route == "closed"


def test_points_near_the_optimum_have_small_gaps():
    problem, value = made("comparisons")
    solution = ko.solve(problem)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-5, 1e-7):
        mu = solution.weights + size * rng.normal(size=3)
        alpha = solution.alpha + size * rng.normal(size=N)
        certificate = ko.certify(problem, weights=mu, alpha=alpha)
        assert encloses(certificate, value)
        assert certificate.gap <= 100 * size + 1e-7


# ------------------------------------------------- sets that resemble those with a closed form


@pytest.mark.parametrize(
    "edge",
    [
        lambda K: -cp.trace(K) <= 1,
        lambda K: sum(K[i, i] for i in range(SMALL)) >= 0,
        lambda K: cp.trace(K) >= -1,
    ],
    ids=["minus the trace", "sum of entries", "trace"],
)
def test_a_lower_bound_of_a_trace_bounds_nothing(edge):
    K = cp.Variable((SMALL, SMALL), PSD=True)
    objective = ko.risk(K, Y[:SMALL], ko.hinge()) + 0.1 * cp.trace(K)
    value = solved(cp.Problem(cp.Minimize(ByHand.risk(K, Y[:SMALL]) + 0.1 * cp.trace(K))))
    certificate = ko.certify(
        cp.Problem(cp.Minimize(objective), [edge(K)]), {K: np.eye(SMALL)}, alpha=Y[:SMALL]
    )
    assert encloses(certificate, value)


def test_a_trace_on_the_other_side_bounds_nothing():
    """sum(mu) <= 1 + tr K holds for arbitrarily large mu."""
    K, mu = cp.Variable((3, 3), PSD=True), cp.Variable(5, nonneg=True)
    problem = cp.Problem(cp.Minimize(0.2 * cp.trace(K) - cp.sum(mu)), [cp.sum(mu) <= 1 + cp.trace(K)])
    assert ko.certify(problem, {K: np.eye(3), mu: np.ones(5) / 5}).lower == -np.inf
    extra = cp.Problem(problem.objective, [*problem.constraints, cp.trace(K) <= 10])
    certificate = ko.certify(extra, {K: np.eye(3), mu: np.ones(5) / 5})
    assert encloses(certificate, 0.2 * 10 - 11)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "norm",
    [cp.norm1, cp.norm_inf, lambda X, axis: cp.pnorm(X, 2, axis=axis)],
    ids=["norm1", "norm_inf", "pnorm"],
)
def test_one_norm_per_row_is_not_one_norm(norm, axis):
    X = cp.Variable((2, 3), nonneg=True)
    problem = cp.Problem(cp.Minimize(-cp.sum(X)), [norm(X, axis=axis) <= 1])
    value = solved(cp.Problem(problem.objective, problem.constraints))
    assert encloses(ko.certify(problem, {X: np.full((2, 3), 0.1)}), value)


@pytest.mark.parametrize("side", [1, -1])
def test_simplices_are_read_from_either_side(side):
    """min risk on {r'mu = N}, written as r'mu - N == 0 or N - r'mu == 0."""
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(cp.Minimize(Library.risk(K)), [side * (ko.trace(K) - N) == 0])
    certificate = ko.certify(problem, weights=[1, 1, 1])
    assert certificate.route == "closed"
    assert encloses(certificate, optimum("simplex"))


def test_a_variable_outside_the_set_has_no_closed_form():
    mu, free = weights(), cp.Variable(name="free")
    problem = cp.Problem(
        cp.Minimize(Library.risk(ko.combine(mu, KS)) + cp.square(free - 1)), [mu @ SIZES == N]
    )
    solution = ko.solve(problem)
    assert solution.certificate.route == "conic"
    assert encloses(solution.certificate, optimum("simplex"))
    assert solution.gap <= 1e-5


# ------------------------------------------------------------------------- forms of a candidate


def test_the_three_forms_of_a_candidate_agree():
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(cp.Minimize(Library.risk(K)), [ko.trace(K) == N])
    w, alpha = np.array([0.5, 0.3, 0.2]), 0.1 * Y
    by_weights = ko.certify(problem, weights=w, alpha=alpha)
    by_value = ko.certify(problem, {mu: w}, alpha=alpha)
    mu.value = w
    current = ko.certify(problem, alpha=(alpha,))
    bounds = [(c.lower, c.upper, c.route) for c in (by_weights, by_value, current)]
    assert bounds[0] == bounds[1] == bounds[2]


def test_without_any_candidate_there_are_still_bounds():
    problem, value = made("comparisons")
    certificate = ko.certify(problem)
    assert encloses(certificate, value)
    assert np.isfinite(certificate.gap)
    assert all(v.value is None for v in problem.variables())


def test_a_missing_variable_keeps_its_current_value():
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    problem = cp.Problem(cp.Minimize(cp.abs(x) + cp.abs(z)), [x + z == 2])
    z.value = 0.5
    certificate = ko.certify(problem, {x: 1.5})
    assert certificate.upper == pytest.approx(2)
    assert certificate.point[z] == pytest.approx(0.5)


@pytest.mark.parametrize("value", [None, [1.0, 2.0, 3.0], [-1.0, 0.0, 0.0]])
def test_the_variables_keep_their_values(value):
    problem, _ = made("comparisons")
    (mu,) = visible(problem)
    if value is not None:
        mu.save_value(np.array(value))
    before = {v.id: v.value for v in problem.variables()}
    ko.certify(problem, weights=[3.0, 1.0, -2.0], alpha=Y)
    for variable in problem.variables():
        np.testing.assert_array_equal(variable.value, before[variable.id])


def test_the_multipliers_keep_their_values():
    problem, _ = made("comparisons")
    ko.solve(problem)
    before = [np.copy(c.dual_value) for c in problem.constraints]
    ko.certify(problem, weights=[3.0, 1.0, -2.0], alpha=Y)
    for constraint, dual in zip(problem.constraints, before, strict=True):
        np.testing.assert_array_equal(constraint.dual_value, dual)


def test_the_variables_keep_their_values_when_the_candidate_is_refused():
    problem, _ = made("simplex")
    (mu,) = visible(problem)
    mu.value = np.ones(3)
    with pytest.raises(ko.ShapeError):
        ko.certify(problem, weights=[1.0, 2.0])
    np.testing.assert_array_equal(mu.value, np.ones(3))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_weights_of_another_shape_are_refused(shape):
    problem, _ = made("simplex")
    with pytest.raises(ko.ShapeError, match=r"shape \(3,\)"):
        ko.certify(problem, weights=np.zeros(shape))


@pytest.mark.parametrize("alpha", [np.zeros(3), np.zeros((N, 2)), [np.zeros(N), np.zeros(N)], 0.0, []])
def test_alphas_of_another_shape_are_refused(alpha):
    problem, _ = made("simplex")
    with pytest.raises(ko.ShapeError, match="alpha must have one entry"):
        ko.certify(problem, weights=np.ones(3), alpha=alpha)


def test_two_risks_need_two_alphas():
    problem, value = made("two risks")
    with pytest.raises(ko.ShapeError, match=r"2 risk\(s\)"):
        ko.certify(problem, weights=np.ones(3), alpha=Y)
    assert encloses(ko.certify(problem, weights=np.ones(3), alpha=(0.1 * Y, 0.1 * OTHER)), value)


@pytest.mark.parametrize("name", ["with ridge", "several kernels"])
def test_weights_are_for_problems_with_one_variable(name):
    with pytest.raises(ko.ParameterError, match="candidate="):
        ko.certify(made(name).problem, weights=np.ones(3))


def test_weights_beside_a_candidate_are_refused():
    problem, _ = made("simplex")
    (mu,) = visible(problem)
    with pytest.raises(ko.ParameterError, match="candidate"):
        ko.certify(problem, {mu: np.ones(3)}, weights=np.ones(3))


def test_a_candidate_for_a_stranger_is_refused():
    """Most likely a variable of another problem: leaving it out in silence would certify another point."""
    problem, _ = made("simplex")
    with pytest.raises(ko.ParameterError, match="other"):
        ko.certify(problem, {cp.Variable(3, name="other"): np.ones(3)})


@pytest.mark.parametrize("problem", [3, None, cp.Variable() >= 0], ids=["number", "none", "constraint"])
def test_only_problems_are_certified(problem):
    with pytest.raises(ko.ParameterError, match=r"cvxpy\.Problem"):
        ko.certify(problem)


# ------------------------------------------------------------------ what a certificate says


def test_the_gap_is_relative_to_the_larger_bound_and_to_the_floor():
    large = ko.Certificate(lower=90.0, upper=100.0, route="closed")
    small = ko.Certificate(lower=0.1, upper=0.3, route="closed")
    negative = ko.Certificate(lower=-12.0, upper=-10.0, route="conic")
    nothing = ko.Certificate(lower=0.0, upper=1e-9, route="closed", floor=1e-6)
    found = (large.gap, small.gap, negative.gap, nothing.gap)
    assert found == pytest.approx((0.1, 2 / 3, 1 / 6, 1e-3))


def test_the_gap_does_not_depend_on_units():
    """Kernels c K and weights C / c give c times smaller values: the gap stays."""
    K, y = np.array([np.eye(3), np.ones((3, 3))]), [1, -1, 1]
    gaps = []
    for c in (2.0**-20, 1.0, 2.0**20):
        theta = cp.Variable(2, nonneg=True)
        risk = ko.risk(ko.combine(theta, c * K), y, ko.hinge(1 / c))
        problem = cp.Problem(cp.Minimize(risk), [cp.norm(theta, 2) <= 1])
        gaps.append(ko.certify(problem, weights=[0.5, 0.5]).gap)
    assert gaps == pytest.approx([gaps[1]] * 3, rel=1e-6) and gaps[1] > 0.01


@pytest.mark.parametrize("bounds", [(-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf), (np.inf, np.inf)])
def test_the_gap_is_infinite_where_a_bound_is_missing(bounds):
    assert ko.Certificate(*bounds, route="none").gap == np.inf


def test_bounds_that_cross_have_no_gap():
    """Both are moved outward by their rounding errors: where they cross one of them is false."""
    assert ko.Certificate(lower=1.0 + 1e-15, upper=1.0, route="closed").gap == np.inf


def test_a_certificate_prints_its_bounds_route_and_reason():
    text = str(ko.Certificate(lower=0.25, upper=0.5, route="closed"))
    assert "0.25 <= optimum <= 0.5" in text and "closed" in text and "5.0e-01" in text
    assert str(ko.Certificate(-np.inf, 1.0, "none", reason="x needs bounds")).endswith("x needs bounds")


def test_a_certificate_holds_the_point_that_attains_its_bound():
    problem, _ = made("comparisons")
    certificate = ko.certify(problem, weights=[4.0, -1.0, 2.0])
    for variable, value in certificate.point.items():
        variable.value = value
    assert problem.objective.value == pytest.approx(certificate.upper, rel=1e-12)
    assert all(c.violation().max() <= 1e-9 for c in problem.constraints)
    assert min(v.min() for v in certificate.point.values()) >= 0


def test_residuals_name_what_the_candidate_violates():
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(
        cp.Minimize(Library.risk(K)),
        [
            (ko.trace(K) == N).set_label("trace"),
            (mu[0] <= 0.5).set_label("cap"),
            (mu[2] <= 9).set_label("roof"),
        ],
    )
    certificate = ko.certify(problem, weights=[1.5, -1.0, 0.0])
    assert set(certificate.residuals) == {"trace", "cap", "the attributes of mu"}
    assert 0.3 <= certificate.residuals["cap"] <= 1.0  # by 1.0, with sides of 1.5 and 0.5
    assert list(certificate.residuals.values()) == sorted(certificate.residuals.values(), reverse=True)
    assert np.isfinite(certificate.upper)


def test_a_feasible_candidate_has_no_residuals_and_its_own_value():
    problem, _ = made("simplex")
    (mu,) = visible(problem)
    mu.value = N * np.array([0.5, 0.3, 0.2]) / SIZES
    certificate = ko.certify(problem)
    assert certificate.residuals == {}
    assert certificate.upper == pytest.approx(float(problem.objective.value), rel=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_contradictory_constraints_are_a_proof(order):
    """Scale the candidate as one likes: mu[0] >= 2 and mu[0] <= 1 leave nothing."""
    mu = weights()
    K = ko.combine(mu, KS)
    contradiction = [(mu[0] >= 2).set_label("floor"), (mu[0] <= 1).set_label("ceiling")]
    problem = cp.Problem(cp.Minimize(Library.risk(K)), [ko.trace(K) <= 100, *contradiction[::order]])
    certificate = ko.certify(problem, weights=[1.0, 1.0, 1.0])
    assert (certificate.lower, certificate.upper) == (np.inf, np.inf)
    assert certificate.gap == np.inf
    assert certificate.proof is not None and np.isfinite(certificate.proof).all()
    assert "infeasible" in str(certificate)
    assert "floor" in certificate.residuals and "ceiling" not in certificate.residuals
    assert certificate.point == {}


def test_an_infeasible_maximisation_has_no_value_above_minus_infinity():
    x = cp.Variable(2, name="x")
    certificate = ko.certify(cp.Problem(cp.Maximize(cp.sum(x)), [x >= 2, x <= 1]), {x: np.ones(2)})
    assert (certificate.lower, certificate.upper) == (-np.inf, -np.inf)
    assert certificate.proof is not None


def test_the_ray_proves_infeasibility():
    """With plain variables the cone form is cvxpy's own: b - Ax in K, so z in K*, A'z = 0, b'z < 0."""
    x = cp.Variable(2, name="x")
    constraints = [x[0] + x[1] == 1, x[0] >= 2, x[1] >= 0]
    certificate = ko.certify(cp.Problem(cp.Minimize(x[0]), constraints), {x: np.ones(2)})
    z = certificate.proof
    data, _, _ = cp.Problem(cp.Minimize(x[0]), constraints).get_problem_data(cp.CLARABEL)
    assert certificate.lower == np.inf
    assert np.abs(data["A"].T @ z).max() <= 1e-9 * np.abs(z).max()
    assert data["b"] @ z < -1e-9
    assert z[data["dims"].zero :].min() >= 0


@pytest.mark.parametrize(
    "objective",
    [
        lambda x: cp.Minimize(0 * x[0]),
        lambda x: cp.Minimize(cp.norm(x)),
        lambda x: cp.Maximize(-cp.abs(x[0])),
    ],
    ids=["feasibility", "norm", "maximise"],
)
def test_a_far_away_feasible_point_is_not_called_impossible(objective):
    """x = (6e8, 6e8 - 1) is feasible: a multiplier that is right to nine digits proves nothing."""
    x = cp.Variable(2, name="x")
    constraints = [x[0] - x[1] >= 1, x[0] - (1 + 1e-9) * x[1] <= 0.5]
    certificate = ko.certify(cp.Problem(objective(x), constraints), {x: np.array([6e8, 6e8 - 1])})
    assert certificate.proof is None
    assert abs(certificate.lower) < np.inf or abs(certificate.upper) < np.inf or certificate.reason


def test_a_candidate_that_cannot_be_repaired_is_named():
    """risk <= 0.1 has no solution with this trace, but alpha = 0 does not show it: only the upper bound."""
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(
        cp.Minimize(cp.sum(mu)),
        [(Library.risk(K) <= 0.1).set_label("budget"), (ko.trace(K) <= N).set_label("size")],
    )
    certificate = ko.certify(problem, weights=[1.0, 1.0, 1.0], alpha=np.zeros(N))
    assert certificate.upper == np.inf
    assert "budget" in certificate.reason and "budget" in certificate.residuals
    assert certificate.lower <= 1e-6
    better = ko.certify(problem, weights=[1.0, 1.0, 1.0])
    assert better.lower == np.inf or "budget" in better.reason


# ---------------------------------------------------------------- points outside the domain


def test_a_maximisation_is_not_attained_where_the_objective_is_minus_infinity():
    """log(0) is feasible and worthless: the lower bound is -inf or that of a better point."""
    x = cp.Variable(nonneg=True, name="x")
    certificate = ko.certify(cp.Problem(cp.Maximize(cp.log(x)), [x <= 2]), {x: 0.0})
    assert certificate.lower <= np.log(2) + 1e-6
    assert certificate.upper >= np.log(2) - 1e-6


def test_a_hard_margin_at_zero_weights_is_not_attained():
    mu = weights()
    risk = ko.risk(ko.combine(mu, KS), Y, ko.hard_margin())
    hand = cp.Problem(cp.Maximize(cp.sum(mu)), [mu @ SIZES <= N])
    best = ko.solve(cp.Problem(cp.Minimize(risk), hand.constraints))
    certificate = ko.certify(cp.Problem(cp.Maximize(-risk), hand.constraints), weights=np.zeros(3))
    assert certificate.lower <= -best.value + 1e-6
    assert certificate.upper >= -best.value - 1e-6
    assert (
        ko.certify(cp.Problem(cp.Minimize(risk), hand.constraints), weights=np.zeros(3)).upper >= best.lower
    )


# ----------------------------------------------------------------------------------- bounds=


def test_bounds_of_the_caller_make_a_bound_finite():
    x, z = cp.Variable(name="x"), cp.Variable(name="far")
    problem = cp.Problem(cp.Minimize(cp.square(x - 1) - 0.1 * z), [x <= 3])
    without = ko.certify(problem, {x: 0.0, z: 1.0})
    assert without.lower == -np.inf
    assert "far" in without.reason
    helped = ko.certify(problem, {x: 0.0, z: 1.0}, bounds={z: (-5.0, 7.0)})
    assert helped.lower == pytest.approx(-0.7, abs=1e-6)
    assert helped.route == "conic"


def test_the_sign_of_the_objective_is_a_bound_where_there_is_no_other():
    """z is not bounded, so that duality gives nothing; squares and the positive part are at least zero."""
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    signed = cp.square(x - 1) + cp.pos(z)
    for sense, objective in ((cp.Minimize, signed), (cp.Maximize, -signed)):
        found = ko.certify(cp.Problem(sense(objective), [x <= 3]), {x: 1.0, z: 1.0})
        assert (found.route, found.reason) == ("sign", "")
        assert (found.lower if sense is cp.Minimize else found.upper) == 0.0
        assert (found.upper if sense is cp.Minimize else -found.lower) == pytest.approx(1.0)
    unsigned = ko.certify(cp.Problem(cp.Minimize(signed - 5), [x <= 3]), {x: 1.0, z: 1.0})
    assert unsigned.route != "sign"


def test_an_infeasible_problem_of_a_sign_stays_infeasible():
    x = cp.Variable(name="x")
    found = ko.certify(cp.Problem(cp.Minimize(cp.square(x)), [x >= 1, x <= 0]), {x: 0.0})
    assert found.lower == np.inf and found.proof is not None


class Halved(ko.BoundedProblem):
    """min |x|^2 / 2 over sum x = 1, with the bounds of its own rule: 1 / (2 n), exactly."""

    def bounds(self, values, multipliers):
        (x,) = self.variables()
        self.asked = values, multipliers
        best = 1 / (2 * x.size)
        return ko.Certificate(best, best, "closed", feasible=True, point={x: np.full(x.size, 1 / x.size)})


def test_a_problem_with_bounds_of_its_own_is_certified_by_them():
    x = cp.Variable(4, name="x")
    problem = Halved(cp.Minimize(cp.sum_squares(x) / 2), [(cp.sum(x) == 1).set_label("sum")])
    found = ko.certify(problem, {x: [1.0, 0, 0, 0]})
    assert (found.lower, found.upper, found.route) == (0.125, 0.125, "closed")
    assert np.array_equal(found.point[x], np.full(4, 0.25))
    values, multipliers = problem.asked
    assert np.array_equal(values[x.id], [1.0, 0, 0, 0]) and multipliers == {"sum": None}
    plain = ko.certify(cp.Problem(problem.objective, problem.constraints), {x: [1.0, 0, 0, 0]})
    assert plain.upper == pytest.approx(0.5) and plain.lower <= found.lower


def test_bounds_may_be_arrays_and_one_sided_bounds_do_no_harm():
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(-cp.sum(x)), [x[0] <= 1])
    helped = ko.certify(problem, {x: np.zeros(3)}, bounds={x: (-np.ones(3), np.array([9.0, 2.0, 3.0]))})
    assert helped.lower == pytest.approx(-6, abs=1e-6)
    assert ko.certify(problem, {x: np.zeros(3)}, bounds={x: (0.0, np.inf)}).lower == -np.inf


def test_bounds_never_weaken_what_is_known():
    problem, value = made("comparisons")
    (mu,) = visible(problem)
    plain = ko.certify(problem, weights=np.ones(3))
    helped = ko.certify(problem, weights=np.ones(3), bounds={mu: (-100.0, 100.0)})
    assert encloses(helped, value)
    assert helped.lower >= plain.lower - 1e-6


def test_bounds_for_a_stranger_are_refused():
    problem, _ = made("comparisons")
    with pytest.raises(ko.ParameterError, match="stranger"):
        ko.certify(problem, weights=np.ones(3), bounds={cp.Variable(name="stranger"): (0, 1)})


# ---------------------------------------------------------------------------- weak duality


@pytest.mark.parametrize(
    "loss", [ko.squared_hinge(C=2.0), ko.logistic(C=1.0), ko.huberized_hinge(1.0, 0.5)], ids=repr
)
@pytest.mark.parametrize("seed", range(3))
def test_weak_duality_at_random_feasible_points(loss, seed):
    """Every feasible point is above every dual point."""
    rng = np.random.default_rng(seed)
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, loss)), [ko.trace(K) == N])
    best = ko.solve(problem)
    for _ in range(3):
        w = rng.dirichlet(np.ones(3)) * N / SIZES
        certificate = ko.certify(problem, weights=w, alpha=rng.uniform(0, 1, N) * Y)
        assert certificate.lower <= best.upper + 1e-9
        assert certificate.upper >= best.lower - 1e-9
        mu.value = w
        assert certificate.upper == pytest.approx(float(problem.objective.value), rel=1e-9)
