"""The methods for an l_p ball against the exact method: all losses, all exponents, all ways of writing."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.every import every
from tests.methods.lp_ball.cases import (
    ITERATIVE,
    KS,
    LOSSES,
    ROWS,
    TABLE,
    TOL,
    UNEQUAL,
    N,
    Y,
    applies,
    build,
    iterative,
    learning,
    on_trace,
    rows,
    tolerance,
)
from tests.problems import conjugate, overlap, points

# -------------------------------------------------------------------- all losses, all p, against exact


class Outcome(NamedTuple):
    problem: cp.Problem
    theta: cp.Variable
    risk: ko.Risk
    solution: ko.Solution


@cache
def outcome(method, name, p, bias):
    built = build(name, p, bias)
    return Outcome(*built, ko.solve(built.problem, method, tol=tolerance(method, p)))


@rows
def test_a_method_ends_at_the_optimum(method, name, p, bias):
    """Its bounds overlap with those of "exact", and all that it leaves behind fits together."""
    exact, found = outcome("exact", name, p, bias), outcome(method, name, p, bias)
    tol, solution = tolerance(method, p), found.solution
    assert exact.solution.gap <= TOL
    assert overlap(solution, exact.solution)
    assert solution.status == "optimal" and solution.gap <= tol
    assert solution.method == method and solution.iterations >= 1
    check_variables(found, p, bias)
    check_machine(solution, LOSSES[name], tol)
    check_multiplier(found, exact.problem, p, 1e-2 if tol == TOL else 1e-1)


def check_variables(found, p, bias):
    """What stands in the cvxpy problem is what the solution says."""
    problem, theta, risk, solution = found
    assert problem.status == cp.OPTIMAL
    assert problem.value == pytest.approx(solution.value, rel=1e-9, abs=1e-12)
    assert all(v.value is not None and np.isfinite(v.value).all() for v in problem.variables())
    np.testing.assert_array_equal(solution.weights, theta.value)
    assert theta.value.min() >= 0 and np.linalg.norm(theta.value, p) <= 1 + 1e-12
    slack = 1e-8 * max(1.0, abs(solution.value))
    assert solution.lower - slack <= float(risk.value) <= solution.value + slack
    np.testing.assert_array_equal(risk.alpha, solution.alpha)
    assert risk.intercept == solution.intercept and (bias or solution.intercept == 0.0)
    predicted = solution.kernel @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), predicted, rtol=1e-9, atol=1e-9)


def check_machine(solution, case, tol):
    """The machine attains the value: its loss and its norm by the textbook's formula."""
    f = solution.decision_function()
    if case.name == "hard_margin":
        f = (1 + 1e-9) * f  # a margin of one is met up to round-off
    size = solution.alpha @ solution.kernel @ solution.alpha / 2
    attained = case.value(f, case.y(N), np.full(N, 1.3)) + size
    scale = max(1.0, abs(solution.value))
    assert solution.lower - 1e-9 * scale <= attained <= solution.value + 2 * tol * scale


def check_multiplier(found, exact, p, near):
    """d value / d radius = -1/2 |s|_q; alpha is not unique at low rank, |s|_q is.

    The multiplier is `near` to that of "exact": its error is of first order in alpha, the gap of second.
    """
    multiplier = float(np.squeeze(found.problem.constraints[-1].dual_value))
    known = float(np.squeeze(exact.constraints[-1].dual_value))
    assert multiplier == pytest.approx(known, rel=near, abs=1e-7)
    (alpha,) = found.solution.certificate.alphas
    s = np.einsum("i,mij,j->m", alpha, KS, alpha)
    assert multiplier == pytest.approx(np.linalg.norm(s, conjugate(p)) / 2, rel=1e-6, abs=1e-7)


def test_methods_apply_where_the_theory_says():
    """Else a method that refuses too much would drop out of the table above in silence."""
    smooth = {"squared_hinge", "huberized_hinge", "logistic", "squared"}
    for name, p, bias in TABLE:
        covered = {method for method, *row in ROWS if row == [name, p, bias]}
        assert {"block-descent", "cutting-plane"} <= covered
        assert ("interleaved" in covered) == (name != "logistic")
        assert ("smooth-dual" in covered) == (name in smooth and p > 1)


