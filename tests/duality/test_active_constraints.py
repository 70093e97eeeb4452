"""Duals where a constraint of an atom is active, a multiplier is zero, or a Parameter is not symmetric."""
# ruff: noqa: B008, E501 - every problem has variables of its own, which are made once

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.duality.conditions import inside
from tests.duality.generic import least, named
from tests.every import every

P = [[1.0, 2], [3, 4]]
SYMMETRIC = np.array([[1, 2.5], [2.5, 4]])  # the symmetric part of P


def x():
    return cp.Variable(2, name="x")


def S():
    return cp.Variable((2, 2), symmetric=True, name="X")


def trace_of(f, *constraints):
    X, p = S(), cp.Parameter((2, 2), value=P, name="P")
    return least(cp.trace(p @ X) + f(X), *(c(X) for c in constraints))


C = np.array([[0.3, -1.0], [0.4, 2]])
PROBLEMS = {
    "a maximum that binds": (lambda v=x(): least(cp.sum_squares(v - 2), cp.maximum(v[0], v[1]) <= 1), 2.0),
    "max(a, b) <= t": (lambda v=x(): least(-v[0] - 2 * v[1], cp.max(v) <= 1, v >= 0), -3.0),
    "the larger of two risks": (
        lambda v=x(): least(cp.sum(v), cp.maximum(cp.sum_squares(v), cp.square(v[0] - 1)) <= 0.5), None,
    ),
    "a sum of maxima": (lambda v=x(): least(cp.sum_squares(v), cp.sum(cp.maximum(v, v - 1)) <= -1), 0.5),
    "a Parameter of a symmetric variable": (lambda: trace_of(cp.sum_squares), -7.375),
    "a Parameter and a ball": (
        lambda: trace_of(lambda X: 0, lambda X: cp.norm(X, "fro") <= 1), -float(np.linalg.norm(SYMMETRIC)),
    ),
    "a slack square": (lambda v=x(): least(v[0], cp.sum_squares(v) <= 1, cp.sum_squares(v) <= 50), -1.0),
    "trace and log det": (lambda X=S(): least(cp.trace(X) - cp.log_det(X)), 2.0),
    "a form and a norm": (lambda v=x(): least(cp.quad_form(v - 1, SYMMETRIC @ SYMMETRIC) + cp.norm(v)), None),
    "negative parts of a symmetric matrix": (
        lambda X=S(): least(cp.sum(cp.neg(X - C)) + cp.norm(X - 1, "fro"), cp.abs(X) <= 1), None,
    ),
    "names of cvxpy": (lambda v=cp.Variable(2), w=cp.Variable(): least(cp.norm(v - 1) + cp.square(w - 1) + v[0]), None),
}  # fmt: skip


@every("name", PROBLEMS)
def test_the_dual_has_the_value_of_the_primal_and_is_derived(name):
    make, value = PROBLEMS[name]
    problem = make()
    dual = ko.dualize(problem)
    found = dual.check()
    exact = problem.solve(solver=cp.CLARABEL) if value is None else value
    assert found.dual == pytest.approx(exact, abs=1e-6) and found.gap <= 1e-6
    assert max(found.feasibility, found.stationarity, found.complementarity) <= 1e-5
    assert ko.dualize(dual).solve() == pytest.approx(exact, abs=1e-5)
    derivation = ko.derive(problem)
    assert [step.title for step in derivation.steps if not step.residual <= 1e-6] == []
    assert not re.search(r"\b(var|param)\d+\b", f"{dual}{derivation}{ko.show(problem)}")


def test_a_derivation_compares_with_a_primal_that_was_solved_by_itself():
    v = x()
    last = ko.derive(least(cp.sum_squares(v - 2), cp.maximum(v[0], v[1]) <= 1)).steps[-1]
    assert "solved by itself" in last.check and last.residual <= 1e-7


def test_multipliers_have_the_shapes_of_cvxpy():
    v, t = cp.Variable((3, 2), name="v"), cp.Variable(2, name="t")
    one = named(cp.SOC(t[0], v[:, 0] - 1), "one")
    two = named(cp.SOC(t, v - 2, axis=0), "two")
    problem = least(cp.sum(t) + 0.1 * cp.sum(v), one, two)
    problem.solve(solver=cp.CLARABEL)
    found = ko.dualize(problem).dual_values()
    for constraint in problem.constraints:
        for value, variable in zip(found[constraint], constraint.dual_variables, strict=True):
            assert value.shape == variable.shape
            assert np.ravel(value) == pytest.approx(np.ravel(variable.value), abs=1e-5)


