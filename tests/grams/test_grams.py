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
from kernelopt.language.terms import ExpressionStorage
from tests.every import every
from tests.problems import labels, points, solved, stack

N = 7
X = points(N)
KERNELS = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2), ko.identity(), ko.linear() + ko.laplacian(2.0)]
V = np.random.default_rng(1).normal(size=(N, 4))
K0 = np.random.default_rng(2).normal(size=(N, N))
VALUES, VECTORS = np.linalg.eigh(K0 + K0.T)

STACKS = {
    "array": (ko.Grams.from_array(stack(N)), stack(N)),
    "one kernel": (ko.Grams.from_array(stack(N)[:1]), stack(N)[:1]),
    "with a zero kernel": (
        ko.Grams.from_array(np.stack([stack(N)[0], np.zeros((N, N))])),
        np.stack([stack(N)[0], np.zeros((N, N))]),
    ),
    "kernels": (ko.Grams.from_kernels(KERNELS, X), np.stack([k(X) for k in KERNELS])),
    "rank one": (ko.Grams.rank_one(V), np.stack([np.outer(v, v) for v in V.T])),
    "eigenvectors": (
        ko.Grams.from_eigenvectors(K0 + K0.T, rank=3),
        np.stack([np.outer(v, v) for v in VECTORS.T[::-1][:3]]),
    ),
    "identity": (ko.Grams.identity(N), np.eye(N)[None]),
    "constant": (ko.Grams(ExpressionStorage(cp.Constant(K0 + K0.T))), (K0 + K0.T)[None]),
}
POSITIVE = {name: given for name, given in STACKS.items() if name != "constant"}
stacks = pytest.mark.parametrize(("grams", "Ks"), STACKS.values(), ids=STACKS)


@stacks
def test_stack_is_its_array(grams, Ks):
    assert grams.shape == Ks.shape and len(grams) == len(Ks) and grams.n_points == N
    assert np.asarray(grams) == pytest.approx(Ks, abs=1e-14)
    assert np.asarray(grams, dtype=np.float32).dtype == np.float32
    for i, (K, expected) in enumerate(zip(grams, Ks, strict=True)):
        assert K == pytest.approx(expected, abs=1e-14)
        assert np.array_equal(grams.gram(i), K)
    assert f"{len(Ks)} kernels on {N} points" in repr(grams)
    assert len(grams.names) == len(Ks)


@stacks
def test_sums_and_forms(grams, Ks):
    rng = np.random.default_rng(3)
    w, a = rng.normal(size=len(Ks)), rng.normal(size=N)
    assert grams.combine(w) == pytest.approx(np.einsum("m,mij->ij", w, Ks))
    assert grams.combine(0 * w) == pytest.approx(np.zeros((N, N)))
    assert grams.apply(a) == pytest.approx(Ks @ a)
    assert grams.forms(a) == pytest.approx(np.einsum("i,mij,j->m", a, Ks, a))
    short = a[:4]
    assert grams.apply(short) == pytest.approx(Ks[:, :, :4] @ short)
    assert grams.forms(short) == pytest.approx(np.einsum("i,mij,j->m", short, Ks[:, :4, :4], short))


@stacks
def test_traces_products_and_entries(grams, Ks):
    rows, columns = np.array([0, 3, 3, 6]), np.array([1, 3, 0, 6])
    assert grams.diagonals == pytest.approx(np.einsum("mii->mi", Ks))
    assert grams.traces == pytest.approx(np.trace(Ks, axis1=1, axis2=2))
    assert grams.inner() == pytest.approx(np.einsum("aij,bij->ab", Ks, Ks))
    assert grams.entries(rows, columns) == pytest.approx(Ks[:, rows, columns])
    assert grams.vectorized() == pytest.approx(Ks.reshape(len(Ks), -1).T)


@stacks
@every(
    "indices",
    [slice(1, None, 2), np.array([5, 0, 5]), [3], 2, -1, range(2), (0, 6), [], np.arange(N) > 4],
    ids=str,
)
def test_rows_are_those_of_the_matrices(grams, Ks, indices):
    chosen = np.atleast_1d(np.arange(N)[list(indices) if isinstance(indices, tuple) else indices])
    rows = grams.rows(indices)
    assert rows.shape == (len(Ks), chosen.size, N)
    assert rows == pytest.approx(Ks[:, chosen], abs=1e-14)
    rows[:] = np.nan  # a copy: the stack does not follow
    assert grams.rows(indices) == pytest.approx(Ks[:, chosen], abs=1e-14)


