"""`dual.solve()` and `ko.solve(dual)` reach the value of the primal by the solvers that they choose."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelopt as ko
from kernelopt.duality.conjugates.functions import conic_norm
from kernelopt.structure.structure import Structure
from kernelopt.structure.units import units
from tests.every import every

# Simple fractions, whose duals have second-order cones, and 1.37, whose dual has power cones.
EXPONENTS = (4 / 3, 1.37, 4)
MORE = (1, 1.2, 1.5, 2, 3, 8, np.inf)
ENTRIES = np.random.default_rng(3).normal(size=5)


def lp_learning(p):
    """The first problem of docs/tour.md in a ball of another p: nearly singular kernels, and a comparison."""
    data = load_breast_cancer()
    X, y = StandardScaler().fit_transform(data.data[:60]), 2.0 * data.target[:60] - 1
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in (2, 5, 10)] + [ko.linear()], X)
    mu = cp.Variable(4, nonneg=True, name="mu")
    K = ko.combine(mu, grams)
    near = ko.entries(K, [4], [21]) <= ko.entries(K, [4], [14])
    risk = ko.risk(K, y, ko.hinge(1.0))
    return cp.Problem(cp.Minimize(risk + 0.1 * cp.sum_squares(mu)), [*ko.lp_ball(mu, p), near])


def agrees(p):
    problem = lp_learning(p)
    reference = ko.solve(problem, tol=2e-6)
    value = ko.dualize(problem).solve()
    slack = 1e-6 * reference.value
    assert reference.lower - slack <= value <= reference.upper + slack


@every("p", EXPONENTS)
def test_the_default_solve_of_a_dual_has_the_value_of_the_primal(p):
    agrees(p)


@pytest.mark.slow
@every("p", MORE)
def test_the_default_solve_of_a_dual_has_the_value_of_the_primal_for_every_norm(p):
    agrees(p)


@every("p", [4 / 3, 4])
def test_a_dual_is_certified_as_any_other_problem(p):
    problem = lp_learning(p)
    reference, found = ko.solve(problem, tol=2e-6), ko.solve(ko.dualize(problem), tol=2e-6)
    assert found.gap <= 2e-6 and found.status == "optimal"
    assert found.lower <= reference.upper and reference.lower <= found.upper
    assert found.value == pytest.approx(reference.value, rel=4e-6)


@every("p", [1, 8 / 7, 1.2, 4 / 3, 1.37, 1.5, 2, 7 / 3, 3, 4, 17 / 3, 8, np.inf])
def test_a_norm_in_a_dual_is_exact(p):
    x = cp.Variable(5, value=ENTRIES)
    norm = conic_norm(x, p)
    assert float(norm.value) == pytest.approx(float(np.linalg.norm(ENTRIES, p)), rel=1e-14)
    simple = Fraction(p).limit_denominator(100).numerator <= 8 if p < np.inf else True
    data = cp.Problem(cp.Minimize(norm), [x == ENTRIES]).get_problem_data("CLARABEL")[0]
    assert bool(data["dims"].p3d) != simple


def test_a_solver_can_be_chosen():
    dual = ko.dualize(lp_learning(2))
    assert dual.solve(solver=cp.SCS) == pytest.approx(ko.dualize(lp_learning(2)).solve(), rel=1e-3)
    assert dual.solver_stats.solver_name == "SCS"


def objective_unit(objective, *constraints):
    return units(Structure(cp.Problem(objective, list(constraints)))).objective


def test_the_unit_of_an_objective_is_near_the_optimum():
    """A form of many entries that cancel at the solution is no size of the objective."""
    n, C = 100, 1.0
    sign = np.where(np.arange(n) % 2, -1.0, 1.0)
    alpha = cp.Variable(n)
    gain = sign @ alpha - 50 * cp.square(cp.sum_squares(np.ones((4, n)) @ alpha))
    box = [cp.abs(alpha) <= C, cp.sum(alpha) == 0]
    optimum = float(n)
    assert optimum / 8 <= objective_unit(cp.Maximize(gain), *box) <= 8 * optimum


def test_the_unit_of_an_objective_where_zero_is_not_feasible():
    """The entries are at most 4, the square at most 64: the price of 1e-9 does not count."""
    x = cp.Variable(4)
    price = cp.sum_squares(x) + 1e-9 * cp.norm1(x)
    assert objective_unit(cp.Minimize(price), cp.sum(x) == 4) == 64
    assert objective_unit(cp.Minimize(cp.sum_squares(x - 1))) == pytest.approx(4, rel=2)
