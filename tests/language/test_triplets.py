"""Relative comparisons and diagonal dominance as words: against numpy, composed, and never too large."""

from __future__ import annotations

import tracemalloc

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.errors import ConditionWarning, InputError, ParameterError, ShapeError
from kernelopt.extend import as_grams
from tests.every import every
from tests.language.cases import A, N, kernels, valued
from tests.problems import labels, points, positive_definite, solved, stack

KS = stack(N)  # three kernels
TRIPLETS = np.array([[0, 1, 2], [3, 1, 0], [6, 5, 4], [2, 0, 6]])
S = np.array([0, 2, 3, 6])


def dominance(K, S):
    """K_ii - sum of |K_ij| over the other points of S, by loops."""
    return np.array([K[i, i] - sum(abs(K[i, j]) for j in S if j != i) for i in S])


@kernels
def test_gains_and_hinges_are_those_of_the_matrix(make):
    K, matrix = make()
    expected = np.array([matrix[i, j] - matrix[i, k] for i, j, k in TRIPLETS])
    gains = ko.triplet_gains(K, TRIPLETS)
    assert gains.shape == (len(TRIPLETS),) and gains.is_affine()
    assert gains.value == pytest.approx(expected, abs=1e-12)
    for margin in (1.0, 0.25):
        hinge = ko.triplet_hinge(K, TRIPLETS, margin)
        assert hinge.shape == (len(TRIPLETS),) and hinge.is_convex() and hinge.is_nonneg()
        assert hinge.value == pytest.approx(np.maximum(margin - expected, 0.0), abs=1e-12)


@kernels
@every("S", [S, None, np.array([4]), np.array([6, 0, 3])], ids=["S", "all", "one", "unsorted"])
def test_dominance_holds_exactly_where_numpy_says_so(make, S):
    """With r at |K_ij| the residuals of the constraints are those of the definition."""
    K, matrix = make()
    chosen = np.arange(len(matrix)) if S is None else S
    constraints = {c.label: c for c in ko.diagonally_dominant(K, S)}
    first, second = chosen[np.triu_indices(len(chosen), 1)[0]], chosen[np.triu_indices(len(chosen), 1)[1]]
    if len(chosen) > 1:
        (r,) = [v for c in constraints.values() for v in c.variables() if v.name() == "r"][:1]
        r.value = abs(matrix[first, second])
        assert set(constraints) == {"above", "below", "dominance"}
        assert max(constraints["above"].violation().max(), constraints["below"].violation().max()) <= 1e-12
    assert all(c.is_dcp() for c in constraints.values())
    expected = np.maximum(-dominance(matrix, chosen), 0.0)
    assert constraints["dominance"].violation() == pytest.approx(expected, abs=1e-12)


def test_dominance_by_hand():
    """K = w0 I + w1 11' on three points is dominant while w0 + w1 >= 2 |w1|: w1 in [-w0 / 3, w0]."""
    w = cp.Variable(2)
    K = ko.combine(w, np.array([np.eye(3), np.ones((3, 3))]))
    for sign, bound in ((1, 1.0), (-1, 1 / 3)):
        problem = cp.Problem(cp.Maximize(sign * w[1]), [*ko.diagonally_dominant(K), w[0] == 1])
        assert solved(problem) == pytest.approx(bound, abs=1e-6)


def test_gains_remember_their_triplets():
    gains = ko.triplet_gains(ko.combine(cp.Variable(3), KS), TRIPLETS)
    assert (gains.triplets == TRIPLETS).all()
    again = gains.copy()
    assert (again.triplets == TRIPLETS).all() and again.shape == gains.shape


def test_parameters_are_weights_too():
    scale = cp.Parameter(3)
    hinge = ko.triplet_hinge(ko.combine(scale, KS), TRIPLETS)
    for value in (A, 2 * A):
        scale.value = value
        K = np.tensordot(value, KS, 1)
        expected = [max(1 - K[i, j] + K[i, k], 0) for i, j, k in TRIPLETS]
        assert hinge.value == pytest.approx(np.array(expected), abs=1e-12)


def test_the_identity_kernel_changes_no_comparison():
    """d_t is zero for it: off-diagonal entries, and so hinges, are those of the other kernels."""
    w = [0.3, -0.2, 0.5]
    K, alone = ko.combine(valued([*w, 1.7]), np.concatenate([KS, np.eye(N)[None]])), ko.combine(valued(w), KS)
    gains = ko.triplet_gains(alone, TRIPLETS).value
    assert ko.triplet_gains(K, TRIPLETS).value == pytest.approx(gains, abs=1e-15)
    assert K.value - alone.value == pytest.approx(1.7 * np.eye(N), abs=1e-15)


