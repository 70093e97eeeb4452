"""Gaussian kernels of shared distances, and how much of a kernel function is evaluated."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.errors import NotFiniteError
from kernelopt.grams import caching, evaluated
from kernelopt.grams import storage as stored
from kernelopt.methods import results
from tests.every import every
from tests.grams.stacks import STACKS, Counting
from tests.problems import labels, points

N = 30
X = points(N)
KERNELS = [ko.gaussian(0.3), ko.linear(), ko.gaussian(2.0), ko.polynomial(2), ko.gaussian(50.0)]


@pytest.fixture(params=["cached", "not cached"])
def memory(request, monkeypatch):
    if request.param == "not cached":
        monkeypatch.setattr(caching, "CACHE_BYTES", 8 * N**2)  # one matrix of the five
        monkeypatch.setattr(caching, "CHUNK_BYTES", 8 * N * 5 * 7)


def plain(kernel, X):
    """The formula of a Gaussian entry by entry, and any other kernel as it is."""
    if not isinstance(kernel, ko.gaussian):
        return kernel(X)
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * kernel.width**2))


def test_kernels_of_shared_distances_are_those_of_the_formula(memory):
    Ks = np.stack([plain(kernel, X) for kernel in KERNELS])
    rng = np.random.default_rng(0)
    for warm in (False, True):
        grams = ko.Grams.from_kernels(KERNELS, X)
        if warm:
            assert grams[2] == pytest.approx(Ks[2], rel=1e-12)
        some = np.array([N - 1, 0, 4])
        assert grams.rows(some) == pytest.approx(Ks[:, some], rel=1e-12)
        for w in (
            rng.normal(size=5),
            np.array([1.0, 0, 0, 0, 2.0]),
            np.array([0, 1.0, 0, 0, 0]),
            np.zeros(5),
        ):
            K = grams.combine(w)
            assert K == pytest.approx(np.tensordot(w, Ks, 1), rel=1e-11, abs=1e-12)
            assert np.array_equal(K, K.T)
        for a in (
            rng.normal(size=N),
            rng.normal(size=8),
            np.where(np.arange(N) % 7 == 1, -0.5, 0.0),
            np.zeros(N),
        ):
            assert grams.apply(a) == pytest.approx(Ks[:, :, : a.size] @ a, rel=1e-11, abs=1e-12)
        part = grams.subset([4, 0, 1])
        assert np.asarray(part) == pytest.approx(Ks[[4, 0, 1]], rel=1e-12)
        assert np.asarray(grams) == pytest.approx(Ks, rel=1e-12)
        assert all(np.array_equal(K, K.T) and (np.diag(K) == 1).all() for K in (grams[0], grams[2], grams[4]))


@every("scale, offset", [(1e-150, 0.0), (1e150, 0.0), (1e-3, 1e4), (1.0, -1e6)])
def test_scales_and_offsets_of_the_points_do_not_matter(scale, offset):
    grams = ko.Grams.from_kernels([ko.gaussian(2 * scale), ko.gaussian(0.5 * scale)], X * scale + offset)
    rounding = 1e-11 + 1e-14 * abs(offset) / scale  # of the points themselves
    for k, width in enumerate((2.0, 0.5)):
        assert grams[k] == pytest.approx(plain(ko.gaussian(width), X), rel=rounding, abs=rounding)
        assert grams.rows([3])[k] == pytest.approx(grams[k][[3]], rel=rounding, abs=rounding)


@every("offset, products", [(0.0, True), (0.2, True), (1e5, False)])
def test_polynomials_and_gaussians_share_the_inner_products_of_points_near_the_origin(offset, products):
    """Far from it distances of the products would lose digits, and are those of points less their mean."""
    Z = X - X.mean(axis=0) + offset
    storage = ko.Grams.from_kernels(KERNELS, Z).storage
    assert storage._products_serve == products
    calls, true = [], evaluated.distances
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluated, "distances", lambda *given: calls.append(given) or true(*given))
        Ks = list(storage)
    assert len(calls) == (not products)
    for K, kernel in zip(Ks, KERNELS, strict=True):
        exact = plain(kernel, Z)
        assert K == pytest.approx(exact, rel=1e-13, abs=1e-13 + 1e-15 * offset)
        assert np.array_equal(K, K.T) and not K.flags.writeable
    for kernel in (ko.polynomial(3, 0.0), ko.polynomial(1, 2.0), ko.linear()):
        alone = ko.Grams.from_kernels([kernel], Z).storage.gram(0)
        np.testing.assert_allclose(alone, (Z @ Z.T + kernel.offset) ** kernel.degree, rtol=1e-13)
    with pytest.raises(NotFiniteError, match=r"polynomial\(degree=2"):
        ko.Grams.from_kernels([ko.polynomial(2), ko.linear()], 1e100 * X).storage.gram(0)


def test_equal_points_have_distance_zero():
    for kernels in ([ko.gaussian(1.0)], [ko.gaussian(1.0), ko.gaussian(2.0)]):
        same = ko.Grams.from_kernels(kernels, np.ones((4, 2)))
        assert (same.rows([0, 2]) == 1).all() and (same[0] == 1).all()


@every("width, given", [(1e-320, X), (1e-200, X), (1.0, 1e308 * np.sign(X))])
def test_values_that_are_not_finite_are_refused_by_name(width, given):
    grams = ko.Grams.from_kernels([ko.gaussian(1.0 if width == 1 else width), ko.linear()], given)
    for ask in (lambda: grams[0], lambda: grams.rows([0, 1])):
        with pytest.raises(NotFiniteError, match=r"gaussian\(width=.*larger width"):
            ask()


# ----------------------------------------------------------------------- how much is evaluated


def test_images_evaluate_the_rows_of_the_support_once():
    kernel = Counting()
    grams = ko.Grams.from_kernels([kernel, ko.gaussian(1.0)], X)
    a = np.zeros(N)
    a[[2, 11, 20]] = 1.0, -2.0, 0.5
    assert grams.apply(a)[0] == pytest.approx(ko.gaussian(1.0)(X) @ a)
    assert (kernel.rows, kernel.whole) == (3, 0)
    grams.apply(a), grams.forms(a)  # the last images are kept
    assert (kernel.rows, kernel.whole) == (3, 0)
    grams.apply(np.ones(N)), grams.apply(a)  # a dense vector needs the whole matrix, which is then cached
    assert (kernel.rows, kernel.whole) == (3, N)


@every(
    "part",
    [
        lambda g: g.normalize("spherical"),
        lambda g: g.normalize("spherical").subset([1, 0]),
        lambda g: g.subset([0]),
    ],
)
def test_stacks_of_other_forms_pass_the_support_on(part):
    kernel = Counting()
    grams = part(ko.Grams.from_kernels([kernel, ko.gaussian(1.0)], X))
    a = np.where(np.arange(N) < 4, [1.0, -1.0] * (N // 2), 0.0)
    images = grams.apply(a)
    assert kernel.whole == 0
    assert images == pytest.approx(np.asarray(grams) @ a, rel=1e-10, abs=1e-12)


def test_images_of_several_machines_are_kept_while_they_are_small(monkeypatch):
    kernel, rng = Counting(), np.random.default_rng(8)
    storage = ko.Grams.from_kernels([kernel, ko.gaussian(1.0)], X).storage
    alphas = rng.standard_normal((3, N)) * (np.arange(N) < 6)
    first = [storage.images(a, np.arange(4)) for a in alphas]
    rows = kernel.rows
    again = [storage.subset(np.array([1, 0])).images(a.copy(), np.arange(4)) for a in alphas]
    assert kernel.rows == rows and all((x[::-1] == y).all() for x, y in zip(first, again, strict=True))
    monkeypatch.setattr(stored, "KEPT_BYTES", 2 * (first[0].nbytes + alphas[0].nbytes))
    storage.images(rng.standard_normal(N) * (np.arange(N) < 6), np.arange(4))
    assert len(storage._last) == 2  # the new ones and the last before them
    monkeypatch.setattr(stored, "KEPT_BYTES", 0)
    storage.images(alphas[0], np.arange(4))
    assert len(storage._last) == 1
    assert not copy.copy(storage).__getstate__().keys() & {"_last"}


@every("name", [*STACKS])
def test_images_of_several_alphas_at_once_are_those_one_by_one(name):
    rng = np.random.default_rng(3)
    alphas = rng.standard_normal((3, 9)) * (rng.random((3, 9)) < [[0.3], [0.6], [1.0]])
    grams = STACKS[name]()
    matrices = np.array(list(grams))  # which are at hand from then on
    grams.storage.keep_images(alphas)
    for a in alphas:
        np.testing.assert_allclose(grams.apply(a), matrices @ a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(grams.images(a, [4, 0, 7]), (matrices @ a)[:, [4, 0, 7]], atol=1e-9)


def test_matrices_are_read_once_for_several_alphas(monkeypatch):
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X).normalize("trace").center()
    np.array(grams)
    alphas = np.random.default_rng(4).standard_normal((3, N))
    grams.storage.keep_images(alphas)
    monkeypatch.setattr(
        evaluated.KernelStorage, "_apply", lambda *_: pytest.fail("an image was computed again")
    )
    for a in alphas:
        assert grams.apply(a).shape == (2, N)


@every("name", [*STACKS])
def test_a_block_of_a_combination_is_the_combination_of_blocks(name):
    grams, rows = STACKS[name](), np.array([5, 0, 3])
    w = np.random.default_rng(5).random(len(grams)) * (np.arange(len(grams)) != 1)
    for _ in range(2):  # before and after the matrices are known
        found = grams.storage.combine_block(w, rows)
        expected = np.tensordot(w, np.array(list(grams)), 1)[np.ix_(rows, rows)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_images_of_matrices_that_no_cache_holds_never_evaluate_a_whole_one(monkeypatch):
    monkeypatch.setattr(caching, "CACHE_BYTES", 0)
    kernel = Counting()
    grams = ko.Grams.from_kernels([kernel, kernel], X)
    assert grams.apply(np.ones(N))[0] == pytest.approx(ko.gaussian(1.0)(X).sum(axis=1))
    assert (kernel.rows, kernel.whole) == (2 * N, 0)


@every("metric, kernel", [("sqeuclidean", ko.gaussian), ("cityblock", ko.laplacian)])
def test_distances_are_computed_once_for_all_kernels_of_a_distance(metric, kernel):
    calls, true = [], evaluated.distances

    def counted(left, right, metric):
        calls.append((metric, len(left)))
        return true(left, right, metric)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluated, "distances", counted)
        kernels = [kernel(0.5 + k) for k in range(20)]
        grams = ko.Grams.from_kernels(kernels, X)
        grams.rows([1, 2]), list(grams), list(grams.subset([3, 2]))
        assert calls == [(metric, 2), (metric, N)]
        patch.setattr(caching, "CACHE_BYTES", 0)
        ko.Grams.from_kernels(kernels, X).combine(np.ones(20))
        assert calls[2:] == [(metric, N)]


@every("margin, whole", [(results.PATIENCE.training, True), (np.inf, False)])
def test_machines_are_trained_for_a_certificate_only_where_the_time_suffices(margin, whole):
    """Their kernels are evaluated whole, which cannot be interrupted. An infinite margin has no time left."""
    kernels = [Counting(), Counting()]
    problem = lp_norm.primal(ko.Grams.from_kernels(kernels, X), labels(N), p=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "PATIENCE", replace(results.PATIENCE, training=margin))
        with pytest.warns(ko.ConvergenceWarning):
            solution = problem.solve("interleaved", tol=1e-13, time_limit=1000, chunk=4, max_chunks=5)
    assert np.isfinite(solution.certificate.gap) and solution.certificate.feasible
    assert all((kernel.whole > 0) == whole for kernel in kernels)


def test_forms_of_all_points_are_summed_without_a_matrix(memory, monkeypatch):
    monkeypatch.setattr(evaluated, "PAIRS", 4 * N)
    storage, a = ko.Grams.from_kernels(KERNELS, X).storage, np.random.default_rng(5).standard_normal(N)
    expected = [a @ plain(kernel, X) @ a for kernel in KERNELS]
    np.testing.assert_allclose(storage.passing_forms(a), expected, rtol=1e-11)
    assert not any(i in storage._cache for i in range(len(KERNELS)))
    assert storage.quick
    for other in (ko.laplacian(1.0), 2.0 * ko.laplacian(1.0), ko.normalized(ko.laplacian(1.0))):
        assert not ko.Grams.from_kernels([ko.linear(), other], X).storage.quick
    assert not ko.Grams.from_kernels([ko.linear()], np.zeros((3, 100))).storage.quick


def test_points_that_come_twice_are_themselves_each_time():
    rows, columns = np.array([4, 1, 4, 7]), np.array([1, 9, 4, 1, 4])
    first, second = evaluated.own_entries(rows, columns)
    expected = {(i, j) for i in range(4) for j in range(5) if rows[i] == columns[j]}
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected and first.size == len(expected)
