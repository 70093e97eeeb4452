"""The decomposition solver against scikit-learn, linear algebra, cvxpy and the optimality conditions."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR

import kernelopt as ko
from kernelopt.grams.stored import add_rows
from kernelopt.learner import learn, lower_bound, machine_at
from kernelopt.learner.smo import (
    combined_block,
    coordinate_steps,
    coordinates_loop,
    pairs_loop,
    smo_pairs,
    smo_points,
)
from kernelopt.numerics.compiling import compiled
from tests.every import every
from tests.problems import (
    CASES,
    EPS,
    labels,
    points,
    positive_definite,
    sample_weights,
    solved,
    stack,
    targets,
)

N, LARGE = 14, 520
QUADRATIC = [case for case in CASES if case.loss(1.0).quadratic]
cases = pytest.mark.parametrize("case", QUADRATIC, ids=lambda case: case.name)
biases = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
weights = every("C", [1.3, sample_weights(N), 1e-3, 1e3], ids=["scalar", "per sample", "small", "large"])
KERNELS = {
    "full rank": lambda n: positive_definite(n) + 0.2 * np.eye(n),
    "rank 2": lambda n: stack(n)[1],
    "rank 1": lambda n: stack(n)[2],
    "zero": lambda n: np.zeros((n, n)),
}
kernels = every("kernel", KERNELS)
FINITE = [  # a hard margin needs a kernel that separates
    pytest.param(case, kernel, id=f"{case.name}-{kernel}")
    for case in QUADRATIC
    for kernel in KERNELS
    if case.name != "hard_margin" or kernel == "full rank"
]
finite = pytest.mark.parametrize(("case", "kernel"), FINITE)


def last(iterator):
    """The point where the pivots end, with nobody to stop them before."""
    return list(iterator)[-1]


def by_pivots(K, y, loss, bias, start=None):
    return last(smo_points(K, y, loss, bias, np.zeros(y.size) if start is None else start))


def dual_optimum(case, K, y, C, bias):
    """max l(alpha) - 1/2 alpha'K alpha, l by the textbook."""
    alpha = cp.Variable(y.size)
    gain, domain = case.dual(alpha, y, np.broadcast_to(C, y.shape))
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    if bias:
        domain = [*domain, cp.sum(alpha) == 0]
    return -solved(cp.Problem(cp.Minimize(cp.sum_squares(root.T @ alpha) / 2 - gain), domain))


def violation(K, alpha, y, loss, bias):
    """By how much alpha misses the optimality conditions, from their definition.

    With an intercept: no pair of entries can move against each other with profit, the steepest slope of
    an entry that can grow is not below that of one that can shrink. Without: no entry can move.
    """
    linear, curvature, l1, lower, upper = loss.curve(y)
    g = K @ alpha + curvature * alpha - linear
    # An entry this near to a bound, or to zero, where |a| has its kink, is there.
    near = 1e-9 * np.abs(alpha).max(initial=0.0)
    grows = np.where(alpha >= -near, g + l1, g - l1)[alpha < upper - near]
    shrinks = np.where(alpha > near, g + l1, g - l1)[alpha > lower + near]
    if bias:
        return max(0.0, shrinks.max(initial=-np.inf) - grows.min(initial=np.inf))
    return max(0.0, shrinks.max(initial=0.0), -grows.min(initial=0.0))


# ------------------------------------------------------------------------ small: cvxpy, KKT


@finite
@biases
@weights
def test_the_pivots_end_at_the_optimum(case, bias, C, kernel):
    """At C = 1e3 and rank 2 they need up to 70 rounds and make 60; `learn` then has other ways, below."""
    K, y = KERNELS[kernel](N), case.y(N)
    C = C if np.ndim(C) or kernel == "full rank" else min(C, 100.0)
    loss = case.loss(C)
    alpha = by_pivots(K, y, loss, bias)
    scale = float(max(1.0, np.abs(K @ alpha).max()))
    round_off = 1e-12 * max(1.0, np.abs(alpha).max())
    assert loss.project(alpha, y, bias) == pytest.approx(alpha, rel=1e-12, abs=round_off)
    assert violation(K, alpha, y, loss, bias) <= 1e-9 * scale
    assert not bias or abs(alpha.sum()) <= N * round_off
    bound = lower_bound(K, alpha, y, loss)
    assert machine_at(K, alpha, y, loss, bias).value == pytest.approx(bound, rel=1e-6, abs=1e-6)
    # Clarabel is 2e-6 below at C = 100 and rank 2, as the line above shows.
    assert bound == pytest.approx(dual_optimum(case, K, y, C, bias), rel=1e-5, abs=1e-6)