def test_a_risk_and_comparisons_are_solved_and_certified_together():
    """risk + hinges of comparisons, with the value of the plain conic problem of both."""
    n, y = 12, labels(12)
    grams, triplets = stack(n), ko.sample_triplets(y, 20, random_state=0)
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, grams)
    hinges = ko.triplet_hinge(K, triplets)
    problem = cp.Problem(
        cp.Minimize(ko.risk(K, y, ko.hinge(C=2.0)) + 0.1 * cp.sum(hinges)), [ko.trace(K) == n]
    )
    solution = ko.solve(problem, tol=1e-6)
    assert solution.status == "optimal" and solution.gap <= 1e-6
    # Independently: alpha and the multipliers u of the hinges; the trace has the multiplier c.
    D = np.array([grams[:, i, j] - grams[:, i, k] for i, j, k in triplets])
    alpha, u, c = cp.Variable(n), cp.Variable(len(triplets), nonneg=True), cp.Variable()
    factors = [as_grams(grams).factor(p) for p in range(3)]
    forms = [cp.sum_squares(factor.T @ alpha) / 2 for factor in factors]
    gains = D.T @ u
    constraints = [u <= 0.1, cp.sum(alpha) == 0, cp.multiply(y, alpha) >= 0, cp.multiply(y, alpha) <= 2]
    constraints += [forms[p] + gains[p] <= c * np.trace(grams[p]) for p in range(3)]
    bound = solved(cp.Problem(cp.Maximize(y @ alpha + cp.sum(u) - c * n), constraints))
    assert solution.value == pytest.approx(bound, rel=1e-5)
    at = np.tensordot(solution.weights, grams, 1)
    assert hinges.value == pytest.approx([max(1 - at[i, j] + at[i, k], 0) for i, j, k in triplets], abs=1e-9)


def test_comparisons_of_more_points_than_labels():
    """The risk sees the first n points, the comparisons all N: without labels they still say something."""
    n, extra = 8, 4
    grams, y = stack(n + extra), labels(8)
    mu = cp.Variable(3, nonneg=True)
    K = ko.combine(mu, grams)
    triplets = [[9, 0, 1], [11, 10, 8]]
    total = ko.risk(K, y, ko.hinge(C=1.0))
    limits = [ko.trace(K) == n]
    free = ko.solve(cp.Problem(cp.Minimize(total), limits))
    both = ko.solve(cp.Problem(cp.Minimize(total + cp.sum(ko.triplet_hinge(K, triplets))), limits))
    assert both.status == "optimal" and free.lower <= both.upper
    hinges = [max(1 - free.kernel[i, j] + free.kernel[i, k], 0) for i, j, k in triplets]
    assert both.value <= free.value + sum(hinges) + 1e-5


def test_dominance_next_to_a_risk():
    """Free signs without K >> 0: dominance keeps the kernel in the domain of the risk."""
    n, y = 8, labels(8)
    grams = np.concatenate([stack(n), np.eye(n)[None]])
    w = cp.Variable(4)
    K = ko.combine(w, grams)
    problem = cp.Problem(
        cp.Minimize(ko.risk(K, y, ko.hinge(C=1.0))), [*ko.diagonally_dominant(K), ko.trace(K) == n]
    )
    solution = ko.solve(problem)
    assert solution.status == "optimal" and solution.is_psd
    assert dominance(solution.kernel, range(n)).min() >= -1e-9
    relaxed = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge(C=1.0))), [K >> 0, ko.trace(K) == n])
    assert solution.value >= ko.solve(relaxed).lower - 1e-9


def test_a_psd_variable_learns_from_comparisons():
    """min (1 - K_01 + K_02)_+ + gamma tr K over K >> 0, by hand.

    The gain is <G, K> with largest eigenvalue 1 / sqrt(2) of G, so at most tr K / sqrt(2): where
    gamma sqrt(2) < 1 the whole margin is bought, at tr K = sqrt(2).
    """
    K, gamma = cp.Variable((3, 3), PSD=True), 0.2
    cost = cp.sum(ko.triplet_hinge(K, [[0, 1, 2]])) + gamma * ko.trace(K)
    solution = ko.solve(cp.Problem(cp.Minimize(cost)))
    assert solution.value == pytest.approx(gamma * np.sqrt(2), abs=1e-5)


def test_contradictions_warn_and_are_explained():
    triplets = [[0, 1, 2], [3, 4, 5], [1, 2, 0], [2, 0, 1]]
    K = ko.combine(cp.Variable(3, nonneg=True), KS)
    cycle = (
        "0 is closer to 1 than to 2 \\(row 0\\), 1 is closer to 2 than to 0 \\(row 2\\), "
        "2 is closer to 0 than to 1 \\(row 3\\)"
    )
    with pytest.warns(ConditionWarning, match=f"contradict each other.*{cycle}.*feedback lists 1"):
        gains = ko.triplet_gains(K, triplets)
    text = str(ko.explain(cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - gains))))))
    assert "1 group of pairs with contradictions" in text and cycle.replace("\\", "") in text
    inside = str(ko.explain(cp.Problem(cp.Minimize(cp.sum(K.weights)), [gains >= 1])))
    assert cycle.replace("\\", "") in inside
    kept = np.delete(triplets, ko.comparisons(triplets).feedback, axis=0)
    assert "no contradiction" in str(ko.explain(cp.Problem(cp.Minimize(cp.sum(ko.triplet_hinge(K, kept))))))


