"""Variables with more than one attribute: no rule for one cone forgets the other."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.selection import METHODS
from tests.every import every
from tests.problems import labels, solved, stack

N = 6


def symmetric(seed):
    A = np.random.default_rng(seed).normal(size=(N, N))
    return (A + A.T) / 2


def doubly_nonnegative(kind):
    """A PSD matrix with entries >= 0, by attributes and by constraints."""
    given, stated = cp.Variable((N, N), PSD=True, nonneg=True), cp.Variable((N, N), PSD=True)
    make = {
        "linear": lambda X: cp.trace(symmetric(0) @ X),
        "near": lambda X: cp.sum_squares(X - symmetric(1)),
        "risk": lambda X: ko.risk(X, labels(N), ko.hinge()) + 0.3 * cp.sum_squares(X - symmetric(1)),
    }[kind]
    return (
        cp.Problem(cp.Minimize(make(given)), [cp.trace(given) == 1]),
        cp.Problem(cp.Minimize(make(stated)), [cp.trace(stated) == 1, stated >= 0]),
        given,
    )


@pytest.mark.parametrize("kind", ["linear", "near", "risk"])
def test_a_matrix_with_two_attributes_is_in_both_cones(kind):
    problem, stated, X = doubly_nonnegative(kind)
    value = solved(stated)
    for method in ("auto", *METHODS):
        try:
            solution = ko.solve(problem, method)
        except ko.errors.MethodError:
            continue
        assert solution.lower <= value + 1e-6 and value - 1e-6 <= solution.upper, method
        assert solution.gap <= 1e-4, method
        assert X.value.min() >= 0 and np.linalg.eigvalsh(X.value)[0] >= -1e-9, method


@every("seed", range(3))
def test_no_point_outside_one_of_the_cones_is_a_bound(seed):
    problem, stated, X = doubly_nonnegative("linear")
    value = solved(stated)
    Y = symmetric(seed) @ symmetric(seed)
    found = ko.certify(problem, {X: Y / np.trace(Y)})  # PSD, with negative entries
    assert found.lower <= value + 1e-6 and value - 1e-6 <= found.upper


def test_bounds_may_be_parameters():
    most = cp.Parameter(3, value=[0.2, 0.5, 0.1])
    mu = cp.Variable(3, bounds=[0, most])
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, stack(N)), labels(N), ko.hinge())), [mu >= 0])
    for sides in ([0.2, 0.5, 0.1], [0.05, 0.3, 0.4]):
        most.value = sides
        with pytest.warns(ko.errors.ConditionWarning, match="nonneg"):
            solution = ko.solve(problem)
        plain = cp.Variable(3, nonneg=True)
        fixed = ko.risk(ko.combine(plain, stack(N)), labels(N), ko.hinge())
        other = ko.solve(cp.Problem(cp.Minimize(fixed), [plain <= np.array(sides)]))
        assert solution.lower <= other.upper + 1e-9 and other.lower <= solution.upper + 1e-9
        assert (solution.weights <= np.array(sides) + 1e-9).all()
