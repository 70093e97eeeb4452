"""Exponential and power cones that a user writes: certified values, against closed forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.constraints import ExpCone, PowCone3D, PowConeND

import kernelopt as ko
from tests.every import every

PRICES = np.array([1.0, 2.0, 0.5])
SHARES = np.array([0.2, 0.3, 0.5])


def least_price(c, a):
    """min c'w over w >= 0 with prod w_i^a_i >= 1, by the inequality of the weighted means."""
    return float(np.prod((c / a) ** a))


def exponential():
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(x[2]), [ExpCone(x[0], x[1], x[2]), x[0] == 1, x[1] == 2])


def exponentials():
    """min of sum z + sum y: z = y exp(x / y) and (1 - x/y) exp(x/y) = -1, x/y = r with (r - 1) e^r = 1."""
    x, y, z = (cp.Variable((2, 2), name=name) for name in "xyz")
    return cp.Problem(
        cp.Minimize(cp.sum(z) + cp.sum(y)), [ExpCone(x, y, z), x >= np.array([[0.3, 1], [0.1, 0.5]])]
    )


def power():
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [PowCone3D(x[0], x[1], x[2], 0.3), x[2] == 1])


def powers():
    x, y, z = (cp.Variable(2, name=name) for name in "xyz")
    price = cp.sum(x) + 2 * cp.sum(y)
    return cp.Problem(cp.Minimize(price), [PowCone3D(x, y, z, np.array([0.3, 0.6])), z == [1, -2]])


def power_of_many():
    w, z = cp.Variable(3, name="w"), cp.Variable(name="z")
    return cp.Problem(cp.Minimize(PRICES @ w), [PowConeND(w, z, SHARES), z == -1])


R = 1.278464542761074  # (R - 1) exp(R) = 1
VALUES = {
    exponential: 2 * np.exp(0.5),
    exponentials: 1.9 * (np.exp(R) + 1) / R,
    power: least_price(np.array([1.0, 2]), np.array([0.3, 0.7])),
    powers: least_price(np.array([1.0, 2]), np.array([0.3, 0.7]))
    + 2 * least_price(np.array([1.0, 2]), np.array([0.6, 0.4])),
    power_of_many: least_price(PRICES, SHARES),
}


@every("make, value", VALUES.items())
def test_cones_of_the_user_are_certified(make, value):
    solution = ko.solve(make())
    assert solution.status == "optimal" and solution.gap <= 1e-6
    slack = 1e-13 * value  # a point may violate a cone by the rounding of its terms
    assert solution.lower - slack <= value <= solution.upper + slack


@every("make, value", VALUES.items())
def test_cones_of_the_user_are_dualised(make, value):
    dual = ko.dualize(make())
    found = dual.check()
    assert found.dual == pytest.approx(value, rel=1e-6) and found.gap <= 1e-6
    assert max(found.feasibility, found.stationarity, found.complementarity) <= 1e-6
    table = ko.kkt_table(ko.solve(make()))
    assert table.residual <= 1e-4 and not any(c.why_not for c in table.conditions)


@every("size", [1e-9, 1e-3])
def test_a_point_outside_of_a_cone_is_not_called_feasible(size):
    problem = exponential()
    (x,) = problem.variables()
    outside = np.array([1.0, 2.0, 2 * np.exp(0.5) - size])
    found = ko.certify(problem, {x: outside})
    assert found.upper >= 2 * np.exp(0.5) * (1 - 1e-13)
