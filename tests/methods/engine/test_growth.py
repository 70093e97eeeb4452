"""The growth of the working set meets every point once, and keeps those that matter."""

import numpy as np

import kernelopt as ko
from formulations import lp_norm
from kernelopt.methods.engine.growth import Model, grow
from kernelopt.methods.engine.radial import Radial


def test_every_point_is_met_once_and_violators_and_support_remain():
    n, rng = 200, np.random.default_rng(0)
    y, margins = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0), rng.uniform(-1, 3, n)
    met, sizes = [], []

    def solve(points):
        sizes.append(points.size)
        return Model(np.where(margins[points] > 2.5, 0.1 * y[points], 0.0), (y * margins)[points])

    def predict(points):
        met.append(points)
        return (y * margins)[points]

    first = np.sort(rng.permutation(n)[:20])
    points = grow(ko.hinge().curve(y), first, 0, solve, predict)
    assert np.array_equal(np.sort(np.concatenate([first, *met])), np.arange(n))
    assert [part.size for part in met] == [20, 40, 80, 40] and sizes[0] == 20
    # The model of the test calls a point with margin above 2.5 a support vector, wherever it has met it.
    expected = np.flatnonzero(margins < 1)
    assert np.isin(expected, points).all() and np.unique(points).size == points.size
    supporting = np.intersect1d(first, np.flatnonzero(margins > 2.5))
    assert supporting.size and np.isin(supporting, points).all()
    inside = np.flatnonzero((margins > 1.1) & (margins < 2.5))
    assert not np.isin(inside, points).any()


def test_bounds_of_predictions_that_are_too_wide_do_not_stop_the_search(monkeypatch):
    """The proved error of predictions in float32 may exceed the gap that is wanted at any step."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=800) > 0, 1.0, -1.0)
    grams = ko.Grams.from_kernels([ko.gaussian(width) for width in (0.5, 1.0, 2.0, 4.0)], X)
    monkeypatch.setattr(Radial, "prediction_error", property(lambda _: 1e-2, lambda *_: None), raising=False)
    solution = lp_norm.primal(grams, y, p=1).solve("newton", tol=2e-4)
    _, lower, upper = solution.history[-1]
    assert solution.details["provider"] == "radial" and upper - lower <= 2e-4 * upper
