"""Stacks of Gram matrices against plain numpy on the matrices themselves, and their laziness."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import kernelopt as ko
from kernelopt import extend
from kernelopt.errors import (
    InputError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)
from kernelopt.grams import as_grams, caching
from tests.every import every
from tests.grams.stacks import KERNELS, SIGNED, STACKS, Counting, N, V, X, near
from tests.problems import labels, points, solved, stack

ARRAY = stack(N)
VALUES = np.linalg.eigvalsh(SIGNED)
stacks = every("make", STACKS.values(), ids=STACKS)


def test_magnitudes_bound_the_entries_of_indefinite_matrices():
    """Their diagonal may vanish: |K_ij| <= sqrt(d_i d_j)."""
    signed = extend.as_grams(ARRAY - ARRAY * np.eye(N))
    for each in (signed, signed.subset([-1]), signed.block([2, 0])):
        d = each.magnitudes
        assert (np.abs(np.asarray(each)) <= np.sqrt(d[:, :, None] * d[:, None]) * (1 + 1e-12)).all()


def test_rank_bounds_are_known_from_shapes():
    grams = ko.Grams.from_kernels([ko.linear(), ko.polynomial(2), ko.gaussian(1.0)], X[:, :1])
    assert grams.rank_bounds == (1, 3, N)
    assert ko.Grams.rank_one(V).rank_bounds == (1, 1, 1, 1)


def test_a_factor_drops_eigenvalues_below_1e_11_and_keeps_those_above():
    for tiny, rank in ((1e-13, 1), (1e-9, 2)):
        K = np.diag([1.0, tiny])
        assert ko.Grams.from_array(K[None]).factor(0).shape == (2, rank)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_factors_do_not_depend_on_the_scale(scale):
    for K in stack(N):
        L = ko.Grams.from_array(scale * K[None]).factor(0)
        assert L @ L.T == pytest.approx(scale * K, rel=1e-9, abs=1e-10 * scale)
        assert L.shape[1] == np.linalg.matrix_rank(K, hermitian=True)


def test_eigenvectors_rebuild_the_matrix():
    grams = ko.Grams.from_eigenvectors(SIGNED)
    assert grams.combine(VALUES[::-1]) == pytest.approx(SIGNED)
    assert grams.inner() == pytest.approx(np.eye(N), abs=1e-12)
    with pytest.raises(ParameterError, match=r"between 1 and 9, got 10\. Leave it out"):
        ko.Grams.from_eigenvectors(SIGNED, rank=10)
    with pytest.raises(NotSymmetricError, match="K0"):
        ko.Grams.from_eigenvectors(np.triu(SIGNED))


def test_cross_kernels():
    new = points(3, seed=9)
    grams = ko.Grams.from_kernels(KERNELS, X)
    assert grams.cross(new) == pytest.approx(np.stack([k(new, X) for k in KERNELS]))
    assert np.array_equal(ko.Grams.identity(N).cross(new), np.zeros((1, 3, N)))
    for other in (ko.Grams.from_array(stack(N)), ko.Grams.rank_one(V)):
        with pytest.raises(InputError, match=r"pass the \(m, n_new, N\) array"):
            other.cross(new)


def test_self_similarity():
    new = points(3, seed=9)
    grams = ko.Grams.from_kernels(KERNELS, X)
    assert grams.self_similarity(new) == pytest.approx(np.stack([np.diag(k(new)) for k in KERNELS]))
    assert np.array_equal(ko.Grams.identity(N).self_similarity(new), np.ones((1, 3)))
    for other in (ko.Grams.from_array(stack(N)), ko.Grams.rank_one(V)):
        with pytest.raises(InputError, match=r"need kernel functions, got Grams.*from_kernels"):
            other.self_similarity(new)
    with pytest.raises(ShapeError, match=r"X_new must have 3 columns, .* got shape \(3, 2\)"):
        grams.self_similarity(new[:, :2])


def test_as_grams_takes_both():
    grams = ko.Grams.from_array(stack(N))
    assert as_grams(grams) is grams
    assert np.array_equal(np.asarray(as_grams(stack(N))), stack(N))


def test_kernels_do_not_follow_the_points_they_were_given():
    moving, vectors, nodes = points(N), V.copy(), ["a", "b"]
    lazy, one = ko.Grams.from_kernels([ko.linear()], moving), ko.Grams.rank_one(vectors)
    words = ko.Grams.from_kernels([ko.diffusion(nx.path_graph(["a", "b", "c"]), beta=1.0)], nodes)
    with pytest.raises(ValueError, match="read-only"):
        lazy.storage.X[0, 0] = 99.0
    moving -= 5.0
    vectors[:] = 0.0
    nodes.append("c")
    assert lazy.gram(0) == pytest.approx(X @ X.T)
    assert one.gram(0) == pytest.approx(np.outer(V[:, 0], V[:, 0]))
    assert words.gram(0).shape == (2, 2)


def test_kernels_on_objects_that_are_no_vectors():
    class overlap:
        def __call__(self, A, B=None):
            return np.array([[len(set(a) & set(b)) for b in (A if B is None else B)] for a in A], float)

        def diagonal(self, A):
            return np.array([len(set(a)) for a in A], float)

        def rank(self, A):
            return len(A)

    words = ["kernel", "learn", "convex", "cone"]
    grams = ko.Grams.from_kernels([overlap()], words)
    assert grams.combine([1.0])[0, 1] == 4  # e, r, n, l
    assert grams.traces.tolist() == [5.0 + 5 + 6 + 4]
    assert np.array_equal(grams.block(slice(1, 3)).gram(0), grams.gram(0)[1:3, 1:3])
    assert np.array_equal(grams.block(np.array([3, 0])).gram(0), grams.gram(0)[[3, 0]][:, [3, 0]])
    assert np.array_equal(grams.block(slice(1, 4)).rows([2, 0])[0], grams.gram(0)[[3, 1], 1:])
    assert grams.self_similarity(["learner"]).tolist() == [[5.0]]


@pytest.mark.parametrize("free", [False, True], ids=["second-order cone", "semidefinite"])
@pytest.mark.parametrize("listed", [False, True], ids=["one", "list"])
def test_nothing_is_evaluated_before_the_solve_and_once_by_it(free, listed):
    kernel = Counting()
    grams = ko.Grams.from_kernels([kernel, ko.linear()], X)
    mu = cp.Variable(2, nonneg=not free)
    K = ko.combine(mu, grams) + 0.1 * np.eye(N)
    y = labels(N)
    risk = ko.risk([K, 2 * K], y, ko.hinge(), norm=3) if listed else ko.risk(K, y, ko.hinge())
    problem = cp.Problem(cp.Minimize(cp.square(risk) + cp.sum(mu)), [mu >= 0.1, mu <= 1, risk <= 100])
    assert problem.is_dcp() and problem.is_dcp(dpp=True) and not problem.is_qp()
    assert risk.value is None and K.shape == (N, N) and risk.is_nonneg() and not K.is_psd()
    assert repr(problem) and str(problem)
    assert kernel.calls == 0
    solved(problem)
    assert risk.value > 0 and K.value is not None
    assert kernel.calls == 1


def test_rows_of_kernels_do_not_evaluate_the_matrices():
    class RowsOnly(Counting):
        def gram(self, A, B):
            assert B is not None and len(A) == 2
            return super().gram(A, B)

        def gram_diagonal(self, A):
            return np.ones(len(A))

    kernel = RowsOnly()
    grams = ko.Grams.from_kernels([kernel, ko.linear() + ko.identity()], X)
    expected = np.stack([ko.gaussian(1.0)(X), X @ X.T + np.eye(N)])
    assert grams.rows([4, 1]) == pytest.approx(expected[:, [4, 1]])
    assert kernel.calls == 1


@pytest.mark.parametrize(("room", "evaluations"), [(3, 3), (2, 5), (1, 7), (0, 9)])
def test_matrices_beyond_the_limit_are_evaluated_anew(room, evaluations, monkeypatch):
    """Three kernels asked for three times each; as many are kept as there is room for."""
    monkeypatch.setattr(caching, "CACHE_BYTES", room * 8 * N**2)
    counting = [Counting() for _ in range(3)]
    grams = ko.Grams.from_kernels(counting, X)
    for _ in range(3):
        assert grams.combine([1, 2, 3]) == pytest.approx(6 * ko.gaussian(1.0)(X))
    assert sum(kernel.calls for kernel in counting) == evaluations
    assert grams.rows([2]) == pytest.approx(np.stack([ko.gaussian(1.0)(X[2:3], X)] * 3))


def test_factors_beyond_the_limit_are_computed_anew(monkeypatch):
    monkeypatch.setattr(caching, "CACHE_BYTES", 2 * 8 * N**2)
    grams = ko.Grams.from_array(np.stack([np.eye(N)] * 3))
    assert [grams.factor(i) is grams.factor(i) for i in range(3)] == [True, True, False]
    assert np.array_equal(grams.factor(2), np.eye(N))


@stacks
@every("rows_at_a_time", [1, 3, N])
def test_images_of_stacks_too_large_to_keep(make, rows_at_a_time):
    with pytest.MonkeyPatch.context() as patch:
        grams, Ks = make(), np.asarray(make())
        patch.setattr(caching, "CACHE_BYTES", 0)
        patch.setattr(caching, "CHUNK_BYTES", rows_at_a_time * 8 * len(Ks) * N)
        for a in (np.random.default_rng(3).normal(size=N), np.arange(4.0)):
            near(grams.apply(a), Ks[:, :, : a.size] @ a)


def test_nothing_is_factored_before_the_solve():
    """An indefinite matrix is found out by the solve, not by building the problem."""
    indefinite = np.diag([1.0, -0.5])[None]
    mu = cp.Variable(1, nonneg=True)
    risk = ko.risk(ko.combine(mu, indefinite), [1, -1], ko.hinge())
    problem = cp.Problem(cp.Minimize(risk), [mu <= 1])
    assert problem.is_dcp()
    with pytest.raises(NotPSDError, match=r"K\[0\] must be positive semidefinite .* no sign"):
        problem.solve(solver=cp.CLARABEL)


def swapped(value, at=(0, 1)):
    Ks = stack(N)
    Ks[1][at] = value
    return Ks


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (swapped(9.0), NotSymmetricError, r"grams\[1\] must be symmetric .* \(K \+ K.T\) / 2"),
        (swapped(np.nan), NotFiniteError, r"grams must be finite, got nan at index \(1, 0, 1\)"),
        (swapped(-np.inf, (2, 2)), NotFiniteError, r"got -inf at index \(1, 2, 2\)"),
        (np.eye(3), ShapeError, r"shape \(m, N, N\), got \(3, 3\). Wrap a single matrix with grams\[None\]"),
        (np.ones((2, 3, 4)), ShapeError, r"got \(2, 3, 4\). Stack"),
        (np.ones(3), ShapeError, r"got \(3,\)"),
        (np.ones((0, 3, 3)), ShapeError, "at least one kernel"),
        (np.ones((2, 0, 0)), ShapeError, "at least one kernel on one point"),
        ([["a"]], ShapeError, "real numbers"),
    ],
)
def test_bad_arrays_are_refused_with_a_remedy(array, error, message):
    with pytest.raises(error, match=message):
        ko.Grams.from_array(array)
    with pytest.raises(error, match=message):
        ko.combine(np.ones(3), array)


class Broken:
    """A kernel function that returns what it is told."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, A, B=None):
        return self.matrix

    def rank(self, A):
        return len(A)

    def __repr__(self):
        return "broken"