class Watched:
    """A Gaussian that counts how often a whole matrix is asked for."""

    def __init__(self, width):
        self.kernel, self.calls = ko.gaussian(width), 0

    def __call__(self, X, Z=None):
        self.calls += Z is None
        return self.kernel(X, Z)

    def diagonal(self, X):
        return self.kernel.diagonal(X)

    def rank(self, X):
        return self.kernel.rank(X)


def test_large_problems_are_built_without_an_expression_of_all_entries():
    """m = 250, T = 1000, n = 150: the Grams are 45 MB in 250 arrays, and so would be one m n^2 array."""
    m, T, n = 250, 1000, 150
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + 0.1 * rng.normal(size=n)  # triplets that no pair contradicts: |score_i - score_j|
    draws = np.array([rng.permutation(n)[:3] for _ in range(T)])
    far = abs(score[draws[:, 0]] - score[draws[:, 1]]) > abs(score[draws[:, 0]] - score[draws[:, 2]])
    triplets = np.where(far[:, None], draws[:, [0, 2, 1]], draws)
    kernels = [Watched(width) for width in np.geomspace(0.05, 5.0, m)]
    grams = ko.Grams.from_kernels(kernels, X)
    w = cp.Variable(m)
    tracemalloc.start()
    try:
        K = ko.combine(w, grams)
        hinges = ko.triplet_hinge(K, triplets)
        dominant = ko.diagonally_dominant(K, np.unique(triplets))
        problem = cp.Problem(cp.Minimize(cp.sum(hinges) + 0.1 * cp.norm1(w) + 0.1 * ko.trace(K)), dominant)
        assert problem.is_dcp()
        _, peak = tracemalloc.get_traced_memory()
        largest = max(trace.size for trace in tracemalloc.take_snapshot().traces)
    finally:
        tracemalloc.stop()
    assert peak < 200e6
    assert largest < m * n * n * 8 / 1.9  # the pairs of points, once
    assert all(kernel.calls <= 1 for kernel in kernels)
    w.value = rng.normal(size=m) / m
    matrix = grams.combine(w.value)
    expected = [max(1 - matrix[i, j] + matrix[i, k], 0.0) for i, j, k in triplets]
    assert hinges.value == pytest.approx(np.array(expected), abs=1e-10)


def test_weak_kernels_with_the_identity_of_its_own_group():
    d, each = 3, [ko.gaussian(0.5), ko.gaussian(2.0)]
    weak = ko.per_feature(each, d)
    X, Z = points(6, d), points(4, d, seed=9)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    groups = [*weak.groups, d]
    assert groups == [0, 0, 1, 1, 2, 2, 3] and len(grams) == 7
    for p, f in enumerate(weak.groups):
        other = X.copy()
        other[:, [g for g in range(d) if g != f]] = 0.0  # the kernel sees one column
        assert weak[p](X) == pytest.approx(each[p % 2](other), abs=1e-12)
    assert (
        (grams[6] == np.eye(6)).all() and (grams.cross(Z)[6] == 0).all() and (ko.identity()(X, X) == 0).all()
    )


K0 = positive_definite(N)


@every(
    ("call", "error", "message"),
    [
        (lambda: ko.triplet_gains(KS, TRIPLETS), ShapeError, "K must be a square matrix .*combine"),
        (lambda: ko.triplet_gains(K0, [[0, 1, N]]), ParameterError, f"0..{N - 1}, got .0, 1, 7. in row 0"),
        (lambda: ko.triplet_hinge(K0, TRIPLETS, 0.0), ParameterError, "margin must be a positive"),
        (lambda: ko.diagonally_dominant(KS), ShapeError, "K must be a square matrix"),
        (lambda: ko.diagonally_dominant(K0, [0, N]), ParameterError, f"different and in 0..{N - 1}, got"),
        (lambda: ko.diagonally_dominant(K0, [0, 0, 1]), ParameterError, "numpy.unique"),
        (lambda: ko.diagonally_dominant(K0, []), ShapeError, "at least one entry"),
        (lambda: ko.diagonally_dominant(K0, [0.0, 1.0]), ParameterError, "integer vector .* float64"),
        (lambda: ko.per_feature([ko.gaussian(1.0)], 0), ParameterError, "d must be an integer >= 1"),
        (lambda: ko.per_feature(["gaussian"], 2), ParameterError, "kernel must be a Kernel"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert isinstance(raised.value, InputError)
