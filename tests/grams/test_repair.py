"""Repairs of indefinite matrices against their definitions, and the same maps at new points."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelopt as ko
from kernelopt.errors import InputError, NotSymmetricError, ParameterError, ShapeError
from kernelopt.numerics.nearest_correlation import nearest_correlation
from tests.every import every
from tests.problems import solved

HOWS = ("clip", "flip", "shift", "nearest")


def similarity(n, seed, scale=1.0):
    """An indefinite matrix with a positive diagonal."""
    A = np.random.default_rng(seed).normal(size=(n, n))
    S = (A + A.T) / 2
    np.fill_diagonal(S, np.random.default_rng(seed + 1).uniform(0.5, 2.0, n))
    return scale * S


def dykstra(K, rounds=4000):
    """Higham's (2002) algorithm 3.3 with W = I, for the diagonal of K."""
    Y, correction = K.copy(), np.zeros_like(K)
    for _ in range(rounds):
        R = Y - correction
        lam, V = np.linalg.eigh(R)
        X = (V * np.maximum(lam, 0)) @ V.T
        correction = X - R
        Y = X.copy()
        np.fill_diagonal(Y, K.diagonal())
    return Y


@settings(max_examples=25, deadline=None, derandomize=True)
@given(n=st.integers(2, 12), seed=st.integers(0, 999), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_repairs_are_semidefinite_consistent_and_idempotent(n, seed, scale):
    S = np.stack([similarity(n, seed, scale), similarity(n, seed + 500, scale)])
    size = np.abs(S).max()
    for how in HOWS:
        repaired = ko.repair(S, how)
        K = np.array(repaired.grams)
        assert (np.linalg.eigvalsh(K)[:, 0] >= -1e-13 * n * size).all()
        rows = repaired.transform(S)
        if how == "shift":
            rows = np.where(np.eye(n), K, rows)
        close = 1e-8 if how == "nearest" else 1e-12
        np.testing.assert_allclose(rows, K, atol=close * n * size)
        np.testing.assert_allclose(ko.repair(K, how).grams, K, atol=1e-12 * n * size)
        np.testing.assert_allclose(
            repaired.transform(S[:, :1]), repaired.transform(S)[:, :1], atol=1e-13 * size
        )
        relative = np.linalg.norm(K - S, axis=(1, 2)) / np.linalg.norm(S, axis=(1, 2))
        np.testing.assert_allclose(repaired.change, relative, rtol=1e-9)
        lam = np.linalg.eigvalsh(S)
        np.testing.assert_allclose(
            repaired.smallest, np.minimum(lam[:, 0] / np.abs(lam).max(axis=1), 1), rtol=1e-9
        )


@every("how", HOWS)
def test_units_do_not_matter(how):
    one = ko.repair(similarity(6, 4), how)
    for factor in (2.0**-700, 2.0**700):
        scaled = ko.repair(similarity(6, 4, factor), how)
        np.testing.assert_array_equal(scaled.gram, factor * one.gram)
        np.testing.assert_array_equal(scaled.transform(np.eye(6)), one.transform(np.eye(6)))
        assert scaled.change == one.change


def test_each_repair_is_what_it_is_called():
    S = similarity(9, 3)
    lam = np.linalg.eigvalsh(S)
    flipped, shifted, near = (ko.repair(S, how).gram for how in ("flip", "shift", "nearest"))
    np.testing.assert_allclose(flipped @ flipped, S @ S, atol=1e-12)
    np.testing.assert_array_equal(shifted[~np.eye(9, dtype=bool)], S[~np.eye(9, dtype=bool)])
    assert np.linalg.eigvalsh(shifted)[0] == pytest.approx(0, abs=1e-13)
    np.testing.assert_array_equal(near.diagonal(), S.diagonal())
    X = cp.Variable((9, 9), PSD=True)
    for how, kept in (("clip", []), ("nearest", [cp.diag(X) == S.diagonal()])):
        problem = cp.Problem(cp.Minimize(cp.norm(X - S, "fro")), kept)
        assert np.linalg.norm(ko.repair(S, how).gram - S) == pytest.approx(solved(problem), rel=1e-6)
    assert np.linalg.norm(ko.repair(S, "clip").gram - S) ** 2 == pytest.approx((lam[lam < 0] ** 2).sum())


def test_the_nearest_matrix_with_the_diagonal_is_that_of_alternating_projections():
    higham = np.array([[2.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]]) - np.eye(4)
    for K in (higham, similarity(8, 5), 1e6 * similarity(5, 8)):
        X, gap = nearest_correlation(K, K.diagonal())
        assert gap < 1e-13 and np.linalg.eigvalsh(X)[0] >= -1e-13 * np.abs(K).max()
        np.testing.assert_allclose(X, dykstra(K), atol=1e-8 * np.abs(K).max())


def test_three_variables_by_hand():
    # K = [[1, 1, 0], [1, 1, 1], [0, 1, 1]]: Higham (2002), section 4, gives 0.7607 and 0.1573
    K = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])
    X = ko.repair(K, "nearest").gram
    assert X[np.triu_indices(3, 1)] == pytest.approx([0.7607, 0.1573, 0.7607], abs=5e-5)


