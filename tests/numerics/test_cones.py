"""Projections on the exponential cone and on power cones, by Moreau's decomposition and by brute force."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernelopt.numerics.cones import exponential_projection, in_exponential_cone, power_projection
from kernelopt.structure.enclosure import violation
from tests.every import every

ROUNDING = 1e-12  # relative to the point; exp(s) multiplies the rounding of s by |s| <= 40
EXPONENTS = ((0.5, 0.5), (0.3, 0.7), (0.9, 0.1), (0.01, 0.99), (0.2, 0.3, 0.5))


def points(order, count=80):
    """Random points of all signs and sizes, some with zeros and some with entries of very different sizes."""
    rng = np.random.default_rng(order)
    drawn = rng.normal(size=(count, order)) * 10.0 ** rng.integers(-6, 7, size=(count, 1))
    drawn[::3] *= 10.0 ** rng.uniform(-8, 0, size=(len(drawn[::3]), order))
    drawn[::7] *= rng.integers(0, 2, size=(len(drawn[::7]), order))
    return drawn


def test_moreau_decomposes_points_by_the_exponential_cone():
    """v = p + q with p in the cone, <p, q> = 0, and <q, r> <= 0 for all r in the cone."""
    s = np.concatenate([np.linspace(-50, 50, 501), np.linspace(-1, 1, 101)])
    rays = np.column_stack([s, np.ones_like(s), np.exp(s)])
    rays = np.vstack([rays / np.linalg.norm(rays, axis=1)[:, None], [-1.0, 0, 0], [0, 0, 1]])
    for v in points(3):
        size = float(np.abs(v).max())
        p = exponential_projection(v)
        x, y, z = p
        assert in_exponential_cone(p) or (y > 0 and abs(y * np.exp(x / y) - z) <= ROUNDING * size)
        assert abs(p @ (v - p)) <= ROUNDING * size**2, v
        assert (rays @ (v - p) <= ROUNDING * size).all(), v


def test_moreau_decomposes_points_by_a_power_cone():
    rng = np.random.default_rng(5)
    for exponents in map(np.array, EXPONENTS):
        rays = 10.0 ** rng.uniform(-12, 0, size=(200, exponents.size))
        ends = np.prod(rays**exponents, axis=1)
        for v in points(exponents.size + 1):
            w, z = v[:-1], v[-1]
            size = float(np.abs(v).max())
            u, t = power_projection(w, z, exponents)
            assert (u >= 0).all() and abs(t) <= np.prod(u**exponents) * (1 + ROUNDING)
            assert abs(u @ (w - u) + t * (z - t)) <= ROUNDING * size**2, (v, exponents)
            assert (rays @ (w - u) + ends * abs(z - t) <= ROUNDING * size).all(), (v, exponents)


@every("v", [(1.0, 2, 3), (0.5, -1, 2), (-2, -1, 1), (3, 0.1, 0.2), (-1, 1, 0.1), (1, -1, -1), (-4, 3, -2)])
def test_the_distance_from_the_exponential_cone_is_that_of_brute_force(v):
    """The boundary is b (s, 1, exp(s)); for each s the best b is known, and s is searched."""
    v = np.array(v, dtype=float)

    def distance(s):
        ray = np.array([s, 1.0, np.exp(s)])
        return float(np.linalg.norm(v - max(v @ ray, 0) / (ray @ ray) * ray))

    grid = np.linspace(-40, 40, 1601)
    near = grid[np.argmin([distance(s) for s in grid])]
    ends = near - 0.1, near + 0.1
    best = minimize_scalar(distance, bounds=ends, method="bounded", options={"xatol": 1e-12}).fun
    face = float(np.linalg.norm(v - [min(v[0], 0), 0, max(v[2], 0)]))
    found = float(np.linalg.norm(v - exponential_projection(v)))
    assert found == pytest.approx(0.0 if in_exponential_cone(v) else min(best, face), abs=1e-7)


@every("w, z, a", [((1.0, 2), 3.0, 0.3), ((-1, 2), 0.5, 0.6), ((-1, -2), 4, 0.5), ((0.5, 0.0), -1, 0.2)])
def test_the_distance_from_a_power_cone_is_that_of_brute_force(w, z, a):
    """The boundary is b (u, v, +-u^a v^(1 - a)) on the unit circle u = cos t, v = sin t."""
    point = np.array([*w, z], dtype=float)

    def distance(t):
        u, v = np.cos(t), np.sin(t)
        ray = np.array([u, v, np.sign(z) * max(u, 0) ** a * max(v, 0) ** (1 - a)])
        return float(np.linalg.norm(point - max(point @ ray, 0) / (ray @ ray) * ray))

    grid = np.linspace(0, np.pi / 2, 4001)
    best = min(distance(t) for t in grid)
    u, t = power_projection(np.array(w, dtype=float), z, np.array([a, 1 - a]))
    assert np.hypot(np.linalg.norm(point[:2] - u), z - t) == pytest.approx(best, abs=1e-6)


def test_points_of_the_cones_stay():
    for v in ([1.0, 2, 2 * np.exp(0.5) + 1e-9], [-3, 0, 0], [0, 0, 0], [-800, 1, 0.5]):
        assert (exponential_projection(np.array(v, dtype=float)) == v).all()
    for w, z in (([1.0, 4], -2.0), ([0.0, 3], 0.0), ([0.0, 0], 0.0)):
        u, t = power_projection(np.array(w), z, np.array([0.5, 0.5]))
        assert (u == w).all() and t == z


def test_the_violation_of_a_constraint_is_the_distance_of_each_cone():
    x, y, z = (cp.Variable(2, value=v) for v in ([1.0, -1], [2.0, 0], [2 * np.exp(0.5) - 1e-3, 0]))
    found = violation(cp.constraints.ExpCone(x, y, z))
    slope = np.array([np.exp(0.5), np.exp(0.5) / 2, -1])  # of y exp(x / y) - z
    assert found == pytest.approx([1e-3 / np.linalg.norm(slope), 0], rel=1e-3)
    root = violation(cp.constraints.PowCone3D(y, x, z, 0.5))
    wide = cp.constraints.PowConeND(cp.vstack([y, x]), z, np.full((2, 2), 0.5))
    assert violation(wide) == pytest.approx(root, rel=1e-12) and root[0] > 0.1 and root[1] == 1
    tall = cp.constraints.PowConeND(cp.hstack([y[:1], x[:1]]), z[0], np.array([0.5, 0.5]))
    assert violation(tall) == pytest.approx(root[:1], rel=1e-12)
    y.save_value(np.array([np.nan, 1.0]))
    assert violation(cp.constraints.ExpCone(x, y, z))[0] == np.inf
    assert violation(cp.constraints.PowCone3D(x, y, z, 0.5))[0] == np.inf
    assert violation(x <= 0).tolist() == [1.0, 0.0]
