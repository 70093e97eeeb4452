"""Predictions of a solution on all points and on new ones."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.methods.cases import KS, X_ALL, N, Y, transductive
from tests.problems import points

X_NEW = points(4, seed=9)


def test_predictions_on_all_points():
    problem, grams, risk = transductive()
    solution = ko.solve(problem)
    K = grams.combine(solution.weights)
    f = solution.decision_function()
    assert f.shape == (N + 5,)
    np.testing.assert_allclose(solution.kernel, K)
    np.testing.assert_allclose(f, K[:, :N] @ solution.alpha + solution.intercept)
    hinge = np.maximum(1 - Y * f[:N], 0).sum() + solution.alpha @ K[:N, :N] @ solution.alpha / 2
    assert hinge == pytest.approx(solution.value, rel=1e-4)
    assert float(risk.value) == pytest.approx(solution.value, rel=1e-9)


def test_predictions_at_new_points():
    problem, grams, _ = transductive()
    solution = ko.solve(problem)
    cross = grams.cross(X_NEW)
    expected = np.tensordot(solution.weights, cross, 1)[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(cross), expected)
    np.testing.assert_allclose(solution.decision_function(cross[:, :, :N]), expected)
    np.testing.assert_allclose(
        solution.decision_function(grams.cross(X_ALL)), solution.decision_function(), atol=1e-9
    )


def test_weights_of_free_sign_do_not_extend_to_new_points():
    problem, grams, _ = transductive(attributes={"symmetric": False})
    solution = ko.solve(problem)
    assert solution.decision_function().shape == (N + 5,)
    with pytest.raises(ko.InputError, match=r"non-negative.*among the N"):
        solution.decision_function(grams.cross(X_NEW))


def test_a_psd_variable_does_not_extend_to_new_points():
    K = cp.Variable((N, N), PSD=True)
    solution = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, Y, ko.hinge())), [cp.trace(K) <= N]))
    assert solution.weights is None
    np.testing.assert_allclose(solution.kernel, K.value)
    with pytest.raises(ko.InputError, match="new points"):
        solution.decision_function(np.zeros((1, 2, N)))


def test_tau_is_reported_and_left_out_of_predictions():
    problem, grams, _ = transductive(ridge=True)
    solution = ko.solve(problem)
    (tau,) = [v for v in problem.variables() if v.name() == "tau"]
    assert solution.tau == pytest.approx(float(tau.value)) and solution.tau >= 0.1 - 1e-6
    assert solution.weights.shape == (3,)
    K = grams.combine(solution.weights)
    np.testing.assert_allclose(solution.kernel, K)
    f = K[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), f)
    cross = np.tensordot(solution.weights, grams.cross(X_NEW), 1)[:, :N] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(grams.cross(X_NEW)), cross)


def test_a_list_of_kernels_predicts_with_all_of_them():
    problem = cp.Problem(cp.Minimize(ko.risk(list(KS + np.eye(N)), Y, ko.hinge(), norm=1.5)))
    solution = ko.solve(problem)
    assert solution.weights.shape == (3,)
    f = np.tensordot(solution.weights, KS + np.eye(N), 1) @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), f)