def test_a_point_without_similarity_to_itself_has_none_to_others():
    K = np.array([[0.0, 0.5, 0], [0.5, 1, 2], [0, 2, 1]])
    assert ko.repair(K, "nearest").gram == pytest.approx(np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1]]))
    assert not ko.repair([[0.0, 1], [1, 0]], "nearest").gram.any()


@every("how", HOWS)
def test_a_semidefinite_matrix_is_kept_to_the_last_bit_and_so_are_its_new_rows(how):
    B = np.random.default_rng(0).normal(size=(6, 6))
    for K in (B @ B.T, B[:, :2] @ B[:, :2].T, np.zeros((6, 6)), np.ones((6, 6))):
        K = (K + K.T) / 2
        repaired = ko.repair(K, how)
        np.testing.assert_allclose(repaired.gram, K, atol=1e-13)
        np.testing.assert_array_equal(repaired.transform(B), B)
    assert (ko.repair(np.eye(6), how).gram == np.eye(6)).all()


def test_the_maps_of_clip_and_flip_enlarge_nothing():
    S, rows = similarity(10, 1), np.random.default_rng(2).normal(size=(4, 10))
    lengths = np.linalg.norm(rows, axis=1)
    assert (np.linalg.norm(ko.repair(S, "clip").transform(rows), axis=1) <= lengths).all()
    np.testing.assert_allclose(np.linalg.norm(ko.repair(S, "flip").transform(rows), axis=1), lengths)
    np.testing.assert_array_equal(ko.repair(S, "shift").transform(rows), rows)


def test_a_repaired_stack_is_learned_with_and_predicts():
    S = np.stack([similarity(16, 0), similarity(16, 1)])
    y = np.where(np.arange(16) < 8, 1.0, -1.0)
    repaired = ko.repair(ko.Grams.from_array(S, ["left", "right"]), "clip")
    assert repaired.grams.names == ("left", "right")
    mu = cp.Variable(2, nonneg=True)
    risk = ko.risk(ko.combine(mu, repaired.grams), y, ko.hinge(1.0))
    solution = ko.solve(cp.Problem(cp.Minimize(risk), ko.lp_ball(mu, 1)))
    scores = solution.decision_function(repaired.transform(S[:, 4:9]))
    np.testing.assert_allclose(scores, solution.decision_function()[4:9], atol=1e-8)


def test_a_singular_matrix_has_no_map_to_the_nearest_one():
    # of rank two, with eigenvalues 9, 0 and -2; its null vector (1, -4, 1) is none of the nearest matrix
    S = np.outer([2.0, 1, 2], [2, 1, 2]) - np.outer([1, 0, -1], [1, 0, -1])
    for how in ("clip", "flip"):
        np.testing.assert_allclose(ko.repair(S, how).transform(S), ko.repair(S, how).gram, atol=1e-14)
    repaired = ko.repair(S, "nearest")
    assert np.abs(repaired.gram @ [1, -4, 1]).max() > 0.1
    with pytest.raises(InputError, match=r"cross has no repaired rows after .nearest.*got K\[0\]"):
        repaired.transform(S)


def test_wrong_arguments_are_refused():
    S = similarity(4, 0)
    with pytest.raises(ParameterError, match="how must be"):
        ko.repair(S, "denoise")
    with pytest.raises(NotSymmetricError, match="grams"):
        ko.repair(S + np.triu(np.ones((4, 4)), 1), "clip")
    with pytest.raises(
        InputError, match=r'negative diagonal entries for "nearest".*got one at \(2, 2\) of K\[0\]'
    ):
        ko.repair(np.diag([1.0, 1, -1]), "nearest")
    repaired = ko.repair(np.stack([S, S]), "clip")
    for cross in (S, S[None], np.ones((2, 3, 5))):
        with pytest.raises(ShapeError, match="cross must have shape"):
            repaired.transform(cross)
    with pytest.raises(InputError, match="gram is the one repaired matrix, got 2"):
        _ = repaired.gram
    assert ko.repair(S, "clip").transform(S[None]).shape == (1, 4, 4)
    assert "2 kernels on 4 points, changed by up to" in repr(repaired)
