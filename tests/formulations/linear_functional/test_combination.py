"""The second stage of the linear functional strategy, and its bounds in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import nnls

import kernelopt as ko
from formulations.linear_functional.method.certificate import stage_certificate
from formulations.linear_functional.method.combination import Combination
from formulations.linear_functional.method.filters import landweber
from kernelopt.extend import on_simplex
from tests.every import every
from tests.formulations.linear_functional.cases import (
    COLUMNS,
    KS,
    M,
    N,
    V,
    X,
    cases,
    exact_optimum,
    learn,
    rational,
)
from tests.problems import points, solved


@cases
@every("columns", COLUMNS)
def test_primal_is_dual_and_certified(weights, ridge, columns):
    strategy = learn(weights=weights, ridge=ridge, columns=columns)
    plain = solved(strategy.problem)
    assert solved(strategy.dual()) == pytest.approx(plain, rel=1e-5, abs=1e-7)
    solution = strategy.solve()
    assert solution.upper - solution.lower <= 1e-7 * max(1.0, solution.upper)
    assert solution.value == pytest.approx(plain, rel=1e-5, abs=1e-7)
    c, stage = solution.weights, strategy.stage
    r, n = stage.v - stage.X @ c, stage.n
    slope = stage.X.T @ r - n * ridge * c  # minus half n times the gradient
    if weights == "free":
        assert slope == pytest.approx(0.0, abs=1e-8)
    elif weights == "nonnegative":
        assert c.min() >= 0 and slope.max() <= 1e-4 and abs(slope @ c) <= 1e-4
    else:
        assert c.min() >= 0 and c.sum() == pytest.approx(1.0, abs=1e-12)
        assert slope @ c == pytest.approx(slope.max(), abs=1e-3)


@cases
def test_bounds_hold_for_any_weights(weights, ridge):
    strategy = learn(weights=weights, ridge=ridge)
    optimum = strategy.solve().value
    rng = np.random.default_rng(1)
    for scale in (0.0, 1e-3, 1.0, 1e4):
        for _ in range(10):
            bounds = strategy.at(scale * rng.normal(size=M)).certificate
            assert bounds.lower <= optimum + 1e-7 and optimum <= bounds.upper + 1e-7


@pytest.mark.parametrize("ridge", [0.0, 0.02])
def test_closed_form_is_the_conic_solution(ridge):
    """Pereverzyev 2.1, with the normal equations that nothing else here forms, and both direct routes."""
    strategy = learn(ridge=ridge, grams=KS[[0, 1, 3]])
    A, n = strategy.stage.X, N
    expected = np.linalg.solve(A.T @ A / n + ridge * np.eye(3), A.T @ V / n)
    conic = strategy.solve(solver=cp.CLARABEL)
    assert conic.solver == "CLARABEL" and conic.weights == pytest.approx(expected, rel=1e-4)
    direct = strategy.solve()
    assert (direct.method, direct.solver) == ("least-squares", "svd")
    for by in ("svd", "qr"):
        solution = strategy.solve_directly(by)
        assert solution.weights == pytest.approx(expected, rel=1e-9)
        assert solution.rank == 3 and 1 <= solution.condition < 1e6
        as_stored = replace(strategy.stage, errors=None)
        assert stage_certificate(as_stored, solution.weights).gap <= 1e-14
        assert solution.gap <= 1e-11  # the columns are known to n units of rounding
        assert solution.decision_function() == pytest.approx(A @ expected, abs=1e-8)


def test_dependent_columns_are_reported_and_weights_shared_or_left_out():
    strategy = learn(np.concatenate([KS[:2], KS[:2], 0 * KS[:1]]))
    svd, qr = strategy.solve_directly(), strategy.solve_directly("qr")
    single = learn(KS[:2]).solve_directly()
    assert svd.rank == qr.rank == single.rank == 2
    assert svd.weights[:2] == pytest.approx(svd.weights[2:4]) and svd.weights[4] == 0
    assert 2 * svd.weights[:2] == pytest.approx(single.weights)
    assert (qr.weights != 0).sum() == 2
    for one in (svd, qr):
        assert one.decision_function() == pytest.approx(single.decision_function(), abs=1e-9)
        assert stage_certificate(replace(strategy.stage, errors=None), one.weights).gap <= 1e-12
        assert one.gap <= 1e-11  # the columns are known to n units of rounding


def test_more_kernels_than_points_interpolate():
    kernels = [ko.gaussian(w) for w in np.linspace(0.2, 2, 3 * N)]
    grams = ko.Grams.from_kernels([ko.on_columns(k, j) for k in kernels for j in (0, 1)], X)
    solution = learn(grams, regularization=1e-3).solve()
    assert solution.value <= 1e-6 and solution.gap <= 1e-6
    assert solution.decision_function() == pytest.approx(V, abs=0.05)


def test_conditioning_grows_as_alpha_vanishes():
    """Every column of a regular kernel tends to v."""
    found = [learn(KS[:2], regularization=10.0**-k).solve_directly(rcond=1e-15) for k in (2, 5, 8)]
    assert found[0].condition < found[1].condition < found[2].condition
    assert found[0].value > found[1].value > found[2].value >= 0


def test_simplex_and_hand_cases():
    assert on_simplex(np.array([2.0, 0.0]), 1.0)[0] == pytest.approx([1, 0])
    assert on_simplex(np.array([0.3, 0.1]), 1.0)[0] == pytest.approx([0.6, 0.4])
    one = learn(KS[:1])
    x = one.candidates.columns[:, 0]
    assert one.solve().weights == pytest.approx([x @ V / (x @ x)])
    nothing = learn(v=np.zeros(N))
    assert nothing.solve().weights == pytest.approx(0.0) and not nothing.candidates.columns.any()
    zero = learn(0 * KS[:2])
    assert zero.solve().value == pytest.approx(V @ V / N) and zero.solve_directly().rank == 0
    assert learn(0 * KS[:2], filter=landweber).solve().weights == pytest.approx(0.0)


def test_the_polar_cone_is_reached_where_targets_do_not_help():
    """A column and its negative: c >= 0 can do all that a free c can, and X'v has both signs."""
    x = points(8, d=1)[:, 0]
    for v in (x + 1, -x, np.ones(8)):
        stage = Combination(np.column_stack([x, -x]), v, 0.0, "nonnegative")
        best = x @ v / (x @ x)
        bounds = stage_certificate(stage, np.maximum([best, -best], 0.0))
        assert bounds.lower == pytest.approx(np.sum((v - x * best) ** 2) / 8, abs=1e-12)
        assert bounds.gap <= 1e-13


