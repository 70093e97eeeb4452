"""The learned kernel of the triplet programme on new points, and the features that it selects."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from formulations.triplet_lp.comparison_data import comparison_data
from formulations.triplet_lp.method.columns import Columns
from kernelopt import Structure
from kernelopt.errors import (
    InputError,
    ShapeError,
    Stopped,
)
from kernelopt.methods.explain import warn_of_formulation
from tests.every import every
from tests.formulations.triplet_lp.cases import blobs, dominance, formulated, optimum, planted

# ---------------------------------------------------------------- Fung 6.1 and 6.2: the learned kernel


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


# -------------------------------------------------------------------------------------------- features


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


# ---------------------------------------------------------------------------------------- limits of time
def data_of_blobs():
    X, triplets = blobs(0)
    grams = ko.Grams.from_kernels([ko.gaussian(0.5), ko.gaussian(1.5), ko.identity()], X)
    return comparison_data(grams, triplets, None, 0.02, "dominant", None, 1.0)


def test_the_rows_that_are_generated_are_dominance_with_signs():
    """K_ii >= sum_j sigma_j K_ij over the pairs of one point; at the optimum one of them is dominance."""
    data = data_of_blobs()
    columns, n = Columns(data, 0.02), data.points.size
    columns.solve()
    for row in columns.cuts.toarray():
        (i,) = np.flatnonzero(row[:n])
        assert row[i] == 1 and set(row[n:]) <= {-1.0, 0.0, 1.0}
        assert (data.incidence.toarray()[i][row[n:] != 0] == 1).all()
    alpha = columns.weights()
    slacks = columns.cuts @ (data.cone_entries @ alpha)
    points = np.argmax(columns.cuts.toarray()[:, :n], axis=1)
    least = [slacks[points == i].min() for i in range(n)]
    assert (least >= data.dominance(alpha) - 1e-9).all() and min(least) >= -1e-8


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