@every(
    ("ask", "matrix", "error", "message"),
    [
        (ko.Grams.combine, np.full((N, N), np.nan), NotFiniteError, "broken must be finite"),
        (ko.Grams.combine, np.triu(np.ones((N, N))), NotSymmetricError, "broken must be symmetric"),
        (ko.Grams.combine, np.ones((N, 2)), ShapeError, "broken must be square"),
        (ko.Grams.combine, np.eye(3), ShapeError, "broken must give a matrix on 9 points"),
        (ko.Grams.rows, np.full((2, N), np.nan), NotFiniteError, "broken must be finite"),
        (
            ko.Grams.rows,
            np.ones((N, N)),
            ShapeError,
            r"broken must give rows of shape \(2, 9\), got \(9",
        ),
    ],
)
def test_a_bad_kernel_is_named(ask, matrix, error, message):
    grams = ko.Grams.from_kernels([Broken(matrix), ko.linear()], X)
    with pytest.raises(error, match=message):
        ask(grams, [1, 0] if ask is ko.Grams.rows else [1.0, 1.0])


def test_an_indefinite_kernel_is_named():
    named = ko.Grams.from_array(np.array([np.eye(2), [[0.0, 1.0], [1.0, 0.0]]]), names=["good", "bad"])
    named.factor(0)
    for ask in (lambda: named.factor(1), lambda: named.subset([1, 0]).factor(0)):
        with pytest.raises(NotPSDError, match="bad must be positive semidefinite"):
            ask()
    function = ko.Grams.from_kernels([Broken(-np.eye(N))], X)
    with pytest.raises(NotPSDError, match="broken must be positive semidefinite"):
        function.factor(0)


