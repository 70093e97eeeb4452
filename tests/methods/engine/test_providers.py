"""Providers of kernels on points and of compressible stacks against plain formulas."""

import multiprocessing
import tracemalloc
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import kernelopt as ko
from formulations import lp_norm
from kernelopt import Kernel
from kernelopt.extend import Profile
from kernelopt.grams import caching
from kernelopt.methods.engine import choice
from kernelopt.methods.engine.choice import choose_provider, numerical_basis
from kernelopt.methods.engine.family import family
from kernelopt.methods.engine.method import Newton
from kernelopt.methods.engine.panels import Panels
from kernelopt.methods.engine.radial import Radial
from kernelopt.structure.ball import read_ball
from kernelopt.structure.structure import Structure
from tests.every import every
from tests.problems import overlap

N, LABELLED = 44, 37


@dataclass(frozen=True)
class cauchy(Kernel):
    """1 / (1 + |x - z|^2 / width^2), a user's kernel that says so."""

    width: float

    def gram(self, X, Z):
        D = ((X[:, None] - (X if Z is None else Z)[None]) ** 2).sum(axis=2)
        return 1 / (1 + D / self.width**2)

    def profile(self):
        return Profile("sqeuclidean", lambda d: 1 / (1 + d / self.width**2), 1.0)


@dataclass(frozen=True)
class silent(cauchy):
    """The same kernel, without a word on distances."""

    def profile(self):
        return None


def points(rng, d=3, scale=1.0):
    X = scale * (5 + rng.standard_normal((N, d)))
    X[7], X[20], X[21] = X[3], X[3], X[30]
    return X


def mixture(scale=1.0):
    wide = [ko.gaussian(scale * s) for s in np.geomspace(0.1, 10, 6)]
    return [*wide, 2 * ko.gaussian(scale) * ko.gaussian(2 * scale), ko.gaussian(scale) + 0.5 * ko.identity()]


def plain(grams, reach):
    """The kernels on the labelled points, evaluated as whole matrices by the kernels themselves."""
    return reach[:, None, None] * np.asarray(grams)[:, :LABELLED, :LABELLED]


def agrees(provider, Ks, seed=1):
    """Compare every operation on working sets that shrink, grow, and change their order."""
    rng = np.random.default_rng(seed)
    m, dtype = len(Ks), np.float64 if provider.name == "float64" else np.float32
    # An entry is rounded to float32, and so is the sum of some; 2^-26 covers the float64 operations.
    stored = provider.name in ("precomputed", "on the fly") and provider.U is None
    of_block, of_images = (2**-23 + 2**-26, 1e-7) if stored else (4e-6, 2e-6)
    of_block, of_images = (1e-13, 1e-13) if dtype is np.float64 else (of_block, of_images)
    A = rng.permutation(LABELLED)[:12]
    for step in range(6):
        provider.activate(A)
        for w in (rng.uniform(0, 1, m), np.eye(m)[step % m], np.zeros(m)):
            unit, expected = provider.unit(w), np.tensordot(w, Ks[:, A][:, :, A], 1)
            block = provider.combined(w)
            assert block.dtype == dtype and block.flags.c_contiguous and (block == block.T).all()
            assert np.abs(unit * block.astype(float) - expected).max() <= of_block * unit
            places = rng.permutation(A.size)[:4]
            expected = block[np.ix_(places, places)]  # before the memory of the block is freed
            assert np.array_equal(provider.entries(w, places).astype(dtype), expected)
        c = rng.standard_normal(A.size) * (rng.uniform(size=A.size) < (0.6, 0.2, 0.0)[step % 3])
        chosen = np.flatnonzero(c)
        sizes = np.abs(c).sum() * Ks.diagonal(axis1=1, axis2=2).max(axis=1)
        images = Ks[:, A] @ np.bincount(A, c, LABELLED)
        for wanted in (chosen, np.arange(A.size)):
            error = np.abs(provider.images(c, wanted) - images[:, wanted])
            assert (error <= of_images * sizes[:, None]).all()
        support, some = A[chosen], rng.permutation(LABELLED)[:30]
        for where in (support, A, some, np.arange(LABELLED)):
            exact = Ks[:, where][:, :, support] @ c[chosen]
            error = np.abs(provider.exact_images(support, c[chosen], where) - exact)
            assert (error <= 1e-13 * sizes[:, None]).all()
        for w in (rng.uniform(0, 1, m), np.eye(m)[step % m], np.zeros(m)):
            f = np.tensordot(w, Ks[:, some][:, :, support], 1) @ c[chosen]
            error = np.abs(provider.predict(w, support, c[chosen], some) - f).max()
            assert error <= provider.prediction_error(w) * np.abs(c).sum() + 1e-13 * float(w @ sizes)
            exact = provider.exact_predictions(w, support, c[chosen], some)
            assert np.abs(exact - f).max() <= 1e-13 * float(w @ sizes)
        others = np.setdiff1d(np.arange(LABELLED), A)
        A = np.r_[np.delete(A, [1, 4, 5]), rng.permutation(others)[: 1 + 2 * (step % 3)]]
        A = rng.permutation(A) if step == 4 else A


