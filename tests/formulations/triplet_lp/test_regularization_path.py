"""The path of the triplet programme over gamma1."""

from __future__ import annotations

from importlib import import_module

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.errors import (
    ConditionWarning,
    ConvergenceWarning,
)
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONIC,
    TIGHT,
    blobs,
    cones,
    near,
    optimum,
    phi,
    plain,
    planted,
    quietly,
    semidefinite,
    tolerance,
    value_of,
)

path_module = import_module("formulations.triplet_lp.regularization_path")  # the function hides it


@every(
    ("cone", "grouped"),
    [("dominant", True), ("dominant", False), ("psd", True), ("nonnegative", False)],
)
def test_the_path_is_that_of_separate_solves(cone, grouped):
    grams, triplets, groups = semidefinite(2, 8, 12)
    groups = groups if grouped else None
    size = 4 if cone == "psd" else 12
    path = quietly(
        triplet_lp.regularization_path, grams, triplets, gamma2=0.01, groups=groups, size=size, cone=cone
    )
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.01, groups=groups, cone=cone)
    assert path.gamma1 == pytest.approx(top * np.geomspace(1, 1e-3, size), rel=1e-6)
    assert path.weights.shape == (size, len(grams))
    assert (path.gap <= (CONIC if cone == "psd" else 1e-6)).all() and (path.lower <= path.upper).all()
    assert (path.weights[0] == 0).all() and path.upper[0] == len(triplets)
    assert (np.diff(path.upper) <= 1e-6).all() and path.upper[-1] < path.upper[0]  # it falls with gamma1
    assert path.selected()[0].size == 0 and path.selected()[-1].size > 0
    labels = np.arange(len(grams)) if groups is None else groups
    assert (path.groups == labels).all()
    for gamma1, upper in zip(path.gamma1, path.upper, strict=True):
        assert near(
            value_of(cone, grams, triplets, labels, gamma1, 0.01), upper, 5 * CONIC if cone == "psd" else 1e-7
        )


@cones
def test_the_path_of_a_grid_of_ones_own(cone):
    grams, triplets, groups = plain(0, 8, 10)
    grid = [0.05, 0.4, 0.1]
    path = quietly(
        triplet_lp.regularization_path,
        grams,
        triplets,
        gamma2=0.02,
        groups=groups,
        gamma1=grid,
        cone=cone,
        points=np.arange(8),
        margin=2.0,
    )
    assert path.gamma1.tolist() == [0.4, 0.1, 0.05]
    for gamma1, weights, upper in zip(path.gamma1, path.weights, path.upper, strict=True):
        options = {"gamma1": gamma1, "gamma2": 0.02, "cone": cone, "points": np.arange(8), "margin": 2.0}
        assert near(optimum(grams, triplets, groups, **options).value, upper, tolerance(cone))
        value = phi(weights, grams, triplets, groups, gamma1, 0.02, S=np.arange(8), margin=2.0)
        assert near(value, upper, 1e-9)


def test_planted_features_come_first_along_the_path():
    grams, triplets, groups, _ = planted(1, [3])
    path = triplet_lp.regularization_path(grams, triplets, gamma2=0.001, groups=groups)
    first = next(chosen for chosen in path.selected() if np.setdiff1d(chosen, [8]).size)
    assert np.setdiff1d(first, [8]).tolist() == [3]
    assert (path.gap <= 1e-6).all()


def test_every_solve_of_the_path_starts_from_the_last(monkeypatch):
    """One linear programme for the whole grid, which finds most of its rows of dominance once."""
    X, triplets = blobs(1, 20, 3, 60)
    weak = ko.per_feature([ko.gaussian(w) for w in (0.1, 0.5, 2.0)], 3)
    grams, groups = ko.Grams.from_kernels([*weak, ko.identity()], X), [*weak.groups, 3]
    made = []

    class Counted(path_module.Columns):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(path_module, "Columns", Counted)
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.02, groups=groups)
    grid, made[:] = top * np.geomspace(1, 1e-3, 12), []
    options = {"gamma2": 0.02, "groups": groups}
    path = triplet_lp.regularization_path(grams, triplets, gamma1=grid, **options)
    assert len(made) == 1
    cold = 0
    for gamma1, upper in zip(grid, path.upper, strict=True):
        alone = triplet_lp.regularization_path(grams, triplets, gamma1=[gamma1], **options)
        assert near(alone.upper[0], upper, TIGHT)
        cold += made[-1].rounds
    assert made[0].rounds < cold / 2


def test_the_path_of_a_dictionary_that_never_selects():
    """gamma1_max is zero: the grid shows that, at prices that a free choice of weights would pay."""
    X, triplets = blobs(0, 20, 2, 40)
    broad = ko.Grams.from_kernels([ko.gaussian(2.0), ko.gaussian(4.0)], X)
    with pytest.warns(ConditionWarning, match="no kernel is worth its price"):
        path = triplet_lp.regularization_path(broad, triplets, gamma2=0.01, size=5)
    assert (path.weights == 0).all() and (path.upper == 40).all() and (path.gap <= 1e-6).all()
    assert (path.gamma1 > 1e-6).all()


def test_a_loose_gap_on_the_path_is_said(monkeypatch):
    grams, triplets, _ = plain(0)
    found = ko.Certificate(
        1.0, 2.0, "closed", feasible=True, point={cp.Variable(5, name="alpha"): np.zeros(5)}
    )
    monkeypatch.setattr(path_module, "triplet_certificate", lambda *_: found)
    with pytest.warns(ConvergenceWarning, match="gap at gamma1 = 0.3 is 5.0e-01, above 1e-05"):
        triplet_lp.regularization_path(grams, triplets, gamma2=0.1, gamma1=[0.3])


def test_the_path_is_drawn():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grams, triplets, groups = plain(0)
    path = triplet_lp.regularization_path(grams, triplets, gamma2=0.02, groups=groups, size=4)
    _, ax = plt.subplots()
    assert path.plot(ax=ax) is ax
    assert len(ax.lines) == 5 and ax.get_xscale() == "log" and ax.get_xlabel() == "gamma1"
    for line, group in zip(ax.lines, np.unique(groups), strict=True):
        assert line.get_label() == str(group) and (line.get_xdata() == path.gamma1).all()
        assert (line.get_ydata() == abs(path.weights[:, groups == group]).max(axis=1)).all()
    other = path.plot()
    assert other is not ax
    plt.close("all")
