"""The bounds of one-class learning in the nu form: true of every candidate, and near at a solution."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest

from formulations import lp_norm
from tests.every import every
from tests.problems import stack

GRAMS = stack(12)
EXPONENTS = (1.0, 4 / 3, 2.0, np.inf)
NUS = (0.05, 0.4, 1.0)
CONJUGATES = {1.0: np.inf, 4 / 3: 4, 2.0: 2, np.inf: 1}
SIZES = (4.0, 1.0, 2.25)  # squares of doubles: the factors are exact

numbers = {
    "missing": lambda shape, rng: None,
    "zero": lambda shape, rng: np.zeros(shape),
    "one": lambda shape, rng: np.ones(shape),
    "nan": lambda shape, rng: np.full(shape, np.nan),
    "huge": lambda shape, rng: 1e300 * rng.normal(size=shape),
    "tiny": lambda shape, rng: 1e-300 * rng.normal(size=shape),
    "negative": lambda shape, rng: -rng.uniform(size=shape),
    "random": lambda shape, rng: rng.uniform(size=shape),
    "mixed": lambda shape, rng: rng.normal(size=shape),
}


def bounds(problem, kind, other):
    """The certificate at numbers of one kind for the variables, and of another for the multiplier."""
    rng = np.random.default_rng(5)
    values = {v.id: numbers[kind](v.shape, rng) for v in problem.variables()}
    return problem.bounds(values, {"fit": numbers[other]((problem.data.n,), rng)})


def check_point(problem, found):
    """The point meets the fit up to rounding, and its objective is the upper bound up to rounding."""
    for variable, value in found.point.items():
        variable.save_value(value)
    size = abs(found.upper) + found.floor
    assert found.route == "closed" and found.feasible
    assert problem.constraints[0].violation() == pytest.approx(0, abs=1e-13)
    assert problem.objective.value == pytest.approx(found.upper, abs=1e-12 * size)
    assert found.point.keys() == set(problem.variables())


@cache
def identities(p, nu):
    """K_m = c_m I on three points: alpha = 1/3, which is no double, and the value is -|c|_q / 6."""
    return lp_norm.one_class([c * np.eye(3) for c in SIZES], p=p, nu=nu).problem


@pytest.mark.parametrize("kind", numbers)
@every("p", EXPONENTS)
def test_bounds_hold_the_exact_optimum_at_any_candidate(p, kind):
    q = CONJUGATES[p]
    for nu, other in product((0.2, 1.0), numbers):
        problem = identities(p, nu)
        found = bounds(problem, kind, other)
        assert np.isfinite(found.lower) and found.lower <= found.upper <= 0
        if np.isinf(q):
            above, below, exact = -6 * Fraction(found.lower), -6 * Fraction(found.upper), Fraction(max(SIZES))
        else:
            above, below = ((-6 * Fraction(bound)) ** q for bound in (found.lower, found.upper))
            exact = sum(Fraction(c) ** q for c in SIZES)
        assert below <= exact <= above
        check_point(problem, found)


@pytest.mark.parametrize(
    ("nu", "exact"),
    [(0.1, Fraction(8, 21)), (0.4, Fraction(8, 21)), (0.5, Fraction(2, 5)), (1.0, Fraction(21, 18))],
)
def test_the_box_counts(nu, exact):
    """K = diag(1, 4, 16): alpha is (16, 4, 1) / 21, at nu = 1/2 (10, 4, 1) / 15, and equal at nu = 1."""
    formulation = lp_norm.one_class([np.diag([1.0, 4.0, 16.0])], p=2, nu=nu)
    for kind, other in product(numbers, numbers):
        found = bounds(formulation.problem, kind, other)
        assert Fraction(found.lower) <= -exact <= Fraction(found.upper), (kind, other)
    solution = formulation.solve("exact", tol=1e-8)
    assert Fraction(solution.lower) <= -exact <= Fraction(solution.upper)
    assert solution.gap <= 1e-8 and solution.upper == pytest.approx(float(-exact), rel=1e-8)


@pytest.mark.parametrize("nu", [1e-3, 0.3, 0.7, 1 - 1e-9, 1 - 2**-53, 1.0])
def test_alpha_is_in_the_set_in_exact_arithmetic(nu):
    rng = np.random.default_rng(0)
    problem = lp_norm.one_class(GRAMS, p=2, nu=nu).problem
    wild = [rng.normal(size=12) * 10.0**k for k in (-300, -9, 0, 9, 300)]
    for alpha in [*wild, np.zeros(12), np.ones(12), np.eye(12)[3], np.full(12, 1 / 12), rng.uniform(size=12)]:
        moved = [Fraction(a) for a in problem.in_set(problem.unit * alpha).tolist()]
        assert min(moved) >= 0 and max(moved) * Fraction(problem.most) <= sum(moved)
        assert float(sum(moved)) == pytest.approx(1, abs=1e-12)
    inside = rng.uniform(0.9, 1.1, size=12) / 12
    inside /= inside.sum()
    if nu < 0.9:  # a point of the set is kept
        assert problem.in_set(problem.unit * inside) == pytest.approx(inside, abs=1e-15)


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_gap_is_small_and_the_dual_agrees_in_every_unit(p, nu):
    """Each p and each nu meets a large and a small unit."""
    plain = lp_norm.one_class(GRAMS, p=p, nu=nu)
    found = plain.solve("exact", tol=1e-8)
    assert found.certificate.route == "closed" and found.gap <= 1e-8
    dual = plain.dual()
    dual.solve(solver=cp.CLARABEL)
    assert dual.value == pytest.approx(found.value, rel=1e-5)
    scores = found.decision_function()
    c = 1e10 if (EXPONENTS.index(p) + NUS.index(nu)) % 2 else 1e-10
    other = lp_norm.one_class(c * GRAMS, p=p, nu=nu).solve("exact", tol=1e-8)
    assert other.gap <= 1e-8 and other.value == pytest.approx(c * found.value, rel=2e-8)
    assert other.alpha.sum() == pytest.approx(1, abs=1e-7)
    assert other.decision_function() == pytest.approx(c * scores, abs=1e-4 * c)
    assert other.intercept == pytest.approx(c * found.intercept, rel=1e-3)


@pytest.mark.parametrize("p", EXPONENTS)
def test_a_rough_candidate_alone_is_made_good(p):
    """Without a multiplier: the machine is trained at the kernel whose weights belong to w."""
    formulation = lp_norm.one_class(GRAMS, p=p, nu=0.4)
    best = formulation.solve("exact", tol=1e-8)
    problem = formulation.problem
    rough = {
        v.id: v.value + 1e-4 * np.random.default_rng(1).normal(size=v.shape) for v in problem.variables()
    }
    found = problem.bounds(rough, {"fit": None})
    assert found.lower <= best.upper and best.lower <= found.upper
    assert found.gap <= 1e-3
    check_point(problem, found)


def test_points_around_the_origin_have_the_value_zero():
    """x and -x: no half-space without the origin holds both, and the gap is relative to the kernels."""
    X = np.array([[1.0, 0.5], [-1.0, -0.5], [0.3, 2.0], [-0.3, -2.0]])
    for c in (1.0, 1e8):
        found = lp_norm.one_class([c * X @ X.T], p=2, nu=0.5).solve("exact", tol=1e-6)
        assert found.lower <= 0 <= found.upper and found.gap <= 1e-6


def test_kernels_that_are_zero_have_the_value_zero():
    problem = lp_norm.one_class(np.zeros((2, 4, 4)), p=2, nu=0.5).problem
    for kind in numbers:
        found = bounds(problem, kind, kind)
        assert found.lower == found.upper == 0 and found.gap == 0
        check_point(problem, found)


def test_the_bounds_survive_a_deep_copy_of_the_formulation():
    formulation = deepcopy(lp_norm.one_class(GRAMS, p=2, nu=0.4))
    found = formulation.solve("exact", tol=1e-8)
    assert found.certificate.route == "closed" and found.gap <= 1e-8
    assert found.alpha.sum() == pytest.approx(1, abs=1e-7)


def test_alpha_is_that_of_the_bound_whatever_multiplier_a_solver_left():
    for n in (2, 5):
        formulation = lp_norm.one_class([np.eye(n)], p=2, nu=1.0)
        found = formulation.solve("exact")
        assert found.solver == "CLARABEL"  # the first attempt: it fails where the objective's unit is misread
        formulation.problem.constraints[0].save_dual_value(np.zeros(n))
        assert formulation.machine()[0] == pytest.approx(np.full(n, 1 / n), rel=1e-6)
        assert found.alpha == pytest.approx(np.full(n, 1 / n), rel=1e-6)
        assert found.intercept == pytest.approx(-1 / n, rel=1e-6)
