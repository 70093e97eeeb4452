"""For every loss and every set of weights: one value of the primal and of two duals, and what it is below."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.duality.generic import Ks, n
from tests.every import every
from tests.problems import CASES, sample_weights, solved

TOLERANCE = 1e-6  # relative to max(1, value)
TRACES = np.trace(Ks, axis1=1, axis2=2) + 0.1 * n  # of the kernels of `learned`
RADIUS = 8.0


def ball(p):
    return lambda mu, K: ko.lp_ball(mu, p)


def simplex(mu, K):
    return [(mu @ TRACES == RADIUS).set_label("trace")]


def below_trace(mu, K):
    return [(mu @ TRACES <= RADIUS).set_label("trace")]


def signed(mu, K):
    return [*simplex(mu, K), (K >> 0).set_label("cone")]


SETS = {f"ball {p:g}": ball(p) for p in (1, 4 / 3, 2, 3, np.inf)}
SETS |= {"trace simplex": simplex, "trace ball": below_trace, "signed combinations": signed}


def learned(case, constraints, **attributes):
    """A problem over combinations of three positive definite kernels, with a weight C for each sample."""
    mu = cp.Variable(3, name="mu", **attributes)
    K = ko.combine(mu, np.array([G + 0.1 * np.eye(n) for G in Ks]))
    risk = ko.risk(K, case.y(n), case.loss(sample_weights(n)))
    return cp.Problem(cp.Minimize(risk), constraints(mu, K))


def problem_of(case, kind):
    return learned(case, SETS[kind], **({} if kind == "signed combinations" else {"nonneg": True}))


def dual_value(problem):
    dual = ko.dualize(problem)
    return float(dual.solve())


def near(value, other):
    return abs(value - other) <= TOLERANCE * max(1.0, abs(other))


def check_duals(case, kind):
    """The second dual is that of the explicit problem, which has no risk in it."""
    problem = problem_of(case, kind)
    value = float(solved(problem))
    assert near(dual_value(problem), value), "the structured dual"
    assert near(dual_value(ko.expand(problem).problem), value), "the mechanical dual"


@every("case", CASES, ids=lambda case: case.name)
def test_primal_structured_dual_and_mechanical_dual_have_one_value(case):
    check_duals(case, "ball 2")


@every("kind", ["ball 1", "trace simplex", "trace ball", "signed combinations"])
def test_primal_structured_dual_and_mechanical_dual_have_one_value_on_every_kind_of_set(kind):
    check_duals(CASES[1], kind)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(len(CASES)), ids=[case.name for case in CASES])
def test_primal_and_duals_have_one_value_for_every_loss_and_set(turn):
    """A loss meets every second set, and a set every second loss."""
    for kind in list(SETS)[turn % 2 :: 2]:
        check_duals(CASES[turn], kind)


@every("case", CASES, ids=lambda case: case.name)
def test_second_order_cones_and_a_semidefinite_one_have_one_value(case):
    """Weights without a sign by themselves have a semidefinite form, here with mu >= 0 as a constraint."""
    problem = problem_of(case, "trace simplex")
    lifted = learned(case, lambda mu, K: [*simplex(mu, K), mu >= 0, (K >> 0).set_label("cone")])
    (quick,), (wide,) = ko.Structure(problem).risks, ko.Structure(lifted).risks
    assert quick.forms == ("second-order cone",) and wide.forms == ("semidefinite",)
    value = dual_value(problem)
    assert near(dual_value(lifted), value) and near(float(solved(problem)), value)


def check_order(case):
    free, nonneg = (dual_value(problem_of(case, kind)) for kind in ("signed combinations", "trace simplex"))
    singles = [
        dual_value(learned(case, lambda mu, K, m=m: [mu == RADIUS / TRACES[m] * np.eye(3)[m]], nonneg=True))
        for m in range(3)
    ]
    slack = TOLERANCE * max(1.0, abs(nonneg))
    assert free <= nonneg + slack and nonneg <= min(singles) + slack
    assert free < min(singles) - 1e-4


@every("case", CASES[:2], ids=lambda case: case.name)
def test_signed_weights_are_below_nonnegative_ones_and_these_below_each_single_kernel(case):
    check_order(case)


@pytest.mark.slow
@every("case", CASES[2:], ids=lambda case: case.name)
def test_the_values_of_the_sets_are_ordered_for_every_loss(case):
    check_order(case)
