"""Random problems of all atoms, and those of cvxpy: value, point, multipliers, dual of the dual."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress

import cvxpy as cp
import cvxpy.tests.solver_test_helpers as helpers
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality.solving import solved
from tests.duality.random_atoms import random_problem
from tests.duality.test_read_back import read_back
from tests.every import every

TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
# Before 1.9.3 cvxpy compiles the squares of a symmetric variable to zero in a quadratic objective.
CLARABEL = {"solver": cp.CLARABEL, "use_quad_obj": False}
ATTEMPTS = ({**CLARABEL, **TIGHT}, CLARABEL, {"solver": cp.SCS, "eps": 1e-8})
pytestmark = [
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate"),
    pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning"),
]


def optimum(problem):
    """The solver's own optimum, since `value` has 0 / 0 at a multiplier of zero."""
    for options in ATTEMPTS:
        for v in problem.variables():  # cvxpy's rule of cvar, of a fractional k, fails where it has a value
            v.save_value(None)
        try:
            problem.solve(**options)
        except cp.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            return float(problem.solution.opt_val)
    raise AssertionError(f"a random problem must have an optimum, got {problem.status}.")


def near(value, exact, tolerance):
    return abs(value - exact) <= tolerance * max(1.0, abs(exact))


def check(problem, derive=False, back=False):
    """Check a dual, its point, its multipliers, its print and its derivation.

    `Dual.check` judges the point inside of the domains of the atoms: an entry at -1e-10, where an entropy is
    infinite, is at the border up to the solver's tolerance.
    """
    exact = optimum(problem)
    dual = ko.dualize(problem)
    text = str(dual)
    assert not re.search(r"\b(var|param)\d+\b", text), text
    found = dual.check()
    assert near(found.dual, exact, 1e-4), (found, exact)
    assert near(found.primal, exact, 1e-3) and found.feasibility <= 1e-3, (found, exact)
    assert found.stationarity <= 1e-3 * max(1.0, abs(exact)), found
    assert found.complementarity <= 1e-3 * max(1.0, abs(exact)), found
    if back:
        again = ko.dualize(dual)
        assert near(again.solve(), exact, 1e-3)
        said = read_back(dual)
        with suppress(ko.SolverError):
            assert near(solved(said), exact, 1e-4), text
    if derive:
        steps = ko.derive(problem).steps
        assert [s.title for s in steps if not (s.why_not or s.residual <= 1e-3)] == []


# Of the last one a floor stands in an exponential cone, and is not inserted.
@every("seed", [*range(24), 1165])
def test_random_problems(seed):
    check(random_problem(seed)[0], derive=seed % 6 == 0, back=True)


@every("seed", range(24))
def test_primals_of_random_problems_are_read_back(seed):
    problem, _ = random_problem(seed)
    said = read_back(ko.dualize(problem), primal=True)
    with suppress(ko.SolverError):
        assert near(solved(said), optimum(problem), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_two_thousand_random_problems(block):
    @every("seed", range(1000 + 50 * block, 1050 + 50 * block))
    def holds(seed):
        check(random_problem(seed)[0], derive=seed % 25 == 0, back=seed % 5 == 0)

    holds()


def published():
    """The problems of cvxpy's tests whose solvers need no integers."""
    for name, make in sorted(inspect.getmembers(helpers, inspect.isfunction)):
        given = inspect.signature(make).parameters.values()
        if re.match(r"(lp|qp|socp|sdp|expcone|pcp)_", name) and all(q.default is not q.empty for q in given):
            yield name, make


HELPERS = dict(published())


@every("name", HELPERS)
def test_the_problems_of_cvxpy(name):
    test = HELPERS[name]()
    problem, exact = test.prob, test.expect_val
    dual = ko.dualize(problem)
    value = dual.solve()
    assert value == exact if not np.isfinite(exact) else near(value, exact, 2e-3)
    assert not re.search(r"\b(var|param)\d+\b", str(dual))


def test_all_problems_of_cvxpy_are_there():
    assert len(HELPERS) >= (21 if cp.__version__.startswith("1.8.") else 24)
