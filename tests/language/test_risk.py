"""The value of the risk: loss x kernel form x intercept against a dual written here."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import kernelopt as ko
from kernelopt.errors import NotPSDError, ParameterError
from tests.every import every
from tests.language.cases import FORMS, KS, C, N, V, W, biases, cases, dual_value, finite, roots, weights
from tests.problems import (
    CASES,
    crossed,
    labels,
    solved,
)

SEMIDEFINITE = {name for name in FORMS if "free sign" in name or "PSD" in name or "semidefinite" in name}


ROWS = crossed((case.name for case in CASES), FORMS, ("hinge",), ("combination", "variable list, norm 3"))


@pytest.mark.parametrize(("loss", "name"), ROWS)
def test_value_is_that_of_the_dual(loss, name):
    """Both intercepts with every form, and with every loss at one form; else one of them, in turn."""
    both = loss == "hinge" or name == "combination"
    for bias in (False, True) if both else (ROWS.index((loss, name)) % 2 == 0,):
        check_value(loss, name, bias)


def check_value(loss, name, bias):
    case = next(case for case in CASES if case.name == loss)
    form = FORMS[name]()
    risk = ko.risk(form.kernel, case.y(N), case.loss(C), bias, form.norm)
    problem = cp.Problem(cp.Minimize(risk), list(form.set))
    expected = pytest.approx(dual_value(case, name, bias), rel=1e-6, abs=1e-6)
    assert problem.is_dcp() and risk.shape == () and risk.is_nonneg() and risk.is_convex()
    assert ("semidefinite" in risk.learner.forms) == (name in SEMIDEFINITE)

    assert risk.value is None if form.point else risk.value == expected
    for variable, value in form.point:
        variable.value = value
    assert risk.value == expected  # before any solve
    for variable, _ in form.point:
        variable.value = None

    assert solved(problem) == expected
    assert risk.value == expected and problem.value == expected
    for variable, value in form.point:
        variable.value = value
    assert risk.value == expected  # and elsewhere after it


@cases
def test_learned_weights_in_a_ball(case):
    """min over |theta|_p <= 1 is max l(a) - 1/2 |(a'K_m a)_m|_q, 1/p + 1/q = 1."""
    exponents = [1, 1.5, 2, np.inf]
    for p in exponents if case.name == "hinge" else [exponents[CASES.index(case) % 4]]:
        check_learned_weights(case, p)


def check_learned_weights(case, p):
    theta, a, s = weights(nonneg=True), cp.Variable(N), cp.Variable(3)
    risk = ko.risk(ko.combine(theta, KS), case.y(N), case.loss(C), case.name != "one_class")
    q = {1: np.inf, np.inf: 1}.get(p) or p / (p - 1)
    gain, domain = case.dual(a, case.y(N), C)
    domain += [cp.sum_squares(roots(K).T @ a) <= s[m] for m, K in enumerate(KS)]
    domain += [cp.sum(a) == 0] if case.name != "one_class" else []
    size = cp.max(s) if p == 1 else cp.sum(s) if p == np.inf else cp.pnorm(s, q, approx=False)
    dual = solved(cp.Problem(cp.Maximize(gain - size / 2), domain))
    assert solved(cp.Problem(cp.Minimize(risk), ko.lp_ball(theta, p))) == pytest.approx(dual, rel=1e-6)


@cases
def test_learned_weights_of_free_sign_with_given_trace(case):
    """Lanckriet: max l(a) - c nu / 2 with <K_m, A> = nu tr K_m and A >= aa'."""
    mu, a, A, nu = weights(), cp.Variable((N, 1)), cp.Variable((N, N), symmetric=True), cp.Variable()
    K = ko.combine(mu, KS)
    risk = ko.risk(K, case.y(N), case.loss(C))
    primal = solved(cp.Problem(cp.Minimize(risk), [ko.trace(K) == 5]))
    gain, domain = case.dual(a[:, 0], case.y(N), C)
    domain += [cp.trace(Km @ A) == nu * np.trace(Km) for Km in KS]
    domain += [cp.bmat([[A, a], [a.T, np.ones((1, 1))]]) >> 0]
    domain += [cp.sum(a) == 0] if risk.learner.bias is not None else []
    assert primal == pytest.approx(solved(cp.Problem(cp.Maximize(gain - 5 * nu / 2), domain)), rel=2e-6)


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "labels"], ids=lambda c: c.name)
def test_learned_matrix_of_given_trace_is_of_rank_one(case):
    """Over K >= 0 with trace c the dual is l(a) - c |a|^2 / 2, the risk at c times the identity."""
    K = cp.Variable((N, N), PSD=True)
    risk = ko.risk(K, case.y(N), case.loss(C))
    value = solved(cp.Problem(cp.Minimize(risk), [cp.trace(K) == 3.0]))
    assert value == pytest.approx(ko.risk(3.0 * np.eye(N), case.y(N), case.loss(C)).value, rel=1e-6)
    assert np.linalg.eigvalsh(K.value)[-1] == pytest.approx(3.0, rel=1e-3)


