"""The provider of stored matrices against plain numpy, at any scale of the kernels."""

import multiprocessing
import warnings

import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.engine.panels import Panels
from tests.every import every

M, N, LABELLED = 5, 40, 33


def provided(scales=(1.0,) * M, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((M, N, 6))
    stack = np.asarray(scales)[:, None, None] * (V @ V.transpose(0, 2, 1))
    reach = rng.uniform(0.5, 2, M)
    grams = ko.Grams.from_array((stack + stack.transpose(0, 2, 1)) / 2)
    return Panels(grams, reach, LABELLED), reach[:, None, None] * np.asarray(grams)[:, :LABELLED, :LABELLED]


@every("scales", [np.ones(M), np.full(M, 1e60), np.full(M, 1e-60), np.geomspace(1e-30, 1e30, M), np.zeros(M)])
def test_a_provider_is_as_exact_as_float32_and_keeps_the_points_that_remain(scales):
    provider, Ks = provided(scales)
    rng = np.random.default_rng(1)
    A = rng.permutation(LABELLED)[:12]
    for step in range(4):
        provider.activate(A)
        for w in (rng.uniform(0, 1, M), np.eye(M)[step]):
            unit = provider.unit(w)
            expected = np.tensordot(w, Ks[:, A][:, :, A], 1)
            block = provider.combined(w)
            assert block.dtype == np.float32 and (block == block.T).all()
            # An entry is rounded to float32, and so is the sum; 2^-26 covers the float64 operations.
            assert np.abs(unit * block.astype(float) - expected).max() <= (2**-23 + 2**-26) * unit
        c = rng.standard_normal(A.size) * (rng.uniform(size=A.size) < 0.6)
        chosen = np.flatnonzero(c)
        sizes = np.abs(c).sum() * Ks.diagonal(axis1=1, axis2=2).max(axis=1)
        images = Ks[:, A] @ np.bincount(A, c, LABELLED)
        error = np.abs(provider.images(c, chosen) - Ks[:, A][:, :, A[chosen]].transpose(0, 2, 1) @ c)
        assert (error <= 1e-7 * sizes[:, None]).all()
        support, points = A[chosen], rng.permutation(LABELLED)
        np.testing.assert_allclose(provider.exact_images(support, c[chosen], A), images, rtol=1e-9)
        for w in (rng.uniform(0, 1, M), np.eye(M)[step]):
            f = np.tensordot(w, Ks[:, points][:, :, support], 1) @ c[chosen]
            np.testing.assert_allclose(
                provider.predict(w, support, c[chosen], points), f, atol=1e-13 * float(w @ sizes)
            )
        others = np.setdiff1d(np.arange(LABELLED), A)
        A = np.r_[np.delete(A, [1, 4, 5]), rng.permutation(others)[: 5 + step]]


def test_only_new_entries_are_read_from_the_matrices():
    provider, _ = provided()
    read = []
    for points in (np.arange(11), np.array([0, 2, 3, 30]), np.array([0, 2, 3, 30])):
        provider.activate(points)
        read.append(round(provider.passes * LABELLED**2))
    assert 66 <= read[0] <= 121 and read[1] == read[0] + 4 and read[2] == read[1]
    provider.predict(np.eye(M)[0], np.array([4, 5]), np.ones(2), np.arange(5))  # one kernel of five
    assert provider.passes * LABELLED**2 == pytest.approx(read[2] + 2 * 5 / M)


def test_a_forked_process_has_panels_of_its_own():
    if "fork" not in multiprocessing.get_all_start_methods():
        return  # where processes cannot be forked they share nothing
    provider, Ks = provided()
    provider.activate(np.arange(12))
    child = multiprocessing.get_context("fork").Process(target=provider.activate, args=(np.arange(12)[::-1],))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child.start()
    child.join()
    w = np.ones(M)
    found = provider.combined(w) * provider.unit(w)
    assert child.exitcode == 0 and np.abs(found - Ks[:, :12, :12].sum(axis=0)).max() < 1e-5
