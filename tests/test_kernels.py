"""Base kernels against hand-written formulas, their algebra, ranks and error messages."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelopt.errors import InputError, NotFiniteError, ParameterError, ShapeError
from kernelopt.kernels import (
    Kernel,
    empirical_map,
    gaussian,
    identity,
    laplacian,
    linear,
    normalized,
    on_columns,
    per_feature,
    polynomial,
)
from kernelopt.testing import check_kernel
from tests.every import every


def dot(x, z):
    return sum(a * b for a, b in zip(x, z, strict=True))


def rbf(x, z, width=1.0):
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * width**2))


def decay(x, z, width):
    return math.exp(-sum(abs(a - b) for a, b in zip(x, z, strict=True)) / width)


def cosine(x, z):
    """The normalised (x'z + 1)^2."""
    return (dot(x, z) + 1) ** 2 / ((dot(x, x) + 1) * (dot(z, z) + 1))


# kernel -> the same function of two points, written by hand
FORMULAS = [
    (gaussian(0.7), lambda x, z: rbf(x, z, 0.7)),
    (laplacian(0.7), lambda x, z: decay(x, z, 0.7)),
    (polynomial(), lambda x, z: (dot(x, z) + 1) ** 2),
    (polynomial(3, 0.5), lambda x, z: (dot(x, z) + 0.5) ** 3),
    (polynomial(2, 0.0), lambda x, z: dot(x, z) ** 2),
    (linear(), dot),
    (2 * linear(), lambda x, z: 2 * dot(x, z)),
    (linear() + gaussian(1.0), lambda x, z: dot(x, z) + rbf(x, z)),
    (linear() * gaussian(1.0), lambda x, z: dot(x, z) * rbf(x, z)),
    ((linear() + gaussian(1.0)) * linear() * 3, lambda x, z: 3 * (dot(x, z) + rbf(x, z)) * dot(x, z)),
    (normalized(polynomial()), cosine),
    (on_columns(gaussian(1.0), [0, 1]), lambda x, z: rbf(x[:2], z[:2])),
    (on_columns(linear() + gaussian(1.0), 1), lambda x, z: x[1] * z[1] + rbf(x[1:2], z[1:2])),
]
KERNELS = [kernel for kernel, _ in FORMULAS] + [
    identity(),
    identity() + linear(),
    normalized(identity() + linear()),
]


def points(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=[repr(kernel) for kernel, _ in FORMULAS])
def test_kernel_is_its_formula(kernel, formula):
    X, Z = points(6), points(4, seed=1)
    np.testing.assert_allclose(kernel(X), [[formula(x, z) for z in X] for x in X], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(kernel(X, Z), [[formula(x, z) for z in Z] for x in X], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(n=st.integers(1, 8), d=st.integers(2, 4), seed=st.integers(0, 99), copies=st.integers(1, 2))
def test_gram_is_symmetric_psd_and_its_rank_is_bounded(kernel, n, d, seed, copies):
    X = np.repeat(points(n, d, seed), copies, axis=0)
    K = kernel(X)
    assert np.array_equal(K, K.T) and np.linalg.eigvalsh(K)[0] >= -1e-10 * np.abs(K).max()
    assert np.linalg.matrix_rank(K) <= kernel.rank(X) <= len(X)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-12)


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in FORMULAS], ids=repr)
def test_kernels_pass_the_checks_of_a_kernel(kernel):
    """To rounding the blocks of a joint matrix, and all that is checked, at few and at equal points too."""
    X, Z = points(6), points(4, seed=1)
    np.testing.assert_allclose(kernel(X, Z), kernel(np.vstack([X, Z]))[:6, 6:], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(kernel(Z, X), kernel(X, Z).T, rtol=1e-11, atol=1e-14)
    for X in (points(12, 3), np.repeat(points(5, 2), 2, axis=0), points(4, 4)):
        check_kernel(kernel, X)


def test_identity_knows_points_by_row():
    X = np.ones((3, 2))
    assert (identity()(X) == np.eye(3)).all()
    assert (identity()(X, X) == np.zeros((3, 3))).all()
    assert identity()(X, X[:1]).shape == (3, 1)
    assert identity().rank(X) == 3
    # as a ridge: it changes the diagonal of the training points and nothing elsewhere
    assert (2 * identity() + linear())(X, X).tolist() == (X @ X.T).tolist()


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (linear(), 3),
        (polynomial(2, 1.0), 10),  # 1, x_i, x_i x_j: 1 + 3 + 6 = comb(5, 2)
        (polynomial(2, 0.0), 6),  # x_i x_j only: comb(4, 2)
        (polynomial(9, 1.0), 40),
        (gaussian(1.0), 40),
        (linear() + polynomial(2, 0.0), 9),
        (linear() * linear(), 9),
        (5.0 * linear(), 3),
        (normalized(linear()), 3),
        (on_columns(linear(), [0, 2]), 2),
        (identity() + linear(), 40),
    ],
    ids=repr,
)
def test_rank_bound_by_hand(kernel, expected):
    assert kernel.rank(points(40)) == expected