@cases
@biases
@every(
    "C, kernel",
    [
        *((1.3, kernel) for kernel in KERNELS),
        (sample_weights(N), "rank 2"),
        (1e-3, "rank 1"),
        (1e3, "full rank"),
    ],
)
def test_a_start_makes_no_difference_to_the_machine(case, bias, C, kernel):
    """The value with a start is that without, which comes from another solver."""
    K, y, loss = KERNELS[kernel](N), case.y(N), case.loss(C)
    cold = learn(K, y, loss, bias)
    warm = learn(K, y, loss, bias, start=np.zeros(N))
    if case.name == "hard_margin" and kernel != "full rank":
        assert cold.value == warm.value == np.inf
        return
    assert warm.value == pytest.approx(cold.value, rel=1e-8, abs=1e-12)
    assert lower_bound(K, warm.alpha, y, loss) == pytest.approx(warm.value, rel=1e-6, abs=1e-9)
    assert warm.value <= cold.value * (1 + 1e-8) + 1e-12


GARBAGE = {
    "infeasible": lambda y: -5.0 * y + 1.0,
    "huge": lambda y: 1e9 * y,
    "beyond floats": lambda y: np.full(y.size, np.inf),
    "nan": lambda y: np.full(y.size, np.nan),
    "mixed": lambda y: np.where(np.arange(y.size) % 3 == 0, np.nan, 1e9 * (-1.0) ** np.arange(y.size)),
    "noise": lambda y: np.random.default_rng(0).normal(size=y.size) * 10,
}


@cases
@biases
@every("start", GARBAGE)
def test_garbage_to_start_from_does_no_harm(case, bias, start):
    K, y, loss = KERNELS["full rank"](N), case.y(N), case.loss(1.3)
    cold = learn(K, y, loss, bias)
    warm = learn(K, y, loss, bias, start=GARBAGE[start](y))
    assert warm.value == pytest.approx(cold.value, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(warm.alpha, cold.alpha, atol=1e-3)
    alpha = by_pivots(K, y, loss, bias, GARBAGE[start](y))
    assert lower_bound(K, alpha, y, loss) == pytest.approx(cold.value, rel=1e-7, abs=1e-9)


@cases
@biases
def test_the_optimum_is_a_fixed_point(case, bias):
    """Its own alpha to start from is returned untouched: nothing is trained again."""
    K, y, loss = KERNELS["full rank"](N), case.y(N), case.loss(1.3)
    cold = learn(K, y, loss, bias)
    again = learn(K, y, loss, bias, start=cold.alpha, tol=1e-6)
    np.testing.assert_allclose(again.alpha, cold.alpha, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in QUADRATIC if c.name != "hard_margin"], ids=lambda c: c.name)
@biases
@every("scale", [1e-8, 1e-12, 1e-40])
@every("start", [None, 0.0], ids=["cold", "start"])
def test_a_kernel_that_is_nearly_zero_is_learned_as_zero(case, bias, scale, start):
    """At C fixed: f is nearly constant, and alpha still proves that this is the best there is."""
    K, y, loss = scale * positive_definite(N), case.y(N), case.loss(1.3)
    machine = learn(K, y, loss, bias, start=None if start is None else start * y)
    gap = machine.value - lower_bound(K, machine.alpha, y, loss)
    assert gap <= 1e-6 * max(1.0, machine.value)
    assert machine.value == pytest.approx(learn(0 * K, y, loss, bias).value, rel=1e-5, abs=1e-6)


def test_the_second_entry_is_chosen_by_the_decrease_and_not_by_the_slope():
    """K = diag(1, 100, 1), y = (1, -1, -1): both partners of the first have excess 2, bends 101 and 2."""
    K, y = np.diag([1.0, 100.0, 1.0]), np.array([1.0, -1.0, -1.0])
    a, curve = np.zeros(3), ko.hinge(5.0).curve(y)
    smo_pairs(K, *curve[1:], a, -curve.linear, 1e-9, 1)
    np.testing.assert_array_equal(a, [1.0, 0.0, -1.0])


@pytest.mark.parametrize(
    ("pivots", "start", "first"),
    [
        (smo_pairs, [-0.5, 0.5], [0.0, 0.0]),
        (smo_pairs, [-0.25, 0.5], [0.0, 0.25]),
        (smo_pairs, [-0.5, 0.25], [-0.25, 0.0]),
        (coordinate_steps, [-0.5, 0.25], [0.0, 0.25]),
        (coordinate_steps, [-0.25, 0.5], [-0.25, 0.0]),
    ],
)
def test_a_pivot_stops_at_a_kink(pivots, start, first):
    """K = I, y = (1, -1), eps = 0.2: the step to the optimum, 0.8 from zero, would jump over zero."""
    curve = ko.epsilon_insensitive(5.0, 0.2).curve(np.array([1.0, -1.0]))
    a = np.array(start)
    pivots(np.eye(2), *curve[1:], a, a - curve.linear, 1e-9, 1)
    np.testing.assert_array_equal(a, first)