@stacks
def test_row_means(grams, Ks):
    assert grams.row_means == pytest.approx(Ks.mean(axis=2), abs=1e-14)


@stacks
@every(
    ("indices", "message"),
    [
        ([N], rf"integers below {N}, the number of points, got \[7\] in Grams.rows .* from zero"),
        ([0.5], r"integers below 7.*got \[0.5\]"),
        (["a"], "integers below 7"),
        (np.zeros((2, 2), int), r"one list of integers, got shape \(2, 2\) in Grams.rows. Pass .*ravel"),
    ],
)
def test_rows_that_are_no_points_are_refused(grams, Ks, indices, message):
    with pytest.raises(ParameterError, match=message):
        grams.rows(indices)


@stacks
def test_magnitudes_bound_the_entries_of_any_matrix(grams, Ks):
    """Of indefinite ones too, whose diagonal may vanish: |K_ij| <= sqrt(d_i d_j)."""
    hollow = Ks - Ks * np.eye(Ks.shape[1])
    signed = extend.as_grams(hollow)
    for each in (grams, signed, signed.subset([-1]), signed.block([2, 0])):
        d = each.magnitudes
        assert (np.abs(np.asarray(each)) <= np.sqrt(d[:, :, None] * d[:, None]) * (1 + 1e-12)).all()


@stacks
def test_images_belong_to_the_alpha_that_is_asked_for(grams, Ks):
    """The last images are kept: a changed alpha, a copy and a part have their own."""
    alpha = np.linspace(-1, 1, Ks.shape[1])
    for _ in range(2):
        assert grams.apply(alpha) == pytest.approx(Ks @ alpha, abs=1e-12)
        alpha[0] += 1.0
    assert grams.apply(alpha[:2]) == pytest.approx(Ks[:, :, :2] @ alpha[:2], abs=1e-12)
    part = grams.subset([-1, 0])
    assert part.apply(alpha[:2]) == pytest.approx(Ks[[-1, 0]][:, :, :2] @ alpha[:2], abs=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        grams.apply(alpha)[0] = 0.0


@stacks
@every("rows", [slice(0, 4), slice(1, None, 2), np.array([5, 0, 2])], ids=str)
def test_blocks(grams, Ks, rows):
    block = grams.block(rows)
    assert block.shape == Ks[:, rows][:, :, rows].shape
    assert np.asarray(block) == pytest.approx(Ks[:, rows][:, :, rows], abs=1e-14)


@pytest.mark.parametrize(("grams", "Ks"), POSITIVE.values(), ids=POSITIVE)
def test_factors_and_rank_bounds(grams, Ks):
    assert len(grams.rank_bounds) == len(Ks)
    for i, K in enumerate(Ks):
        L = grams.factor(i)
        assert L @ L.T == pytest.approx(K, abs=1e-10 * max(1.0, np.abs(K).max()))
        assert L.shape == (N, np.linalg.matrix_rank(K, hermitian=True))
        assert L.shape[1] <= grams.rank_bounds[i] <= N


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
    grams = ko.Grams.from_eigenvectors(K0 + K0.T)
    assert grams.combine(VALUES[::-1]) == pytest.approx(K0 + K0.T)
    assert grams.inner() == pytest.approx(np.eye(N), abs=1e-12)
    with pytest.raises(ParameterError, match=r"between 1 and 7, got 8\. Leave it out"):
        ko.Grams.from_eigenvectors(K0 + K0.T, rank=8)
    with pytest.raises(NotSymmetricError, match="K0"):
        ko.Grams.from_eigenvectors(K0)


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


def test_a_stack_does_not_follow_its_source_array():
    source = stack(N)
    grams = ko.Grams.from_array(source)
    source[:] = 0.0
    assert np.array_equal(np.asarray(grams), stack(N))


def test_kernels_do_not_follow_the_points_they_were_given():
    moving, vectors, nodes = points(N), V.copy(), ["a", "b"]
    lazy, one = ko.Grams.from_kernels([ko.linear()], moving), ko.Grams.rank_one(vectors)
    words = ko.Grams.from_kernels([ko.diffusion(nx.path_graph(["a", "b", "c"]), beta=1.0)], nodes)
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


class Counting(ko.kernels.Kernel):
    """A Gaussian kernel that counts its evaluations."""

    def __init__(self):
        self.calls = 0

    def gram(self, A, B):
        self.calls += 1
        return ko.gaussian(1.0).gram(A, B)

    def __repr__(self):
        return "counting"


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
def test_images_of_stacks_too_large_to_keep(grams, Ks, rows_at_a_time, monkeypatch):
    monkeypatch.setattr(caching, "CACHE_BYTES", 0)
    monkeypatch.setattr(caching, "CHUNK_BYTES", rows_at_a_time * 8 * len(Ks) * N)
    for size in (N, 4):
        a = np.random.default_rng(3).normal(size=size)
        assert grams.apply(a) == pytest.approx(Ks[:, :, :size] @ a)


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


def test_round_off_asymmetry_is_averaged():
    skew = np.eye(3)
    skew[0, 1] = 1e-10
    K = ko.Grams.from_array(skew[None]).gram(0)
    assert np.array_equal(K, K.T) and K[0, 1] == 5e-11


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


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.full((N, N), np.nan), NotFiniteError, "broken must be finite"),
        (np.triu(np.ones((N, N))), NotSymmetricError, "broken must be symmetric"),
        (np.ones((N, 2)), ShapeError, "broken must be square"),
        (np.eye(3), ShapeError, "broken must give a matrix on 7 points"),
    ],
)
def test_a_bad_kernel_is_named(matrix, error, message):
    grams = ko.Grams.from_kernels([ko.linear(), Broken(matrix)], X)
    with pytest.raises(error, match=message):
        grams.combine([1.0, 1.0])


