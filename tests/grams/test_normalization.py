"""Centred and scaled stacks against the same operations on explicit features, and on plain matrices."""

from __future__ import annotations

import itertools

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.errors import InputError, NotPSDError, ParameterError, ShapeError
from kernelopt.grams import caching
from tests.every import every
from tests.grams.stacks import Counting, check
from tests.problems import labels, points, solved, stack

N, NEW = 7, 4
X, X_NEW = points(N), points(NEW, seed=9)
EVERYONE = np.concatenate([X, X_NEW])
KERNELS = [ko.gaussian(1.0), ko.linear(), ko.polynomial(2), 0.5 * ko.laplacian(2.0) + ko.linear()]
KINDS = ("multiplicative", "spherical", "trace")
STEPS = ("center", *KINDS)
CHAINS = [chain for length in (1, 2) for chain in itertools.product(STEPS, repeat=length)]
LONG_CHAINS = CHAINS + list(itertools.product(STEPS, repeat=3))
chains = every("chain", CHAINS, ids=".".join)
long_chains = every("chain", LONG_CHAINS, ids=".".join)


def ours(grams, chain):
    for step in chain:
        grams = grams.center() if step == "center" else grams.normalize(step)
    return grams


def on_features(F, step, own):
    """A step on features, shape (points, features), with the mean and the scale of the points `own`."""
    if step == "center":
        return F - F[own].mean(axis=0)
    if step == "multiplicative":
        return F / np.sqrt(((F[own] - F[own].mean(axis=0)) ** 2).sum(axis=1).mean())
    if step == "trace":
        return F / np.sqrt((F[own] ** 2).sum(axis=1).mean())
    return F / np.linalg.norm(F, axis=1, keepdims=True)


def on_matrix(K, step):
    """A step on one matrix, entry by entry as the papers write it."""
    n = len(K)
    if step == "center":
        H = np.eye(n) - np.ones((n, n)) / n
        return H @ K @ H
    if step == "spherical":
        return np.array([[K[i, j] / np.sqrt(K[i, i] * K[j, j]) for j in range(n)] for i in range(n)])
    return K / (np.trace(K) / n - (K.sum() / n**2 if step == "multiplicative" else 0.0))


def features(kernel, Z):
    """Features whose inner products are the kernel on Z; explicit for polynomials."""
    if kernel == ko.linear():
        return Z
    if kernel == ko.polynomial(2):
        pairs = itertools.combinations(range(Z.shape[1]), 2)
        mixed = np.stack([np.sqrt(2) * Z[:, i] * Z[:, j] for i, j in pairs], axis=1)
        return np.concatenate([np.ones((len(Z), 1)), np.sqrt(2) * Z, Z**2, mixed], axis=1)
    values, vectors = np.linalg.eigh(kernel(Z))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def expected(chain, own=slice(0, N), base=None):
    """The features of all points after a chain of steps, one array per kernel."""
    found = [features(k, EVERYONE) for k in KERNELS] if base is None else base
    for step in chain:
        found = [on_features(F, step, own) for F in found]
    return found


# ------------------------------------------------------------------ every composition, on all points


@long_chains
def test_a_chain_of_steps_is_the_chain_on_features(chain):
    grams, found = ours(ko.Grams.from_kernels(KERNELS, X), chain), expected(chain)
    check(grams, np.stack([F[:N] @ F[:N].T for F in found]))
    assert grams.names == ko.Grams.from_kernels(KERNELS, X).names


@long_chains
def test_new_points_meet_the_training_constants(chain):
    grams, found = ours(ko.Grams.from_kernels(KERNELS, X), chain), expected(chain)
    cross = np.stack([F[N:] @ F[:N].T for F in found])
    assert grams.cross(X_NEW) == pytest.approx(cross, rel=1e-8, abs=1e-9)
    lengths = np.stack([(F[N:] ** 2).sum(axis=1) for F in found])
    assert grams.self_similarity(X_NEW) == pytest.approx(lengths, rel=1e-8, abs=1e-9)
    assert grams.cross(X) == pytest.approx(np.asarray(grams), rel=1e-8, abs=1e-9)
    assert grams.self_similarity(X) == pytest.approx(grams.diagonals, rel=1e-8, abs=1e-9)


