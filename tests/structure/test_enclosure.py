"""Enclosures of expressions contain the values in 320 bits, and are narrow."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.numerics.ball import Ball
from kernelopt.structure.enclosure import enclosure, violation

RNG = np.random.default_rng(7)
GRAMS = np.array([L @ L.T for L in RNG.normal(size=(3, 4, 2))])
A = RNG.normal(size=(3, 3))


def at_points() -> tuple[cp.Variable, cp.Variable, cp.Variable]:
    """Variables with values: positive numbers of many sizes, others near them, and a definite matrix."""
    x, y, Z = cp.Variable(3, nonneg=True), cp.Variable(3, nonneg=True), cp.Variable((3, 3), PSD=True)
    x.value = np.array([0.3, 1e-9, 2.0])
    y.value, Z.value = x.value * 1.01, A @ A.T
    return x, y, Z


ATOMS = {
    "combination": lambda x, y, Z: cp.sum_squares(ko.combine(x, GRAMS) - GRAMS[0]),
    "frobenius": lambda x, y, Z: ko.frobenius(ko.combine(x, GRAMS)),
    "product": lambda x, y, Z: A @ Z @ A.T,
    "entrywise": lambda x, y, Z: cp.multiply(A, Z) / 3,
    "kron": lambda x, y, Z: cp.kron(A, Z),
    "convolve": lambda x, y, Z: cp.convolve(A[0], x),
    "stacked": lambda x, y, Z: cp.hstack([x, y[1:], cp.diag(Z)]),
    "sums": lambda x, y, Z: cp.sum(Z, axis=0) + cp.cumsum(x),
    "trace": lambda x, y, Z: cp.trace(Z),
    "other affine": lambda x, y, Z: cp.vec(cp.upper_tri(A @ Z @ A.T), order="F"),
    "form": lambda x, y, Z: cp.quad_form(x, A @ A.T),
    "squares": lambda x, y, Z: cp.quad_over_lin(x, y[0]),
    "norms": lambda x, y, Z: cp.mixed_norm(Z, 2, 1) + cp.pnorm(x, 3) + cp.norm_inf(x) + cp.norm1(x),
    "powers": lambda x, y, Z: cp.sqrt(x) + x**3 + cp.inv_pos(y) + (x - y) ** 2,
    "exp and log": lambda x, y, Z: cp.exp(-x) - cp.log(x) + cp.log1p(x) + cp.logistic(x) + cp.xexp(x),
    "log_sum_exp": lambda x, y, Z: cp.log_sum_exp(100 * x),
    "entropies": lambda x, y, Z: cp.entr(x) + cp.rel_entr(x, y) + cp.kl_div(x, y),
    "huber": lambda x, y, Z: cp.huber(x - 1, 0.5),
    "selections": lambda x, y, Z: cp.max(Z, axis=0) + cp.maximum(x, y, 0.1) - cp.minimum(x, y) - cp.min(x),
    "eigenvalues": lambda x, y, Z: (
        cp.lambda_max(Z) + cp.norm(A @ Z, "nuc") + cp.sigma_max(A @ Z) - cp.lambda_min(Z)
    ),
    "monotone": lambda x, y, Z: cp.geo_mean(x) + cp.sum_largest(x, 2) + cp.harmonic_mean(x),
    "smooth": lambda x, y, Z: cp.log_det(Z) + cp.matrix_frac(x, Z) + cp.tr_inv(Z),
}

if tuple(map(int, cp.__version__.split(".")[:3])) >= (1, 9, 2):  # before, cvxpy has no matrix of this atom
    ATOMS["concatenated"] = lambda x, y, Z: cp.concatenate([A @ x, y], axis=0)


@pytest.mark.parametrize("name", ATOMS)
def test_an_enclosure_contains_the_value_and_those_near_it(name):
    """The value by cvxpy is within its rounding; those of variables changed by 1e-14, within the radius."""
    variables = at_points()
    expression = ATOMS[name](*variables)
    here, around = enclosure(expression), enclosure(expression, variables, 1.1e-14)
    size = 1e-300 + np.max(np.abs(here.mid))
    assert np.max(here.rad) < 1e-9 * size
    assert np.shape(here.mid) == expression.shape
    assert np.all(np.abs(expression.value - here.mid) <= here.rad + 1e-15 * size)
    for sign in (1, -1):
        for variable in variables:
            variable.save_value(variable.value * (1 + sign * 1e-14))
        assert np.all(np.abs(enclosure(expression).mid - here.mid) <= around.rad)
        variables_again = at_points()
        for variable, again in zip(variables, variables_again, strict=True):
            variable.save_value(again.value)


def test_zeros_are_exact():
    x = cp.Variable(3)
    x.value = np.zeros(3)
    for expression in (cp.norm(x), cp.sum_squares(x), 2 * x, A @ x, cp.max(x), cp.abs(x), ko.p_norm(x, 50)):
        assert enclosure(expression).is_exact


def test_a_norm_has_no_scale():
    for size in (1e-300, 1.0, 1e300):
        ball = Ball(size * np.array([3.0, 4.0])).norm(2.0)
        assert ball.mid == pytest.approx(5 * size, rel=1e-15)
        assert 0 < ball.rad < 1e-14 * ball.mid


def test_what_overflows_has_no_bound():
    x = cp.Variable()
    x.value = 1e200
    ball = enclosure(cp.square(x))
    assert ball.above == np.inf
    assert enclosure(cp.exp(x)).above == np.inf


def test_a_certificate_says_which_atoms_have_no_analysis():
    """The maximum of the geometric mean over the simplex is 1/2."""
    x = cp.Variable(2, nonneg=True)
    found = ko.certify(cp.Problem(cp.Maximize(cp.geo_mean(x)), [cp.sum(x) == 1]), weights=[0.5, 0.5])
    assert found.lower == pytest.approx(0.5)
    assert found.lower < 0.5
    assert len(found.assumes) == 1
    assert found.assumes[0].startswith("GeoMean")
    plain = ko.certify(cp.Problem(cp.Minimize(cp.sum(cp.exp(x))), [cp.sum(x) == 1]), weights=[0.5, 0.5])
    assert plain.assumes == ()


def test_an_atom_without_a_gradient_has_its_value_and_no_bound():
    """cvxpy has no gradient of these: nothing is known of the rounding errors, and the violation is right."""
    x, X = cp.Variable(3, value=[0.2, 0.5, 0.3]), cp.Variable((2, 2), diag=True, value=np.diag([0.2, 0.7]))
    for e in (cp.von_neumann_entr(X), cp.dotsort(x, np.array([1.0, -1.0, 2.0]))):
        found = enclosure(e)
        assert found.mid == pytest.approx(e.value) and found.rad == np.inf
        assert violation(e <= e.value - 0.1) == pytest.approx(0.1)


def exponential_ray(s):
    """Rays on the boundary of y exp(x / y) <= z, y > 0."""
    return np.column_stack([s, np.ones_like(s), np.exp(s)])


def power_ray(t):
    """Rays on the boundary of x^0.3 y^0.7 >= |z|; the sign of z is the sign of t."""
    u, v = np.cos(np.abs(t)).clip(0), np.sin(np.abs(t))
    return np.column_stack([u, v, np.sign(t) * u**0.3 * v**0.7])


def from_rays(point, ray, low, high):
    """The distance of a point from the rays of the parameters in [low, high], by brute force."""
    for _ in range(4):
        s = np.linspace(low, high, 4001)
        rays = ray(s)
        along = np.maximum(rays @ point, 0.0) / (rays**2).sum(axis=1)
        distances = np.linalg.norm(point - along[:, None] * rays, axis=1)
        best = int(np.argmin(distances))
        low, high = s[max(best - 2, 0)], s[min(best + 2, s.size - 1)]
    return float(distances[best])


CONES = {
    "exponential": (
        lambda x: cp.ExpCone(*x),
        lambda x, y, z: (y > 0 and y * np.exp(x / y) <= z) or (y == 0 and x <= 0 <= z),
        exponential_ray,
        [(-40.0, 0.0), (0.0, 40.0)],
    ),
    "power": (
        lambda x: cp.PowCone3D(*x, 0.3),
        lambda x, y, z: min(x, y) >= 0 and x**0.3 * y**0.7 >= abs(z),
        power_ray,
        [(-np.pi / 2, 0.0), (0.0, np.pi / 2)],
    ),
}


@pytest.mark.parametrize("name", CONES)
def test_the_violation_of_a_cone_is_no_less_than_the_distance_and_of_its_order(name):
    """Of points of all signs, and beside the boundary at many distances; in the cone it is rounding."""
    cone, in_cone, ray, intervals = CONES[name]
    rng = np.random.default_rng(0)
    rays = ray(rng.uniform(*intervals[1], size=60))
    rays *= 10.0 ** rng.integers(-6, 7, size=(60, 1)) / np.linalg.norm(rays, axis=1)[:, None]
    beside = rays * (1 + rng.normal(size=(60, 3)) * 10.0 ** rng.integers(-3, 1, size=(60, 1)))
    variables = [cp.Variable(value=0.0) for _ in range(3)]
    for point in [*rng.normal(size=(60, 3)), *beside]:
        for variable, value in zip(variables, point, strict=True):
            variable.save_value(np.array(value))
        size, (x, y, z) = np.abs(point).max(), point
        (found,) = violation(cone(variables))
        if in_cone(x, y, z):
            assert found <= 1e-12 * size
            continue
        distance = min(from_rays(point, ray, *interval) for interval in intervals)
        if name == "exponential":
            distance = min(distance, np.hypot(np.hypot(max(x, 0.0), y), min(z, 0.0)))
        assert distance * (1 - 1e-6) - 1e-9 * size <= found <= 60 * distance + 1e-12 * size, point


def test_the_violation_of_cones_in_every_form():
    x, y, z = (cp.Variable(2, value=v) for v in ([1.0, -1], [2.0, 0], [2 * np.exp(0.5) - 1e-3, 0]))
    found = violation(cp.constraints.ExpCone(x, y, z))
    slope = np.array([np.exp(0.5), np.exp(0.5) / 2, -1])  # of y exp(x / y) - z
    assert found[0] == pytest.approx(1e-3 / np.abs(slope).max(), rel=1e-3) and found[1] == 0
    root = violation(cp.constraints.PowCone3D(y, x, z, 0.5))
    wide = cp.constraints.PowConeND(cp.vstack([y, x]), z, np.full((2, 2), 0.5))
    assert violation(wide) == pytest.approx(root, rel=1e-12) and root[0] > 0.1 and root[1] == 1
    tall = cp.constraints.PowConeND(cp.hstack([y[:1], x[:1]]), z[0], np.array([0.5, 0.5]))
    assert violation(tall) == pytest.approx(root[:1], rel=1e-12)
    y.save_value(np.array([np.nan, 1.0]))
    assert violation(cp.constraints.ExpCone(x, y, z))[0] == np.inf
    assert violation(cp.constraints.PowCone3D(x, y, z, 0.5))[0] == np.inf
    assert violation(x <= 0).tolist() == [1.0, 0.0]