def test_an_indefinite_kernel_is_named():
    named = ko.Grams.from_array(np.array([np.eye(2), [[0.0, 1.0], [1.0, 0.0]]]), names=["good", "bad"])
    named.factor(0)
    with pytest.raises(NotPSDError, match="bad must be positive semidefinite"):
        named.factor(1)
    function = ko.Grams.from_kernels([Broken(-np.eye(N))], X)
    with pytest.raises(NotPSDError, match="broken must be positive semidefinite"):
        function.factor(0)


def test_kernels_in_single_precision_are_told_from_indefinite_ones():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(NotPSDError, match="compute the kernel in float64"):
        ko.Grams.from_array(np.array([(X @ X.T).astype(np.float32)])).factor(0)


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.full((2, N), np.nan), NotFiniteError, "broken must be finite"),
        (np.ones((N, N)), ShapeError, r"broken must give rows of shape \(2, 7\), got \(7, 7\)"),
    ],
)
def test_a_kernel_with_bad_rows_is_named(matrix, error, message):
    with pytest.raises(error, match=message):
        ko.Grams.from_kernels([Broken(matrix)], X).rows([0, 1])


def test_round_off_below_1e_8_is_no_indefiniteness():
    K = np.diag([1.0, 1.0, -1e-9])
    L = ko.Grams.from_array(K[None]).factor(0)
    assert L @ L.T == pytest.approx(np.diag([1.0, 1.0, 0.0]), abs=1e-12)
    with pytest.raises(NotPSDError):
        ko.Grams.from_array(np.diag([1.0, 1.0, -1e-7])[None]).factor(0)


def test_a_rank_that_lies_is_named_by_the_solve():
    class Liar(Counting):
        def gram_rank(self, A):
            return 1

    mu = cp.Variable(1, nonneg=True)
    risk = ko.risk(ko.combine(mu, ko.Grams.from_kernels([Liar()], X)), labels(N), ko.hinge())
    with pytest.raises(ParameterError, match=r"1 for a matrix of rank 7\. Correct the rank"):
        cp.Problem(cp.Minimize(risk), [mu <= 1]).solve(solver=cp.CLARABEL)


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
