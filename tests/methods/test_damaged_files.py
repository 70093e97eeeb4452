"""A damaged file of a solution is refused, or predicts as before: every damage of every entry of all."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.saved import saved
from tests.damage import check_damages
from tests.problems import labels, points

N = 8
X, Y = points(N, d=3), labels(N)
OTHERS = np.where(X[:, 2] > np.median(X[:, 2]), 1.0, -1.0)
GRAMS = ko.Grams.from_kernels([ko.linear(), ko.gaussian(1.0)], X)
SCALED = ko.Grams.from_kernels([ko.gaussian(1.0), ko.gaussian(2.0), ko.polynomial(2)], X)
SOLVED = {
    "points": (GRAMS, [Y], X),
    "two risks": (GRAMS, [Y, OTHERS], X),
    "an array": (np.asarray(GRAMS), [Y], np.asarray(GRAMS)),
    "centred": (GRAMS.center().normalize("trace"), [Y], X),
    "a subset of spherical": (SCALED.normalize("spherical").subset([2, 0]), [Y], X),
}


def solved(grams, labelled):
    theta = cp.Variable(len(grams), nonneg=True, name="theta")
    total = sum(ko.risk(ko.combine(theta, grams), y, ko.hinge()) for y in labelled)
    return ko.solve(cp.Problem(cp.Minimize(total), ko.lp_ball(theta, 2)))


@pytest.mark.parametrize(
    "name", [name if name != "two risks" else pytest.param(name, marks=pytest.mark.slow) for name in SOLVED]
)
def test_a_damaged_file_is_refused_or_predicts_as_before(name):
    grams, labelled, new = SOLVED[name]
    count = check_damages(
        saved(solved(grams, labelled)),
        lambda model: np.array([m.decision_function(new) for m in model.machines]),
    )
    assert count > 500