@chains
@every("rows", [slice(0, 4), np.array([5, 0, 2])], ids=["slice", "indices"])
def test_a_block_keeps_the_constants_of_all_points(chain, rows):
    grams, found = ours(ko.Grams.from_kernels(KERNELS, X), chain), expected(chain)
    block = grams.block(rows)
    part = [F[:N][rows] for F in found]
    check(block, np.stack([F @ F.T for F in part]))
    cross = np.stack([F[N:] @ P.T for F, P in zip(found, part, strict=True)])
    assert block.cross(X_NEW) == pytest.approx(cross, rel=1e-8, abs=1e-9)
    assert block.self_similarity(X_NEW) == pytest.approx(grams.self_similarity(X_NEW), rel=1e-12)
    inner = block.block([2, 0])
    check(inner, np.stack([P[[2, 0]] @ P[[2, 0]].T for P in part]))
    assert inner.cross(X_NEW) == pytest.approx(cross[:, :, [2, 0]], rel=1e-8, abs=1e-9)


@every("later", STEPS)
@pytest.mark.parametrize("first", STEPS)
def test_a_step_on_a_block_has_the_constants_of_the_block(first, later):
    rows = np.array([6, 1, 3, 4])
    grams = ours(ours(ko.Grams.from_kernels(KERNELS, X), [first]).block(rows), [later])
    found = expected([later], own=rows, base=expected([first]))
    check(grams, np.stack([F[rows] @ F[rows].T for F in found]))
    cross = np.stack([F[N:] @ F[rows].T for F in found])
    assert grams.cross(X_NEW) == pytest.approx(cross, rel=1e-8, abs=1e-9)


def full_rank(n):
    A = np.random.default_rng(6).normal(size=(2, n, n))
    return A @ np.swapaxes(A, 1, 2)


STORED = {
    "array": (ko.Grams.from_array(stack(N)), stack(N)),
    "rank one": (ko.Grams.rank_one(X), np.stack([np.outer(v, v) for v in X.T])),
    "identity": (ko.Grams.identity(N), np.eye(N)[None]),
    "float32": (ko.Grams.from_array(full_rank(N).astype(np.float32)), full_rank(N).astype(np.float32)),
    "integers": (ko.Grams.from_array([[[2, 1], [1, 3]]]), np.array([[[2.0, 1.0], [1.0, 3.0]]])),
}


@chains
@every(("grams", "Ks"), STORED.values(), ids=STORED)
def test_matrices_without_kernels_are_scaled_by_the_formulas(grams, Ks, chain):
    Ks = Ks.astype(float)
    for step in chain:
        Ks = np.stack([on_matrix(K, step) for K in Ks])
    check(ours(grams, chain), Ks)
    rows = np.array([1, 0])
    check(ours(grams, chain).block(rows), Ks[:, rows][:, :, rows])


# ------------------------------------------------------------------ what each step promises


def test_multiplicative_features_have_variance_one():
    for matrix in ko.Grams.from_kernels(KERNELS, X).normalize("multiplicative"):
        values, vectors = np.linalg.eigh(matrix)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        assert F.var(axis=0).sum() == pytest.approx(1.0)


def test_centred_features_have_mean_zero():
    grams = ko.Grams.from_kernels(KERNELS, X).center()
    assert grams.row_means == pytest.approx(np.zeros((len(KERNELS), N)), abs=1e-13)
    assert grams.cross(X_NEW).mean(axis=2) == pytest.approx(np.zeros((len(KERNELS), NEW)), abs=1e-13)


def test_spherical_diagonal_is_exactly_one_and_trace_is_the_number_of_points():
    grams = ko.Grams.from_kernels(KERNELS, X)
    spherical = grams.normalize("spherical")
    assert (spherical.diagonals == 1).all() and (np.einsum("mii->mi", np.asarray(spherical)) == 1).all()
    assert np.array_equal(np.asarray(spherical), np.swapaxes(np.asarray(spherical), 1, 2))
    assert (spherical.self_similarity(X_NEW) == 1).all()
    assert grams.normalize("trace").traces == pytest.approx(np.full(len(KERNELS), float(N)))


def test_spherical_is_the_normalized_kernel():
    kernels = [ko.normalized(k) for k in KERNELS]
    grams, same = ko.Grams.from_kernels(KERNELS, X).normalize("spherical"), ko.Grams.from_kernels(kernels, X)
    assert np.asarray(grams) == pytest.approx(np.asarray(same))
    assert grams.cross(X_NEW) == pytest.approx(same.cross(X_NEW))


