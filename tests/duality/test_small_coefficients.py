"""Duals of problems with constraints whose coefficients are smaller than the tolerances of solvers."""

import cvxpy as cp
import pytest

import kernelopt as ko


@pytest.mark.parametrize(
    ("a", "b", "optimum"),
    [
        ((1e-9, 1.0), 1e-10, 1.81),  # x = (0.1, 0)
        ((1e-25, 1.0), 1e-26, 1.81),
        ((1e-9, 1e-9), 1e-9, 0.5),  # x = (0.5, 0.5)
        ((1e-7, 1.0), 1e-8, 1.81),
        ((1.0, 1.0), 1.0, 0.5),
    ],
)
@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
def test_a_dual_is_optimal_only_where_it_has_the_optimum(a, b, optimum):
    """Solvers call 1 the optimum of the first problem: x = (1, 0) violates its constraint by 9e-10."""
    x = cp.Variable(2, nonneg=True, name="x")
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [a[0] * x[0] + a[1] * x[1] <= b]))
    value = dual.solve()
    if min(a) >= 1e-7:
        assert dual.status == "optimal" and value == pytest.approx(optimum, rel=1e-6)
    assert value == pytest.approx(optimum, rel=1e-5) or dual.status == "optimal_inaccurate"


def test_a_coefficient_that_is_a_rounding_error_is_no_violation():
    """0.1 + 0.2 exceeds 0.3 by 5e-17: the constraint is x_1 <= 0, and x_0 = 1 violates it by 5e-17."""
    x = cp.Variable(2, nonneg=True, name="x")
    constraint = 0.3 * x[0] + x[1] >= (0.1 + 0.2) * x[0] + 2 * x[1]
    dual = ko.dualize(cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [constraint]))
    assert dual.solve() == pytest.approx(1.0, rel=1e-6) and dual.status == "optimal"
