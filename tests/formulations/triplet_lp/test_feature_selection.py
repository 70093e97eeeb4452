"""The learned kernel of the triplet programme on new points, and the features that it selects."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from formulations.triplet_lp.comparison_data import comparison_data
from formulations.triplet_lp.method import TripletProgramme
from formulations.triplet_lp.method.column_generation import Columns
from kernelopt import Structure
from kernelopt.errors import ConditionWarning, ConvergenceWarning, InputError, ShapeError, Stopped
from kernelopt.methods.explain import warn_of_formulation
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONIC,
    TIGHT,
    blobs,
    cones,
    dominance,
    formulated,
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


def test_off_its_points_the_kernel_may_be_indefinite_and_says_so():
    """Negative weights: PSD on S by dominance, indefinite on all N."""
    indefinite = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(24, 2))
        triplets = np.array([rng.permutation(8)[:3] for _ in range(12)])
        grams = ko.Grams.from_kernels([*map(ko.gaussian, (0.2, 0.6, 1.5, 4.0)), ko.identity()], X)
        solution = optimum(grams, triplets, np.arange(5), gamma1=0.01, gamma2=0.01)
        S = np.unique(triplets)
        assert np.linalg.eigvalsh(solution.kernel[np.ix_(S, S)])[0] >= -1e-10
        assert dominance(solution.kernel, S).min() >= -1e-10
        spectrum = np.linalg.eigvalsh(solution.kernel)
        assert solution.is_psd == (spectrum[0] >= -1e-8 * abs(spectrum).max())
        indefinite += not solution.is_psd and solution.weights.min() < 0 and spectrum[0] < -1e-3
        safe = optimum(grams, triplets, np.arange(5), gamma1=0.01, gamma2=0.01, cone="nonnegative")
        assert safe.is_psd and (safe.weights >= 0).all()
    assert indefinite >= 1


def test_the_kernel_goes_to_new_points_and_no_machine_does():
    X, triplets = blobs(0)
    new = np.random.default_rng(5).normal(size=(4, 3))
    grams = ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(1.5), ko.identity()], X)
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.02, gamma2=0.02)
    solution = formulation.solve()
    w = solution.weights
    assert w.shape == (3,) and (formulation.weights.value == w).all()
    K = sum(w[p] * grams[p] for p in range(3))
    assert solution.kernel == pytest.approx(K, abs=1e-14)
    assert np.asarray(formulation.kernel.value) == pytest.approx(K, abs=1e-14)
    cross = w[0] * ko.gaussian(0.5)(new, X) + w[1] * ko.gaussian(1.5)(new, X)  # the identity is zero there
    assert solution.kernel_at(grams.cross(new)) == pytest.approx(cross, abs=1e-14)
    for arguments in ((), (grams.cross(new),)):
        with pytest.raises(InputError, match="no machine was learned"):
            solution.decision_function(*arguments)
    with pytest.raises(ShapeError, match="cross must have shape .*m = 3 and N = 14"):
        solution.kernel_at(grams.cross(new)[:2])


@every(
    ("informative", "cone"),
    [([5], "dominant"), ([2, 6], "dominant"), ([5], "psd"), ([2, 6], "nonnegative")],
)
def test_planted_features_are_found_and_the_others_are_out(informative, cone):
    grams, triplets, groups, _ = planted(0, informative)
    top = triplet_lp.gamma1_max(grams, triplets, gamma2=0.001, groups=groups, cone=cone)
    share = 0.9 if cone == "dominant" else 0.6
    formulation = formulated(grams, triplets, groups, gamma1=share * top, gamma2=0.001, cone=cone)
    solution = formulation.solve()
    found = triplet_lp.selected(solution, groups).tolist()
    assert [f for f in found if f != 8] == informative
    s = next(v.value for v in formulation.problem.variables() if v.name() == "s")
    others = [f for f in range(8) if f not in informative]
    assert s.shape == (9,) and (s[others] <= 1e-6 * s.max()).all() and (s[informative] > 1e-3 * s.max()).all()


def test_a_selected_kernel_respects_new_triplets():
    """Triplets drawn anew from the labels, of the same points; single weak kernels respect fewer."""
    grams, triplets, groups, y = planted(3, [4])
    solution = optimum(grams, triplets, groups, gamma1=0.5, gamma2=0.01)
    fresh = ko.sample_triplets(y, 500, random_state=99)
    score = ko.triplet_score(solution.kernel, fresh)
    wrong = [ko.triplet_score(grams[p], fresh) for p in range(16) if groups[p] != 4]
    assert score > 0.9 and score > max(wrong) + 0.2


def test_selected_reads_the_largest_weight_of_each_group():
    class Found:
        weights = np.array([0.0, -2.0, 1e-9, 1e-5, 0.5])

    groups = ["b", "a", "a", "c", "d"]
    assert triplet_lp.selected(Found, groups).tolist() == ["a", "c", "d"]
    assert triplet_lp.selected(Found, groups, tol=1e-3).tolist() == ["a", "d"]
    Found.weights = np.zeros(5)
    assert triplet_lp.selected(Found, groups).size == 0


def data_of_blobs():
    X, triplets = blobs(0)
    grams = ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(1.5), ko.identity()], X)
    return comparison_data(grams, triplets, None, 0.02, "dominant", None, 1.0)


def test_a_linear_programme_that_the_clock_has_ended_is_no_failure():
    columns = Columns(data_of_blobs(), 0.02)
    columns.highs.setOptionValue("time_limit", 0.0)
    with pytest.raises(Stopped):
        columns.solve()


def test_column_generation_that_is_ended_in_a_solve_has_the_bounds_of_the_rounds_before(monkeypatch):
    def ended_in_the_second(self):
        if self.rounds:
            raise Stopped
        solve(self)

    solve = Columns._run
    data = data_of_blobs()
    formulation = triplet_lp.kernel_design(data.grams, data.triplets, gamma1=0.02, gamma2=0.02)
    optimum = formulation.solve("column-generation").value
    monkeypatch.setattr(Columns, "_run", ended_in_the_second)
    monkeypatch.setattr(Columns, "_violated", lambda self: True)
    with pytest.warns(ko.ConvergenceWarning):
        solution = formulation.solve("column-generation", time_limit=60.0)
    assert solution.lower <= optimum <= solution.upper and solution.iterations == 1


def test_choosing_a_method_reads_no_rows_of_dominance():
    data = data_of_blobs()
    structure = Structure(
        triplet_lp.kernel_design(data.grams, data.triplets, gamma1=0.02, gamma2=0.02).problem
    )
    warn_of_formulation(structure)
    assert "affines" not in vars(structure)


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
    monkeypatch.setattr(TripletProgramme, "bounds", lambda self, values, _: ko.Certificate(
        1.0, 2.0, "closed", feasible=True, point={v: values[v.id] for v in self.variables()}
    ))  # fmt: skip
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