def test_two_points_worked_out_by_hand():
    """Features 1 and 3: variance 1, mean 2, mean square 5."""
    grams = ko.Grams.from_kernels([ko.linear()], [[1], [3]])
    assert grams.normalize("multiplicative")[0].tolist() == [[1, 3], [3, 9]]
    assert grams.center()[0].tolist() == [[1, -1], [-1, 1]]
    assert grams.normalize("spherical")[0].tolist() == [[1, 1], [1, 1]]
    assert grams.normalize("trace")[0] == pytest.approx(np.array([[1, 3], [3, 9]]) / 5)
    assert grams.center().cross([[5]]).tolist() == [[[-3, 3]]]
    assert grams.center().normalize("spherical").cross([[5], [0]]).tolist() == [[[-1, 1], [1, -1]]]


@pytest.mark.parametrize("kind", KINDS)
def test_normalising_forgets_the_scale(kind):
    scaled = ko.Grams.from_kernels([1e-9 * k for k in KERNELS], X).normalize(kind)
    assert np.asarray(scaled) == pytest.approx(np.asarray(ko.Grams.from_kernels(KERNELS, X).normalize(kind)))


def test_nodes_of_a_graph_are_centred_and_scaled_too():
    graph = nx.path_graph(["a", "b", "c", "d", "e"])
    kernel = ko.diffusion(graph, beta=0.7)
    grams = ko.Grams.from_kernels([kernel], ["a", "b", "d"]).center().normalize("multiplicative")
    everyone = ["a", "b", "d", "c", "e"]
    values, vectors = np.linalg.eigh(kernel(everyone))
    F = vectors * np.sqrt(values)
    F = on_features(on_features(F, "center", slice(0, 3)), "multiplicative", slice(0, 3))
    check(grams, (F[:3] @ F[:3].T)[None])
    assert grams.cross(["c", "e"])[0] == pytest.approx(F[3:] @ F[:3].T)


def test_identity_kernels_know_no_new_point():
    """A new point is orthogonal to all others: centred, its feature is e_new - (1/N, ..., 1/N)."""
    for grams in (ko.Grams.identity(N), ko.Grams.from_kernels([ko.identity()], X)):
        check(grams.center(), (np.eye(N) - 1 / N)[None])
        assert grams.center().cross(X_NEW) == pytest.approx(np.zeros((1, NEW, N)), abs=1e-15)
        assert grams.center().self_similarity(X_NEW) == pytest.approx(np.full((1, NEW), 1 + 1 / N))
        assert grams.self_similarity(X_NEW).tolist() == [[1.0] * NEW]


def test_a_machine_learned_on_scaled_kernels_predicts_new_points():
    """The way of docs/tour.md, against the same problem on the scaled matrices as arrays."""
    y = labels(N)
    lazy = ko.Grams.from_kernels(KERNELS, X).center().normalize("multiplicative")
    scores = []
    for grams in (lazy, np.asarray(lazy)):
        mu = cp.Variable(len(KERNELS), nonneg=True)
        problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, grams), y, ko.hinge())), [cp.sum(mu) <= 1])
        scores.append(ko.solve(problem, "exact", tol=1e-8).decision_function(lazy.cross(X_NEW)))
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)  # the root of the gap


def test_labelled_points_are_a_block_of_all():
    """Transduction: the risk sees the first points, scaled by the constants of all."""
    lazy = ko.Grams.from_kernels(KERNELS, X).normalize("spherical").center().normalize("trace")
    values = []
    for grams in (lazy, np.asarray(lazy)):
        mu = cp.Variable(len(KERNELS), nonneg=True)
        risk = ko.risk(ko.combine(mu, grams), labels(N)[:5], ko.squared_hinge())
        problem = cp.Problem(cp.Minimize(risk + ko.trace(ko.combine(mu, grams))))
        values.append(solved(problem))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


# ------------------------------------------------------------------ laziness and memory


@chains
def test_nothing_is_evaluated_before_it_is_needed(chain):
    kernel = Counting()
    grams = ours(ko.Grams.from_kernels([kernel, ko.linear()], X), chain)
    block = grams.block(slice(0, 5))
    mu = cp.Variable(2, nonneg=True)
    risk = ko.risk(ko.combine(mu, grams), labels(N)[:5], ko.hinge())
    assert cp.Problem(cp.Minimize(risk)).is_dcp()
    assert grams.rank_bounds == (N, 3) and block.rank_bounds == (5, 3)
    assert repr(grams) == "Grams(2 kernels on 7 points: counting, linear())"
    assert kernel.entries == 0