def test_diagonal_is_whole_beyond_one_block():
    X = points(150)
    np.testing.assert_allclose(polynomial(3).diagonal(X), (np.sum(X**2, axis=1) + 1) ** 3, rtol=1e-12)


def test_radial_kernels_keep_their_digits_far_from_the_origin():
    X = np.array([[0.0], [0.5], [2.0]])
    np.testing.assert_allclose(gaussian(1.0)(X + 2.0**30), gaussian(1.0)(X), rtol=1e-12)
    np.testing.assert_allclose(laplacian(1.0)(X + 2.0**30), laplacian(1.0)(X), rtol=1e-12)


def test_limits_of_the_width():
    X = points(5)
    np.testing.assert_allclose(gaussian(1e-8)(X), np.eye(5))
    np.testing.assert_allclose(laplacian(1e12)(X), np.ones((5, 5)), atol=1e-10)


def test_normalized_has_unit_diagonal_and_keeps_the_gaussian():
    X = points(5)
    assert (np.diag(normalized(linear())(X)) == 1).all()
    assert (normalized(linear()).diagonal(X) == 1).all()
    np.testing.assert_allclose(normalized(3 * gaussian(1.0))(X), gaussian(1.0)(X), rtol=1e-12)


def test_per_feature_groups_and_columns():
    X = points(5, 3)
    weak = per_feature([gaussian(1.0), linear()], d=3)
    assert isinstance(weak, tuple) and len(weak) == 6
    assert weak.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert weak.groups.dtype.kind == "i"
    np.testing.assert_array_equal(weak[4](X), gaussian(1.0)(X[:, 2:]))
    np.testing.assert_array_equal(weak[3](X), linear()(X[:, 1:2]))
    assert per_feature(linear(), 3).groups.tolist() == [0, 1, 2]
    np.testing.assert_allclose(sum(k(X) for k in per_feature(linear(), 3)), X @ X.T, rtol=1e-12, atol=1e-14)


def test_algebra_is_flat_and_reads_well():
    many = reduce(add, [linear()] * 3000)
    assert many.rank(points(40)) == 40
    np.testing.assert_allclose(many(points(2)), 3000 * linear()(points(2)), rtol=1e-10)
    kernel = 2.0 * (gaussian(1.0) + linear()) * polynomial()
    assert repr(kernel) == "2.0 * (gaussian(width=1.0) + linear()) * polynomial(degree=2, offset=1.0)"
    assert repr(linear() * np.float64(2) * np.int64(3)) == "6.0 * linear()"
    assert np.float64(2) * linear() == linear() * 2
    assert gaussian(1) == gaussian(1.0) and len({gaussian(1.0), gaussian(1.0), linear()}) == 2
    assert (
        repr(normalized(on_columns(linear(), 2)))
        == "normalized(kernel=on_columns(kernel=linear(), columns=(2,)))"
    )


def test_many_columns_are_printed_short():
    few = on_columns(linear(), range(10))
    assert repr(few) == "on_columns(kernel=linear(), columns=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))"
    many = on_columns(linear(), range(3, 203))
    assert repr(many) == str(many) == "on_columns(kernel=linear(), columns=[200 values, 3 to 202])"
    assert many == on_columns(linear(), range(3, 203)) != on_columns(linear(), range(2, 202))


def test_a_kernel_of_ones_own_is_one_method():
    class minimum(Kernel):
        def gram(self, X, Z):
            return np.minimum(X, (X if Z is None else Z).T)

    X = np.array([[1.0], [2.0]])
    assert minimum()(X).tolist() == [[1.0, 1.0], [1.0, 2.0]]
    assert (minimum() + linear()).diagonal(X).tolist() == [2.0, 6.0]
    assert minimum().rank(X) == 2


def test_empirical_map():
    S = np.array([[1.0, -2.0], [0.0, 3.0], [1.0, 1.0]])
    new = np.array([[2.0, 1.0]])
    assert empirical_map(S).tolist() == [[5.0, -6.0, -1.0], [-6.0, 9.0, 3.0], [-1.0, 3.0, 2.0]]
    assert empirical_map(S, new).tolist() == [[0.0, 3.0, 3.0]]
    stack = np.stack([S, 2 * S])
    assert empirical_map(stack).shape == (2, 3, 3)
    assert (empirical_map(stack)[1] == 4 * empirical_map(S)).all()
    assert (empirical_map(stack, np.stack([new, new]))[1] == 2 * empirical_map(S, new)).all()
    K = empirical_map(np.random.default_rng(0).normal(size=(3, 20, 7)))
    assert (K == K.swapaxes(1, 2)).all()