@cases
@biases
@every("name", ["combination", "spectral", "with ridge", "free sign", "PSD variable"])
def test_zero_weights_leave_the_best_constant(case, bias, name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, case.y(N), case.loss(C), bias)
    for variable, _ in form.point:
        variable.value = np.zeros(variable.shape)
    if case.name == "hard_margin":
        assert risk.value == np.inf
        return
    constant = minimize_scalar(lambda b: case.value(np.full(N, b), case.y(N), C), (-1, 1), tol=1e-14).fun
    best = constant if bias else case.value(np.zeros(N), case.y(N), C)
    assert risk.value == pytest.approx(best, rel=1e-6, abs=1e-9)


@finite
def test_zero_weights_after_a_solve(case):
    mu = weights(nonneg=True)
    risk = ko.risk(ko.combine(mu, KS), case.y(N), case.loss(C), bias=False)
    solved(cp.Problem(cp.Minimize(risk + 1e3 * cp.sum(mu))))
    mu.value = np.zeros(3)
    assert risk.value == pytest.approx(case.value(np.zeros(N), case.y(N), C), rel=1e-9)


@cases
def test_some_weights_zero(case):
    """A kernel of weight zero is out, before a solve, in it and after it."""
    mu = weights(nonneg=True)
    risk = ko.risk(ko.combine(mu, KS), case.y(N), case.loss(C))
    expected = ko.risk(W[0] * KS[0], case.y(N), case.loss(C)).value
    mu.value = np.array([W[0], 0.0, 0.0])
    assert risk.value == pytest.approx(expected, rel=1e-7)
    problem = cp.Problem(cp.Minimize(risk + 1e5 * cp.sum(mu[1:])), [mu[0] <= W[0]])
    assert solved(problem) == pytest.approx(expected, rel=1e-5)
    assert mu.value[1:] == pytest.approx(np.zeros(2), abs=1e-6)


@finite
@biases
def test_one_rank_one_kernel_is_a_problem_in_one_number(case, bias):
    """f = s v: min over s, b of loss(s v + b) + s^2 / 2w."""
    v, w, y, t, b = V[:, 0], 0.7, case.y(N), cp.Variable(), cp.Variable()
    loss = case.loss(C)
    scalar = cp.Minimize(loss.expression(t * v + (b if bias else 0.0), y) + cp.square(t) / (2 * w))
    expected = pytest.approx(solved(cp.Problem(scalar)), rel=1e-6, abs=1e-6)
    mu = cp.Variable(1, nonneg=True)
    for K in (ko.combine(mu, ko.Grams.rank_one(v[:, None])), mu[0] * np.outer(v, v)):
        risk = ko.risk(K, y, loss, bias)
        mu.value = [w]
        assert risk.value == expected
        assert solved(cp.Problem(cp.Minimize(risk), [mu <= w])) == expected


@pytest.mark.parametrize("name", ["free sign", "PSD variable"])
def test_an_indefinite_kernel_has_infinite_risk(name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, labels(N), ko.hinge())
    variable = form.point[0][0]
    variable.save_value(-np.ones(3) if name == "free sign" else np.diag([1.0] * (N - 1) + [-1e-3]))
    assert risk.value == np.inf
    if name == "PSD variable":  # what solvers leave behind
        variable.save_value(np.diag([1.0] * (N - 1) + [-1e-10]))
        assert np.isfinite(risk.value)


def test_an_indefinite_constant_is_refused():
    indefinite = np.diag([1.0, -0.1, 0.5])
    problem = cp.Problem(cp.Minimize(ko.risk(indefinite, [1, -1, 1], ko.hinge())))
    with pytest.raises(NotPSDError, match="the fixed kernel must be positive semidefinite"):
        problem.solve(solver=cp.CLARABEL)


def test_the_oracle_needs_a_value():
    risk = ko.risk(ko.combine(weights(nonneg=True), KS), labels(N), ko.hinge())
    assert risk.value is None and risk.alpha is None and risk.intercept is None
    with pytest.raises(ParameterError, match=r"the kernel must have a value.*Solve the problem"):
        risk.oracle()
