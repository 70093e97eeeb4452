"""Block descent: every step lowers the value."""

from __future__ import annotations

import numpy as np
import pytest

import kernelopt as ko
from tests.every import every
from tests.methods.lp_ball.cases import LOSSES, N, learning, tolerance


@every("p", [1.0, 1.2, 4 / 3, 2.0, 3.0])
@pytest.mark.parametrize("name", ["hinge", "squared", "epsilon_insensitive", "logistic"])
def test_block_descent_descends(name, p):
    """Every upper bound is below the last: also after the best so far, since the method is a descent."""
    reports, case = [], LOSSES[name]
    built = learning(case.loss(10.0), p, case.y(N))
    ko.solve(built.problem, "block-descent", tol=tolerance("block-descent", p), callback=reports.append)
    points_seen = [report["point"] for report in reports]
    values = []
    for w in points_seen:
        built.theta.value = w
        values.append(float(built.risk.value))
    assert len(values) > 2
    assert (np.diff(values) < 0).all()
    uppers = [report["upper"] for report in reports]
    np.testing.assert_allclose(uppers, values, rtol=1e-3)


CYCLES = [(1.1, 10.0), (1.2, 10.0), (4 / 3, 10.0)]


@pytest.mark.parametrize(("p", "C"), CYCLES)
def test_best_response_runs_into_a_cycle_of_two(p, C):
    """Kloft 6.1: equation (21) at alpha held fixed is no descent; (17) converges on the same problem."""
    reports, built = [], learning(ko.hinge(C), p)
    with pytest.warns(ko.ConvergenceWarning, match="60 iterations were made"):
        teaching = ko.solve(
            built.problem, "block-descent", update="best-response", max_iterations=60, callback=reports.append
        )
    w = np.array([report["point"] for report in reports])
    np.testing.assert_allclose(w[40:-2], w[42:], atol=1e-6)
    assert np.abs(w[41:] - w[40:-1]).max(axis=1).min() > 1e-2
    assert reports[-1]["gap"] > 0.1 and teaching.gap > 0.1 and teaching.status == "inaccurate"
    assert reports[-1]["gap"] == pytest.approx(reports[40]["gap"], rel=1e-3)
    descent = ko.solve(built.problem, "block-descent", update="descent")
    assert descent.status == "optimal"
    assert teaching.lower <= descent.upper and teaching.upper >= descent.lower


def test_best_response_finds_the_fixed_point_where_it_converges():
    built = learning(ko.hinge(0.1), 3)
    solution = ko.solve(built.problem, "block-descent", update="best-response")
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(ko.solve(built.problem, "exact").value, abs=2e-5)
