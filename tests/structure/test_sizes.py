"""Norm balls and budgets, in every way to write them: what is read, and that all methods find one value."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.selection import METHODS
from kernelopt.numerics.ball import Ball
from kernelopt.structure.structure import Structure
from tests.problems import labels, stack

N, RADIUS = 10, 1.7
BALLS = {  # how |mu|_p <= R is written for mu >= 0, and the p that is meant
    "norm1": (cp.norm1, 1.0),
    "norm of order 1": (lambda mu: cp.norm(mu, 1), 1.0),
    "sum": (cp.sum, 1.0),
    "norm2": (cp.norm2, 2.0),
    "pnorm 3": (lambda mu: cp.pnorm(mu, 3, approx=False), 3.0),
    "norm_inf": (cp.norm_inf, np.inf),
    "max": (cp.max, np.inf),
}


def written(name):
    """The risk over a ball that is written in one of the ways, and over the same ball by `lp_ball`."""
    size, p = BALLS[name]
    problems = []
    for ball in (lambda mu: [size(mu) <= RADIUS], lambda mu: ko.lp_ball(mu, p, radius=RADIUS)):
        mu = cp.Variable(3, nonneg=True)
        problems.append(
            cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, stack(N)), labels(N), ko.hinge())), ball(mu))
        )
    return problems


@pytest.mark.parametrize("name", BALLS)
def test_a_ball_has_one_value_however_it_is_written(name):
    problem, plain = written(name)
    (ball,) = Structure(problem).sets  # of the exponent and the radius that are written
    assert (ball.p, *ball.reach(ball.variables[0])) == (BALLS[name][1], *[RADIUS] * 3)
    exact = ko.solve(plain, "exact")
    for method in METHODS:
        try:
            solution = ko.solve(problem, method, tol=1e-4)
        except ko.errors.MethodError:
            continue
        assert solution.lower <= exact.upper + 1e-9 and exact.lower <= solution.upper + 1e-9, method
        assert solution.gap <= 1e-4, method


def test_a_sum_of_entries_is_no_entry():
    """The objective with 0.3 sum(mu) is that with 0.3 (mu_0 + mu_1 + mu_2), for a method that reads it."""
    values, n = [], 6
    for price in (cp.sum, lambda mu: mu[0] + mu[1] + mu[2]):
        mu, K = cp.Variable(3, nonneg=True), cp.Variable((n, n), PSD=True)
        risk = ko.risk(K + ko.combine(mu, stack(n)), labels(n), ko.hinge())
        objective = risk + 0.3 * price(mu) + 0.1 * cp.sum_squares(K - stack(n)[0])
        problem = cp.Problem(cp.Minimize(objective), [cp.trace(K) == n, cp.sum(mu) <= 1])
        values.append(ko.solve(problem, "mirror-descent", tol=1e-4))
    one, other = values
    assert one.lower <= other.upper + 1e-9 and other.lower <= one.upper + 1e-9


def test_a_lower_bound_of_a_sum_is_no_budget():
    mu = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum(mu)), [cp.NonNeg(cp.sum(mu) - 1), cp.Zero(2 - cp.sum(mu))])
    wrong, right = Structure(problem).sets
    assert wrong is None and (right.total, right.at_most, right.sign) == (2.0, False, -1.0)


def test_the_support_of_a_budget_is_zero_at_least_where_zero_belongs_to_it():
    mu = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum(mu)), [cp.sum(mu) <= 2, cp.sum(mu) == 2])
    s = Ball(np.array([-3.0, -1.0, -2.0]))
    at_most, equal = (part.support({part.variable: s}) for part in Structure(problem).sets)
    assert at_most == 0 and equal == pytest.approx(-2.0)
