"""The linear functional strategy: invariances, predictions, memory and input."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import joblib
import numpy as np
import pytest

import kernelopt as ko
from formulations.linear_functional.method.combination import Combination
from formulations.linear_functional.method.filters import cut_off, iterated_tikhonov
from tests.every import every
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
from tests.problems import points, targets

# ----------------------------------------------------------------- invariances: Pereverzyev 4.1 to 4.3


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
    assert mixed.X @ mixed.directly("svd", 1e-12).c == pytest.approx(strategy.stage.X @ one.weights)
    scaled = Combination(4 * strategy.stage.X, V, 0.0, "free").directly("qr", 1e-12)
    assert 4 * scaled.c == pytest.approx(one.weights)


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


# -------------------------------------------------------------------------- predictions, memory, input


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


@every(
    ("options", "error", "match"),
    [
        ({"regularization": 0.0}, ko.errors.ParameterError, "regularization must be positive"),
        ({"regularization": [0.1, -1]}, ko.errors.ParameterError, "regularization must be positive"),
        ({"regularization": np.nan}, ko.errors.NotFiniteError, "regularization must be finite"),
        ({"regularization": [0.1, 0.2]}, ko.errors.ShapeError, r"one per kernel \(5\), got 2 values"),
        ({"regularization": "cv"}, ko.errors.ParameterError, "'gcv' or 'leave-one-out', got 'cv'"),
        ({"regularization": "gcv", "grid": [0.0]}, ko.errors.ParameterError, "grid must be positive"),
        ({"ridge": -1.0}, ko.errors.ParameterError, "ridge must be a non-negative"),
        ({"weights": "positive"}, ko.errors.ParameterError, "weights must be 'free'"),
        ({"columns": "loo"}, ko.errors.ParameterError, "columns must be 'training'"),
        ({"convention": "median"}, ko.errors.ParameterError, "convention must be 'mean' or 'sum'"),
        ({"intercept": True}, ko.errors.ParameterError, "intercept must be 'none'"),
        ({"filter": "tikhonov"}, ko.errors.ParameterError, "filter must be a function"),
        ({"filter": cut_off, "columns": "leave-one-out"}, ko.errors.ParameterError, "filter=tikhonov only"),
        (
            {"filter": cut_off, "regularization": "leave-one-out"},
            ko.errors.ParameterError,
            "filter=tikhonov only",
        ),
        ({"held_out": [1]}, ko.errors.ParameterError, 'belongs to columns="split"'),
        ({"columns": "split", "held_out": [25]}, ko.errors.ParameterError, r"held_out must be .* in 0..19"),
        ({"columns": "split", "held_out": [1, 1]}, ko.errors.ParameterError, "names each once"),
        ({"columns": "split", "held_out": np.arange(N)}, ko.errors.ShapeError, "points for both stages"),
        ({"v": V[:1], "columns": "leave-one-out"}, ko.errors.ShapeError, "points for both stages"),
        ({"v": [np.inf, 1]}, ko.errors.NotFiniteError, "must be finite"),
        ({"v": np.ones(N + 1)}, ko.errors.ShapeError, "at most 20 entries"),
        ({"grams": KS[:, :3]}, ko.errors.ShapeError, "shape"),
        ({"grams": KS[:0]}, ko.errors.ShapeError, "at least one kernel"),
        ({"grams": np.triu(KS)}, ko.errors.NotSymmetricError, "symmetric"),
        ({"grams": -KS}, ko.errors.NotPSDError, "positive semidefinite"),
        ({"grams": np.full((1, N, N), np.nan)}, ko.errors.NotFiniteError, "finite"),
    ],
)
def test_bad_input_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        learn(**options)


def test_bad_questions_are_refused():
    with pytest.raises(ko.errors.ParameterError, match="times must be an integer >= 1"):
        iterated_tikhonov(0)
    with pytest.raises(ko.errors.MethodError, match='weights="free"'):
        learn(weights="simplex").solve_directly()
    with pytest.raises(ko.errors.ParameterError, match="by must be 'svd' or 'qr'"):
        learn().solve_directly("cholesky")
    with pytest.raises(ko.errors.ParameterError, match="rcond must be below 1"):
        learn().solve_directly(rcond=1.0)
    with pytest.raises(ko.errors.ShapeError, match="weights must be 5 finite numbers"):
        learn().at([1.0])
