"""Duals of problems whose constraints force weights to zero, against problems without these weights."""

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko

y = np.array([1.0, 1, 1, -1, -1])
B = np.random.default_rng(0).normal(size=(4, 5, 5))
KERNELS = B @ B.transpose(0, 2, 1)
TINY = np.array([3.7e-25, 4.9e-7, 8e-2])


def learning(kernels, p, *cuts):
    """A risk with a price on the weights, in a ball, with constraints that are functions of the weights."""
    theta = cp.Variable(len(kernels), nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, ko.Grams.from_array(kernels)), y, ko.hinge(1.0))
    constraints = [*ko.lp_ball(theta, p), *(cut(theta) for cut in cuts)]
    return cp.Problem(cp.Minimize(risk + 0.1 * cp.sum_squares(theta)), constraints)


def cut(theta):
    return (TINY @ theta[:3] <= 0).set_label("cut")


def in_turn(theta):
    return cp.hstack([theta[2] - 1e9 * theta[1], 1e-20 * theta[1] - theta[0]]) <= 0


def first(theta):
    return -1e-25 * theta[0] >= 0


CUTS = {"at once": (cut,), "one after the other": (in_turn, first)}


@pytest.mark.parametrize("name", CUTS)
def test_the_dual_has_the_value_of_the_problem_without_the_kernels(name):
    problem, reduced = learning(KERNELS, 1.5, *CUTS[name]), learning(KERNELS[3:], 1.5)
    dual, reference = ko.dualize(problem), ko.solve(reduced, tol=1e-6)
    slack = 1e-6 * reference.value
    assert reference.lower - slack <= dual.solve() <= reference.upper + slack and dual.status == "optimal"
    assert dual.value == pytest.approx(ko.dualize(reduced).solve(), rel=1e-6)
    assert max(dual.check()) == pytest.approx(dual.value, rel=1e-6)  # all residuals are small
    (weights,) = dual.recover_primal().values()
    assert weights[:3] == pytest.approx(np.zeros(3), abs=1e-8)
    assert "theta zero" in str(dual)


def test_the_conditions_of_optimality_hold_with_the_equations_of_the_weights():
    table = ko.kkt_table(ko.solve(learning(KERNELS, 1.5, cut)))
    assert "theta zero" in str(table) and table.residual < 1e-3


def test_where_no_kernel_is_left_the_dual_has_the_risk_of_a_constant():
    """At K = 0 the predictor is a constant, and the two points of the smaller class cost 2 each."""
    dual = ko.dualize(learning(KERNELS[:3], 1.5, cut))
    assert dual.solve() == pytest.approx(4.0, rel=1e-7) and dual.status == "optimal"
    assert dual.solve(solver="CLARABEL") == pytest.approx(4.0, rel=1e-6)


def test_a_multiplier_that_leaves_the_dual_is_zero():
    """The equations theta = 0 make every other multiplier of the weights superfluous."""
    theta = cp.Variable(2, nonneg=True, name="theta")
    risk = ko.risk(ko.combine(theta, ko.Grams.from_array(KERNELS[:2])), y, ko.hinge(1.0))
    off = (cp.sum(theta) <= 0).set_label("off")
    dual = ko.dualize(cp.Problem(cp.Minimize(risk), [off]))
    assert dual.solve() == pytest.approx(4.0, rel=1e-7)
    assert dual.dual_values()["off"] == 0 and not dual.recover_primal()[theta].any()


def test_an_answer_whose_weights_must_be_zero_is_not_called_optimal():
    """The value of a parameter forces x = 0, where |x - 1|^2 is 2; the dual is one for all values."""
    x = cp.Variable(2, nonneg=True, name="x")
    size, room = cp.Parameter(2, value=[1.0, 1.0], name="size"), cp.Parameter(value=1.0, name="room")
    objective = cp.Minimize(cp.sum_squares(x - 1))
    dual = ko.dualize(cp.Problem(objective, [size @ x <= room]))
    assert dual.solve() == pytest.approx(0.5, rel=1e-6)  # at x = (1/2, 1/2)
    room.value = 0.0
    assert dual.solve() == pytest.approx(2.0, rel=1e-6) and dual.status == "optimal"
    assert max(dual.check()[2:]) <= 1e-6  # of the problem with the present values
    size.value = [1e-25, 1.0]
    with pytest.warns(ko.ConvergenceWarning, match=r"feasible point .* got .* in Dual.solve"):
        dual.solve()
    assert dual.value < 1.1 and dual.status == "optimal_inaccurate" and dual.check().feasibility > 0.9
    fixed = ko.dualize(cp.Problem(objective, [size.value @ x <= 0]))
    assert fixed.solve() == pytest.approx(2.0, rel=1e-6) and fixed.status == "optimal"
