"""What a call from many points keeps in memory, and how often it reads them all."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import euclidean_distances

import kernelopt as ko
from formulations import lp_norm
from kernelopt.grams import caching, evaluated
from kernelopt.grams.evaluated import KernelStorage
from kernelopt.methods import describe
from kernelopt.methods.engine.family import family
from kernelopt.methods.engine.method import Newton
from kernelopt.methods.engine.radial import Radial
from kernelopt.methods.engine.search import forecast
from kernelopt.methods.engine.working_set import first_points
from kernelopt.structure.ball import read_ball
from kernelopt.structure.structure import Structure


def peak(task):
    """Return the result of a task and the most bytes that it held beside what was there before."""
    tracemalloc.start()
    try:
        found = task()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def problem(n, m, seed=0, d=3):
    """Return m Gaussians on n points, and labels that two features decide together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return ko.Grams.from_kernels([ko.gaussian(w) for w in np.geomspace(0.3, 6, m)], X), y


def test_the_first_working_set_is_bounded():
    y = np.where(np.arange(200_000) % 1000 == 0, 1.0, -1.0)
    chosen = first_points(y.size, [y], 0)
    assert chosen.size <= 4020 and (y[chosen] > 0).sum() >= 20
    assert first_points(24_000, [y[:24_000]], 0).size <= 2020


def test_uniqueness_is_not_decided_by_another_sweep_of_all_points(monkeypatch):
    """Where the free samples do not decide, the others of the support do: their images are known."""
    read, asked, found = KernelStorage._images, [], []
    monkeypatch.setattr(KernelStorage, "_images", lambda *given: asked.append(0) or read(*given))
    decided = describe.weights_are_unique
    monkeypatch.setattr(describe, "weights_are_unique", lambda *given: asked.clear() or decided(*given))
    for seed in range(3):
        grams, y = problem(600, 60, seed)
        solution = lp_norm.primal(grams, y, loss=ko.hinge(0.1), p=1).solve("newton", tol=1e-2)
        assert not asked
        found.append(solution.weights_unique)
    assert None in found and False not in found


def test_a_constant_diagonal_is_one_number():
    grams = problem(3000, 200)[0]
    stacks = (grams, grams.normalize("trace"), grams.normalize("spherical"), grams.subset(range(100)))
    for stack in stacks:
        (diagonals, magnitudes), used = peak(lambda stack=stack: (stack.diagonals, stack.magnitudes))
        assert diagonals.shape == magnitudes.shape == stack.shape[:2] and used < 3000 * 8 * 10
        np.testing.assert_array_equal(diagonals, 1.0)
        np.testing.assert_array_equal(magnitudes, 1.0)