@chains
def test_each_matrix_is_evaluated_once_where_it_can_be_kept(chain):
    kernel = Counting()
    grams = ours(ko.Grams.from_kernels([kernel], X), chain)
    for _ in range(2):
        grams.combine([1.0]), grams.gram(0), grams.forms(np.ones(N)), grams.rows([1, 2]), grams.factor(0)
    assert kernel.entries == N**2 + N  # the matrix, and its diagonal


@chains
def test_rows_of_stacks_too_large_to_keep_come_without_whole_matrices(chain, monkeypatch):
    kernel = Counting()
    monkeypatch.setattr(caching, "CACHE_BYTES", 0)
    monkeypatch.setattr(caching, "CHUNK_BYTES", 8 * 2 * N)  # two rows of the one kernel
    grams = ours(ko.Grams.from_kernels([kernel], X), chain)
    rows = grams.rows([3, 0])
    after_constants = kernel.entries
    assert grams.rows([3, 0]) == pytest.approx(rows, abs=0)
    assert kernel.entries == after_constants + 2 * N
    images = grams.apply(np.arange(N))
    assert kernel.largest == 2 * N
    monkeypatch.undo()
    whole = ours(ko.Grams.from_kernels([Counting()], X), chain)
    assert rows == pytest.approx(np.asarray(whole)[:, [3, 0]], rel=1e-10, abs=1e-12)
    assert images == pytest.approx(np.asarray(whole) @ np.arange(N), rel=1e-10, abs=1e-12)


def test_scaled_matrices_are_kept_up_to_the_limit(monkeypatch):
    base = ko.Grams.from_kernels([Counting(), Counting(), Counting()], X)
    grams = base.normalize("spherical")
    monkeypatch.setattr(caching, "CACHE_BYTES", 2 * 8 * N**2)
    assert [grams.gram(i) is grams.gram(i) for i in range(3)] == [True, True, False]
    assert np.array_equal(grams.gram(2), grams.gram(2))


@every("kind", ["multiplicatve", "Spherical", "", None, 2, ["trace"], ("trace",)])
def test_an_unknown_kind_is_refused_at_once(kind):
    with pytest.raises(
        ParameterError,
        match=r"kind of Grams.* must be 'multiplicative', 'spherical' or 'trace', got .*Choose 'mult",
    ):
        ko.Grams.from_kernels(KERNELS, X).normalize(kind)


# ------------------------------------------------------------------ inputs that must be refused


class Constant(ko.Kernel):
    """The same value between all points."""

    def __init__(self, value):
        self.value = value

    def gram(self, A, B):
        return np.full((len(A), len(A if B is None else B)), self.value)

    def __repr__(self):
        return f"constant {self.value:g}"


STRETCHES = every("value", [1.0, 0.1, 1e-7, 12345.678])


@STRETCHES
@every("chain", [(), ("center",), ("trace",), ("spherical",), ("spherical", "center")], ids=str)
def test_a_constant_kernel_has_no_variance(value, chain):
    grams = ours(ko.Grams.from_kernels([ko.linear(), Constant(value)], points(50)), chain)
    grams = grams.normalize("multiplicative")
    for read in (lambda: grams.gram(0), lambda: grams.combine([1, 1]), lambda: grams.cross(points(2))):
        with pytest.raises(InputError, match=r"constant .* must have features that vary .* leave it out"):
            read()
    with pytest.raises(InputError, match="constant"):
        grams.block(slice(0, 3)).gram(0)


def test_round_off_is_no_variance():
    """The computed variance of a constant kernel is positive for some sizes and values, by round-off."""
    sizes, values = range(2, 40), np.random.default_rng(7).uniform(0.1, 10.0, 38)
    for n, value in zip(sizes, values, strict=True):
        K = np.full((1, n, n), value)
        with pytest.raises(InputError, match="must have features that vary beyond round-off"):
            ko.Grams.from_array(K).normalize("multiplicative").gram(0)
    barely = np.ones((2, 2)) + 1e-9 * np.eye(2)
    assert ko.Grams.from_array(barely[None]).normalize("multiplicative").gram(0) == pytest.approx(
        barely / 5e-10, rel=1e-6
    )


