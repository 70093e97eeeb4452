"""The interior-point method of the triplet programmes: values, degenerate data, and what it takes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from formulations.triplet_lp.comparison_data import comparison_data
from formulations.triplet_lp.method import interior_point
from formulations.triplet_lp.method.interior_point import Newton, target
from kernelopt.errors import ConvergenceWarning, MethodError
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    DATA,
    blobs,
    cones,
    formulated,
    near,
    plain,
    quietly,
    semidefinite,
    value_of,
)


def by_interior_point(grams, triplets, groups, tol=1e-7, **options):
    formulation = formulated(grams, triplets, groups, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quietly(formulation.solve, "interior-point", tol=tol)


@every("kind", DATA)
@cones
def test_values_are_those_of_other_solvers(cone, kind):
    size = (9, 14) if cone == "psd" else (12, 18)
    for seed in range(1 if cone == "psd" else 3):
        grams, triplets, groups = DATA[kind](seed, *size)
        if cone == "nonnegative" and kind == "signed":
            continue
        for gamma1, gamma2 in ((0.3, 0.05), (0.05, 0.02), (0.02, 0.0)):
            options = {"gamma1": gamma1, "gamma2": gamma2, "cone": cone}
            solution = by_interior_point(grams, triplets, groups, **options)
            value = value_of(cone, grams, triplets, groups, gamma1, gamma2)
            assert solution.gap <= 1e-6, (seed, gamma1, gamma2)
            assert near(solution.value, value, 2e-6)


def degenerate():
    """Data with ties: every case is (kernels, triplets, groups)."""
    grams, triplets, groups = semidefinite(1, 8, 10)
    m = len(grams)
    i, j, k = triplets.T
    equal = grams.copy()
    equal[:, 1], equal[:, :, 1] = equal[:, 0], equal[:, :, 0]
    equal[:, 1, 1] = equal[:, 0, 0]
    return {
        "duplicate kernels": (np.concatenate([grams, grams]), triplets, np.tile(groups, 2)),
        "duplicates in other groups": (np.concatenate([grams, grams]), triplets, np.arange(2 * m)),
        "duplicate triplets": (grams, np.concatenate([triplets, triplets, triplets]), groups),
        "contradictory triplets": (grams, np.concatenate([triplets, np.array([i, k, j]).T]), groups),
        "a zero kernel": (np.concatenate([grams, 0 * grams[:1]]), triplets, np.append(groups, 7)),
        "one triplet": (grams, triplets[:1], groups),
        "one kernel": (grams[-1:], triplets, groups[:1]),
        "equal points": (equal, triplets, groups),
        "tiny kernels": (1e-6 * grams, triplets, groups),
        "large kernels": (1e6 * grams, triplets, groups),
    }


DEGENERATE = degenerate()


@every("case", DEGENERATE)
@cones
def test_degenerate_data(cone, case):
    grams, triplets, groups = DEGENERATE[case]
    scale = float(np.abs(grams).max())
    options = {"gamma1": 0.05 * scale, "gamma2": 0.02, "cone": cone}
    solution = by_interior_point(grams, triplets, groups, **options)
    value = value_of(cone, grams / scale, triplets, groups, 0.05, 0.02)
    assert solution.lower <= value * (1 + 2e-7) + 1e-9 and value <= solution.upper * (1 + 2e-7) + 1e-9
    assert solution.gap <= 1e-6 and near(solution.value, value, 2e-6)


def test_nearly_collinear_kernels():
    """The last iterates are rounding errors; the bounds that were found before them are kept."""
    labels, rng = np.arange(30) % 3, np.random.default_rng(0)
    X = rng.uniform(size=(30, 5))
    X[:, 0] += labels
    triplets = ko.sample_triplets(labels, 200, random_state=0)
    for spread in (1e-5, 1e-9):
        kernels = [ko.gaussian(w * (1 + spread * k)) for w in (0.02, 0.1, 0.5) for k in range(3)]
        grams = ko.Grams.from_kernels([*ko.per_feature(kernels, 5), ko.identity()], X)
        value = triplet_lp.kernel_design(grams, triplets, gamma1=0.02, gamma2=0.01).solve("exact").value
        for tol in (1e-5, 1e-8, 1e-12):
            options = {"gamma1": 0.02, "gamma2": 0.01}
            solution = by_interior_point(grams, triplets, np.arange(len(grams)), tol=tol, **options)
            assert solution.gap <= max(tol, 1e-7), (spread, tol)
            assert near(solution.value, value, max(tol, 1e-7)), (spread, tol)


@every("n, T", [(20, 60), (30, 120)])
def test_psd_on_thirty_points_is_the_exact_conic_solve(n, T):
    grams, triplets, groups = semidefinite(0, n, T)
    solution = by_interior_point(grams, triplets, groups, gamma1=0.05, gamma2=0.02, cone="psd")
    value = value_of("psd", grams, triplets, groups, 0.05, 0.02)
    assert solution.gap <= 1e-7 and near(solution.value, value, 2e-6)


@cones
def test_kernels_that_are_all_zero(cone):
    _, triplets, groups = semidefinite(1, 8, 10)
    solution = by_interior_point(np.zeros((2, 8, 8)), triplets, groups[:2], gamma1=0.1, gamma2=0.1, cone=cone)
    assert solution.value == len(triplets) and (solution.weights == 0).all() and solution.gap <= 1e-6


@cones
def test_the_same_bits_twice(cone):
    grams, triplets, groups = plain(3)
    options = {"gamma1": 0.05, "gamma2": 0.02, "cone": cone}
    one, other = (by_interior_point(grams, triplets, groups, **options) for _ in range(2))
    assert (one.weights == other.weights).all() and one.certificate.lower == other.certificate.lower


@cones
def test_a_newton_step_solves_the_newton_equations(cone):
    """The residuals after a full step without second-order terms are zero, with all variables eliminated."""
    grams, triplets, groups = semidefinite(2)
    data = comparison_data(grams, triplets, groups, 0.02, cone, None, 1.0)
    iterate = Newton(data, 0.05)
    iterate.iterate()
    iterate.factor()
    step, rows = iterate.step([target(c, 0.1, 0 * c.v, 0 * c.v) for c in iterate.cones]), iterate.rows
    pairs = list(zip(iterate.cones, step.dy, step.dz, strict=True))
    left = sum(c.adjoint(c.v + dz) for c, _, dz in pairs) - rows.c
    x, e = np.split(left, [left.size - len(rows.K)])
    assert x == pytest.approx(0.0, abs=1e-9) and e @ rows.K == pytest.approx(0.0, abs=1e-9)
    for c, dy, dz in pairs:
        assert c.product(c.v, c.v + dy + dz) == pytest.approx(0.1 * c.one, abs=1e-9)
        c.move(dy, dz)
    p = iterate.p + step.p
    assert rows.G @ p - rows.h == pytest.approx(iterate.cones[0].y, abs=1e-9)
    for c in iterate.cones[1:]:
        Y = c.V.T @ (data.cone_entries @ p[-data.m :]).reshape(c.V.shape[0], -1) @ c.V
        assert Y == pytest.approx(c.y, abs=1e-9)


def test_a_price_is_needed():
    X, triplets = blobs(0)
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.identity()], X)
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.0, gamma2=0.1, cone="psd")
    with pytest.raises(MethodError, match="gamma1 > 0"):
        formulation.solve("interior-point")


@pytest.mark.parametrize("cone", ["dominant", "psd"])
def test_auto_takes_it_where_there_are_many_triplets(cone):
    """800 triplets on 30 points: in seconds, certified, and at the value of the simplex method."""
    X, triplets = blobs(1, n=30, d=6, T=800)
    weak = ko.per_feature([ko.gaussian(w) for w in (0.3, 1.0, 3.0)], 6)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.1, gamma2=0.01, cone=cone)
    solution = formulation.solve("auto" if cone == "psd" else "interior-point")
    assert solution.method == "interior-point" and solution.gap <= 1e-5
    if cone == "dominant":
        assert near(solution.value, formulation.solve("column-generation").value, 1e-5)


def test_a_pass_that_is_predicted_to_take_longer_than_is_left_is_not_started(monkeypatch):
    """The bounds of the last iterate come back."""
    monkeypatch.setattr(interior_point, "SETTINGS", replace(interior_point.SETTINGS, passes=1e6))
    formulation = formulated(*DATA["semidefinite"](0, 9, 14), gamma1=0.3, gamma2=0.05)
    with pytest.warns(ConvergenceWarning):
        solution = formulation.solve("interior-point", time_limit=20.0)
    assert solution.iterations == 0
    assert solution.lower <= formulation.solve("exact").value <= solution.upper
