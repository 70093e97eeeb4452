"""Bounds after a solve, and for candidates of any origin: they enclose the value."""

from __future__ import annotations

import contextlib

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelopt as ko
from tests.certificates.cases import (
    KS,
    LEARNING,
    PLAIN,
    SIZES,
    SMALL,
    ByHand,
    Library,
    N,
    Y,
    encloses,
    made,
    optimum,
    risk_nodes,
    visible,
    weights,
)
from tests.problems import solved

# ----------------------------------------------------------------------- each problem in two languages


NAMES = [*LEARNING, *PLAIN]


named = pytest.mark.parametrize("name", NAMES)


# --------------------------------------------------------------------------------------- after a solve


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
@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
def test_the_bound_needs_no_help_from_the_solver_that_was_used(name):
    """A first-order solver leaves points off the constraints: both bounds are repaired."""
    problem, value = made(name)
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
    with pytest.raises(ko.errors.ParameterError, match="cp.diag"):
        ko.certify(problem)


@pytest.mark.parametrize("attributes", [{"symmetric": True}, {"NSD": True}])
def test_matrix_attributes_are_honoured_or_named(attributes):
    """Least |X - A|^2 over the set of the attribute, which holds A."""
    A = np.array([[-1.0, 0.5], [0.5, -2.0]])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.Variable((2, 2), **attributes) - A)))
    solved(problem)
    certificate = ko.certify(problem)
    assert encloses(certificate, 0.0) and certificate.upper == pytest.approx(0.0, abs=1e-6)
    assert certificate.lower == pytest.approx(0.0, abs=1e-6) or certificate.reason


@pytest.mark.parametrize("attributes", [{"complex": True}, {"hermitian": True}])
def test_complex_variables_are_refused_or_bounded(attributes):
    X = cp.Variable((2, 2), **attributes)
    problem = cp.Problem(cp.Minimize(cp.norm(X - np.eye(2), "fro")), [cp.real(cp.trace(X)) <= 1])
    with contextlib.suppress(ko.InputError):
        assert encloses(ko.certify(problem), np.sqrt(0.5))


# ---------------------------------------------------------------------------------- garbage candidates


KINDS = {
    "random": lambda x: x,
    "negative": lambda x: -np.abs(x),
    "zero": lambda x: 0 * x,
    "huge": lambda x: 1e9 * x,
    "extreme": lambda x: 1e300 * np.sign(x),
    "tiny": lambda x: 1e-30 * x,
    "nan": lambda x: np.where(np.arange(x.size).reshape(x.shape) % 2, np.nan, x),
    "infinite": lambda x: np.where(x > 0, np.inf, -np.inf),
}


def garbage(problem, kind, rng):
    """Values for the variables and the alphas of a problem from which nothing can be expected."""
    values = {v: KINDS[kind](rng.normal(size=v.shape)) for v in visible(problem)}
    return values, [KINDS[kind](rng.normal(size=node.learner.n)) for node in risk_nodes(problem)]


@named
def test_garbage_never_breaks_a_bound(name):
    problem, value = made(name)
    rng = np.random.default_rng(NAMES.index(name))
    thorough = name in ("simplex", "comparisons", "linear programme")  # a closed bound, conic ones, no risk
    for kind in KINDS if thorough else [*KINDS][NAMES.index(name) % 4 :: 4]:  # two of the eight, by turns
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


# --------------------------------------------------------- sets that resemble those with a closed form


EDGES = {
    "minus the trace": lambda K: -cp.trace(K) <= 1,
    "sum of entries": lambda K: sum(K[i, i] for i in range(SMALL)) >= 0,
    "trace": lambda K: cp.trace(K) >= -1,
}


@pytest.mark.parametrize("edge", EDGES)
def test_a_lower_bound_of_a_trace_bounds_nothing(edge):
    K, y = cp.Variable((SMALL, SMALL), PSD=True), Y[:SMALL]
    value = solved(cp.Problem(cp.Minimize(ByHand.risk(K, y) + 0.1 * cp.trace(K))))
    problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge()) + 0.1 * cp.trace(K)), [EDGES[edge](K)])
    assert encloses(ko.certify(problem, {K: np.eye(SMALL)}, alpha=y), value)


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


# --------------------------------------------------------------------------- points outside the domain


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