@STRETCHES
def test_a_centred_constant_kernel_is_zero_not_indefinite(value):
    grams = ko.Grams.from_kernels([Constant(value)], points(50)).center()
    assert (grams.diagonals == 0).all() and grams.factor(0).shape == (50, 0)
    assert grams.cross(points(3)) == pytest.approx(np.zeros((1, 3, 50)), abs=1e-12 * value)
    for kind, message in (
        ("spherical", "got 0 at point 0"),
        ("trace", "positive trace, got 0 over 50 points"),
    ):
        with pytest.raises(InputError, match=f"constant .* {message}"):
            grams.normalize(kind).gram(0)
    with pytest.raises(InputError, match="constant .* must have features that vary"):
        grams.block(slice(0, 9)).normalize("multiplicative").gram(0)


def test_a_zero_kernel_has_no_scale():
    zero = ko.Grams.from_array(np.stack([np.eye(3), np.zeros((3, 3))]), names=["one", "none"])
    for kind, message in (
        ("multiplicative", "none must have features that vary beyond round-off, got variance 0"),
        (
            "spherical",
            r"none must be positive between a point and itself, got 0 at point 0 .* Drop that point",
        ),
        ("trace", "none must have a positive trace, got 0 over 3 points in normalize.* leave it out"),
    ):
        with pytest.raises(InputError, match=message):
            zero.normalize(kind).combine([1.0, 1.0])
    check(zero.center(), np.stack([on_matrix(np.eye(3), "center"), np.zeros((3, 3))]))


def test_a_point_at_the_origin_has_no_direction():
    """The origin for the linear kernel, the mean for the centred one, among old points and new."""
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], [[1.0], [0.0], [2.0]])
    with pytest.raises(InputError, match=r"linear\(\) must be positive .* got 0 at point 1 in normalize"):
        grams.normalize("spherical").gram(0)
    with pytest.raises(InputError, match=r"linear\(\) must be positive .* got 0 at X_new\[1\] in normalize"):
        grams.block([0, 2]).normalize("spherical").cross([[1.0], [0.0]])
    with pytest.raises(InputError, match=r"linear\(\) must be positive .* got 0 at point 0 in normalize"):
        grams.center().normalize("spherical").gram(0)
    with pytest.raises(InputError, match=r"linear\(\) must be positive .* got 0 at X_new\[2\] in normalize"):
        grams.block([0, 1]).center().normalize("spherical").cross([[1.0], [0.0], [0.5]])


def test_a_single_point():
    grams = ko.Grams.from_kernels(KERNELS, X[:1])
    assert (np.asarray(grams.center()) == 0).all()
    assert [grams.center().factor(i).any() for i in range(4)] == [False] * 4
    assert np.asarray(grams.normalize("spherical")).tolist() == [[[1.0]]] * 4
    assert np.asarray(grams.normalize("trace")) == pytest.approx(np.ones((4, 1, 1)))
    with pytest.raises(InputError, match="gaussian.* over 1 points"):
        grams.normalize("multiplicative").gram(0)


@chains
def test_new_points_need_kernel_functions(chain):
    for base in (ko.Grams.from_array(stack(N)), ko.Grams.rank_one(X)):
        with pytest.raises(InputError, match=r"cross kernels need .*, got Grams.*pass the \(m, n_new, N\)"):
            ours(base, chain).cross(X_NEW)
        if chain[-1] != "spherical":
            with pytest.raises(InputError, match="new points .* functions.*from_kernels|cross kernels"):
                ours(base, chain).self_similarity(X_NEW)
    with pytest.raises(ShapeError, match="X_new must have 3 columns"):
        ours(ko.Grams.from_kernels(KERNELS, X), chain).cross(X_NEW[:, :2])
    with pytest.raises(ShapeError, match="X_new must have 3 columns"):
        ours(ko.Grams.from_kernels(KERNELS, X), chain).self_similarity(X_NEW[:, :2])


def test_an_indefinite_matrix_stays_indefinite_when_centred():
    """Zero diagonal and zero row sums: centring changes nothing, and the factor is refused, not zero."""
    K = np.array([[0, 1, -1, 0], [1, 0, 0, -1], [-1, 0, 0, 1], [0, -1, 1, 0]], dtype=float)
    grams = ko.Grams.from_array(K[None], names=["twisted"]).center()
    assert np.array_equal(grams.gram(0), K)
    with pytest.raises(NotPSDError, match="twisted must be positive semidefinite"):
        grams.factor(0)
    shifted = ko.Grams.from_array((K + np.eye(4))[None], names=["twisted"]).normalize("spherical")
    with pytest.raises(NotPSDError, match="twisted must be positive semidefinite"):
        shifted.factor(0)


