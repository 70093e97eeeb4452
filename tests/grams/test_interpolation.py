"""Sums of functions of one distance against the functions themselves."""

from dataclasses import dataclass

import numpy as np
import pytest

import kernelopt as ko
from kernelopt import Kernel
from kernelopt.extend import Profile
from kernelopt.grams import evaluated
from kernelopt.grams.interpolation import (
    COEFFICIENT_ROUNDINGS,
    MOST_ROUNDINGS,
    Interpolation,
    coefficients,
    inverse_vandermonde,
    nodes,
)

UNIT = 2.0**-53
N = MOST_ROUNDINGS + 420
WIDTHS = np.geomspace(1e-3, 1e3, 13)


@dataclass(frozen=True)
class bent(Kernel):
    """max(0, 1 - |x - z|^2): convex in the squared distance, but not completely monotone."""

    def gram(self, X, Z):
        return np.maximum(0, 1 - (X - (X if Z is None else Z).T) ** 2)

    def profile(self):
        return Profile("sqeuclidean", lambda d: np.maximum(0, 1 - d), 1.0)


def gaussians(d):
    return np.exp(-np.outer(WIDTHS**-2, d) / 2)


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_a_single_term_is_exact_up_to_rounding(number):
    d = np.geomspace(0.01, 0.3, 4001).astype(number)[:, None]
    sums = Interpolation(gaussians, d)
    moments = sums.moments(d.size)
    found = sums.add(d, np.ones(1), moments) + sums.sums(moments)
    assert not sums.add(d[100:3900], np.ones(1), sums.moments(3800)).any()  # all have cells
    assert np.abs(found - gaussians(d[:, 0].astype(float))).max() <= 8 * UNIT


def test_the_errors_of_the_coefficients_are_those_that_are_counted():
    V = inverse_vandermonde()
    assert 11 * np.abs(V).sum() / 32 < COEFFICIENT_ROUNDINGS
    powers = np.vander(nodes(), increasing=True)
    assert np.abs(powers @ V - np.eye(len(V))).max() <= len(V) * UNIT * (np.abs(powers) @ np.abs(V)).max()
    a, h = 1.0, 1 / 32
    for gamma in np.geomspace(1e-3, 1e3, 25):
        found = coefficients(np.exp(-gamma * (a + h + h * nodes())))
        assert np.abs(found).sum() <= np.exp(-gamma * a) + 1e-12


def test_every_distance_counts_once():
    rng = np.random.default_rng(0)
    D, c = rng.uniform(0.2, 1, (5, 40)), rng.standard_normal(40)
    D[:, 3:9] = [0.0, 5e-324, 1e-250, 1e-6, 3e4, 1e250]  # outside of the cells of the others
    sums = Interpolation(gaussians, D[:, 9:])
    rows, columns = np.array([4, 1, 2]), rng.permutation(40)[:30]
    columns = np.union1d(columns, np.arange(3, 9))
    moments = sums.moments(3)
    found = sums.add(D[np.ix_(rows, columns)], c[columns], moments) + sums.sums(moments)
    for k, i in enumerate(rows):
        expected = gaussians(D[i, columns]) @ c[columns]
        assert np.abs(found[:, k] - expected).max() <= 40 * UNIT * np.abs(c).sum()


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_images_are_those_of_the_kernels(metric, monkeypatch):
    """Of one point twice, of points close to each other and of a far one, with values of their own."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 1))
    X[7], X[20], X[21], X[30] = X[3], X[3], X[4] + 1e-9, 1e3
    kernel = ko.gaussian if metric == "sqeuclidean" else ko.laplacian
    kernels = [kernel(s) for s in (0.03, 1.0, 20.0)] + [kernel(1.0) + 0.5 * ko.identity()]
    kernels += [bent()] if metric == "sqeuclidean" else []
    alpha = np.zeros(N)
    alpha[:300] = rng.standard_normal(300)
    plain = [np.array(k.gram(X, None)) + 0.0 for k in kernels[:3]]
    Ks = np.stack([*plain, plain[1] + 0.5 * np.eye(N), *[k.gram(X, None) for k in kernels[4:]]])
    calls = []
    original = evaluated.interpolated_images
    monkeypatch.setattr(
        evaluated, "interpolated_images", lambda p, *rest: calls.append(len(p)) or original(p, *rest)
    )
    for points in (np.arange(300), rng.permutation(N)[:700]):
        storage = ko.Grams.from_kernels(kernels, X).storage
        found = storage.images(alpha, points)
        error = np.abs(found - Ks[:, points] @ alpha).max()
        assert error <= 1e-13 * np.abs(alpha).sum()
    assert calls == [4, 4]  # without the function that has a bend


@pytest.mark.parametrize(("labelled", "support"), [(700, 700), (300, 300), (N, 600)])
def test_a_large_support_is_summed_term_by_term(labelled, support, monkeypatch):
    """The moments would add roundings that the certificates, of the labelled points, do not count."""
    monkeypatch.setattr(evaluated, "interpolated_images", None)
    X, alpha = np.random.default_rng(2).standard_normal((max(N, labelled), 2)), np.zeros(labelled)
    alpha[:support] = 1.0
    storage = ko.Grams.from_kernels([ko.gaussian(1.0), ko.gaussian(2.0)], X).storage
    images = storage._images(alpha, np.arange(700))
    np.testing.assert_allclose(images[0], ko.gaussian(1.0)(X[:700], X[:support]).sum(axis=1), rtol=1e-12)


def test_columns_in_which_all_points_agree_do_not_matter():
    X = np.random.default_rng(3).standard_normal((30, 2))
    wide = np.column_stack([np.full(30, 1e8), X[:, 0], np.zeros(30), X[:, 1]])
    one, other = (ko.Grams.from_kernels([ko.gaussian(1.0)], Z).storage for Z in (X, wide))
    every = np.arange(30)
    assert other.centred(every, None).shape == (30, 2)
    np.testing.assert_array_equal(other.between(every, every), one.between(every, every))
    same = ko.Grams.from_kernels([ko.gaussian(1.0)], np.ones((5, 3))).storage
    assert (same.between(np.arange(5), np.arange(3)) == 1).all()
