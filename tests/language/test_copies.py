"""Deep copies of problems that were solved are problems of their own, which solve.

cvxpy keeps compiled forms in the leaves of what it compiles, with the ids of the variables and parameters.
A deep copy gives new ids to the leaves and takes over these forms: to compile it again ends the interpreter.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko

SOLVED_COPIED_SOLVED = """
import copy, sys, warnings
import cvxpy as cp, numpy as np, kernelopt as ko
from formulations import lanckriet, triplet_lp

K = np.array([np.eye(4), np.outer([1.0, -1, 1, -1], [1.0, -1, 1, -1])])
y = [1, -1, 1, -1]

def plain():
    x, price = cp.Variable(3), cp.Parameter(nonneg=True, value=2.0)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - 1) + price * cp.sum(x)), [x >= 2])

def learning(C=1.0, radius=1.0, factor=1.0):
    theta = cp.Variable(2, nonneg=True)
    risk = ko.risk(ko.combine(theta, K), y, ko.hinge(C))
    return cp.Problem(cp.Minimize(factor * risk), [cp.norm(theta, 2) <= radius])

def parameter(value):
    return cp.Parameter(pos=True, value=value)

def triplets():
    return triplet_lp.kernel_design(K, [[0, 2, 1]], gamma1=cp.Parameter(nonneg=True, value=0.1), gamma2=0.1)

def by_cvxpy(problem):
    # In another problem of the same leaves: cvxpy keeps solvers, which cannot be copied, in what it solves.
    return cp.Problem(problem.objective, problem.constraints).solve(solver="CLARABEL")

def exactly(problem):
    return ko.solve(problem, "exact").value

def formulated(formulation):
    return formulation.solve("exact").value

CASES = [
    (plain, exactly, exactly),
    (plain, exactly, by_cvxpy),
    (plain, by_cvxpy, exactly),
    (lambda: learning(parameter(1.0)), exactly, exactly),
    (lambda: learning(radius=parameter(1.0)), exactly, exactly),
    (lambda: learning(factor=parameter(3.0)), exactly, exactly),
    (lambda: learning(parameter(1.0)), exactly, lambda problem: by_cvxpy(ko.expand(problem).problem)),
    (triplets, formulated, formulated),
    (lambda: triplets().problem, exactly, exactly),
    (lambda: lanckriet.sdp(K, y), formulated, formulated),
    (lambda: lanckriet.sdp(K, y).problem, exactly, exactly),
]
for k, (make, first, second) in enumerate(CASES):
    problem = make()
    values = [first(problem), second(copy.deepcopy(problem)), second(copy.deepcopy(copy.deepcopy(problem)))]
    print(k, *values, flush=True)
    assert max(values) - min(values) <= 1e-5 * max(1.0, abs(values[0])), values
print("all", len(CASES))
"""


@pytest.mark.slow
def test_deep_copies_of_solved_problems_solve():
    """In a process of its own: what goes wrong here is no exception."""
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SOLVED_COPIED_SOLVED],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.splitlines()[-1] == "all 11"


def test_a_structure_takes_parameters_at_their_values_on_copies():
    C, price = cp.Parameter(pos=True, value=3.0, name="C"), cp.Parameter(nonneg=True, value=0.5, name="price")
    mu = cp.Variable(1, nonneg=True)
    risk = ko.risk(ko.combine(mu, np.eye(2)[None]), [1, -1], ko.hinge(C))
    problem = cp.Problem(cp.Minimize(risk + price * cp.sum(mu)), [mu <= 2])
    structure = ko.Structure(problem)
    for copied in (structure.lifted, structure.explicit):
        for mine in copied.parameters():
            (user,) = (p for p in (C, price) if p.id == mine.id)
            assert mine is not user
            assert (mine.value, mine.name(), mine.attributes) == (user.value, user.name(), user.attributes)
    assert {p.id for p in structure.explicit.parameters()} == {C.id, price.id}
    first = ko.solve(problem).value
    C.value, price.value = 0.1, 2.0
    alone = cp.Problem(
        cp.Minimize(ko.risk(ko.combine(mu, np.eye(2)[None]), [1, -1], ko.hinge(0.1)) + 2 * cp.sum(mu)),
        [mu <= 2],
    )
    assert ko.solve(problem).value == pytest.approx(ko.solve(alone).value, abs=1e-6)
    assert abs(first - problem.value) > 0.1


def test_a_solve_without_multipliers_leaves_none_of_an_earlier_one():
    """Weights of free sign: their multipliers need a conic solve, for which there is no time."""
    n, mu = 6, cp.Variable(2)
    K = ko.combine(mu, np.array([np.eye(n), np.ones((n, n))]))
    problem = cp.Problem(cp.Minimize(ko.risk(K, [1, -1] * 3, ko.hinge())), [ko.trace(K) == n, K >> 0])
    ko.solve(problem, "exact")
    assert all(c.dual_value is not None for c in problem.constraints)
    with pytest.warns(ko.ConvergenceWarning, match="time limit"):
        ko.solve(problem, "exact", time_limit=1e-6)
    assert all(c.dual_value is None for c in problem.constraints)


def test_the_explicit_problem_of_a_hard_margin_in_a_constraint_is_read():
    """cvxpy's indicator, which stands for the margin, cannot be copied by its own `copy`."""
    mu = cp.Variable(2, nonneg=True)
    K = ko.combine(mu, np.array([np.eye(4), np.ones((4, 4))]))
    problem = cp.Problem(cp.Minimize(cp.sum(mu)), [ko.risk(K, [1, -1, 1, -1], ko.hard_margin()) <= 3])
    lifted = ko.Structure(ko.expand(problem).problem).lifted
    assert lifted.is_dcp() and len(lifted.variables()) == len(ko.expand(problem).problem.variables())