def test_predictions_and_bounds_keep_no_array_of_all_kernels_and_points():
    grams, y = problem(20_000, 200)
    alpha, w = np.zeros(y.size), np.linspace(0, 1, 200)
    support = np.arange(0, 9000, 30)
    alpha[support] = np.where(y[support] > 0, 1, -np.sum(y[support] > 0) / np.sum(y[support] < 0))
    alpha /= np.abs(alpha).max()
    D = euclidean_distances(grams.storage.X[::40], grams.storage.X[support], squared=True)
    plain = sum(
        v * np.exp(-D / (2 * s**2)) @ alpha[support]
        for v, s in zip(w, np.geomspace(0.3, 6, 200), strict=True)
    )
    one, every = 8 * y.size, 8 * 200 * y.size
    problem(10_000, 60)[0].storage.image(w[:60], alpha[:10_000])  # compiles, which takes memory too
    image, used = peak(lambda: grams.storage.image(w, alpha))
    np.testing.assert_allclose(image[::40], plain, rtol=0, atol=1e-11 * np.abs(plain).max())
    assert used < 0.6 * every
    grams.storage.forget_matrices()
    built = lp_norm.primal(grams, y, p=1)
    weights = w / w.sum()
    certificate, used = peak(lambda: ko.certify(built.problem, weights=weights, alpha=alpha, retrain=False))
    assert used < every + 40 * one
    f = image / w.sum()
    losses = [np.maximum(0, 1 - y * (f + b)).sum() for b in np.unique(y - f)[:: y.size // 200]]
    assert certificate.upper == pytest.approx(min(losses) + alpha @ f / 2, rel=1e-2)


def test_a_saved_machine_predicts_some_points_at_a_time(monkeypatch, tmp_path):
    grams, y = problem(300, 5)
    solution = lp_norm.primal(grams, y, p=2).solve("newton", tol=1e-3)
    saved = ko.load(solution.save(tmp_path / "machine.npz"))
    X = np.random.default_rng(1).standard_normal((70, 3))
    whole = saved.decision_function(X)
    asked, cross = [], KernelStorage.cross
    monkeypatch.setattr(caching, "CHUNK_BYTES", 8 * 5 * 300 * 20)
    monkeypatch.setattr(KernelStorage, "cross", lambda self, new: asked.append(len(new)) or cross(self, new))
    np.testing.assert_allclose(saved.decision_function(X), whole, rtol=1e-12)
    assert sum(asked) == 70 and max(asked) < 70
    np.testing.assert_allclose(whole, solution.decision_function(grams.cross(X)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("columns", "matrices"), [(64, 1.0), (65, 1.5)])
def test_distances_of_the_working_set_are_kept_once_or_not(columns, matrices):
    """Beside the combined matrix they take half of its memory, also while the set changes."""
    grams, y = problem(3000, 8, d=columns)
    read = read_ball(Structure(lp_norm.primal(grams, y, p=1).problem))
    provider = Radial(family(grams.storage), grams, read.reach, read.n)
    first, second = np.arange(0, 2000), np.r_[np.arange(0, 2000, 2), np.arange(2000, 3000)]
    w = np.ones(8)

    def used():
        for points in (first, second):
            provider.activate(points)
            provider.kernel(w)

    used()  # compiles
    provider.activate(first[:300])
    _, most = peak(used)
    assert most < 4 * 2000**2 * matrices + 2e7  # two matrices, or two triangles and one, were 2 or more
    _, later = peak(lambda: provider.entries(w, np.arange(1800)))
    assert max(most, later) / 2 < provider.memory(2000) < 2 * max(most, later)
    D = euclidean_distances(grams.storage.X, squared=True)[np.ix_(second, second)]
    plain = sum(np.exp(-D / (2 * s**2)) for s in np.geomspace(0.3, 6, 8))
    np.testing.assert_allclose(provider.unit(w) * provider.kernel(w), plain, atol=8 * 4e-6)
    c = np.random.default_rng(0).standard_normal(2000)
    images = provider.images(c, np.arange(0, 2000, 3))
    np.testing.assert_allclose(images.sum(axis=0), (plain @ c)[::3], atol=8 * 2e-6 * np.abs(c).sum())


def test_a_call_that_cannot_fit_says_so_at_once_with_what_would():
    grams, y = problem(9000, 4)
    built = lp_norm.primal(grams, y, p=1)
    reports = []
    wanted = "working set of .* of 9,000 points must fit into memory.*got 0.02 GB.*points.*memory="
    with pytest.raises(ko.errors.InsufficientMemoryError, match=wanted):
        built.solve("newton", tol=1e-3, memory=2e7, callback=reports.append)
    assert not reports
    assert built.solve("newton", tol=1e-2, memory="1GB").status == "optimal"


def test_the_size_of_a_growing_set_is_predicted_by_a_power_of_the_points():
    assert forecast([(1000, 1000), (2000, 800), (4000, 1600)], 16_000) == pytest.approx(6400, abs=1)
    assert forecast([(4000, 4000), (8000, 2000)], 80_000) == 2000  # a set that shrinks does not go on


def test_predicted_memory_grows_with_the_support_and_not_with_all_pairs():
    few, many = (
        Newton().cost(read_ball(Structure(lp_norm.primal(*problem(n, 4), p=1).problem))).memory
        for n in (10_000, 40_000)
    )
    assert 4 < many / few < 16 and many < 8 * 40_000**2 / 4


def test_means_over_all_pairs_are_sums_over_cells_of_the_distance(monkeypatch):
    """They are compared with whole matrices, and no function is evaluated for each pair."""
    X = np.random.default_rng(3).standard_normal((1500, 4))
    kernels = [ko.gaussian(0.5), ko.linear(), ko.gaussian(3.0) + 0.5 * ko.identity(), ko.laplacian(2.0)]
    v = np.random.default_rng(4).uniform(0, 1, 1500)
    grams = ko.Grams.from_kernels(kernels, X)
    plain = [v @ K @ v for K in grams]
    scaled = np.asarray(grams.normalize("multiplicative").diagonals)
    monkeypatch.setattr(evaluated, "MANY_POINTS", 100)
    monkeypatch.setattr(caching, "CACHE_BYTES", 1000)
    asked, values = [], KernelStorage._at_distances
    monkeypatch.setattr(
        KernelStorage, "_at_distances", lambda self, i, *given: asked.append(i) or values(self, i, *given)
    )
    again = ko.Grams.from_kernels(kernels, X)
    np.testing.assert_allclose(again.storage.passing_forms(v), plain, rtol=1e-11)
    np.testing.assert_allclose(again.normalize("multiplicative").diagonals, scaled, rtol=1e-10)
    assert not asked
