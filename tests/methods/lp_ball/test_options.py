"""Options of the methods for an l_p ball, what stands in their way, and when "auto" takes them."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.selection import METHODS, applicable
from tests.every import every
from tests.methods.lp_ball.cases import BALLS, KS, OTHER, TOL, N, Y, example, learning, on_trace
from tests.problems import fastest, labels, points, why_not

# ------------------------------------------------------------------------------- options and obstacles


@pytest.mark.parametrize("method", BALLS)
def test_unknown_options_name_those_that_exist(method):
    option = {"chunk": 3} if method != "interleaved" else {"stabilize": True}
    with pytest.raises(ko.errors.ParameterError, match=next(iter(option))) as error:
        ko.solve(learning(ko.squared_hinge()).problem, method, **option)
    options = set(METHODS[method].options()) - {"programme"}  # which formulations take
    assert all(re.search(rf"\b{option}\b", str(error.value)) for option in options)


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@every("option", [{"tol": 0.0}, {"time_limit": -1.0}], ids=str)
def test_common_options_are_checked(method, option):
    with pytest.raises(ko.errors.ParameterError, match=next(iter(option))):
        ko.solve(learning(ko.squared_hinge()).problem, method, **option)


WRONG = {
    ("block-descent", "update"): "desent",
    ("cutting-plane", "master"): "tailor",
    ("interleaved", "chunk"): 0,
    ("interleaved", "memory"): -1.0,
    ("mirror-descent", "step"): "polyak",
    ("mirror-descent", "update"): "printed",
}


COUNTS = [
    ((method, option), 0)
    for method in METHODS
    for option in METHODS[method].options()
    if option.startswith("max_")
]


@pytest.mark.parametrize(("where", "value"), [*WRONG.items(), *COUNTS], ids=str)
def test_options_out_of_range_are_named(where, value):
    method, option = where
    with pytest.raises(ko.errors.ParameterError, match=option):
        ko.solve(learning(ko.squared_hinge(), 1.5).problem, method, **{option: value})


BALL = ["block-descent", "interleaved", "smooth-dual", "newton"]


def obstructed(kind):
    """A problem that the methods of the l_p ball cannot take."""
    theta, x = cp.Variable(3, nonneg=True, name="theta"), cp.Variable(name="x")
    free = cp.Variable(3, name="free")
    K, loss = ko.combine(theta, KS), ko.squared_hinge()
    risk, other = ko.risk(K, Y, loss), ko.risk(ko.combine(theta, 2 * np.asarray(KS)), OTHER, loss)
    unsigned = ko.risk(ko.combine(free, KS), Y, loss)
    ball = ko.lp_ball(theta, 2)
    cap = (theta[0] <= 0.5).set_label("cap")
    return {
        "several risks": lambda: cp.Problem(cp.Minimize(risk + other), ball),
        "no risk": lambda: cp.Problem(cp.Minimize(cp.sum(theta)), ball),
        "extra constraint": lambda: cp.Problem(cp.Minimize(risk), [*ball, cap]),
        "no constraint": lambda: cp.Problem(cp.Minimize(risk)),
        "other constraint": lambda: cp.Problem(cp.Minimize(risk), [cap]),
        "no nonneg": lambda: cp.Problem(cp.Minimize(unsigned), [free >= 0, cp.norm2(free) <= 1]),
        "price": lambda: cp.Problem(cp.Minimize(risk + cp.sum_squares(theta)), ball),
        "maximised": lambda: cp.Problem(cp.Maximize(-risk), ball),
        "squared": lambda: cp.Problem(cp.Minimize(cp.square(risk)), ball),
        "other variable": lambda: cp.Problem(cp.Minimize(risk + cp.square(x)), ball),
        "ridge": lambda: cp.Problem(cp.Minimize(ko.risk(K + 0.1 * np.eye(N), Y, loss)), ball),
        "several kernels": lambda: cp.Problem(cp.Minimize(ko.risk([K, KS[0]], Y, loss)), ball),
        "fixed kernel": lambda: cp.Problem(cp.Minimize(ko.risk(KS[0], Y, loss)), ball),
        "signed trace": lambda: cp.Problem(cp.Minimize(risk), [theta[0] - theta[1] + theta[2] == 1]),
    }[kind]()


OBSTACLES = {
    "several risks": "risk.* 2",
    "no risk": "risk.* 0",
    "extra constraint": "cap",
    "no constraint": "constraint.* 0",
    "other constraint": "cap",
    "no nonneg": "free.*nonneg",
    "price": "objective",
    "maximised": "objective",
    "squared": "objective",
    "other variable": "objective",
    "ridge": "kernel",
    "several kernels": "kernel",
    "fixed kernel": "kernel",
    "signed trace": "theta",
}


@pytest.mark.parametrize("method", BALL)
@every("kind", OBSTACLES)
def test_what_stands_in_the_way_is_named(method, kind):
    problem = obstructed(kind)
    with pytest.raises(ko.errors.MethodError, match=f"{method}.*{OBSTACLES[kind]}"):
        ko.solve(problem, method)
    assert problem.status is None and all(v.value is None for v in problem.variables())


@pytest.mark.parametrize(
    ("method", "built", "said"),
    [
        ("smooth-dual", learning(ko.squared_hinge(), 1), "p must be above 1"),
        ("smooth-dual", on_trace(ko.squared_hinge()), "p must be above 1"),
        ("smooth-dual", learning(ko.hinge(), 2), "hinge"),
        ("smooth-dual", learning(ko.epsilon_insensitive(), 2), "epsilon_insensitive"),
        ("smooth-dual", learning(ko.hard_margin(), 2), "hard_margin"),
        ("interleaved", learning(ko.logistic(), 2), "logistic"),
    ],
    ids=str,
)
def test_a_loss_or_a_norm_that_stands_in_the_way_is_named(method, built, said):
    with pytest.raises(ko.errors.MethodError, match=f"{method}.*{said}"):
        ko.solve(built.problem, method)


def test_cutting_planes_need_a_risk():
    with pytest.raises(ko.errors.MethodError, match="risk"):
        ko.solve(obstructed("no risk"), "cutting-plane")


def test_an_unknown_method_names_those_that_exist():
    with pytest.raises(ko.errors.MethodError, match="interior") as error:
        ko.solve(learning().problem, "interior")
    assert all(repr(name) in str(error.value) for name in METHODS)


@pytest.mark.parametrize("method", [*BALLS, "auto"])
def test_the_solve_of_cvxpy_takes_every_method(method):
    name = "exact" if method == "auto" else method
    problem = example(name)
    value = problem.solve(method=method, tol=1e-6)
    assert isinstance(value, float) and problem.status == cp.OPTIMAL
    assert value == pytest.approx(problem.value, rel=1e-9)
    assert value == pytest.approx(ko.solve(example(name), "exact").value, abs=1e-5)
    with pytest.raises(ko.errors.ParameterError, match="tol"):
        problem.solve(method=method, tol=-1)


@pytest.mark.parametrize("kind", ["ball", "several risks", "no risk", "no nonneg"])
def test_explain_lists_every_method_with_what_stands_in_the_way(kind):
    problem = learning(ko.hinge()).problem if kind == "ball" else obstructed(kind)
    text = str(ko.explain(problem))
    for name in METHODS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"method {name!r}: ")]
        reason = why_not(name, problem)
        assert reason in line if reason else "applies, about" in line


# ------------------------------------------------------------------------------------------------ auto


def large(loss, p, risks=1, **attributes):
    """400 points and 12 kernels: over the patience of the exact method."""
    X, y = points(400, 4), labels(400)
    kernels = [ko.on_columns(ko.gaussian(s), [j]) for j in range(4) for s in (0.5, 1.0, 2.0)]
    grams = ko.Grams.from_kernels(kernels, X)
    theta = cp.Variable(12, nonneg=True)
    K = ko.combine(theta, grams)
    objective = sum(ko.risk(K, sign * y, loss) for sign in (1.0, -1.0)[:risks])
    return cp.Problem(cp.Minimize(objective), ko.lp_ball(theta, p))


@pytest.mark.parametrize(
    "problem",
    [learning(ko.squared_hinge(), 1).problem, obstructed("several risks"), obstructed("no risk")],
    ids=["simplex", "several risks", "no risk"],
)
def test_auto_is_exact_for_small_problems(problem):
    assert fastest(problem) == "exact"


@pytest.mark.parametrize("p", [4 / 3, 2, np.inf])
def test_auto_is_no_slower_than_what_nobody_notices(p):
    found = applicable(ko.Structure(learning(ko.squared_hinge(), p).problem))
    assert found[0].seconds <= min(candidate.seconds for candidate in found) + 0.02


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (large(ko.hinge(), 2), "newton"),
        (large(ko.hinge(), 1), "newton"),
        (large(ko.logistic(), 2), "newton"),
        (large(ko.hinge(), 2, risks=2), "newton"),
    ],
    ids=["ball 2", "ball 1", "logistic", "two risks"],
)
def test_auto_is_iterative_for_large_problems(problem, expected):
    assert fastest(problem) == expected


def test_auto_is_exact_where_only_that_applies():
    K = cp.Variable((30, 30), PSD=True)
    assert fastest(cp.Problem(cp.Minimize(cp.sum_squares(K - np.eye(30))))) == "exact"


def test_auto_solves_a_large_problem():
    problem = large(ko.hinge(0.1), 4 / 3)
    solution = ko.solve(problem)
    assert solution.method != "exact" and solution.status == "optimal" and solution.gap <= TOL
    margins = labels(400) * solution.decision_function()
    value = 0.1 * np.maximum(1 - margins, 0).sum() + solution.alpha @ solution.kernel @ solution.alpha / 2
    assert solution.value == pytest.approx(value, rel=1e-9)


def test_the_memory_of_solve_is_taken_by_every_choice_of_auto():
    """`memory` is an argument of `solve`, not of a method: naming it must not depend on what auto picks."""
    solution = ko.solve(large(ko.logistic(0.1), 2), memory=16e9, tol=1e-2)
    assert solution.method != "exact" and solution.gap <= 1e-2
