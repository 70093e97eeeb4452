"""What a first user stumbled over, each with the answer it gets now."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, 1.0, -1.0)
GRAMS = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)


def ball():
    mu = cp.Variable(2, nonneg=True, name="mu")
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, GRAMS), Y, ko.hinge())), ko.lp_ball(mu, 2))


def test_weights_without_a_sign_are_bounded_by_the_domain_of_the_risk():
    """Without K >> 0 in the problem: the risk itself is infinite where K is indefinite."""
    mu = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, GRAMS), Y, ko.hinge())), [cp.sum(mu) <= 1])
    solution = ko.solve(problem)
    assert solution.gap <= 1e-5
    mu.value = [0.5, 0.5]
    assert solution.lower <= problem.objective.value


def test_an_infimum_that_is_not_attained_is_not_exceeded_by_a_bound():
    """Any kernel: the risk tends to 0 as K grows along yy'."""
    y = Y[:10]
    K = cp.Variable((10, 10), PSD=True)
    risk = ko.risk(K, y, ko.hinge())
    problem = cp.Problem(cp.Minimize(risk))
    K.value = 1e6 * (np.outer(y, y) + np.eye(10))
    small = float(risk.value)
    K.value = np.eye(10)
    assert ko.certify(problem).lower <= small


def test_a_kernel_variable_needs_symmetry():
    with pytest.raises(ko.errors.ParameterError, match="PSD=True"):
        ko.risk(cp.Variable((20, 20)), Y, ko.hinge())
    ko.risk(cp.Variable((20, 20), symmetric=True), Y, ko.hinge())


def test_kernels_as_text_are_refused_with_the_function_that_reads_them():
    with pytest.raises(ko.InputError, match=r"got the text 'gaussian\(1.0\)'.*parse_kernel\('gaussian"):
        ko.Grams.from_kernels([ko.linear(), "gaussian(1.0)"], X)
    assert len(ko.Grams.from_kernels([ko.parse_kernel("gaussian(1.0)")], X)) == 1


def test_a_solver_for_other_cones_is_an_error_and_not_a_result():
    with pytest.raises(ko.SolverError, match="HIGHS"):
        ko.solve(ball(), solver="HIGHS")


def test_certifying_after_solving_is_as_tight_as_solving():
    S = X @ X.T + rng.normal(size=(20, 20))
    K = cp.Variable((20, 20), PSD=True)
    objective = ko.risk(K, Y, ko.hinge()) + 0.1 * cp.sum_squares(K - (S + S.T) / 2)
    problem = cp.Problem(cp.Minimize(objective))
    solution = ko.solve(problem)
    assert ko.certify(problem).gap <= 1e-5
    assert ko.certify(problem, solution).gap <= 1e-5


def test_hidden_variables_may_be_in_a_candidate_but_strangers_may_not():
    problem = ball()
    solution = ko.solve(problem)
    everything = {v: v.value for v in problem.variables()}
    assert ko.certify(problem, everything, alpha=solution.alpha).gap <= 1e-5
    with pytest.raises(ko.errors.ParameterError, match="variables of the problem"):
        ko.certify(problem, {cp.Variable(): 1.0})
    with pytest.raises(ko.errors.ParameterError, match="weights="):
        ko.certify(problem, [0.5, 0.5])


def test_a_formulation_is_no_problem_and_says_what_to_pass():
    with pytest.raises(ko.errors.ParameterError, match="its .problem"):
        ko.solve(lanckriet.soft_margin(GRAMS, Y))


def test_auto_is_a_method_of_cvxpy_too():
    assert ball().solve(method="auto") == pytest.approx(ko.solve(ball()).value, rel=1e-6)


def test_settings_of_a_solver_are_handed_on():
    with pytest.raises(TypeError, match="max_iter"):
        ko.solve(ball(), max_iter=3)
    with pytest.raises(ko.errors.ParameterError, match="solver_options"):
        ko.solve(ball(), "exact", max_iterations=3)
    with pytest.warns(ko.ConvergenceWarning):
        loose = ko.solve(ball(), solver="SCS", solver_options={"max_iters": 5})
    assert loose.lower <= ko.solve(ball()).value + 1e-9 and loose.gap > 1e-5


@pytest.mark.parametrize("kernels", [ko.linear(), [ko.linear], ["rbf"], X])
def test_what_is_not_a_list_of_kernels_is_said_at_once(kernels):
    with pytest.raises(ko.InputError, match="gaussian|Wrap|kernels before the points"):
        ko.Grams.from_kernels(kernels, X)


def test_new_points_need_the_columns_of_the_old_ones():
    with pytest.raises(ko.errors.ShapeError, match="3 columns"):
        GRAMS.cross(X[:, :2])


def test_cross_kernels_have_all_points_or_the_labelled_ones():
    solution = ko.solve(ball())
    with pytest.raises(ko.errors.ShapeError, match="first 20"):
        solution.decision_function(np.ones((2, 3, 19)))


def test_records_print_on_one_line():
    formulation = lanckriet.soft_margin(GRAMS, Y)
    for text in (repr(formulation), repr(formulation.solve())):
        assert "\n" not in text and len(text) < 200
    assert GRAMS[-1] == pytest.approx(X @ X.T)


def test_the_transduction_bound_knows_the_labels_of_the_solution():
    solution = lanckriet.soft_margin(GRAMS, Y[:10]).solve()
    bound = lanckriet.transduction_bound(solution, 0.1)
    assert bound == lanckriet.transduction_bound(solution, 0.1, y=Y[:10])
    assert bound.bound >= bound.margin_error
