"""The references of other tests: values that are proven, and wrong pairs that are seen."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

from tests.every import every
from tests.problems import CLARABEL_RUNGS, SCS_RUNGS, VerifiedClarabel, solved, value_error

A = np.array([3.0, -1.0, 2.0])


def linear():
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Minimize(A @ x), [cp.sum(x) == 2]), -2.0


def quadratic():
    x = cp.Variable(3, nonneg=True)
    return cp.Problem(cp.Maximize(-cp.sum_squares(x - A))), -1.0


def conic():
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(A @ x), [cp.norm2(x) <= 2]), -2 * np.sqrt(14)


def semidefinite():
    X = cp.Variable((3, 3), PSD=True)
    return cp.Problem(cp.Maximize(cp.trace((np.outer(A, A) + np.diag(A)) @ X)), [cp.trace(X) == 1]), float(
        np.linalg.eigvalsh(np.outer(A, A) + np.diag(A))[-1]
    )


def exponential():
    x = cp.Variable()
    return cp.Problem(cp.Minimize(cp.exp(x) - 2 * x)), 2 - 2 * np.log(2)


def power():
    x, y, z = cp.Variable(), cp.Variable(), cp.Variable()
    cone = cp.PowCone3D(x, y, z, 0.25)
    return cp.Problem(cp.Maximize(z), [cone, x <= 2, y <= 3]), 2**0.25 * 3**0.75


PROBLEMS = [linear, quadratic, conic, semidefinite, exponential, power]
problems = pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)


@problems
@pytest.mark.parametrize("attempts", [CLARABEL_RUNGS, SCS_RUNGS], ids=["Clarabel", "SCS"])
def test_a_value_is_proven_and_right(make, attempts):
    problem, value = make()
    assert solved(problem, attempts) == pytest.approx(value, abs=1e-6)
    assert problem.status == cp.OPTIMAL


@problems
@every("side", ["x", "s", "z"])
def test_a_wrong_pair_is_no_proof(make, side):
    """Moved by 1e-3 in any coordinate, up or down."""

    class Spoilt(VerifiedClarabel):
        def solve_via_data(self, data, *args, **kwargs):
            found = CLARABEL.solve_via_data(self, data, *args, **kwargs)
            pair = {name: np.array(getattr(found, name)) for name in "xsz"}
            self.right = value_error(data, **pair, upper=True)
            self.wrong = []
            for i in range(pair[side].size):
                for step in (1e-3, -1e-3):
                    moved = {**pair, side: pair[side] + step * (np.arange(pair[side].size) == i)}
                    self.wrong.append(value_error(data, **moved, upper=True))
            return super().solve_via_data(data, *args, **kwargs)

    solver = Spoilt(1e-6)
    make()[0].solve(solver=solver)
    assert solver.right <= 1e-6 and min(solver.wrong) > 1e-5


def test_points_outside_a_cone_are_seen_where_all_equations_hold():
    """min x over x = 1 with a slack -1 in the cone of x <= 2: the pair fits but for its sign."""
    dims = type("Dims", (), {"zero": 0, "nonneg": 2, "soc": [], "psd": [], "exp": 0, "p3d": []})
    data = {"A": np.array([[-1.0], [1.0]]), "b": np.array([-1.0, 2.0]), "c": np.array([1.0]), "dims": dims}
    x, s, z = np.array([1.0]), np.array([0.0, 1.0]), np.array([1.0, 0.0])
    assert value_error(data, x, s, z, upper=True) == 0.0
    assert value_error(data, np.array([3.0]), np.array([2.0, -1.0]), z, upper=True) > 0.1
    assert value_error(data, x, s, np.array([2.0, 1.0]), upper=True) > 0.1
    assert value_error(data, x, s, np.array([0.0, -1.0]), upper=True) > 0.1


def test_nothing_is_right_because_it_is_multiplied_by_zero():
    """min -x over x <= 5: the gap at x = 0 with z = 0 is zero."""
    dims = type("Dims", (), {"zero": 0, "nonneg": 1, "soc": [], "psd": [], "exp": 0, "p3d": []})
    data = {"A": np.array([[1.0]]), "b": np.array([5.0]), "c": np.array([-1.0]), "dims": dims}
    assert value_error(data, np.zeros(1), np.array([5.0]), np.zeros(1), upper=True) == 1.0
    assert value_error(data, np.array([5.0]), np.zeros(1), np.ones(1), upper=True) == 0.0


def test_a_problem_without_an_optimum_has_no_reference():
    x = cp.Variable()
    for problem in (cp.Problem(cp.Minimize(x)), cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])):
        with pytest.raises(AssertionError, match="no solver proves"):
            solved(problem)