KINDS = ("tall", "square", "wide", "nearly dependent", "repeated", "zero column", "exact fit", "spread")


def small_problem(kind, seed):
    """X and v with at most four columns and a few points."""
    rng = np.random.default_rng(seed)
    M = int(rng.integers(2, 5))
    n = {"square": M, "wide": M - 1}.get(kind, M + int(rng.integers(1, 4)))
    X, v = rng.normal(size=(n, M)), rng.normal(size=n)
    if kind == "nearly dependent":
        X[:, -1] = X[:, 0] * (1 + 10.0 ** -rng.integers(2, 17) * rng.normal(size=n))
    elif kind == "repeated":
        X[:, -1] = rng.choice([-2.0, -1.0, 1.0, 0.5]) * X[:, 0]
    elif kind == "zero column":
        X[:, -1] = 0.0
    elif kind == "exact fit":
        X, v = rng.integers(-3, 4, size=(n, M)) + 0.0, np.zeros(n)
        v[:] = X @ rng.integers(0, 3, size=M)
    elif kind == "spread":
        X = X * 10.0 ** rng.integers(-9, 9, size=M)
    return X, v


def good_weights(stage):
    """Weights near the optimum, found without the code that is tested."""
    M, root = stage.X.shape[1], np.sqrt(stage.n * stage.ridge)
    A, b = np.vstack([stage.X, root * np.eye(M)]), np.concatenate([stage.v, np.zeros(M)])
    if stage.weights == "free":
        return np.linalg.lstsq(A, b, rcond=None)[0]
    if stage.weights == "simplex":
        A, b = np.vstack([A, 1e4 * np.ones(M)]), np.append(b, 1e4)
    return nnls(A, b)[0]


@cases
@every("kind", KINDS)
def test_bounds_hold_in_exact_arithmetic(kind, weights, ridge):
    for seed in range(7):
        X, v = small_problem(kind, seed)
        stage = Combination(X, v, ridge, weights)
        optimum = exact_optimum(rational(X), v, ridge, weights)
        good = good_weights(stage)
        rng = np.random.default_rng(seed)
        for c in (good, good + 1e-7 * rng.normal(size=good.size), rng.normal(size=good.size), 0 * good + 1.0):
            bounds = stage_certificate(stage, c)
            assert Fraction(bounds.lower) <= optimum <= Fraction(bounds.upper)
            assert bounds.gap > 0 or Fraction(bounds.lower) == optimum == Fraction(bounds.upper)


@cases
@every("kind", ["tall", "square", "repeated", "zero column"])
def test_bounds_are_tight_where_the_columns_allow_it(kind, weights, ridge):
    """A gap of a few roundings of |v|^2 at good weights; on the simplex they are good to 1e-8 here."""
    for seed in range(7):
        X, v = small_problem(kind, seed)
        stage = Combination(X, v, ridge, weights)
        bounds = stage_certificate(stage, good_weights(stage))
        assert bounds.gap <= (1e-6 if weights == "simplex" else 1e-14)


def test_numbers_that_overflow_prove_nothing():
    stage = Combination(np.array([[1e200], [1.0]]), np.array([1.0, 1e200]), 0.0, "free")
    bounds = stage_certificate(stage, np.array([1e200]))
    assert bounds.lower == 0.0 and bounds.upper == np.inf


def test_large_numbers_are_projected_on_the_simplex():
    """One is lost in the sum of numbers above 2^53."""
    assert on_simplex(np.array([1e17, 0.0]), 1.0)[0] == pytest.approx([1, 0])
    assert on_simplex(np.array([1e17, 1e17]), 1.0)[0] == pytest.approx([0.5, 0.5])
