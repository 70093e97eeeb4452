"""Options of the methods for an l_p ball, what stands in their way, and when "auto" takes them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.methods.selection import METHODS
from tests.every import every
from tests.methods.lp_ball.cases import KS, OTHER, N, Y, learning, on_trace

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


def obstacles():
    """Problems that the methods of the l_p ball cannot take, and what says why."""
    theta, x = cp.Variable(3, nonneg=True, name="theta"), cp.Variable(name="x")
    free = cp.Variable(3, name="free")
    K, loss = ko.combine(theta, KS), ko.squared_hinge()
    risk, other = ko.risk(K, Y, loss), ko.risk(ko.combine(theta, 2 * np.asarray(KS)), OTHER, loss)
    unsigned = ko.risk(ko.combine(free, KS), Y, loss)
    ball = ko.lp_ball(theta, 2)
    cap = (theta[0] <= 0.5).set_label("cap")
    return {
        "several risks": (lambda: cp.Problem(cp.Minimize(risk + other), ball), "risk.* 2"),
        "no risk": (lambda: cp.Problem(cp.Minimize(cp.sum(theta)), ball), "risk.* 0"),
        "extra constraint": (lambda: cp.Problem(cp.Minimize(risk), [*ball, cap]), "cap"),
        "no constraint": (lambda: cp.Problem(cp.Minimize(risk)), "one constraint.* 0: none"),
        "other constraint": (lambda: cp.Problem(cp.Minimize(risk), [cap]), "cap"),
        "no nonneg": (
            lambda: cp.Problem(cp.Minimize(unsigned), [free >= 0, cp.norm2(free) <= 1]),
            "free.*nonneg",
        ),
        "price": (lambda: cp.Problem(cp.Minimize(risk + cp.sum_squares(theta)), ball), "objective"),
        "maximised": (lambda: cp.Problem(cp.Maximize(-risk), ball), "objective"),
        "squared": (lambda: cp.Problem(cp.Minimize(cp.square(risk)), ball), "objective"),
        "other variable": (lambda: cp.Problem(cp.Minimize(risk + cp.square(x)), ball), "objective"),
        "ridge": (lambda: cp.Problem(cp.Minimize(ko.risk(K + 0.1 * np.eye(N), Y, loss)), ball), "kernel"),
        "several kernels": (lambda: cp.Problem(cp.Minimize(ko.risk([K, KS[0]], Y, loss)), ball), "kernel"),
        "fixed kernel": (lambda: cp.Problem(cp.Minimize(ko.risk(KS[0], Y, loss)), ball), "kernel"),
        "signed trace": (
            lambda: cp.Problem(cp.Minimize(risk), [theta[0] - theta[1] + theta[2] == 1]),
            "theta",
        ),
    }


@pytest.mark.parametrize("method", BALL)
@every("kind", obstacles())
def test_what_stands_in_the_way_is_named(method, kind):
    make, said = obstacles()[kind]
    problem = make()
    with pytest.raises(ko.errors.MethodError, match=f"{method}.*{said}"):
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
        ko.solve(obstacles()["no risk"][0](), "cutting-plane")


def test_the_memory_of_solve_is_taken_by_every_choice_of_auto():
    """`memory` is an argument of `solve`, not of a method: naming it must not depend on what auto picks."""
    for problem in (learning(ko.logistic(), 2).problem, obstacles()["several risks"][0]()):
        assert ko.solve(problem, memory=16e9, tol=1e-2).gap <= 1e-2