@cases
@biases
def test_the_gap_shrinks_from_point_to_point(case, bias):
    """Every point that is yielded is in the dual domain, and the last bound is the best."""
    K, y, loss = KERNELS["full rank"](N), case.y(N), case.loss(1.3)
    found = list(smo_points(K, y, loss, bias, np.zeros(N)))
    bounds = [lower_bound(K, alpha, y, loss) for alpha in found]
    assert (np.diff(bounds) >= -1e-12 * max(1.0, abs(bounds[-1]))).all()
    for alpha in found:
        np.testing.assert_allclose(loss.project(alpha, y, bias), alpha, atol=1e-12)


# ------------------------------------------------------------------------ large: scikit-learn


@cache
def large():
    X = points(LARGE, 4, seed=5)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(2) / 4) + 1e-3 * np.eye(LARGE)
    return K, labels(LARGE, seed=5), targets(LARGE, seed=5), sample_weights(LARGE, seed=5)


class Ours(NamedTuple):
    value: float
    alpha: np.ndarray
    f: np.ndarray


def trained(K, y, loss, bias, start=None):
    machine = learn(K, y, loss, bias, start=start)
    gap = machine.value - lower_bound(K, machine.alpha, y, loss)
    assert gap <= 2e-9 * max(1.0, abs(machine.value))
    assert violation(K, loss.project(machine.alpha, y, bias), y, loss, bias) <= 1e-2
    return Ours(machine.value, machine.alpha, K @ machine.alpha + machine.intercept)


def by_libsvm(K, y, C=1e6, eps=None, each=None):
    """The alpha and the predictions of SVC, or of SVR for a tube."""
    machine = SVC(kernel="precomputed", C=C, tol=1e-9)
    if eps is not None:
        machine = SVR(kernel="precomputed", C=C, epsilon=eps, tol=1e-8)
    machine.fit(K, y, sample_weight=each)
    alpha = np.zeros(y.size)
    alpha[machine.support_] = machine.dual_coef_[0]
    return alpha, (machine.predict if eps is not None else machine.decision_function)(K)


def by_ridge(K, y, C, each):
    ridge = KernelRidge(alpha=1 / C, kernel="precomputed").fit(K, y, sample_weight=each)
    return ridge.dual_coef_, K @ ridge.dual_coef_


MANY = {  # loss at weights, whether it has labels, the reference, and what its dual is exact to
    "hinge": (lambda C, w: ko.hinge(C * w), True, lambda K, y, C, w: by_libsvm(K, y, C, each=w), 2e-3),
    "tube": (
        lambda C, w: ko.epsilon_insensitive(C * w, EPS),
        False,
        lambda K, y, C, w: by_libsvm(K, y, C, EPS, w),
        2e-3,
    ),
    "ridge regression": (lambda C, w: ko.squared(C * w), False, by_ridge, 1e-7),
    # The duals of the next two are those of libsvm at a ridge; without a bound it is the limit of a large C.
    "squared hinge": (
        lambda C, w: ko.squared_hinge(C * w),
        True,
        lambda K, y, C, w: by_libsvm(K + np.diag(1 / (C * w)), y),
        1e-4,
    ),
    "huberized hinge": (
        lambda C, w: ko.huberized_hinge(C * w, 0.4),
        True,
        lambda K, y, C, w: by_libsvm(K + 0.4 * np.eye(LARGE), y, C, each=w),
        2e-3,
    ),
    "hard margin": (
        lambda C, w: ko.hard_margin(),
        True,
        lambda K, y, C, w: by_libsvm(K, y),
        1e-4,
    ),
}


@every("name", MANY)
@pytest.mark.parametrize("C", [0.05, 10.0])
@pytest.mark.parametrize("start", [None, 0.1], ids=["cold", "start"])
def test_many_points_have_the_machine_of_scikit_learn(name, C, start):
    K, label, target, each = large()
    loss, labelled, reference, precision = MANY[name]
    y = label if labelled else target
    K = K + 0.5 * np.eye(LARGE) if name == "hard margin" else K
    ours = trained(K, y, loss(C, each), name != "ridge regression", None if start is None else start * y)
    alpha, f = reference(K, y, C, each)
    np.testing.assert_allclose(ours.alpha, alpha, atol=precision * max(C, 1.0))
    if name in ("hinge", "tube", "ridge regression"):
        np.testing.assert_allclose(ours.f, f, atol=1e-3)
    if name == "hinge":
        assert ours.value == pytest.approx(y @ alpha - alpha @ K @ alpha / 2, rel=1e-7)
    if name == "ridge regression":
        assert ours.value == pytest.approx(y @ alpha / 2, rel=1e-9)
    if name == "hard margin":
        assert (y * ours.f).min() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("C", [0.05, 10.0])