# -------------------------------------------------------------------------------------- other writings


@pytest.mark.parametrize(
    ("loss", "equal", "side"),
    [
        (ko.hinge(1.3), True, 1),
        (ko.squared_hinge(1.3), True, -1),
        (ko.logistic(1.3), False, 1),
        (ko.hinge(1.3), False, 1),
    ],
    ids=["hinge, ==", "squared hinge, - ==", "logistic, <=", "hinge, <="],
)
def test_a_trace_is_a_ball_of_exponent_one(loss, equal, side):
    """mu_m = c theta_m / r_m on the kernels c K_m / r_m: Lanckriet's simplex, and half his value."""
    r = UNEQUAL.trace(axis1=1, axis2=2)
    ball = ko.solve(learning(loss, 1, grams=N / r[:, None, None] * UNEQUAL).problem)
    for method in ITERATIVE:
        problem, mu, risk = on_trace(loss, equal=equal, side=side)
        assert applies(method, problem) == applies(method, learning(loss, 1).problem)
        if not applies(method, problem):
            continue
        tol = tolerance(method, 1)
        solution = ko.solve(problem, method, tol=tol)
        assert solution.status == "optimal" and solution.gap <= tol
        assert overlap(solution, ball)
        assert mu.value.min() >= 0 and float(r @ mu.value) <= N * (1 + 1e-12)
        assert not equal or float(r @ mu.value) == pytest.approx(N, rel=1e-12)
        # The value of a risk is that of a machine that is trained to a relative gap of 1e-9.
        assert solution.lower - 1e-9 <= float(risk.value) <= (1 + 1e-9) * solution.value
        # d value / dc = -1/2 max_m s_m / r_m
        (alpha,) = solution.certificate.alphas
        s = np.einsum("i,mij,j->m", alpha, UNEQUAL, alpha)
        multiplier = side * float(problem.constraints[0].dual_value)
        assert multiplier == pytest.approx((s / r).max() / 2, rel=1e-4)


def objective(written):
    """2 r + 3 on a ball, in three ways."""
    theta, price = cp.Variable(3, nonneg=True), cp.Parameter(nonneg=True, value=2.0)
    r = ko.risk(ko.combine(theta, KS), Y, ko.squared_hinge(1.3))
    value = {"2 r + 3": 2 * r + 3, "r + r + 3": r + r + 3, "parameter": price * r + 3}[written]
    return cp.Problem(cp.Minimize(value), ko.lp_ball(theta, 4 / 3))


def unlabelled(kernels, on):
    """N > n: the risk sees the labelled points, a trace all of them."""
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear(), ko.polynomial(2)], points(N))
    grams, y = grams if kernels == "functions" else np.asarray(grams), Y[:10]
    return (on_trace if on == "trace" else learning)(ko.squared_hinge(0.5), grams=grams, y=y).problem


def smooth(p=4 / 3, C=1.3, **options):
    return learning(ko.squared_hinge(C), p, **options).problem


PADDED, TINY = np.concatenate([KS, np.zeros((1, N, N))]), np.array([[[3.0]], [[4.0]]])
OTHERS = {
    "radius 0.2": lambda: smooth(1.5, 2.0, radius=0.2),
    "radius 5": lambda: smooth(1.5, 2.0, radius=5.0),
    "2 r + 3": lambda: objective("2 r + 3"),
    "r + r + 3": lambda: objective("r + r + 3"),
    "parameter": lambda: objective("parameter"),
    "unlabelled array": lambda: unlabelled("array", "ball"),
    "unlabelled functions": lambda: unlabelled("functions", "trace"),
    "a zero kernel, p = 1.01": lambda: smooth(1.01, grams=PADDED),
    "a zero kernel, p = inf": lambda: smooth(np.inf, grams=PADDED),
    "C = 1e-3": lambda: smooth(C=1e-3),
    "C = 1e3": lambda: smooth(C=1e3),
    "nothing to learn": lambda: smooth(2, 1.0, y=np.array([1.0, -1.0] * 3), grams=np.zeros((2, 6, 6))),
    "one point": lambda: learning(ko.squared(2.0), 2, np.array([1.5]), TINY, bias=False).problem,
}