X23 = [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]


@every(
    ("call", "error", "remedy"),
    [
        (lambda: linear()([1.0, 2.0]), ShapeError, r"got \(2,\).*X\.reshape\(-1, 1\) makes one column"),
        (
            lambda: linear()(X23, [1.0, 2.0, 3.0]),
            ShapeError,
            r"Z must have shape \(points, 3\).*Z\.reshape\(1, -1\)",
        ),
        (lambda: linear()(X23, [[1.0, 2.0]]), ShapeError, r"Z must have shape \(points, 3\).*got \(1, 2\)"),
        (lambda: linear()(np.zeros((0, 3))), ShapeError, r"not empty, got \(0, 3\)"),
        (lambda: linear().diagonal(np.zeros((2, 2, 2))), ShapeError, "Put points in rows"),
        (lambda: linear().rank([1.0]), ShapeError, "reshape"),
        (lambda: linear()([["a"]]), ShapeError, "Convert it"),
        (lambda: linear()([[np.nan]]), NotFiniteError, "Impute or drop"),
        (
            lambda: polynomial(9)([[1.0], [1e200]]),
            NotFiniteError,
            r"polynomial.*index \[0, 1\].*Scale the columns",
        ),
        (lambda: polynomial(9).diagonal([[1.0], [1e200]]), NotFiniteError, r"index \[1\].*Scale the columns"),
        (lambda: gaussian(1e-320)([[1.0], [2.0], [3.0]]), NotFiniteError, "larger width"),
        (
            lambda: normalized(polynomial(9))([[1.0], [1e200]]),
            NotFiniteError,
            r"index \[1\].*Scale the columns",
        ),
        (lambda: laplacian(1e-320).diagonal([[1.0], [2.0]]), NotFiniteError, "larger width"),
        (lambda: gaussian(0.0), ParameterError, "width must be a positive finite number, got 0"),
        (lambda: laplacian(-1.0), ParameterError, "width must be .* Choose a value"),
        (lambda: polynomial(0), ParameterError, "degree must be an integer >= 1, got 0"),
        (lambda: polynomial(1.5), ParameterError, "degree must be an integer >= 1, got 1.5"),
        (lambda: polynomial(True), ParameterError, "degree must be an integer"),
        (lambda: polynomial(2, -1.0), ParameterError, "offset must be a non-negative finite number, got -1"),
        (lambda: 0 * linear(), ParameterError, "the factor of a kernel must be a positive"),
        (lambda: linear() * -2.0, ParameterError, "got -2"),
        (lambda: (linear() * 1e-200) * (linear() * 1e-200), ParameterError, "product of the factors"),
        (
            lambda: normalized(linear())(X23),
            InputError,
            r"linear\(\) must be positive.*X\[1\].*Drop that point",
        ),
        (lambda: normalized(linear())(X23[:1], X23), InputError, r"Z\[1\]"),
        (lambda: normalized(linear()).diagonal(X23), InputError, r"X\[1\].*polynomial\(1, offset=1.0\)"),
        (lambda: normalized(gaussian), ParameterError, "must be a Kernel such as gaussian"),
        (lambda: on_columns(np.dot, 0), ParameterError, "Subclass kernelopt.kernels.Kernel"),
        (lambda: on_columns(linear(), -1), ParameterError, "a column must be an integer >= 0, got -1"),
        (lambda: on_columns(linear(), [0.5]), ParameterError, "a column must be an integer >= 0, got 0.5"),
        (lambda: on_columns(linear(), [0, 3])(X23), ShapeError, r"columns=\(0, 3\).*Choose from 0 to 2"),
        (lambda: on_columns(linear(), 3).rank(X23), ShapeError, "Choose from 0 to 2"),
        (lambda: on_columns(linear(), [])(X23), ShapeError, "must see columns"),
        (lambda: per_feature(linear(), 0), ParameterError, "d must be an integer >= 1, got 0"),
        (lambda: per_feature([linear], 2), ParameterError, "must be a Kernel"),
        (lambda: empirical_map([1.0, 2.0]), ShapeError, "2 or 3 dimension"),
        (lambda: empirical_map(X23, [[1.0]]), ShapeError, r"got \(1, 1\).*same references"),
        (lambda: empirical_map([X23, X23], X23), ShapeError, "number of points only"),
        (lambda: empirical_map([[np.inf]]), NotFiniteError, "S must be finite"),
    ],
)
def test_errors_say_what_to_do(call, error, remedy):
    with pytest.raises(error, match=remedy):
        call()


@pytest.mark.parametrize("other", ["a", np.ones(2), None])
def test_other_operands_are_type_errors(other):
    for call in (lambda: linear() + other, lambda: linear() * other, lambda: other * linear()):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="unsupported operand"):
        linear() + 1