def test_one_class_on_many_points_meets_its_dual(C):
    """No intercept: 0 <= alpha <= C, and alpha_i = 0 or C beyond the margin, f = 1 between."""
    K = large()[0]
    loss = ko.one_class(C)
    ours = trained(K, np.ones(LARGE), loss, False)
    inside, outside = ours.f > 1 + 1e-6, ours.f < 1 - 1e-6
    np.testing.assert_allclose(ours.alpha[inside], 0.0, atol=1e-8)
    np.testing.assert_allclose(ours.alpha[outside], C, rtol=1e-8)
    assert ours.alpha.min() >= 0 and ours.alpha.max() <= C * (1 + 1e-12)


# ---------------------------------------------------------------- compiled and not compiled


def arguments(case, bias, K):
    y, loss = case.y(N), case.loss(1.3)
    curve = loss.curve(y)
    a = np.ascontiguousarray(loss.project(0.3 * y, y, bias))
    g = K @ a + curve.curvature * a - curve.linear
    return K, curve.curvature, curve.l1, curve.lower, curve.upper, a, g


@cases
@biases
@kernels
@every(("tol", "most"), [(1e-10, 500), (1e-10, 7), (1e-1, 500)])
def test_the_compiled_pivots_are_those_of_python(case, bias, kernel, tol, most):
    """To the last bit, wherever they end: the same pivots in the same order."""
    pivots, K = smo_pairs if bias else coordinate_steps, KERNELS[kernel](N)
    slow, fast, by_numpy = (arguments(case, bias, K) for _ in range(3))
    left = (pairs_loop if bias else coordinates_loop)(*slow, tol, most)
    assert compiled(pivots)(*fast, tol, most) == pivots(*by_numpy, tol, most) == left
    for other in (fast, by_numpy):
        np.testing.assert_array_equal(other[5], slow[5])
        np.testing.assert_array_equal(other[6], slow[6])


@finite
@biases
def test_the_pivots_keep_their_word(case, bias, kernel):
    """The violation returned is the true one, the gradient is kept, the sum too, and a stays in its box."""
    K, curvature, l1, lower, upper, a, g = arguments(case, bias, KERNELS[kernel](N))
    y, total = case.y(N), a.sum()
    left = (smo_pairs if bias else coordinate_steps)(K, curvature, l1, lower, upper, a, g, 1e-8, 20_000)
    assert left <= 1e-8
    linear = case.loss(1.3).curve(y).linear
    np.testing.assert_allclose(g, K @ a + curvature * a - linear, atol=1e-9)
    assert violation(K, a, y, case.loss(1.3), bias) <= 1e-8 + 1e-9
    assert (lower <= a).all() and (a <= upper).all()
    assert not bias or a.sum() == pytest.approx(total, abs=1e-12)


def test_no_pivots_are_made_at_the_optimum():
    K, y = np.eye(2), np.array([1.0, -1.0])
    curve = ko.hinge(3.0).curve(y)
    a = y.copy()
    g = K @ a - curve.linear
    for pivots in (smo_pairs, coordinate_steps):
        assert pivots(K, *curve[1:], a, g, 1e-12, 100) == 0.0
        np.testing.assert_array_equal(a, y)


@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_compiled_rows_are_combined_and_added_as_by_numpy(count):
    rng = np.random.default_rng(0)
    rows, w = rng.normal(size=(3, 9, 12)), np.array([0.5, 0.0, 2.0])
    slots = rng.permutation(9)[:count]
    columns, steps, images = rng.permutation(12)[:count], rng.normal(size=count), rng.normal(size=(3, 12))
    expected = np.tensordot(w, rows, 1)[np.ix_(slots, columns)]
    added = images + np.einsum("mij,i->mj", rows[:, slots], steps)
    for blocks, adds in ((combined_block, add_rows), (compiled(combined_block), compiled(add_rows))):
        np.testing.assert_allclose(blocks(rows, slots, columns, w), expected, atol=1e-14)
        moved = images.copy()
        adds(rows, slots, steps, moved)
        np.testing.assert_allclose(moved, added, atol=1e-13)