def providers(kernels, X, reach, normalization=None):
    grams = ko.Grams.from_kernels(kernels, X)
    grams = grams.normalize(normalization) if normalization else grams
    read = family(grams.storage)
    if read is not None:
        yield Radial(read, grams, reach, LABELLED)
        yield Radial(read, grams, reach, LABELLED, exact=True)
    for memory in (1e3, 6e3, 1e9):
        yield Panels(grams, reach, LABELLED, "on the fly", memory)
    yield Panels(grams, reach, LABELLED, "float64", 6e3, np.float64)


@pytest.mark.slow
@every("scale, d", [(1.0, 3), (1e30, 2), (1e-30, 1), (1.0, 1), (1.0, 40)])
def test_functions_of_one_distance(scale, d):
    rng = np.random.default_rng(0)
    X, kernels, reach = points(rng, d, scale), mixture(scale * np.sqrt(d)), rng.uniform(0.5, 2, 8)
    Ks = plain(ko.Grams.from_kernels(kernels, X), reach)
    found = list(providers(kernels, X, reach))
    assert [p.name for p in found] == ["radial"] * 2 + ["on the fly"] * 3 + ["float64"]
    for provider in found:
        agrees(provider, Ks)


@every("normalization", ["trace", "spherical", "multiplicative"])
def test_normalised_functions_of_one_distance(normalization):
    rng = np.random.default_rng(0)
    X, reach = points(rng), rng.uniform(0.5, 2, 8)
    Ks = plain(ko.Grams.from_kernels(mixture(), X).normalize(normalization), reach)
    for provider in providers(mixture(), X, reach, normalization):
        agrees(provider, Ks)


def test_distances_of_the_working_set_are_computed_once():
    rng = np.random.default_rng(0)
    grams = ko.Grams.from_kernels(mixture(), points(rng))
    provider = Radial(family(grams.storage), grams, np.ones(8), LABELLED)
    A, c, w = rng.permutation(LABELLED)[:20], rng.standard_normal(5), np.full(8, 0.1)
    provider.activate(A)
    before = provider.passes
    provider.predict(w, A[:5], c, A)
    assert provider.passes == before
    provider.predict(w, A[:5], c, np.arange(LABELLED))
    assert provider.passes == pytest.approx(before + 5 * (LABELLED - 20) / LABELLED**2)


def test_other_distances_coinciding_points_and_kernels_without_a_distance():
    rng = np.random.default_rng(0)
    X = points(rng)
    columns = [ko.on_columns(ko.gaussian(s), [0, 2]) for s in (0.3, 1.0)]
    names = {"radial": 6, "on the fly": 4}
    for kernels, Xs, name in [
        ([ko.laplacian(1.0), ko.laplacian(0.1) + ko.identity()], X, "radial"),
        ([*columns, ko.on_columns(ko.on_columns(ko.gaussian(1.0), [2, 1]), [0, 2, 0])], X, "radial"),
        ([*columns, ko.on_columns(ko.gaussian(1.0), [0, 1])], X, "on the fly"),
        (columns, X, "radial"),
        ([ko.identity(), 3 * ko.identity()], X, "radial"),
        ([cauchy(1.0), ko.gaussian(1.0)], X, "radial"),
        ([silent(1.0), ko.gaussian(1.0)], X, "on the fly"),
        ([ko.gaussian(1.0), ko.gaussian(2.0)], np.ones((N, 2)), "radial"),
        ([ko.gaussian(1.0), ko.laplacian(1.0)], X, "on the fly"),
        (
            [ko.polynomial(2), ko.linear(), ko.gaussian(1.0), *columns, ko.normalized(ko.linear())],
            X,
            "on the fly",
        ),
    ]:
        reach = rng.uniform(0.5, 2, len(kernels))
        Ks = plain(ko.Grams.from_kernels(kernels, Xs), reach)
        found = list(providers(kernels, Xs, reach))
        assert (found[0].name, len(found)) == (name, names[name])
        for provider in found:
            agrees(provider, Ks)


def stored(scales=(1.0,) * 5):
    rng = np.random.default_rng(0)
    V = rng.standard_normal((5, N, 6))
    Ks = np.asarray(scales)[:, None, None] * (V @ V.transpose(0, 2, 1))
    grams, reach = ko.Grams.from_array((Ks + Ks.transpose(0, 2, 1)) / 2), rng.uniform(0.5, 2, 5)
    return Panels(grams, reach, LABELLED), plain(grams, reach)


