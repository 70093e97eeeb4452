"""Column generation over a continuous width, against grids."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from formulations.lp_norm.method.widths import HIGHEST, LOWEST, Widths
from tests.every import every
from tests.problems import labels, points, targets

N, BOUNDS = 30, (0.2, 20.0)
X, Y = points(N), labels(N)
FAMILIES = {"gaussian": ko.gaussian, "laplacian": ko.laplacian}


def test_the_bounds_of_the_second_derivative():
    z = np.linspace(0, 50, 2_000_001)
    curve = z * (z - 1) * np.exp(-z)
    assert HIGHEST - 1e-4 <= curve.max() <= HIGHEST and LOWEST - 2e-4 <= -curve.min() <= LOWEST


@every("family", FAMILIES)
def test_the_largest_form_is_below_its_bound_and_near_it(family):
    search = Widths(X, family == "gaussian", *BOUNDS)
    grid = np.geomspace(*BOUNDS, 201)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        alpha = rng.normal(size=N) * (rng.uniform(size=N) < (0.3 if seed % 2 else 1.0))
        alpha -= alpha.mean() * (seed < 2)
        forms = np.array([alpha @ FAMILIES[family](w)(X) @ alpha for w in grid])
        slack = 1e-3 * forms.max()
        found = search.highest(alpha, slack)
        assert forms.max() <= found.bound and found.bound <= found.value + 1.01 * slack
        assert found.value <= forms.max() * (1 + 1e-3)
        top = FAMILIES[family](found.widths[0])(X)
        assert alpha @ top @ alpha == pytest.approx(found.value, rel=1e-9)


@every(
    "family, loss, y",
    [
        ("gaussian", ko.hinge(1.0), Y),
        ("laplacian", ko.logistic(1.0), Y),
        ("gaussian", ko.epsilon_insensitive(1.0, 0.1), targets(N)),
    ],
)
def test_no_grid_is_better_than_the_lower_bound(family, loss, y):
    found = lp_norm.continuous_width(X, y, bounds=BOUNDS, family=FAMILIES[family], loss=loss)
    assert found.gap <= 1e-3 and found.lower <= found.upper
    kernels = [FAMILIES[family](w) for w in np.geomspace(*BOUNDS, 60)]
    grid = lp_norm.primal(ko.Grams.from_kernels(kernels, X), y, p=1, loss=loss).solve(tol=1e-4)
    assert found.lower <= grid.upper and found.upper <= grid.upper * (1 + 1e-3)
    assert ((found.widths >= BOUNDS[0] * (1 - 1e-12)) & (found.widths <= BOUNDS[1] * (1 + 1e-12))).all()
    assert found.weights.sum() == pytest.approx(1.0) and (np.diff(found.widths) > 0).all()


def test_the_chosen_widths_alone_have_the_value():
    found = lp_norm.continuous_width(X, Y, bounds=BOUNDS)
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in found.widths], X)
    again = lp_norm.primal(grams, Y, p=1).solve("exact")
    assert again.lower <= found.upper * (1 + 1e-3) and found.lower <= again.upper


def test_too_few_rounds_have_honest_bounds():
    with pytest.warns(ko.ConvergenceWarning, match="over all widths"):
        early = lp_norm.continuous_width(X, Y, bounds=BOUNDS, tol=1e-7, max_rounds=1, method="exact")
    late = lp_norm.continuous_width(X, Y, bounds=BOUNDS)
    assert early.lower <= late.upper and late.lower <= early.upper and early.gap > 1e-7
    assert "ContinuousWidth" in repr(early) and early.rounds == 1


@every(
    "bad, words",
    [
        ({"bounds": (2, 1)}, "low < high"),
        ({"bounds": 1.0}, "bounds"),
        ({"bounds": (0, 1)}, "bounds"),
        ({"bounds": (1, 2), "family": ko.linear}, "family"),
        ({"bounds": (1, 2), "tol": 0}, "tol"),
        ({"bounds": (1, 2), "max_rounds": 0}, "max_rounds"),
    ],
)
def test_wrong_arguments(bad, words):
    with pytest.raises(ko.InputError, match=words):
        lp_norm.continuous_width(X, Y, **bad)
