"""The linear functional strategy: invariances, predictions, memory and input."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import cvxpy as cp
import joblib
import numpy as np
import pytest

import kernelopt as ko
from formulations.linear_functional.method import candidates
from formulations.linear_functional.method.candidates import decomposed, levels
from formulations.linear_functional.method.combination import Combination
from formulations.linear_functional.method.filters import cut_off, iterated_tikhonov, landweber, tikhonov
from tests.formulations.linear_functional.cases import (
    ALPHA,
    COLUMNS,
    GRAMS,
    KS,
    M,
    N,
    V,
    by_hand,
    cases,
    learn,
    value,
)
from tests.problems import points, solved, targets


def test_values_are_ordered():
    free, cone, simplex = (value(weights=w) for w in ("free", "nonnegative", "simplex"))
    assert free <= cone + 1e-7 and cone <= simplex + 1e-7
    assert simplex <= min(np.mean((V[:, None] - learn().candidates.columns) ** 2, axis=0)) + 1e-6
    nested = [value(grams=KS[:m]) for m in range(1, M + 1)]
    assert all(b <= a + 1e-9 for a, b in pairwise(nested))


def test_a_ridge_costs_and_in_the_end_shrinks_to_nothing():
    ridges = [0.0, 1e-4, 1e-2, 1.0, 1e8]
    values = [value(ridge=ridge) for ridge in ridges]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(V @ V / N, rel=1e-5)


@cases
def test_permutation_permutes_the_weights(weights, ridge):
    order = [3, 0, 4, 2, 1]
    one, two = (learn(g, weights=weights, ridge=ridge).solve() for g in (KS, KS[order]))
    assert two.value == pytest.approx(one.value, rel=1e-5)
    if weights == "free":
        assert two.weights == pytest.approx(one.weights[order], rel=1e-5, abs=1e-7)


def test_scaling_targets_and_columns():
    one, two = learn(KS[:3]).solve(), learn(KS[:3], v=5 * V).solve()
    assert two.weights == pytest.approx(one.weights, rel=1e-8)
    assert two.decision_function() == pytest.approx(5 * one.decision_function())
    strategy = learn(KS[:3])
    mixed = Combination(strategy.stage.X @ np.array([[2.0, 1, 0], [0, -1, 3], [1, 1, 1]]), V, 0.0, "free")
    assert mixed.X @ mixed.directly("svd", 1e-12)[0] == pytest.approx(strategy.stage.X @ one.weights)
    scaled, *_ = Combination(4 * strategy.stage.X, V, 0.0, "free").directly("qr", 1e-12)
    assert 4 * scaled == pytest.approx(one.weights)


@pytest.mark.parametrize("columns", COLUMNS)
def test_an_intercept_makes_the_predictions_follow_a_shift(columns):
    for intercept in ("mean", "column"):
        one, two = (learn(KS[[0, 3]], v=V + s, intercept=intercept, columns=columns, regularization=0.5)
                    .solve() for s in (0.0, 7.0))  # fmt: skip
        if intercept == "mean":
            assert two.decision_function() == pytest.approx(one.decision_function() + 7, abs=1e-9)
            assert two.intercept == pytest.approx(one.intercept + 7)
    strategy = learn(KS[[0, 3]], intercept="column")  # against a column of ones
    A = np.column_stack([strategy.candidates.columns, np.ones(N)])
    expected = np.linalg.lstsq(A, V, rcond=None)[0]
    solution = strategy.solve()
    assert [*solution.weights, solution.intercept] == pytest.approx(expected)
    assert solution.decision_function() == pytest.approx(A @ expected)


def test_it_is_no_joint_problem():
    solution = learn(KS[:3]).solve()
    K = np.tensordot(solution.weights, KS[:3], 1)
    assert solution.weights.min() < 0  # and it still predicts anywhere
    assert np.abs(K @ by_hand(K, V, N * ALPHA) - solution.decision_function()).max() > 0.01


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_new_points_are_predicted_as_old_ones(columns, weights):
    strategy = learn(columns=columns, weights=weights)
    solution = strategy.solve()
    here = solution.decision_function()
    assert solution.decision_function(KS) == pytest.approx(here, abs=1e-9)
    b = strategy.candidates.coefficients
    assert here == pytest.approx(sum(solution.weights[j] * KS[j] @ b[j] for j in range(M)), abs=1e-9)
    new = points(7, d=2, seed=5)
    cross = GRAMS.cross(new)
    expected = sum(solution.weights[j] * cross[j] @ b[j] for j in range(M))
    assert solution.decision_function(cross) == pytest.approx(expected, abs=1e-9)
    assert solution.alpha.shape == (M, N)
    with pytest.raises(ko.errors.ShapeError, match="cross must have shape"):
        solution.decision_function(cross[1:])


def test_points_without_targets_are_predicted_too():
    solution, short = learn(v=V[:15]).solve(), learn(KS[:, :15, :15], v=V[:15]).solve()
    assert solution.alpha.shape == (M, 15)
    assert solution.decision_function()[:15] == pytest.approx(short.decision_function(), abs=1e-8)
    assert solution.decision_function()[15:] == pytest.approx(
        short.decision_function(KS[:, 15:, :15]), abs=1e-8
    )


def test_baselines_come_from_the_same_candidates():
    strategy = learn()
    average = strategy.at(np.full(M, 1 / M))
    assert average.decision_function() == pytest.approx(strategy.candidates.columns.mean(axis=1), abs=1e-9)
    assert average.lower <= strategy.solve().value <= average.upper
    other = strategy.with_weights("simplex", ridge=0.1)
    assert other.candidates is strategy.candidates and other.solve().weights.sum() == pytest.approx(1)


@pytest.mark.slow
def test_jobs_change_nothing_and_kernels_are_let_go():
    kernels = [ko.gaussian(w) for w in np.linspace(0.5, 3, 120)]
    grams, v = ko.Grams.from_kernels(kernels, points(300, d=2)), targets(300)
    one = learn(grams, v)
    assert not any(j in grams.storage._cache for j in range(120))
    with joblib.parallel_config(n_jobs=2):
        two = learn(grams, v)
    assert (one.candidates.columns == two.candidates.columns).all()
    tracemalloc.start()
    learn(grams, v)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 45 * 8 * 300**2  # sixteen matrices and factors at a time, and a few to work with


FILTERS = {"tikhonov": tikhonov, "iterated": iterated_tikhonov(3), "cut-off": cut_off, "landweber": landweber}


@pytest.mark.parametrize(("convention", "multiple"), [("mean", N), ("sum", 1)])
@pytest.mark.parametrize("alpha", [0.3, 1e-4, np.linspace(0.01, 1, M)], ids=["large", "small", "each"])
def test_the_candidates_are_the_tikhonov_minimisers(convention, multiple, alpha):
    found = learn(regularization=alpha, convention=convention).candidates
    levels = multiple * np.broadcast_to(alpha, (M,))
    for j, level in enumerate(levels):
        b = found.coefficients[j]
        assert b == pytest.approx(by_hand(KS[j], V, level), rel=1e-6, abs=1e-8)
        assert found.columns[:, j] == pytest.approx(KS[j] @ b, rel=1e-8, abs=1e-8)
        assert V - found.columns[:, j] == pytest.approx(level * b, abs=1e-9)
        assert found.columns[:, j] @ V >= 0


def test_the_first_stage_certifies_itself():
    """Any b is an upper, any r a lower bound; r = n alpha b closes the gap, at alpha v'b."""
    rng = np.random.default_rng(0)
    b = learn().candidates.coefficients[0]
    K = KS[0]

    def above(b):
        return np.sum((V - K @ b) ** 2) / N + ALPHA * b @ K @ b

    def below(r):
        return 2 / N * r @ V - r @ r / N - r @ K @ r / (ALPHA * N**2)

    assert above(b) == pytest.approx(ALPHA * V @ b, rel=1e-10)
    assert below(N * ALPHA * b) == pytest.approx(above(b), rel=1e-10)
    for _ in range(20):
        assert above(b + rng.normal(size=N)) >= above(b) >= below(rng.normal(size=N))
    x = cp.Variable(N)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(V - K @ x) / N + ALPHA * cp.quad_form(x, cp.psd_wrap(K))))
    assert solved(problem) == pytest.approx(above(b), rel=1e-6)


