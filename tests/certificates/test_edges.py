"""Bounds at the edges: powers that underflow, terms that cancel, extreme scales, and constant risks."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from mpmath import mpf

import kernelopt as ko
from formulations import lp_norm
from kernelopt.structure.enclosure import enclosure
from tests.certificates.truth.exact_algebra import exact, p_norm

EDGES = [(50, 1e-7), (4, 1e-85), (20, 1e-17), (100, 1e-4), (500, 0.1), (1000, 0.1)]
ROUND_OFF = 1e-14


def kernels(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian kernels of n points, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    y = np.sign(X[:, 0])
    y[:2] = 1.0, -1.0
    return np.array([np.exp(-squares / width) for width in (0.3, 2.0, 20.0)]), y


@pytest.mark.parametrize(("p", "radius"), EDGES)
def test_a_point_outside_a_ball_whose_powers_underflow_is_not_feasible(p, radius):
    """The maximum of sum(x) over |x|_p <= R is R m^(1 - 1/p)."""
    x = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Maximize(cp.sum(x)), [ko.p_norm(x, p) <= radius])
    certificate = ko.certify(problem, weights=np.full(3, 3 * radius))
    assert certificate.residuals
    assert certificate.feasible
    assert p_norm(exact(certificate.point[x]), p) <= mpf(radius) * (1 + mpf(ROUND_OFF))
    assert mpf(certificate.lower) <= mpf(radius) * mpf(3) ** (1 - 1 / mpf(p)) <= mpf(certificate.upper)


@pytest.mark.parametrize(("p", "radius"), EDGES)
def test_the_upper_bound_of_a_risk_over_such_a_ball_is_not_below_the_optimum(p, radius):
    """The risk over the ball of radius R is that of R times the kernels over the ball of radius one."""
    grams, y = kernels()
    bounds = []
    for R, scale, given in ((radius, 1.0, 3 * radius), (1.0, radius, 0.5)):
        theta = cp.Variable(3, nonneg=True)
        objective = ko.risk(ko.combine(theta, scale * grams), y, ko.hinge(1 / radius))
        bounds.append(
            ko.certify(cp.Problem(cp.Minimize(objective), ko.lp_ball(theta, p, R)), weights=np.full(3, given))
        )
    assert bounds[0].upper >= bounds[1].lower * (1 - 1e-12)
    assert bounds[0].lower <= bounds[1].upper * (1 + 1e-12)


def test_a_penalty_whose_powers_underflow_is_charged():
    """|x|_400 >= |x|_inf: the optimum for p = 400 is not below that for p = inf."""
    grams, y = kernels()
    finite, infinite = (
        ko.solve(lp_norm.tikhonov(grams, y, p=p, penalty=3000).problem) for p in (400, np.inf)
    )
    assert finite.upper >= finite.lower
    assert finite.upper >= infinite.lower


@pytest.mark.parametrize("method", ["exact", "interleaved"])
@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_a_returned_point_is_in_its_ball_at_a_large_exponent(method, radius):
    grams, y = kernels()
    theta = cp.Variable(3, nonneg=True)
    objective = ko.risk(ko.combine(theta, grams), y, ko.hinge(1.0))
    solution = ko.solve(cp.Problem(cp.Minimize(objective), ko.lp_ball(theta, 1000, radius)), method)
    assert p_norm(exact(solution.weights), 1000) <= mpf(radius) * (1 + mpf(ROUND_OFF))


@pytest.mark.parametrize("name", ["exp", "log"])
def test_the_error_of_an_atom_is_that_of_its_arguments(name):
    """The minimum of sum(exp(-x) - 1) over sum(x) <= s is m (exp(-s/m) - 1), of -sum(log(1 + x)) likewise."""
    x, total = cp.Variable(7, nonneg=True), 7e-10
    objective = cp.sum(cp.exp(-x) - 1) if name == "exp" else cp.sum(-cp.log(x + 1))
    certificate = ko.certify(
        cp.Problem(cp.Minimize(objective), [cp.sum(x) <= total]), weights=np.full(7, 1e-10)
    )
    share = mpf(total) / 7
    optimum = -7 * (share - share**2 / 2)  # both to a relative share^2 / 6
    assert mpf(certificate.upper) >= optimum - mpf(1e-29)
    assert certificate.upper == pytest.approx(float(optimum), rel=2e-5)


def test_an_atom_without_a_rule_has_an_error_or_no_bound():
    x, s = cp.Variable(3, nonneg=True), cp.Variable(nonneg=True)
    x.value, s.value = np.array([1e-9, 0.5, 3.0]), np.asarray(0.7)
    known = enclosure(cp.geo_mean(x))
    assert 0 < known.rad < 1e-12
    assert abs(known.mid - 1.5e-9 ** (1 / 3)) <= known.rad
    assert np.isinf(enclosure(cp.perspective(cp.sum_squares(x), s)).rad)


def test_a_row_of_a_linear_inequality_counts_in_its_own_units():
    """A violation of 1e-17 by an entry of size 1e-17 is no rounding, though another entry is of size one."""
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0, x <= 1])
    certificate = ko.certify(problem, candidate={x: np.array([1.0, -1e-17])})
    assert certificate.residuals
    assert certificate.upper >= 1.0
    assert (certificate.point[x] >= 0).all()


@pytest.mark.parametrize(("kernel", "C", "factor"), [(1e250, 1e-250, 1.0), (1.0, 1.0, 1e-250)])
def test_mirror_descent_bounds_problems_of_extreme_scale(kernel, C, factor):
    """risk(c K, C / c) = risk(K, C) / c."""
    grams, y = kernels()
    theta = cp.Variable(3, nonneg=True)
    ordinary = ko.risk(ko.combine(theta, grams), y, ko.hinge(1.0))
    extreme = factor * ko.risk(ko.combine(theta, kernel * grams), y, ko.hinge(C))
    optimum = ko.solve(cp.Problem(cp.Minimize(ordinary), [cp.sum(theta) <= 1]))
    found = ko.solve(cp.Problem(cp.Minimize(extreme), [cp.sum(theta) <= 1]), "mirror-descent")
    scale = factor / kernel
    assert found.lower <= optimum.upper * scale * (1 + 1e-12)
    assert optimum.lower * scale * (1 - 1e-12) <= found.upper < 1.01 * optimum.upper * scale


@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kernel", "C", "factor"), [(1e-140, 1e140, 1.0), (1.0, 1.0, 1e250), (1.0, 1e140, 1.0)]
)
def test_mirror_descent_returns_numbers_where_squares_overflow(kernel, C, factor):
    grams, y = kernels()
    theta = cp.Variable(3, nonneg=True)
    objective = factor * ko.risk(ko.combine(theta, kernel * grams), y, ko.hinge(C))
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(theta) <= 1])
    found = ko.solve(problem, "mirror-descent", max_iterations=5)
    assert 0 <= found.lower <= found.upper < np.inf


@pytest.mark.parametrize("scale", [1e-160, 1e-250, 1e-300, 1e160, 1e300])
def test_units_of_kernels_of_extreme_scale(scale):
    X = np.random.default_rng(0).normal(size=(8, 2))
    y = np.sign(X[:, 0] + 0.1)
    certificate = ko.certify(cp.Problem(cp.Minimize(ko.risk(X @ X.T * scale, y, ko.hinge(1.0)))))
    assert certificate.lower <= certificate.upper < np.inf


def test_a_constant_risk_in_a_constraint():
    """Kernels of zeros: the risk is the loss of a constant, which is a number."""
    _, y = kernels()
    x = cp.Variable(2, nonneg=True)
    constant = ko.risk(np.zeros((12, 12)), y, ko.hinge(1.0))
    solution = ko.solve(cp.Problem(cp.Minimize(cp.sum(x)), [constant <= 30, x >= 1]))
    assert solution.lower <= 2 <= solution.upper
    assert solution.upper == pytest.approx(2)
    with pytest.raises(ko.InfeasibleError):
        ko.solve(cp.Problem(cp.Minimize(cp.sum(x)), [constant <= 1, x >= 1]))
