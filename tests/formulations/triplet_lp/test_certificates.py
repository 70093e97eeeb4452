"""Bounds of the triplet programme for any point, and where they come from."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import triplet_lp
from kernelopt.certificates import check
from tests.every import every
from tests.formulations.triplet_lp.cases import (
    CONES,
    DATA,
    TIGHT,
    blobs,
    bounds,
    cones,
    distance,
    formulated,
    linear,
    near,
    optimum,
    plain,
    programme,
    quietly,
    semidefinite,
    tolerance,
    value_of,
)
from tests.problems import points, solved

GARBAGE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "large": lambda rng, shape: 1e6 * rng.normal(size=shape),
    "small": lambda rng, shape: 1e-6 * rng.normal(size=shape),
    "positive": lambda rng, shape: rng.uniform(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "zero": lambda rng, shape: np.zeros(shape),
    "NaN": lambda rng, shape: np.full(shape, np.nan),
    "infinite": lambda rng, shape: np.where(rng.random(shape) < 0.5, np.inf, -np.inf),
    "enormous": lambda rng, shape: 1e300 * rng.normal(size=shape),
    "nothing": lambda rng, shape: None,
}


def put(formulation, values, multipliers):
    for variable in formulation.problem.variables():
        variable.save_value(values(variable.shape))
    for constraint in formulation.problem.constraints:
        for variable in constraint.dual_variables:
            variable.save_value(multipliers(variable.shape))


def check_attained(formulation, certificate):
    """The point of a certificate is feasible and has the value `upper`."""
    assert certificate.feasible
    for variable, value in certificate.point.items():
        variable.save_value(value)
    size = max(1.0, float(abs(formulation.weights.value).max()))
    for constraint in formulation.problem.constraints:
        assert float(np.max(constraint.violation())) <= 1e-9 * size, constraint.label
    assert (formulation.problem.objective.value) == pytest.approx(certificate.upper, rel=1e-9)


@cache
def small_value(cone, gamma1, gamma2):
    return value_of(cone, *semidefinite(0, 7, 8), gamma1, gamma2)


@every("garbage", GARBAGE.values(), ids=GARBAGE)
@cones
def test_bounds_hold_for_whatever_is_left_in_the_problem(cone, garbage):
    grams, triplets, groups = semidefinite(0, 7, 8)
    rng = np.random.default_rng(0)
    for gamma1, gamma2 in ((0.05, 0.02), (0.0, 0.02), (0.05, 0.0))[: 1 if cone == "psd" else 3]:
        formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
        value = small_value(cone, gamma1, gamma2)
        for _ in range(1 if cone == "psd" else 3):
            put(formulation, lambda s: garbage(rng, s), lambda s: garbage(rng, s))
            certificate = quietly(bounds, formulation)
            assert certificate.lower <= value + 1e-7 and value <= certificate.upper + 1e-7
            assert np.isfinite([certificate.lower, certificate.upper]).all()
            assert 0.0 <= certificate.lower or cone == "psd"
            assert certificate.upper <= len(triplets)
            check_attained(formulation, certificate)


@linear
@pytest.mark.parametrize("kind", ["plain", "semidefinite"])
def test_bounds_hold_around_the_optimum(kind, cone):
    """Noise of all sizes on the solver's values and multipliers: valid always, and tight at none."""
    grams, triplets, groups = DATA[kind](1)
    for gamma1, gamma2 in ((0.05, 0.02), (0.05, 0.0), (0.0, 0.02)):
        formulation = formulated(grams, triplets, groups, gamma1=gamma1, gamma2=gamma2, cone=cone)
        formulation.problem.solve(solver=cp.HIGHS)
        value = programme(grams, triplets, groups, gamma1, gamma2, cone)[1]
        values = {v.id: v.value for v in formulation.problem.variables()}
        prices = {c.id: c.dual_value for c in formulation.problem.constraints}
        rng = np.random.default_rng(0)
        for noise in (0.0, 1e-9, 1e-6, 1e-3, 0.1):
            for variable in formulation.problem.variables():
                variable.save_value(values[variable.id] + noise * rng.normal(size=variable.shape))
            for constraint in formulation.problem.constraints:
                dual = prices[constraint.id]
                constraint.dual_variables[0].save_value(dual + noise * rng.normal(size=np.shape(dual)))
            certificate = quietly(bounds, formulation)
            assert certificate.lower <= value + 1e-9 and value <= certificate.upper + 1e-9
            check_attained(formulation, certificate)
            if noise == 0:
                assert distance(certificate) <= TIGHT
            if noise == 1e-9:
                assert certificate.upper <= value + 1e-5