# ------------------------------------------------------------------ numerics


@pytest.mark.parametrize("distance", [1.0, 2000.0, 1e5])
def test_a_cloud_far_from_the_origin_keeps_its_rank(distance):
    """Centring years around 2000 leaves round-off, which is neither rank nor indefiniteness."""
    far = points(40) * [1.0, 3.0, 2.0] + [distance, -0.3 * distance, 40.0]
    grams = ko.Grams.from_kernels([ko.linear()], far).center()
    F = far - far.mean(axis=0)
    near = {"abs": 1e-10 + 1e-14 * distance**2}
    assert grams.gram(0) == pytest.approx(F @ F.T, **near)
    assert grams.factor(0).shape == (40, 3)
    assert grams.factor(0) @ grams.factor(0).T == pytest.approx(F @ F.T, **near)
    unit = F / np.linalg.norm(F, axis=1, keepdims=True)
    spherical = grams.normalize("spherical")
    assert spherical.factor(0).shape == (40, 3) and spherical.rank_bounds == (3,)
    assert spherical.factor(0) @ spherical.factor(0).T == pytest.approx(unit @ unit.T, **near)


def test_a_wide_gaussian_is_centred_to_its_linear_part():
    """exp(-|x-z|^2 / 2w^2) is 1 + x'z / w^2 + ... up to what centring removes; factors follow to 1e-7."""
    wide = ko.Grams.from_kernels([ko.gaussian(1000.0)], X).center().normalize("multiplicative")
    F = on_features(X - X.mean(axis=0), "multiplicative", slice(0, N))
    assert wide.gram(0) == pytest.approx(F @ F.T, abs=1e-5)
    L = wide.factor(0)
    assert L @ L.T == pytest.approx(wide.gram(0), abs=1e-8)


def test_lengths_over_many_orders_are_scaled_one_by_one():
    """Points from 1e-4 to 1e4 have kernels from 1e-16 to 1e16, of which a factor would drop the small."""
    spread = points(8) * np.logspace(-4, 4, 8)[:, None]
    unit = spread / np.linalg.norm(spread, axis=1, keepdims=True)
    grams = ko.Grams.from_kernels([ko.polynomial(2, offset=0.0)], spread).normalize("spherical")
    assert grams.gram(0) == pytest.approx((unit @ unit.T) ** 2)
    assert grams.factor(0) @ grams.factor(0).T == pytest.approx((unit @ unit.T) ** 2, abs=1e-10)


def test_a_rank_that_lies_is_named_by_the_solve_at_every_scaling():
    class Liar(Counting):
        def gram_rank(self, A):
            return 1

    for chain in ((), ("spherical",), ("multiplicative",), ("center",), ("center", "spherical")):
        grams = ours(ko.Grams.from_kernels([Liar()], X), chain)
        mu = cp.Variable(1, nonneg=True)
        risk = ko.risk(ko.combine(mu, grams), labels(N), ko.hinge())
        with pytest.raises(ParameterError, match=r"1 for a matrix of rank [67]\. Correct the rank"):
            cp.Problem(cp.Minimize(risk), [mu <= 1]).solve(solver=cp.CLARABEL)


@every(
    "build, message",
    [
        (
            lambda grams: grams.normalize("multiplicative"),
            "normalize('multiplicative') needs all 44,850 pairs of 300",
        ),
        (lambda grams: grams.center(), "center() needs all 44,850 pairs of 300 points"),
    ],
)
def test_work_on_all_pairs_says_so_before_it_starts(build, message, monkeypatch, capsys):
    """Where no matrix of them is kept; with what would avoid it."""
    Z, y = points(300), labels(300)
    kernels = [ko.gaussian(1.0), ko.linear()]
    for limit, said in ((10**9, False), (1000, True)):
        monkeypatch.setattr(caching, "CACHE_BYTES", limit)
        for verbose in (False, True):
            grams = build(ko.Grams.from_kernels(kernels, Z))
            lp_norm.primal(grams, y, p=1).solve("newton", tol=0.1, verbose=verbose)
            assert (message in capsys.readouterr().err) == (said and verbose)
