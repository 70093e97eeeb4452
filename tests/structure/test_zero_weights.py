"""Weights that linear constraints force to zero, whatever the size of the coefficients."""

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.structure.structure import Structure
from kernelopt.structure.zero_weights import all_zero_weights


def test_signs_force_weights_to_zero_one_constraint_after_the_other():
    x, free = cp.Variable(6, nonneg=True), cp.Variable(2)
    third = 0.1 + 0.2  # 0.3 but for rounding

    def forced(*constraints):
        found = Structure(cp.Problem(cp.Minimize(cp.sum(x)), list(constraints)))
        return [int(j) for mask in all_zero_weights(found).values() for j in np.flatnonzero(mask)]

    tiny = -1e-25 * x[0] - 5.0 * x[1] >= 0
    assert forced(tiny) == [0, 1]
    assert forced(x[0] + x[1] <= 0) == forced(x[0] + x[1] == 0) == forced(-x[0] - x[1] == 0) == [0, 1]
    assert forced(x[2] <= 3 * x[1] - 1e-9 * x[3], tiny) == [0, 1, 2, 3]  # the second is read first
    assert forced(x[2] <= x[1]) == forced(x[0] - x[1] == 0) == []
    assert forced(x[0] + x[1] <= 1e-30) == []
    assert forced(x[0] <= free[0]) == forced(x[0] + 0 * free[0] + free[1] <= 0) == []
    assert forced(0.3 * x[0] + x[1] >= third * x[0] + 2 * x[1]) == [1]  # 0.3 - third is rounding
    assert forced(cp.hstack([x[0] - x[1], x[4] + x[5]]) <= 0) == [4, 5]


def test_a_comparison_that_every_kernel_contradicts_leaves_the_weights_zero_and_is_named():
    y = np.array([1.0, 1, 1, -1, -1])
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 5, 5))
    kernels = B @ B.transpose(0, 2, 1) + 5 * np.eye(5)
    for K, small in zip(kernels, (3.7e-25, 4.9e-7, 8e-2), strict=True):
        K[0, 1] = K[1, 0] = 0.0
        K[0, 2] = K[2, 0] = small
    theta = cp.Variable(3, nonneg=True, name="theta")
    K = ko.combine(theta, ko.Grams.from_array(kernels))
    near = (ko.entries(K, [0], [1]) >= ko.entries(K, [0], [2])).set_label("near")
    objective = cp.Minimize(ko.risk(K, y, ko.hinge(1.0)) + 0.1 * cp.sum_squares(theta))
    problem = cp.Problem(objective, [*ko.lp_ball(theta, 1.5), near])
    with pytest.warns(
        ko.errors.ConditionWarning,
        match="The constraint 'near' leaves no kernel with a positive weight: theta = 0",
    ):
        solution = ko.solve(problem)
    # At K = 0 the predictor is a constant b, and the two points of the smaller class cost 2 each.
    assert not solution.weights.any() and solution.value == pytest.approx(4.0, rel=1e-12)
    assert solution.status == "optimal" and solution.gap <= solution.tol and solution.lower <= 4.0
    assert "'near' leaves no kernel" in str(ko.explain(problem))

    # Where one kernel agrees with the comparison in part, the optimum is that of the kernels that are left.
    kernels[2][0, 2] = kernels[2][2, 0] = 0.0
    K = ko.combine(theta, ko.Grams.from_array(kernels))
    price = 0.1 * cp.sum_squares(theta)
    near = ko.entries(K, [0], [1]) >= ko.entries(K, [0], [2])
    loss = ko.hinge(1.0)
    found = ko.solve(cp.Problem(cp.Minimize(ko.risk(K, y, loss) + price), [*ko.lp_ball(theta, 1.5), near]))
    one = cp.Variable(1, nonneg=True)
    risk = ko.risk(ko.combine(one, ko.Grams.from_array(kernels[2:])), y, loss)
    alone = ko.solve(cp.Problem(cp.Minimize(risk + 0.1 * cp.sum_squares(one)), ko.lp_ball(one, 1.5)))
    assert not found.weights[:2].any() and found.value == pytest.approx(alone.value, rel=2e-5)
    assert found.gap <= found.tol


@pytest.mark.parametrize("radius", [1.0, 300.0])
def test_the_exact_method_certifies_where_some_weights_are_forced_to_zero(radius):
    y = np.array([1.0, 1, 1, -1, -1])
    B = np.random.default_rng(0).normal(size=(4, 5, 5))
    kernels = B @ B.transpose(0, 2, 1) / radius

    def learning(kernels):
        theta = cp.Variable(len(kernels), nonneg=True, name="theta")
        risk = ko.risk(ko.combine(theta, ko.Grams.from_array(kernels)), y, ko.hinge(1.0))
        return theta, cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, 1.5, radius))

    theta, problem = learning(kernels)
    size = np.array([3.7e-25, 4.9e-7, 8e-2])
    found = ko.solve(
        cp.Problem(problem.objective, [*problem.constraints, size @ theta[:3] <= 0]), method="exact"
    )
    alone = ko.solve(learning(kernels[3:])[1])
    assert found.status == "optimal" and not found.weights[:3].any()
    assert found.value == pytest.approx(alone.value, rel=2e-5)