@every(("cone", "kind"), [*zip(CONES, ("plain", "semidefinite", "plain"), strict=True)])
def test_the_certificate_of_a_solution_is_attained_and_tight(kind, cone):
    grams, triplets, groups = DATA[kind](2, 9, 12)
    formulation = formulated(grams, triplets, groups, gamma1=0.03, gamma2=0.02, cone=cone)
    solution = quietly(formulation.solve)
    assert solution.gap <= tolerance(cone)
    assert solution.certificate.route == "closed" or cone == "psd"  # there a solver's bound may be tighter
    check_attained(formulation, solution.certificate)
    again = quietly(bounds, formulation)  # from what the solve left in the problem
    assert again.gap <= tolerance(cone) and near(again.upper, solution.upper, tolerance(cone))
    stranger = ko.certify(formulation.problem)  # the library's own, which knows nothing of the paper
    assert stranger.lower <= solution.upper + 1e-7 and solution.lower <= stranger.upper + 1e-7


@pytest.mark.parametrize("gamma1", [0.0, 1e-9, 1e-6, 1e-3])
@linear
def test_small_prices_of_many_gaussians_are_certified(cone, gamma1):
    """HiGHS drops entries below 1e-9, so its multipliers miss z = 0 by as much: they are balanced first."""
    X, triplets = blobs(1, 24, 4, 100)
    weak = ko.per_feature([ko.gaussian(w) for w in (0.01, 0.1, 0.5, 2.0)], 4)
    grams = ko.Grams.from_kernels([*weak, ko.identity()], X)
    solution = optimum(grams, triplets, [*weak.groups, 4], gamma1=gamma1, gamma2=0.02, cone=cone)
    assert distance(solution) <= 1e-8


@pytest.mark.parametrize("cone", ["dominant", "psd"])
def test_weights_are_moved_inside_where_no_kernel_alone_is(cone):
    """K_1 = 11' + I / 2 - eps, K_2 = 11': neither is inside (or strictly), their difference is."""
    n = 6
    ones = np.ones((n, n))
    if cone == "dominant":
        grams = np.array([ones + 0.5 * np.eye(n), ones, 0.2 * np.kron(np.eye(2), np.ones((3, 3)))])
    else:
        low = np.diag([1.0, 0, 0, 0, 0, 0])
        grams = np.array([np.eye(n) - 2 * low, 3 * low, 0.2 * np.kron(np.eye(2), np.ones((3, 3)))])
    triplets = np.array([[0, 1, 3], [4, 5, 0], [2, 1, 5]])
    formulation = triplet_lp.kernel_design(grams, triplets, gamma1=0.01, gamma2=0.01, cone=cone)
    solution = formulation.solve()
    assert solution.status == "optimal" and solution.value < 2.9
    formulation.weights.save_value(solution.weights + np.array([-1e-7, 0.0, 1e-7]))
    assert bounds(formulation).upper == pytest.approx(solution.value, abs=1e-4)


@cones
def test_gamma1_may_be_a_parameter(cone):
    grams, triplets, groups = plain(1, 8, 10)
    price = cp.Parameter(nonneg=True)
    formulation = formulated(grams, triplets, groups, gamma1=price, gamma2=0.02, cone=cone)
    for value in (0.3, 0.05):
        price.value = value
        solution = quietly(formulation.solve)
        fixed = optimum(grams, triplets, groups, gamma1=value, gamma2=0.02, cone=cone)
        assert near(solution.value, fixed.value, tolerance(cone))
        assert near(solved(formulation.dual()), fixed.value, 1e-6)


def test_noise_in_the_weights_does_not_leave_a_cone_without_inside():
    """Equal points make every K singular: there is nothing inside to move towards, only noise to drop."""
    X = np.repeat(points(6, 2, seed=3), 2, axis=0)
    triplets = [[0, 1, 4], [2, 3, 6], [4, 5, 8]]
    weak = ko.per_feature([ko.gaussian(0.5), ko.gaussian(1.0)], 2)
    grams = ko.Grams.from_kernels(weak, X)
    both = [
        triplet_lp.feature_selection(
            grams, triplets, weak.groups, gamma1=0.1, gamma2=0.001, cone=cone
        ).solve()
        for cone in ("psd", "nonnegative")
    ]
    assert np.abs(both[0].weights).max() > 0.1 and both[0].gap <= 1e-5
    assert both[0].lower <= both[1].upper


def test_the_file_of_a_certificate_proves_both_bounds(tmp_path):
    """A w_ij at its bound v_i + v_j may exceed it by a rounding; unrepaired it proves no lower bound."""
    X, y = np.random.default_rng(5).normal(size=(10, 3)), np.repeat([0, 1], 5)
    X[:, 0] += 3 * y
    grams = ko.Grams.from_kernels([*map(ko.gaussian, np.geomspace(0.1, 3, 4)), ko.identity()], X)
    triplets = ko.sample_triplets(y, 20, random_state=5)
    certificate = triplet_lp.kernel_design(grams, triplets, gamma1=0.05, gamma2=0.02).solve().certificate
    valid, said = check.verdict(certificate.save(tmp_path / "proof.npz"))
    lower, upper = (float(number) for number in said.split()[0:5:4])
    assert valid and certificate.lower <= lower <= upper <= certificate.upper