def test_the_scale_of_a_kernel_is_one_over_alpha():
    scaled = learn(3.0 * KS, regularization=3 * ALPHA).candidates
    assert scaled.columns == pytest.approx(learn(KS).candidates.columns, abs=1e-10)
    summed = learn(KS, regularization=N * ALPHA, convention="sum").candidates
    assert summed.columns == pytest.approx(learn(KS).candidates.columns, abs=1e-12)


@pytest.mark.parametrize("name", FILTERS)
def test_low_rank_is_read_from_a_factor_and_changes_nothing(name, monkeypatch):
    """The factor of a pivoted Cholesky, or an eigendecomposition: the same candidates to 1e-7."""
    X = points(60, d=2)
    kernels = [ko.on_columns(ko.gaussian(3.0), 0), ko.linear(), ko.on_columns(ko.polynomial(3), 1)]
    grams, v = ko.Grams.from_kernels(kernels, X), targets(60)
    one = learn(grams, v, filter=FILTERS[name])
    data = one.candidates.data
    assert all(decomposed(grams, j, data, 60 * ALPHA).values.size <= 20 for j in range(3))
    monkeypatch.setattr(candidates, "FACTOR_TOLERANCE", -1.0)
    two = learn(grams, v, filter=FILTERS[name])
    assert decomposed(grams, 0, data, 60 * ALPHA).values.size == 60
    assert one.candidates.columns == pytest.approx(two.candidates.columns, abs=1e-7)