def test_a_parameter_without_a_value_is_no_hindrance():
    v, level = x(), cp.Parameter(nonneg=True, name="level")
    dual = ko.dualize(least(cp.sum_squares(v - 1) + level * cp.norm1(v)))
    assert "level" in str(dual)
    level.value = 1.0
    assert dual.solve() == pytest.approx(1.5, rel=1e-6)


def test_data_that_are_no_numbers_are_refused():
    with pytest.raises(ko.errors.DualizationError, match="must be numbers, got nan in the constant"):
        ko.dualize(least(cp.sum_squares(x() - np.array([1, np.nan]))))


@every("kind", ["suppfunc", "perspective", "xexp", "von Neumann", "cummax"])
def test_atoms_without_an_entry_are_named_cones(kind):
    v, s, X = x(), cp.Variable(nonneg=True, name="s"), cp.Variable((2, 2), symmetric=True, name="X")
    T = cp.Variable(2)
    support = cp.suppfunc(T, [cp.norm(T) <= 1, T[0] >= 0])
    problem = {
        "suppfunc": lambda: least(support(v - 1) + cp.sum_squares(v)),
        "perspective": lambda: least(cp.perspective(cp.sum_squares(v), s) + s - v[0], s >= 1),
        "xexp": lambda: least(cp.sum(cp.xexp(cp.pos(v))) + cp.norm(v - 2)),
        "von Neumann": lambda: least(-cp.von_neumann_entr(X), cp.trace(X) == 1, X[0, 1] == 0.2),
        "cummax": lambda: least(cp.sum(cp.cummax(v)) + cp.sum_squares(v - 1)),
    }[kind]()
    dual = ko.dualize(problem)
    assert dual.solve() == pytest.approx(problem.solve(solver=cp.CLARABEL), abs=1e-5)
    assert not re.search(r"\b(var|param)\d+\b", str(dual))


def test_infeasible_and_unbounded_problems_say_so():
    v = x()
    infeasible = ko.dualize(least(cp.sum(v), v >= 1, v <= 0))
    assert infeasible.solve() == np.inf and infeasible.status == cp.UNBOUNDED
    unbounded = ko.dualize(least(cp.sum(v), v <= 0))
    assert unbounded.solve() == -np.inf and unbounded.status == cp.INFEASIBLE
    with pytest.raises(ko.InfeasibleError, match="dual"):
        unbounded.recover_primal()


@pytest.mark.filterwarnings("ignore::kernelopt.ConvergenceWarning")
def test_the_gap_of_duffin_is_never_called_optimal():
    """min exp(-z_1) over |z| <= z_0 is 1, since z_1 = 0, and its dual is 0."""
    z = cp.Variable(2, name="z")
    dual = ko.dualize(least(cp.exp(-z[1]), cp.norm(z) <= z[0]))
    try:
        value = dual.solve()
    except ko.SolverError:
        return
    assert (
        dual.status != cp.OPTIMAL
        or value == pytest.approx(0, abs=1e-4)
        or value == pytest.approx(1, abs=1e-4)
    )


def test_a_point_at_the_border_of_a_domain_is_judged_inside_of_it():
    """Solvers place points in cones up to 1e-9; an entropy that is infinite there is one of zero, and not far off."""
    v, X = x(), S()
    X.save_value(np.diag([-1e-10, 0.5]))
    v.save_value(np.array([-1e-10, 0.5]))
    entropy = -np.sum(0.5 * np.log(0.5))
    atoms = {
        cp.sum(cp.entr(v)): entropy, cp.von_neumann_entr(X): entropy, -cp.sum(cp.rel_entr(v, 1)): entropy,
        -cp.sum(cp.kl_div(v, v)): 0.0, cp.geo_mean(v): 0.0, -cp.sum(cp.power(v, 1.5)): -(0.5**1.5),
    }  # fmt: skip
    for atom, value in atoms.items():
        assert inside(-atom).value == pytest.approx(-value, abs=1e-4)
        assert inside(atom >= value - 1).violation() == 0
    v.save_value(np.array([-1e-5, 0.5]))  # and this is no rounding error
    assert inside(-cp.sum(cp.entr(v))).value == np.inf


def test_an_entropy_that_binds_at_the_border_has_its_conditions():
    for constraint in (lambda v: cp.sum(cp.entr(v)) >= -50, lambda v: cp.sum(cp.kl_div(v, 1)) <= 50):
        v = x()
        dual = ko.dualize(least(cp.sum_squares(v + 1), constraint(v)))
        assert np.isfinite(dual.check()).all() and max(dual.check()[2:]) <= 1e-6
        assert dual.status == "optimal" and dual.value == pytest.approx(2.0, rel=1e-6)