def test_kernels_in_single_precision_are_told_from_indefinite_ones():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(NotPSDError, match="compute the kernel in float64"):
        ko.Grams.from_array(np.array([(X @ X.T).astype(np.float32)])).factor(0)


def test_round_off_below_1e_8_is_no_indefiniteness():
    K = np.diag([1.0, 1.0, -1e-9])
    L = ko.Grams.from_array(K[None]).factor(0)
    assert L @ L.T == pytest.approx(np.diag([1.0, 1.0, 0.0]), abs=1e-12)
    with pytest.raises(NotPSDError):
        ko.Grams.from_array(np.diag([1.0, 1.0, -1e-7])[None]).factor(0)


def test_no_kernels_and_no_points():
    with pytest.raises(ShapeError, match="at least one kernel"):
        ko.Grams.from_kernels([], X)
    with pytest.raises(ShapeError, match="at least one point"):
        ko.Grams.from_kernels([ko.linear()], [])
    with pytest.raises(NotFiniteError, match="X must be finite"):
        ko.Grams.from_kernels([ko.linear()], np.full((2, 2), np.nan))
    with pytest.raises(ShapeError, match="V must have 2 dimension"):
        ko.Grams.rank_one(np.ones(3))


def test_a_stack_is_made_by_its_factories():
    with pytest.raises(InputError, match=r"made of a storage of matrices, got .* \(ndarray\).*from_array"):
        ko.Grams(stack(N))
