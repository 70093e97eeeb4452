"""The coefficients of affine expressions, which are read from sums and products without gradients."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from kernelopt.running import Call
from kernelopt.structure.affine import affine

RNG = np.random.default_rng(0)
A, B = RNG.integers(-4, 5, (2, 3, 2)).astype(float)
C = np.array([1.0, -2.0, 0.0])


def x():
    return cp.Variable(3, name="x", nonneg=True)


def X():
    return cp.Variable((3, 2), name="X")


EXPRESSIONS = {
    "variable": lambda x, X: X,
    "constant": lambda x, X: cp.Constant(A),
    "sum": lambda x, X: cp.sum(x) - 1,
    "difference of matrices": lambda x, X: X - A,
    "a variable twice": lambda x, X: cp.sum(x) + (x - C)[1] - cp.sum(C - x) + cp.sum(X),
    "cancelling": lambda x, X: x - x + C,
    "negative of a sum": lambda x, X: -(x + C + 2 * x),
    "row": lambda x, X: C @ x - 4,
    "matrix": lambda x, X: A.T @ x + A[0],
    "elementwise product": lambda x, X: cp.multiply(C, x) + C,
    "sparse matrix": lambda x, X: sp.csc_array(A).T @ x - A[0],
    "matrices": lambda x, X: A.T @ X + np.eye(2),
    "promoted": lambda x, X: x + cp.sum(X),
    "sum of rows": lambda x, X: cp.sum(X - A, axis=1) - x,
    "sum of a column": lambda x, X: cp.sum(X[:, :1] + A[:, :1], axis=0) + 1,
    "parameter": lambda x, X: cp.Parameter(3, value=C) @ x + cp.Parameter(value=2.0),
    "of two shapes": lambda x, X: X[:1] + cp.reshape(x, (3, 1), order="F"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_coefficients_give_the_values(name):
    """Small integers, so that no operation is rounded."""
    variables = x(), X()
    expression = EXPRESSIONS[name](*variables)
    read = affine(expression)
    assert all(v.value is None for v in variables)
    assert set(read.matrices) == set(expression.variables())
    for k in range(4):
        point = {
            v.id: RNG.integers(0, 9, v.shape).astype(float) if k else np.zeros(v.shape) for v in variables
        }
        for v in variables:
            v.value = point[v.id]
        assert read.constant.shape == (expression.size,)
        assert all(M.shape == (expression.size, v.size) for v, M in read.matrices.items())
        np.testing.assert_array_equal(read.at(point), np.ravel(expression.value, order="F"))


def test_expressions_that_are_not_affine_are_not_read():
    z = cp.Variable(3)
    for expression in (cp.sum(cp.square(z)) - 1, -cp.norm1(z), cp.sum(cp.abs(z) + z), cp.maximum(z, 0) - z):
        assert affine(expression) is None
    assert affine(z + cp.Parameter(3)) is None  # without a value


def test_a_matrix_that_takes_longer_to_read_than_is_left_is_not_read(monkeypatch):
    monkeypatch.setattr("kernelopt.structure.affine.READING", 10.0)
    with Call(20.0) as call:
        affine(A @ cp.Variable(2))
        pytest.fail("60 seconds were predicted, and 20 are left")
    assert call.seconds < 10