def test_landweber_is_the_iteration():
    for steps in (1, 2, 7, 100):
        K = KS[1]
        top = np.linalg.eigvalsh(K)[-1]
        found = learn(K[None], regularization=top / (N * steps), filter=landweber).candidates
        b = np.zeros(N)
        for _ in range(steps):
            b = b + (V - K @ b) / top
        assert found.coefficients[0] == pytest.approx(b, abs=1e-8)
        closed = V - np.linalg.matrix_power(np.eye(N) - K / top, steps) @ V
        assert found.columns[:, 0] == pytest.approx(closed, abs=1e-10)


def test_iterated_tikhonov_is_the_iteration():
    K = KS[0]
    b = np.zeros(N)
    for times in (1, 2, 3):
        b = b + by_hand(K, V - K @ b, N * ALPHA)
        found = learn(K[None], filter=iterated_tikhonov(times)).candidates
        assert found.coefficients[0] == pytest.approx(b, abs=1e-10)
    assert iterated_tikhonov(1)(np.array([0.0, 2.0]), 0.3) == pytest.approx(
        tikhonov(np.array([0.0, 2.0]), 0.3)
    )


def test_cut_off_projects_on_the_large_eigenvalues():
    values, vectors = np.linalg.eigh(KS[1])
    kept = vectors[:, values >= N * ALPHA]
    found = learn(KS[1][None], filter=cut_off).candidates
    assert 0 < kept.shape[1] < N
    assert found.columns[:, 0] == pytest.approx(kept @ (kept.T @ V), abs=1e-10)


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_shrinks_and_fits_as_alpha_vanishes(name):
    eigenvalues = np.linspace(0.1, 3, 30)
    last = np.zeros(30)
    for level in (10.0, 1.0, 0.2, 0.05, 1e-6):
        shrunk = eigenvalues * FILTERS[name](eigenvalues, level)
        assert (shrunk >= last - 1e-12).all() and (shrunk <= 1 + 1e-12).all()
        last = shrunk
    assert last == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("intercept", ["none", "column"])
def test_leave_one_out_columns_are_those_of_refitting(intercept):
    found = learn(columns="leave-one-out", intercept=intercept).candidates
    for j, K in enumerate(KS):
        for i in range(N):
            others = np.delete(np.arange(N), i)
            b = by_hand(K[np.ix_(others, others)], V[others], N * ALPHA)  # with the level of all points
            assert found.columns[i, j] == pytest.approx(K[i, others] @ b, abs=1e-8)
    assert found.coefficients == pytest.approx(learn(intercept=intercept).candidates.coefficients)


def test_split_columns_are_predictions_of_held_out_points():
    held = [0, 5, 6, 19]
    strategy = learn(columns="split", held_out=held)
    trained = np.setdiff1d(np.arange(N), held)
    found = strategy.candidates
    for j, K in enumerate(KS):
        b = by_hand(K[np.ix_(trained, trained)], V[trained], trained.size * ALPHA)
        assert found.columns[:, j] == pytest.approx(K[np.ix_(held, trained)] @ b, abs=1e-8)
        assert not found.coefficients[j, held].any()
    c = strategy.solve(solver=cp.CLARABEL).weights
    assert strategy.stage.value(c) == pytest.approx(np.mean((V[held] - found.columns @ c) ** 2))
    assert (learn(columns="split").candidates.data.evaluated == np.arange(2, N, 3)).all()


@pytest.mark.parametrize("rule", ["gcv", "leave-one-out"])
def test_alpha_is_the_best_of_the_grid(rule):
    grid = np.logspace(-5, 1, 9)
    found = learn(regularization=rule, grid=grid).candidates
    for j, K in enumerate(KS):
        scores = []
        for alpha in grid:
            H = K @ np.linalg.inv(K + N * alpha * np.eye(N))
            r = V - H @ V
            if rule == "gcv":
                scores.append(r @ r / N / (1 - np.trace(H) / N) ** 2)
            else:
                scores.append(np.mean((r / (1 - np.diag(H))) ** 2))
        assert found.alpha[j] == pytest.approx(grid[np.argmin(scores)])
        assert found.coefficients[j] == pytest.approx(by_hand(K, V, N * found.alpha[j]), rel=1e-5, abs=1e-6)


def test_the_default_grid_follows_the_scale_of_the_kernel():
    one, two = (learn(scale * KS, regularization="gcv").candidates for scale in (1.0, 100.0))
    assert two.alpha == pytest.approx(100 * one.alpha)
    assert two.columns == pytest.approx(one.columns, abs=1e-7)
    summed = learn(regularization="gcv", convention="sum").candidates
    assert summed.alpha == pytest.approx(N * one.alpha)
    assert (np.diff(levels(KS[0], one.data)) < 0).all()
    assert learn(regularization="gcv", filter=landweber).candidates.columns.shape == (N, M)
