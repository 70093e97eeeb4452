"""Triplets from labels, distances and rankings, and their scores."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelopt.comparisons import as_triplets, comparisons, sample_triplets, triplet_score
from kernelopt.errors import LabelError, NotFiniteError, NotSymmetricError, ParameterError, ShapeError
from tests.comparisons.cases import random_triplets
from tests.every import every

# ----------------------------------------------------------------------------------------- as_triplets


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, float, int])
def test_integers_of_any_kind(dtype):
    rows = as_triplets(np.array([[0, 1, 2], [3, 2, 1]], dtype=dtype), 4)
    assert rows.dtype == np.intp
    assert rows.tolist() == [[0, 1, 2], [3, 2, 1]]


def test_the_checked_triplets_are_a_copy():
    rows = np.array([[0, 1, 2]])
    as_triplets(rows)[:] = 5
    assert rows.tolist() == [[0, 1, 2]]


@every(
    ("triplets", "n_points", "error", "message"),
    [
        ([0, 1, 2], None, ShapeError, r"shape \(T, 3\) with T >= 1, got \(3,\).*\[\[i, j, k\]\]"),
        ([[0, 1]], None, ShapeError, r"got \(1, 2\)"),
        ([], None, ShapeError, r"T >= 1, got \(0,\)"),
        (np.empty((0, 3), int), None, ShapeError, r"T >= 1, got \(0, 3\)"),
        ([[0, 1, 2], [0, 1]], None, ShapeError, r"got a list: .*Give every row three points"),
        ([["a", "b", "c"]], None, ShapeError, r"integers, got <U1, row 0 is \(a, b, c\).*dtype=int"),
        ([[True, False, True]], None, ShapeError, "integers, got bool"),
        ([[0, 1, None]], None, ShapeError, "integers, got object"),
        (
            [[0, 1, 2], [0, np.nan, 2]],
            None,
            NotFiniteError,
            r"finite, got \(0.0, nan, 2.0\) in row 1 \(1 such row\)",
        ),
        ([[np.inf, 1, 2]], None, NotFiniteError, r"\(inf, 1.0, 2.0\) in row 0.*Drop"),
        (
            [[0, 1, 2.5]] * 2,
            None,
            ParameterError,
            r"whole numbers, got \(0.0, 1.0, 2.5\) in row 0 \(2 such rows\)",
        ),
        (
            [[0, 1, 2], [0, -1, 2]],
            None,
            ParameterError,
            r"0\.\.9007199254740991, got \(0, -1, 2\) in row 1.*from zero",
        ),
        ([[0, 1, 2], [4, 1, 3]], 4, ParameterError, r"indices in 0\.\.3, got \(4, 1, 3\) in row 1"),
        ([[0.0, 1.0, 1e300]], None, ParameterError, r"1e\+300\) in row 0"),
        (np.array([[0, 1, 2**64 - 1]], np.uint64), None, ParameterError, r"18446744073709551615\) in row 0"),
        (
            [[0, 1, 2], [1, 1, 2]],
            None,
            ParameterError,
            r"different points each, got \(1, 1, 2\) in row 1 .*Drop it",
        ),
        ([[0, 2, 2]], None, ParameterError, r"got \(0, 2, 2\)"),
        ([[2, 0, 2]], None, ParameterError, r"got \(2, 0, 2\)"),
        ([[0, 1, 2]], 0, ParameterError, "n_points must be an integer of at least 1, got 0"),
        ([[0, 1, 2]], 3.0, ParameterError, "n_points must be an integer .* got 3.0"),
        ([[0, 1, 2]], True, ParameterError, "n_points must be an integer .* got True"),
    ],
)
def test_bad_triplets_are_named(triplets, n_points, error, message):
    for call in (as_triplets, comparisons):
        with pytest.raises(error, match=message):
            call(triplets, n_points)


@pytest.mark.parametrize("cycle", [[2], [-1], [0.0], "a"])
def test_describe_refuses_other_rows(cycle):
    with pytest.raises(ParameterError, match=r"row numbers in 0\.\.1, .*any rows of the triplets"):
        comparisons([[0, 1, 2], [1, 2, 0]]).describe(cycle)


# ------------------------------------------------------------------------------------- sample_triplets


def valid(y):
    """Every ordered triplet that labels allow."""
    return [(i, j, k) for i, j, k in permutations(range(len(y)), 3) if y[i] == y[j] != y[k]]


@pytest.mark.parametrize("y", [[0, 1, 0, 1, 1], [2, 0, 1, 1, 2, 1], [0, 0, 5]])
def test_triplets_from_labels_are_uniform(y):
    draws = 40_000
    counts = Counter(map(tuple, sample_triplets(y, draws, random_state=0).tolist()))
    expected = valid(y)
    assert set(counts) == set(expected)
    p = 1 / len(expected)
    assert max(abs(counts[t] - draws * p) for t in expected) < 4.5 * np.sqrt(draws * p * (1 - p))


def test_both_anchors_follow_each_other():
    y = np.repeat([0, 1, 2], [5, 3, 1])
    one, both = (sample_triplets(y, 50, random_state=3, both_anchors=b) for b in (False, True))
    assert one.shape == (50, 3) and both.shape == (100, 3)
    assert (both[::2] == one).all()
    assert (both[1::2] == one[:, [1, 0, 2]]).all()
    assert one.dtype == both.dtype == np.intp
    assert one.flags.c_contiguous and both.flags.c_contiguous


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b", "a", "c"],
        np.array(["b", "a", "b", "a", "c"], dtype=object),
        [0.5, -1.0, 0.5, -1.0, np.inf],
        np.array([7, 3, 7, 3, 9], dtype=np.uint8),
    ],
)
def test_labels_of_any_type(y):
    np.testing.assert_array_equal(
        sample_triplets(y, 30, random_state=0), sample_triplets([1, 0, 1, 0, 2], 30, random_state=0)
    )
    assert set(map(tuple, sample_triplets(y, 30, random_state=0).tolist())) <= set(valid(y))


def test_two_truth_values_are_labels():
    assert set(map(tuple, sample_triplets([True, False, True], 20).tolist())) == {(0, 2, 1), (2, 0, 1)}


def test_random_states():
    y = [0, 0, 1, 1, 1]
    rng = np.random.default_rng(5)
    first, second = sample_triplets(y, 40, rng), sample_triplets(y, 40, rng)
    np.testing.assert_array_equal(first, sample_triplets(y, 40, 5))
    np.testing.assert_array_equal(first, sample_triplets(y, 40, np.int64(5)))
    assert (first != second).any()
    assert (sample_triplets(y, 40) != sample_triplets(y, 40)).any()


@given(st.lists(st.integers(0, 2), min_size=3, max_size=9), st.integers(0, 99))
def test_labels_never_contradict_themselves(y, seed):
    if not valid(y):
        with pytest.raises(LabelError):
            sample_triplets(y, 1)
        return
    compared = comparisons(sample_triplets(y, 60, seed, both_anchors=True), len(y))
    assert compared.consistent
    same = np.equal.outer(y, y).astype(float)
    assert triplet_score(same, compared.triplets) == 1.0


@every(
    ("arguments", "error", "message"),
    [
        (([1, 1, 1], 5), LabelError, r"got 1 class\(es\) on 3 point\(s\), the largest of 3.*median"),
        (([1, 2, 3, 4], 5), LabelError, r"got 4 class\(es\) on 4 point\(s\), the largest of 1.*threshold"),
        (([0, 1], 5), LabelError, r"2 class\(es\) on 2 point\(s\)"),
        (([], 5), LabelError, r"0 class\(es\) on 0 point\(s\), the largest of 0"),
        (([[0, 0, 1]], 5), ShapeError, r"one dimension, got shape \(1, 3\)"),
        (([0, 0, np.nan], 5), NotFiniteError, "got .*nan.* at index 2. Drop"),
        ((np.array(["a", "a", 1], dtype=object), 5), LabelError, "one type, got a mixture: .*astype"),
        ((np.array(["a", "a", None], dtype=object), 5), NotFiniteError, "got None at index 2. Drop"),
        (([0, 0, 1], 0), ParameterError, "size must be an integer of at least 1, got 0"),
        (([0, 0, 1], 2.0), ParameterError, "size must be an integer"),
        (([0, 0, 1], 5, -1), ParameterError, "random_state must be None, an integer .* got -1"),
        (([0, 0, 1], 5, "seed"), ParameterError, r"random_state .* got 'seed'.*default_rng\(seed\)"),
        (([0, 0, 1], 5, np.random), ParameterError, "random_state"),
    ],
)
def test_bad_draws_say_what_to_do(arguments, error, message):
    with pytest.raises(error, match=message):
        sample_triplets(*arguments)


# --------------------------------------------------------------------------------------- triplet_score


@pytest.mark.parametrize("seed", range(3))
def test_the_score_counts_respected_triplets(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(7, 7))
    K, triplets = A + A.T, random_triplets(7, 60, rng)
    D = np.array([[K[a, a] + K[b, b] - 2 * K[a, b] for b in range(7)] for a in range(7)])
    assert triplet_score(K, triplets) == sum(K[i, j] > K[i, k] for i, j, k in triplets) / 60
    assert triplet_score(K, triplets, distance=True) == sum(D[i, j] < D[i, k] for i, j, k in triplets) / 60
    constant = K - np.diag(np.diag(K))
    assert triplet_score(constant, triplets) == triplet_score(constant, triplets, distance=True)
    assert triplet_score(K, triplets) + triplet_score(-K, triplets) == pytest.approx(1.0)
    assert triplet_score(3.0 * K, triplets) == triplet_score(K, triplets)


def test_ties_are_failures():
    triplets = [[0, 1, 2], [1, 0, 2]]
    for K in (np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)):
        assert triplet_score(K, triplets) == triplet_score(K, triplets, distance=True) == 0.0
    assert triplet_score(np.eye(3)[::-1], [[0, 2, 1], [0, 1, 2]]) == 0.5
    assert isinstance(triplet_score(np.eye(3), triplets), float)


@pytest.mark.parametrize(
    ("K", "triplets", "error", "message"),
    [
        (np.ones((2, 3)), [[0, 1, 2]], ShapeError, r"K must be square, got shape \(2, 3\)"),
        (np.arange(9.0).reshape(3, 3), [[0, 1, 2]], NotSymmetricError, "K must be symmetric"),
        (np.full((3, 3), np.nan), [[0, 1, 2]], NotFiniteError, "K must be finite"),
        (np.eye(3), [[0, 1, 3]], ParameterError, r"indices in 0\.\.2, got \(0, 1, 3\)"),
        (np.eye(3), [], ShapeError, "T >= 1"),
    ],
)
def test_the_score_refuses_bad_input(K, triplets, error, message):
    with pytest.raises(error, match=message):
        triplet_score(K, triplets)
