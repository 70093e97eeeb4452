"""The calculus of the risk, and its composition with other atoms."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.errors import ParameterError
from tests.every import every
from tests.language.cases import (
    FORMS,
    KS,
    RIDGED,
    SUM,
    C,
    N,
    W,
    ball_problem,
    cases,
    dual_value,
    finite,
    roots,
    weights,
)
from tests.problems import (
    CASES,
    labels,
    solved,
    targets,
)


def risk_at(case, K, bias=True, weight=C, norm=2):
    return ko.risk(K, case.y(N), case.loss(weight), bias, norm).value


def differences(function, x, h=1e-4):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))])


DIRECTION = np.random.default_rng(4).normal(size=(N, N)) / 10
DIRECTION = DIRECTION + DIRECTION.T


def in_a_matrix():
    K = cp.Variable((N, N), PSD=True)
    return (
        K,
        lambda x: K.save_value(RIDGED[0] + x[0] * DIRECTION),
        np.zeros(1),
        lambda G: [(G * DIRECTION).sum()],
    )


def in_the_weights():
    mu = weights(nonneg=True)
    return ko.combine(mu, RIDGED), mu.save_value, W, lambda g: g


def in_a_list():
    mu, K = weights(2, nonneg=True), cp.Variable((N, N), PSD=True)

    def put(x):
        mu.save_value(x[:2])
        K.save_value(x[2] * RIDGED[2])

    at = np.array([0.9, 0.6, 1.1])
    return [ko.combine(mu, RIDGED[:2]), K], put, at, lambda G: [*G[0], (G[1] * RIDGED[2]).sum()]


@cases
@every(
    "make, bias", [(in_a_matrix, True), (in_the_weights, True), (in_the_weights, False), (in_a_list, True)]
)
def test_the_gradient_is_the_derivative(case, make, bias):
    K, put, at, coordinates = make()
    norm, digits = (3, {"rel": 1e-3, "abs": 1e-5}) if isinstance(K, list) else (2, {"rel": 1e-4, "abs": 1e-6})
    risk = ko.risk(K, case.y(N), case.loss(C), bias, norm)

    def value(x):
        put(x)
        return risk.value

    expected = differences(value, at)
    put(at)
    assert coordinates(risk.gradient()) == pytest.approx(expected, **digits)
    if make is in_the_weights:
        alpha = risk.oracle().alpha
        assert risk.gradient() == pytest.approx([-alpha @ G @ alpha / 2 for G in RIDGED])


@every("norm", [2, 3])
def test_gradient_of_a_list_of_infinite_risk_has_a_member_per_kernel(norm):
    K = cp.Variable((N, N), symmetric=True, name="K", value=np.diag(np.linspace(-1, 1, N)))
    risk = ko.risk([K, RIDGED[0]], labels(N), ko.hinge(C), norm=norm)
    assert risk.value == np.inf and not np.any(risk.gradient()) and len(risk.gradient()) == 2


@cases
@every("bias, norm", [(False, 2), (True, np.inf)])
def test_convex_along_segments_and_not_increasing_in_the_psd_order(case, bias, norm):
    rng = np.random.default_rng(6)
    A, B = (RIDGED * rng.uniform(0.3, 2, (3, 1, 1)) for _ in range(2))
    ends = [risk_at(case, list(K), bias, C, norm) for K in (A, B)]
    assert risk_at(case, list((A + B) / 2), bias, C, norm) <= (ends[0] + ends[1]) / 2 + 1e-7
    v = rng.normal(size=N)
    larger = list(A + np.multiply.outer([0.0, 1.0, 0.0], np.outer(v, v)))
    assert risk_at(case, larger, bias, C, norm) <= ends[0] + 1e-7


@finite
def test_a_constant_in_the_kernel_does_nothing_beside_an_intercept(case):
    for c in (0.5, 100.0):
        assert risk_at(case, SUM + c, True) == pytest.approx(risk_at(case, SUM, True), rel=1e-6, abs=1e-9)


@cases
def test_permuted_points_and_split_kernels(case):
    order, y = np.random.default_rng(8).permutation(N), case.y(N)
    permuted = ko.risk(SUM[order][:, order], y[order], case.loss(C[order])).value
    assert permuted == pytest.approx(ko.risk(SUM, y, case.loss(C)).value, rel=1e-7)
    theta, halves = cp.Variable(3, nonneg=True), cp.Variable(4, nonneg=True)
    whole = ko.risk(ko.combine(theta, KS), y, case.loss(C))
    split = ko.risk(ko.combine(halves, np.concatenate([KS, KS[:1]])), y, case.loss(C))
    assert solved(cp.Problem(cp.Minimize(whole), ko.lp_ball(theta, 1))) == pytest.approx(
        solved(cp.Problem(cp.Minimize(split), ko.lp_ball(halves, 1))), rel=1e-6
    )


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (lambda r, t: cp.Minimize(2 * r - (-r)), lambda v: 3 * v),
        (lambda r, t: cp.Minimize(r / 4 + 1), lambda v: v / 4 + 1),
        (lambda r, t: cp.Minimize(cp.square(r)), lambda v: v**2),
        (lambda r, t: cp.Minimize(cp.maximum(r, 3)), lambda v: max(v, 3)),
        (lambda r, t: cp.Minimize(cp.maximum(r, 100)), lambda v: 100),
        (lambda r, t: cp.Minimize(cp.exp(r / 10)), lambda v: np.exp(v / 10)),
        (lambda r, t: cp.Minimize(cp.sum(cp.hstack([r, 2 * r]))), lambda v: 3 * v),
        (lambda r, t: cp.Minimize(cp.norm2(cp.hstack([r, r]))), lambda v: np.sqrt(2) * v),
        (lambda r, t: cp.Maximize(-r), lambda v: -v),
        (lambda r, t: cp.Maximize(5 - cp.square(r)), lambda v: 5 - v**2),
    ],
)
def test_a_risk_composes_as_any_convex_expression(objective, expected, least):
    problem, risk, _ = ball_problem(objective)
    assert problem.is_dcp()
    assert solved(problem) == pytest.approx(expected(least), rel=1e-6)
    assert problem.value == pytest.approx(expected(least), rel=1e-5)
    assert risk.value >= least * (1 - 1e-7)


def test_two_risks_share_a_kernel(least):
    y = targets(N)
    problem, risk, theta = ball_problem(
        lambda r, t: cp.Minimize(r + 2 * ko.risk(ko.combine(t, RIDGED), y, ko.squared(C)))
    )
    value = solved(problem)
    other = ko.risk(ko.combine(theta, RIDGED), y, ko.squared(C))
    assert risk.value + 2 * other.value == pytest.approx(value, rel=1e-6)
    assert risk.value >= least - 1e-6
    a, b, top = cp.Variable(N), cp.Variable(N), cp.Variable(3)
    (gain_a, domain), (gain_b, _) = CASES[0].dual(a, labels(N), C), CASES[5].dual(b, y, C)
    domain += [cp.sum(a) == 0, cp.sum(b) == 0]
    for m, K in enumerate(RIDGED):
        domain += [cp.sum_squares(roots(K).T @ a) + 2 * cp.sum_squares(roots(K).T @ b) <= top[m]]
    dual = cp.Problem(cp.Maximize(gain_a + 2 * gain_b - cp.norm2(top) / 2), domain)
    assert value == pytest.approx(solved(dual), rel=1e-6)


def test_a_bounded_risk(least):
    bound = 1.1 * least
    problem, risk, theta = ball_problem(lambda r, t: cp.Minimize(cp.sum(t)), lambda r, t: r <= bound)
    solved(problem)
    assert risk.value == pytest.approx(bound, rel=1e-5)
    again = ko.risk(ko.combine(cp.Constant(theta.value), RIDGED), labels(N), ko.hinge(C))
    assert again.value == pytest.approx(bound, rel=1e-5)


@pytest.mark.parametrize(
    ("objective", "constraint"),
    [
        (lambda r: cp.Maximize(r), None),
        (lambda r: cp.Minimize(-r), None),
        (lambda r: cp.Minimize(r - 2 * r), None),
        (lambda r: cp.Minimize(cp.sqrt(r)), None),
        (lambda r: cp.Minimize(r), lambda r: r >= 1),
        (lambda r: cp.Minimize(r), lambda r: r == 1),
    ],
)
@every("name", ["combination", "free sign", "PSD variable", "variable list, norm 3"])
def test_misuse_is_not_dcp(objective, constraint, name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, labels(N), ko.hinge(), norm=form.norm)
    problem = cp.Problem(objective(risk), [*form.set, *([constraint(risk)] if constraint else [])])
    assert not problem.is_dcp()
    with pytest.raises(cp.DCPError):
        problem.solve(solver=cp.CLARABEL)


@every(
    "kernels, message, norms",
    [
        (
            lambda: [ko.combine(weights(nonneg=True), KS), SUM],
            r"at least 2 for variable kernels.*combine\(\) and lp_ball\(\)",
            [1, 1.5, 1.999, 0.5, np.nan],
        ),
        (lambda: list(KS), "at least 1 for constant kernels", [0.5, -1, np.nan]),
    ],
)
def test_norms_of_risks_that_are_not_convex_are_refused(kernels, message, norms):
    for norm in norms:
        with pytest.raises(ParameterError, match=message):
            ko.risk(kernels(), labels(N), ko.hinge(), norm=norm)


@pytest.mark.parametrize("backend", ["SCIPY", "CPP", "COO"])
@every("name", ["combination", "spectral", "with ridge", "free sign", "variable list, norm inf"])
def test_every_backend_compiles_it(backend, name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, labels(N), ko.hinge(C), norm=form.norm)
    problem = cp.Problem(cp.Minimize(risk), list(form.set))
    expected = dual_value(CASES[0], name, True)
    assert solved(problem, canon_backend=backend) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a sum"])
def test_a_parameter_kernel_is_read_at_each_solve(alone):
    P, mu = cp.Parameter((N, N), PSD=True), weights(nonneg=True)
    K = P if alone else ko.combine(mu, KS) + P
    risk = ko.risk(K, labels(N), ko.hinge(C))
    problem = cp.Problem(cp.Minimize(risk), [mu <= W])
    for matrix in (RIDGED[0], RIDGED[1]):
        P.value = matrix
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not DPP: compiled anew
            solved(problem)
        expected = ko.risk(matrix if alone else SUM + matrix, labels(N), ko.hinge(C)).value
        assert problem.solution.opt_val == pytest.approx(expected, rel=1e-6)
        assert risk.value == pytest.approx(expected, rel=1e-5)