@cache
def exact_other(name):
    problem = OTHERS[name]()
    return ko.solve(problem, "exact"), float(np.squeeze(problem.constraints[-1].dual_value))


@iterative
@every("name", OTHERS)
def test_other_problems_on_a_ball(method, name):
    problem, (exact, multiplier) = OTHERS[name](), exact_other(name)
    if not applies(method, problem):
        assert "functions" in name and method == "smooth-dual"  # p = 1
        return
    tol = tolerance(method, 1 if "functions" in name else 4 / 3)
    solution = ko.solve(problem, method, tol=min(tol, 1e-8) if name == "one point" else tol)
    assert solution.status == "optimal" and overlap(solution, exact)
    found = float(np.squeeze(problem.constraints[-1].dual_value))
    assert found == pytest.approx(multiplier, rel=1e-1, abs=1e-5)
    n = solution.alpha.size
    f = solution.kernel[:, :n] @ solution.alpha + solution.intercept
    np.testing.assert_allclose(solution.decision_function(), f, rtol=1e-9, atol=1e-9)


def test_values_of_these_problems():
    """P_tau(C) = P_1(C tau) / tau, with weights tau theta; and small problems by hand."""
    for radius in (0.2, 5.0):
        scaled, unit = exact_other(f"radius {radius:g}")[0], ko.solve(smooth(1.5, 2 * radius), "exact")
        assert scaled.value == pytest.approx(unit.value / radius, rel=2e-5, abs=2e-5)
        np.testing.assert_allclose(scaled.weights, radius * unit.weights, atol=2e-2 * radius)
    plain = outcome("exact", "squared_hinge", 4 / 3, True)
    for written in ("2 r + 3", "r + r + 3", "parameter"):
        assert exact_other(written)[0].value == pytest.approx(2 * plain.solution.value + 3, rel=1e-5)
    # All kernels zero, balanced labels: b = 0 and the value is C n / 2.
    assert exact_other("nothing to learn")[0].value == pytest.approx(3.0, abs=1e-6)
    # k = (3, 4), p = 2, C = 2, no intercept: theta = k / 5, alpha = y / (1/C + 5), value y alpha / 2.
    one = exact_other("one point")[0]
    assert one.value == pytest.approx(1.5**2 / 2 / 5.5, rel=1e-5)
    np.testing.assert_allclose([*one.weights, *one.alpha], [0.6, 0.8, 1.5 / 5.5], rtol=1e-3)


@iterative
def test_bounds_of_the_weights_are_kept(method):
    """nonneg=True and bounds= may stand together: refused or obeyed, but no wrong value is certified."""
    theta = cp.Variable(3, nonneg=True, bounds=[None, 0.3], name="theta")
    K = ko.combine(theta, KS)
    problem = cp.Problem(cp.Minimize(ko.risk(K, Y, ko.squared_hinge())), ko.lp_ball(theta, 2))
    plain = learning(ko.squared_hinge(), 2)
    capped = cp.Problem(plain.problem.objective, [*plain.problem.constraints, plain.theta <= 0.3])
    best = ko.solve(capped, "exact", tol=1e-6).value
    options = {"max_iterations": 30} if method == "cutting-plane" else {}  # more of them change nothing
    try:
        solution = ko.solve(problem, method, **options)
    except ko.KerneloptError:
        return
    except ko.ConvergenceWarning:  # an error in these tests; loose bounds are no wrong ones
        return
    assert solution.lower <= best + 1e-5 and solution.upper >= best - 1e-5
    assert theta.value.max() <= 0.3 + 1e-9