@every("scales", [np.ones(5), np.full(5, 1e60), np.full(5, 1e-60), np.geomspace(1e-30, 1e30, 5), np.zeros(5)])
def test_stored_matrices_at_any_scale(scales):
    agrees(*stored(scales))


def test_only_new_entries_are_read_from_the_matrices():
    provider, read = stored()[0], []
    for A in (np.arange(11), np.array([0, 2, 3, 30]), np.array([0, 2, 3, 30])):
        provider.activate(A)
        read.append(round(provider.passes * LABELLED**2))
    assert 66 <= read[0] <= 121 and read[1] == read[0] + 4 and read[2] == read[1]
    provider.predict(np.eye(5)[0], np.array([4, 5]), np.ones(2), np.arange(5))  # one kernel of five
    assert provider.passes * LABELLED**2 == pytest.approx(read[2] + 2 * 5 / 5)


def test_a_forked_process_has_panels_of_its_own():
    if "fork" not in multiprocessing.get_all_start_methods():
        return  # where processes cannot be forked they share nothing
    provider, Ks = stored()
    provider.activate(np.arange(12))
    child = multiprocessing.get_context("fork").Process(target=provider.activate, args=(np.arange(12)[::-1],))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child.start()
    child.join()
    found = provider.combined(np.ones(5)) * provider.unit(np.ones(5))
    assert child.exitcode == 0 and np.abs(found - Ks[:, :12, :12].sum(axis=0)).max() < 1e-5


def test_a_compressible_stack_has_a_small_basis():
    rng = np.random.default_rng(0)
    X, reach = points(rng), rng.uniform(0.5, 2, 40)
    whole = np.asarray(ko.Grams.from_kernels([ko.gaussian(s) for s in np.geomspace(1, 4, 39)], X))
    grams = ko.Grams.from_array(np.concatenate([whole, np.zeros((1, N, N))]))
    U = numerical_basis(grams, LABELLED)
    assert U.shape[1] <= 10
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    agrees(Panels(grams, reach, LABELLED, U=U), plain(grams, reach))


def test_bounds_do_not_rest_on_the_basis(monkeypatch):
    rng = np.random.default_rng(0)
    X = points(rng)
    y = np.where(X[:, 0] + X[:, 1] > 10, 1, -1)
    Ks = np.asarray(ko.Grams.from_kernels([ko.gaussian(s) for s in np.geomspace(1, 4, 40)], X))
    built = lp_norm.primal(Ks, y, p=2)
    found = built.solve("newton", tol=1e-7)
    assert found.status == "optimal" and found.details["provider"] == "compressed"
    few = numerical_basis(ko.Grams.from_array(Ks), N)[:, :2]
    monkeypatch.setattr(choice, "numerical_basis", lambda grams, n: few)
    rough = built.solve("newton", tol=1e-7)  # exact images on the working set make up for the basis
    assert rough.status == "optimal" and rough.lower <= found.upper and found.lower <= rough.upper


def test_the_memory_budget_bounds_what_is_held_and_what_is_evaluated_at_once():
    n, m, rng = 600, 12, np.random.default_rng(0)
    X, largest = rng.standard_normal((n, 4)), []

    @dataclass(frozen=True)
    class counted(silent):
        def gram(self, X, Z):
            largest.append(len(X) * len(X if Z is None else Z))
            return super().gram(X, Z)

    kernels = [counted(1.0 + k) for k in range(m)]
    grams = ko.Grams.from_kernels(kernels, X)
    assert (grams.diagonals == 1).all()
    A = rng.permutation(n)[:400]

    def used(provider):
        provider.activate(A)
        provider.combined(np.ones(m))
        provider.images(np.ones(A.size), np.arange(A.size))

    used(
        Panels(grams, np.ones(m), n, memory=2e6)
    )  # imports modules and loads machine code, which do not count
    for memory in (2e6, 4e6):
        provider = Panels(grams, np.ones(m), n, memory=memory)
        largest.clear()
        tracemalloc.start()
        used(provider)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 8 * m * max(largest) <= memory / 8
        assert peak <= 1.5 * memory  # the kernel of this test makes differences of its own
    assert provider.passes < 3


