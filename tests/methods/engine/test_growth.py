"""The growth of the working set meets every point once, and keeps those that matter."""

import numpy as np

import kernelopt as ko
from kernelopt.methods.engine.growth import Model, grow


def test_every_point_is_met_once_and_violators_and_support_remain():
    n, rng = 200, np.random.default_rng(0)
    y, margins = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0), rng.uniform(-1, 3, n)
    met, sizes = [], []

    def solve(points):
        sizes.append(points.size)
        return Model(np.where(margins[points] > 2.5, 0.1 * y[points], 0.0)[None], (y * margins)[None, points])

    def predict(points):
        met.append(points)
        return (y * margins)[None, points]

    first = np.sort(rng.permutation(n)[:20])
    points = grow([ko.hinge().curve(y)], first, 0, solve, predict)
    assert np.array_equal(np.sort(np.concatenate([first, *met])), np.arange(n))
    assert [part.size for part in met] == [20, 40, 80, 40] and sizes[0] == 20
    # The model of the test calls a point with margin above 2.5 a support vector, wherever it has met it.
    expected = np.flatnonzero(margins < 1)
    assert np.isin(expected, points).all() and np.unique(points).size == points.size
    supporting = np.intersect1d(first, np.flatnonzero(margins > 2.5))
    assert supporting.size and np.isin(supporting, points).all()
    inside = np.flatnonzero((margins > 1.1) & (margins < 2.5))
    assert not np.isin(inside, points).any()
