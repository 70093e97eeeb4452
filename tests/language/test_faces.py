"""Kernels whose joint range is a line, or which see one point, against closed forms and duals."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from kernelopt.language.faces import joint_range, restricted_to_range
from kernelopt.language.terms import terms
from tests.problems import solved

Y = np.array([1.0, 1, -1, 1, -1])
YY = np.outer(Y, Y)
LINES = {
    "one kernel": YY[None],
    "two multiples": np.stack([YY, 3 * YY]),
    "a negative multiple": np.stack([2 * YY, -0.5 * YY]),
    "vectors": np.asarray(ko.Grams.rank_one(np.column_stack([Y, 2 * Y]))),
}
lines = pytest.mark.parametrize("Ks", LINES.values(), ids=LINES)


def omega(size, C=np.inf, tau=0.0):
    """The SVM dual at the kernel size yy': max 2 e'a - size (e'a)^2 - tau a'a, y'a = 0, 0 <= a <= C."""
    a = cp.Variable(Y.size, nonneg=True)
    value = 2 * cp.sum(a) - size * cp.square(cp.sum(a)) - tau * cp.sum_squares(a)
    return solved(cp.Problem(cp.Maximize(value), [Y @ a == 0] + ([] if np.isinf(C) else [a <= C])))


@lines
@pytest.mark.parametrize("criterion", [{}, {"tau": 0.5}, {"C": 0.01}], ids=str)
def test_sdp_of_multiples_of_the_labels(Ks, criterion):
    """K = (c / N) yy' whatever the weights; with a hard margin f = y and omega = |f|^2 = N / c."""
    size = float(np.trace(Ks, axis1=1, axis2=2).sum()) / Y.size
    formulation = lanckriet.sdp(Ks, Y, **criterion)
    solution = formulation.solve()
    assert solution.value == pytest.approx(omega(size, **criterion), rel=1e-6)
    if not criterion:
        assert solution.value == pytest.approx(1 / size, rel=1e-6)
    assert solution.upper - solution.lower <= 1e-6 * solution.value
    assert solved(formulation.dual()) == pytest.approx(solution.value, rel=1e-5)
    assert np.tensordot(solution.weights, Ks, 1) == pytest.approx(size * YY, rel=1e-5)


@lines
def test_alignment_of_multiples_of_the_labels(Ks):
    """The labels' outer product is aligned with itself: <yy', yy'> / |yy'| = n."""
    formulation = lanckriet.alignment(Ks, Y, weights="free")
    solution = formulation.solve()
    assert solution.value == pytest.approx(Y.size, rel=1e-6)
    assert solved(formulation.dual()) == pytest.approx(Y.size, rel=1e-5)
    assert np.tensordot(solution.weights, Ks, 1) == pytest.approx(YY / Y.size, rel=1e-4)


@pytest.mark.parametrize("v", [np.array([2.0, 0, 0]), np.array([1.0, -2, 0.5])], ids=str)
def test_free_weights_on_a_line_that_is_not_that_of_the_labels(v):
    """f = s v with |f|^2_K = s^2 / mu: least squares on one number, 1/2 min over s."""
    targets = np.array([1.0, -1.0, 2.0])
    mu = cp.Variable(1)
    K = ko.combine(mu, np.outer(v, v)[None])
    problem = cp.Problem(
        cp.Minimize(ko.risk(K, targets, ko.squared(C=2.0), bias=False)), [K >> 0, mu[0] <= 3.0]
    )
    solution = ko.solve(problem)
    s = 2 * (v @ targets) / (2 * (v @ v) + 1 / 3)
    assert solution.value == pytest.approx(s**2 / 6 + ((s * v - targets) ** 2).sum(), rel=1e-6)
    assert mu.value == pytest.approx([3.0], rel=1e-5)


WHOLE = {
    "combination": lambda K, t: K,
    "plus a number": lambda K, t: K + 2.0,
    "plus a matrix": lambda K, t: K + 2.0 * np.eye(1),
    "minus a number": lambda K, t: K - 1.0,
    "twice": lambda K, t: 2 * K / 4,
    "plus a multiple of a matrix": lambda K, t: K + t * np.eye(1),
}


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_a_kernel_on_one_point(make):
    """The squared loss at one point with a kernel k: min over f of C/2 (f - y)^2 + f^2 / (2 k)."""
    mu, t = cp.Variable(2), cp.Variable(nonneg=True)
    K = make(ko.combine(mu, np.array([[[1.0]], [[4.0]]])), t)
    problem = cp.Problem(
        cp.Minimize(ko.risk(K, [3.0], ko.squared(C=2.0), bias=False)),
        [K >> 0, ko.trace(K) <= 5.0, cp.abs(mu) <= 9, t <= 1],
    )
    solution = ko.solve(problem)
    assert solution.value == pytest.approx(9.0 / 2 / (1 / 2.0 + 5.0), rel=1e-6)
    assert K.value == pytest.approx(np.array([[5.0]]), rel=1e-5)
    assert ko.trace(K).value == pytest.approx(5.0, rel=1e-5)


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_terms_on_one_point_are_matrices(make):
    mu, t = cp.Variable(2, value=np.array([1.0, -0.25])), cp.Variable(value=0.5)
    K = make(ko.combine(mu, np.array([[[1.0]], [[4.0]]])), t) - 0.0
    read = terms(K)
    assert read is not None and all(grams.shape[1:] == (1, 1) for _, grams in read)
    assert sum(grams.combine(w.value) for w, grams in read) == pytest.approx(np.reshape(K.value, (1, 1)))
    assert read[0].grams.block(slice(0, 1)).shape[1:] == (1, 1)


def test_a_kernel_restricted_to_a_line_is_a_number():
    mu = cp.Variable(2, value=np.array([2.0, 0.5]))
    K = ko.combine(mu, LINES["two multiples"]) - 0.0
    Q = joint_range(K, Y.size)
    assert Q.shape == (Y.size, 1)
    assert (restricted_to_range(K, Q) >> 0).args[0].value == pytest.approx(np.array([[3.5 * Y.size]]))
    assert Q @ restricted_to_range(K, Q).value @ Q.T == pytest.approx(K.value)