def test_the_kernels_choose_the_provider_by_which_explain_and_the_predicted_memory_go():
    n, m, rng, memory = 60, 30, np.random.default_rng(0), {}
    X, V = rng.standard_normal((n, 3)), rng.standard_normal((m, n, n))
    y, gaussians = np.where(X[:, 0] > 0, 1.0, -1.0), [ko.gaussian(s) for s in np.geomspace(2, 5, m)]
    lazy = ko.Grams.from_kernels(gaussians, X)
    for grams, name in (
        (lazy, "radial"),
        (np.array(lazy), "compressed"),
        (np.array(lazy)[:5], "precomputed"),
        (V @ V.transpose(0, 2, 1), "precomputed"),
        (ko.Grams.from_kernels(ko.per_feature(gaussians[:10], 3), X), "precomputed"),
        (ko.Grams.from_kernels([*gaussians[1:], ko.linear()], X), "precomputed"),
    ):
        formulation = lp_norm.primal(grams, y, p=2)
        assert formulation.solve("newton").details["provider"] == name
        assert f"provider '{name}'" in str(ko.explain(formulation.problem))
        memory[name] = Newton().cost(read_ball(Structure(formulation.problem))).memory
    assert 6 * n**2 < memory["radial"] < 2 * m * n**2  # distances and one matrix, none of each kernel
    assert 2 * m * n**2 < memory["compressed"] == memory["precomputed"] < 3 * m * n**2
    read = read_ball(Structure(lp_norm.primal(lazy, y, p=2).problem))
    per_feature = lp_norm.primal(ko.Grams.from_kernels(ko.per_feature(gaussians[:10], 3), X), y, p=2)
    small = choose_provider(read_ball(Structure(per_feature.problem)), 1e5, 1e-3)
    assert small.name == "on the fly"
    rough, exact = (choose_provider(read, None, tol).prediction_error(np.ones(m)) for tol in (1e-3, 1e-5))
    assert rough > 0 == exact


@every("p", [1, 4 / 3, 2, np.inf])
def test_newton_with_every_provider_agrees_with_the_conic_optimum(p):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 3))
    X[5] = X[6]
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0, 1.0, -1.0)
    gaussians = [ko.gaussian(s) for s in np.geomspace(2, 5, 24)]
    mixed = [*gaussians[::6], ko.linear(), ko.on_columns(ko.gaussian(1.0), 0)]
    for kernels, stored, memory, name in [
        (gaussians, True, None, "compressed"),
        (gaussians, False, None, "radial"),
        (mixed, False, None, "precomputed"),
        (mixed, False, "10kB", "on the fly"),
    ]:
        grams = ko.Grams.from_kernels(kernels, X)
        built = lp_norm.primal(ko.Grams.from_array(np.asarray(grams)) if stored else grams, y, p=p)
        seen = {}
        found = built.solve("newton", tol=1e-6, memory=memory, callback=seen.update)
        assert (found.status, seen["provider"]) == ("optimal", name)
        assert overlap(found, built.solve("exact", tol=1e-6))


def test_images_of_single_points_are_kept_until_the_rest_is_asked_for(monkeypatch):
    rng = np.random.default_rng(0)
    X, entries = points(rng), []

    @dataclass(frozen=True)
    class counted(silent):
        def gram(self, X, Z):
            entries.append(len(X) * len(X if Z is None else Z))
            return super().gram(X, Z)

    monkeypatch.setattr(caching, "CACHE_BYTES", 0)
    storage = ko.Grams.from_kernels([counted(1.0), counted(2.0)], X).storage
    assert (storage.diagonals == 1).all()
    entries.clear()
    a = np.zeros(N)
    a[:10] = rng.standard_normal(10)
    part = storage.images(a, np.arange(5, 25))
    assert sum(entries) == 2 * 20 * 10
    storage.images(a, np.arange(10))  # five of them are new
    only = storage.subset(np.array([1])).images(a, np.arange(30))
    assert sum(entries) == 2 * 25 * 10 + 5 * 10
    whole = storage.apply(a)
    assert sum(entries) == 2 * N * 10 + 5 * 10
    Ks = np.stack([cauchy(1.0)(X), cauchy(2.0)(X)])
    np.testing.assert_allclose(whole, Ks @ a, rtol=1e-12)
    np.testing.assert_allclose(part, whole[:, 5:25], rtol=0)
    np.testing.assert_allclose(only[0], whole[1, :30], rtol=0)


def test_profiles_agree_with_the_kernels():
    for kernel in [*mixture(), ko.laplacian(2.0), ko.normalized(3 * ko.gaussian(1.0)), 2 * ko.identity()]:
        profile, X = kernel.profile(), points(np.random.default_rng(0))
        K = profile.function(cdist(X, X, profile.metric or "sqeuclidean"))
        np.fill_diagonal(K, profile.own)
        np.testing.assert_allclose(K, kernel(X), rtol=1e-10, atol=1e-14)
    for kernel in [ko.linear(), ko.gaussian(1.0) + ko.linear(), ko.gaussian(1.0) * ko.laplacian(1.0)]:
        assert kernel.profile() is None
    assert ko.gaussian(1e-200).profile() is None and ko.gaussian(1e200).profile() is None
    assert ko.gaussian(1e200).diagonal(points(np.random.default_rng(0))) == pytest.approx(1.0)
