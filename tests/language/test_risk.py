"""The risk: one table of loss x kernel form x intercept against a dual written here, and its calculus."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

import kernelopt as ko
from kernelopt.errors import NotPSDError, ParameterError
from kernelopt.structure import expand
from tests.every import every
from tests.problems import (
    CASES,
    MULTIPLIER_RUNGS,
    TAU,
    crossed,
    labels,
    points,
    sample_weights,
    solved,
    stack,
    targets,
)

N = 7
KS = stack(N + 2)[:, :N, :N]
LARGER = stack(N + 2)
W = np.array([0.8, 0.5, 1.2])
C = sample_weights(N)
SUM = np.tensordot(W, KS, 1)
V = points(N, N, seed=3)
SPECTRUM = np.linspace(0.2, 1.4, N)
RANK_ONES = (V * SPECTRUM) @ V.T

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
finite = pytest.mark.parametrize("case", [c for c in CASES if c.name != "hard_margin"], ids=lambda c: c.name)
biases = every("bias", [False, True], ids=["no bias", "bias"])


# ------------------------------------------------------------------------------------ the table


class Form(NamedTuple):
    """A kernel or a list of them, variable in a set over which the least risk is at known matrices.

    The risk decreases in the PSD order, so `mu <= w` puts the optimum at w, with a Slater point.
    """

    kernel: Any
    matrices: tuple[np.ndarray, ...]
    set: tuple[cp.Constraint, ...] = ()
    point: tuple[tuple[cp.Variable, Any], ...] = ()
    norm: float = 2


def weights(size=3, **attributes):
    return cp.Variable(size, **attributes)


def combination(equal=False, grams=KS):
    mu = weights(nonneg=True)
    K = ko.combine(mu, grams)
    return Form(K, (SUM,), ((mu == W) if equal else (mu <= W),), ((mu, W),))


def free_sign():
    mu = weights()
    K = ko.combine(mu, KS)
    return Form(K, (SUM,), (SUM - K >> 0,), ((mu, W),))


def psd_variable(equal=False):
    K = cp.Variable((N, N), PSD=True)
    return Form(K, (SUM,), ((K == SUM) if equal else (SUM - K >> 0),), ((K, SUM),))


def spectral():
    mu = weights(N, nonneg=True)
    return Form(V @ cp.diag(mu) @ V.T, (RANK_ONES,), (mu <= SPECTRUM,), ((mu, SPECTRUM),))


def rank_one():
    mu = weights(N, nonneg=True)
    return Form(ko.combine(mu, ko.Grams.rank_one(V)), (RANK_ONES,), (mu <= SPECTRUM,), ((mu, SPECTRUM),))


def with_ridge():
    mu, tau = weights(nonneg=True), cp.Variable(nonneg=True)
    K = ko.combine(mu, KS) + tau * np.eye(N)
    return Form(K, (SUM + 0.3 * np.eye(N),), (mu <= W, tau <= 0.3), ((mu, W), (tau, 0.3)))


def free_sign_with_ridge():
    mu, tau = weights(), cp.Variable()
    K = ko.combine(mu, KS) + tau * np.eye(N)
    bound = SUM + 0.3 * np.eye(N)
    return Form(K, (bound,), (bound - K >> 0,), ((mu, W), (tau, 0.3)))


def fixed_list(norm):
    return Form(list(RIDGED), tuple(RIDGED), norm=norm)


def variable_list(norm):
    mu, scale = weights(nonneg=True), cp.Variable(nonneg=True)
    kernels = [ko.combine(mu, KS), scale * RIDGED[1], RIDGED[2]]
    point = ((mu, W), (scale, 2.0))
    return Form(kernels, (SUM, 2 * RIDGED[1], RIDGED[2]), (mu <= W, scale <= 2), point, norm)


def semidefinite_list(norm):
    K, L = free_sign(), combination()
    return Form([K.kernel, L.kernel], (SUM, SUM), K.set + L.set, K.point + L.point, norm)


RIDGED = KS + 0.2 * np.eye(N)
FORMS = {
    "matrix": lambda: Form(SUM, (SUM,)),
    "matrix on more points": lambda: Form(np.tensordot(W, LARGER, 1), (SUM,)),
    "constant weights": lambda: Form(ko.combine(W, KS), (SUM,)),
    "combination": combination,
    "combination at given weights": lambda: combination(equal=True),
    "combination on more points": lambda: combination(grams=LARGER),
    "spectral": spectral,
    "rank-one stack": rank_one,
    "with ridge": with_ridge,
    "free sign": free_sign,
    "free sign with ridge": free_sign_with_ridge,
    "PSD variable": psd_variable,
    "PSD variable at a given matrix": lambda: psd_variable(equal=True),
    **{f"fixed list, norm {r}": lambda r=r: fixed_list(r) for r in (1, 1.5, 3, np.inf)},
    **{f"variable list, norm {r}": lambda r=r: variable_list(r) for r in (2, 3, np.inf)},
    **{f"semidefinite list, norm {r}": lambda r=r: semidefinite_list(r) for r in (3, np.inf)},
}
SEMIDEFINITE = {name for name in FORMS if "free sign" in name or "PSD" in name or "semidefinite" in name}
forms = pytest.mark.parametrize("name", FORMS)


def roots(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def dual_value(case, name, bias):
    form = FORMS[name]()
    return maximum(case, tuple(K.tobytes() for K in form.matrices), bias, form.norm)


@cache
def maximum(case, matrices, bias, norm):
    """max l(a) - 1/2 |(sqrt(a'K_m a))_m|_s^2 with 1/s + 1/norm = 1, and 1'a = 0 with an intercept."""
    Ks = [np.frombuffer(K).reshape(N, N) for K in matrices]
    a = cp.Variable(N)
    gain, domain = case.dual(a, case.y(N), C)
    lengths = cp.hstack([cp.norm2(roots(K).T @ a) for K in Ks])
    s = np.inf if norm == 1 else 1.0 if norm == np.inf else norm / (norm - 1)
    size = {1.0: cp.norm1, np.inf: cp.norm_inf}.get(s, lambda x: cp.pnorm(x, s, approx=False))(lengths)
    balance = [cp.sum(a) == 0] if bias else []
    return solved(cp.Problem(cp.Maximize(gain - cp.square(size) / 2), domain + balance))


@pytest.mark.parametrize(
    ("loss", "name"),
    crossed((case.name for case in CASES), FORMS, usual=("combination", "variable list, norm 3")),
)
@biases
def test_value_is_that_of_the_dual(loss, bias, name):
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


# ----------------------------------------------------- learned weights: the dual of the kernel set


@cases
@every("p", [1, 1.5, 2, np.inf])
def test_learned_weights_in_a_ball(case, p):
    """min over |theta|_p <= 1 is max l(a) - 1/2 |(a'K_m a)_m|_q, 1/p + 1/q = 1."""
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


# ---------------------------------------------------------------------- values at special points


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


# --------------------------------------------------------------------- calculus of the risk


def risk_at(case, K, bias=True, weight=C, norm=2):
    return ko.risk(K, case.y(N), case.loss(weight), bias, norm).value


def differences(function, x, h=1e-4):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@cases
@biases
def test_gradient_in_the_weights(case, bias):
    mu = weights(nonneg=True)
    risk = ko.risk(ko.combine(mu, RIDGED), case.y(N), case.loss(C), bias)

    def value(w):
        mu.value = w
        return risk.value

    expected = differences(value, W)
    mu.value = W
    assert risk.gradient() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    alpha = risk.oracle().alpha
    assert risk.gradient() == pytest.approx([-alpha @ K @ alpha / 2 for K in RIDGED])


@cases
def test_gradient_in_a_matrix(case):
    K, D = cp.Variable((N, N), PSD=True), np.random.default_rng(4).normal(size=(N, N))
    risk = ko.risk(K, case.y(N), case.loss(C))
    D = (D + D.T) / 10

    def value(x):
        K.value = RIDGED[0] + x[0] * D
        return risk.value

    expected = differences(value, np.zeros(1))
    K.value = RIDGED[0]
    assert (risk.gradient() * D).sum() == pytest.approx(expected[0], rel=1e-4, abs=1e-6)


@cases
@every("norm", [3, np.inf])
def test_gradient_of_a_list(case, norm):
    mu, K = cp.Variable(2, nonneg=True), cp.Variable((N, N), PSD=True)
    risk = ko.risk([ko.combine(mu, RIDGED[:2]), K], case.y(N), case.loss(C), norm=norm)

    def value(x):
        mu.value, K.value = x[:2], x[2] * RIDGED[2]
        return risk.value

    at = np.array([0.9, 0.6, 1.1])
    expected = differences(value, at)
    value(at)
    of_weights, of_matrix = risk.gradient()
    assert [*of_weights, (of_matrix * RIDGED[2]).sum()] == pytest.approx(expected, rel=1e-3, abs=1e-5)


@every("norm", [2, 3])
def test_gradient_of_a_list_of_infinite_risk_has_a_member_per_kernel(norm):
    K = cp.Variable((N, N), symmetric=True, name="K", value=np.diag(np.linspace(-1, 1, N)))
    risk = ko.risk([K, RIDGED[0]], labels(N), ko.hinge(C), norm=norm)
    assert risk.value == np.inf and not np.any(risk.gradient()) and len(risk.gradient()) == 2


@cases
@biases
def test_scaling_the_kernel_scales_the_weight(case, bias):
    """risk(sK, C) = risk(K, sC) / s; the corner of the huberized hinge, tau C long, stays: tau / s."""
    for s in (0.3, 4.0):
        loss = ko.huberized_hinge(s * C, TAU / s) if case.name == "huberized_hinge" else case.loss(s * C)
        scaled = ko.risk(SUM, case.y(N), loss, bias).value / s
        assert risk_at(case, s * SUM, bias) == pytest.approx(scaled, rel=1e-7, abs=1e-9)


@cases
@biases
@every("norm", [2, np.inf])
def test_convex_along_segments_and_decreasing_in_the_psd_order(case, bias, norm):
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


# ----------------------------------------------------------------- composition as an expression


def ball_problem(objective, *extra, y=None, loss=None):
    """Return a problem in the l_2 ball of weights, and its risk."""
    theta = weights(nonneg=True)
    risk = ko.risk(ko.combine(theta, RIDGED), labels(N) if y is None else y, loss or ko.hinge(C))
    constraints = [*ko.lp_ball(theta, 2), *(constraint(risk, theta) for constraint in extra)]
    return cp.Problem(objective(risk, theta), constraints), risk, theta


@pytest.fixture(scope="module")
def least():
    return solved(ball_problem(lambda r, t: cp.Minimize(r))[0])


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


@every("norm", [1, 1.5, 1.999, 0.5, np.nan])
def test_norms_below_two_of_variable_kernels_are_refused(norm):
    kernels = [ko.combine(weights(nonneg=True), KS), SUM]
    with pytest.raises(ParameterError, match=r"at least 2 for variable kernels.*combine\(\) and lp_ball\(\)"):
        ko.risk(kernels, labels(N), ko.hinge(), norm=norm)


@every("norm", [0.5, -1, np.nan])
def test_norms_below_one_are_refused(norm):
    with pytest.raises(ParameterError, match="at least 1 for constant kernels"):
        ko.risk(list(KS), labels(N), ko.hinge(), norm=norm)


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


def test_a_parameter_that_scales_kernels_is_read_at_each_solve():
    scale, mu = cp.Parameter(nonneg=True), weights(nonneg=True)
    risk = ko.risk(scale * ko.combine(mu, KS), labels(N), ko.hinge(C))
    problem = cp.Problem(cp.Minimize(risk), [mu <= W])
    for value in (1.0, 3.0):
        scale.value = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not DPP: compiled anew
            solved(problem)
        expected = ko.risk(value * SUM, labels(N), ko.hinge(C)).value
        assert problem.solution.opt_val == pytest.approx(expected, rel=1e-6)


# ------------------------------------------------------------- other ways to write the same kernel


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, np.inf])
def test_a_list_of_kernels_of_low_rank(norm):
    """Where alpha'K_m alpha = 0 for some m, alpha alone does not say what f_m is."""
    risk = ko.risk(list(KS), labels(N), ko.hinge(C), norm=norm)
    assert risk.value == pytest.approx(solved(cp.Problem(cp.Minimize(risk))), rel=1e-6)


def test_a_spectral_kernel_of_a_sparse_matrix():
    mu = weights(N, nonneg=True)
    S = sp.csc_array(V)
    risk = ko.risk(S @ cp.diag(mu) @ S.T, labels(N), ko.hinge(C))
    assert solved(cp.Problem(cp.Minimize(risk), [mu <= SPECTRUM])) == pytest.approx(
        dual_value(CASES[0], "spectral", True), rel=1e-6
    )


@pytest.mark.parametrize(
    "fixed",
    [ko.combine([1.0, 0.0, 2.0], KS), cp.Constant(RIDGED[0]) * 0, cp.Constant(0 * KS[1])],
    ids=range(3),
)
def test_a_sum_with_a_constant_whose_weight_is_zero(fixed):
    mu = weights(nonneg=True)
    risk = ko.risk(ko.combine(mu, KS) + fixed, labels(N), ko.hinge(C))
    expected = ko.risk(SUM + fixed.value, labels(N), ko.hinge(C)).value
    assert solved(cp.Problem(cp.Minimize(risk), [mu <= W])) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "lowered",
    [
        lambda K: K - 0.1 * np.eye(N),
        lambda K: K + (-0.1) * np.eye(N),
        lambda K: K - 0.1 * KS[0],
        lambda K: K - ko.combine([0.1, 0, 0], KS) - 0.05 * np.eye(N),
        lambda K: -(0.1 * np.eye(N) - K),
    ],
    ids=["identity", "negative identity", "matrix", "combination", "negated"],
)
def test_a_kernel_may_be_lowered_while_it_stays_positive(lowered):
    mu = weights(nonneg=True)
    risk = ko.risk(lowered(ko.combine(mu, RIDGED)), labels(N), ko.hinge(C))
    at_most = ko.risk(lowered(ko.combine(W, RIDGED)), labels(N), ko.hinge(C)).value
    value = solved(cp.Problem(cp.Minimize(risk), [mu <= W]))
    assert value == pytest.approx(at_most, rel=1e-6)


def test_parameters_as_weights_may_be_zero():
    w = cp.Parameter(3, nonneg=True)
    risk = ko.risk(ko.combine(w, KS), labels(N), ko.hinge(C))
    problem = cp.Problem(cp.Minimize(risk))
    for value in (W, 3 * W, np.array([0.5, 0.0, 1.0])):
        w.value = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not DPP: compiled anew
            solved(problem)
        expected = ko.risk(np.tensordot(value, KS, 1), labels(N), ko.hinge(C)).value
        assert problem.solution.opt_val == pytest.approx(expected, rel=1e-6)


def test_a_hard_margin_that_no_weights_meet_is_infeasible():
    """Labels that alternate along a line are not separated by a linear kernel."""
    line = np.arange(4.0)
    mu = weights(1, nonneg=True)
    risk = ko.risk(ko.combine(mu, np.outer(line, line)[None]), [1, -1, 1, -1], ko.hard_margin())
    problem = cp.Problem(cp.Minimize(risk), [mu <= 1])
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.INFEASIBLE
    mu.value = [1.0]
    assert risk.value == np.inf


# ------------------------------------------------------- the explicit problem and its multipliers


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@every("name", ["combination", "with ridge", "free sign", "variable list, norm 3"])
def test_expanded_problem_has_the_same_value(case, name):
    form = FORMS[name]()
    risk = ko.risk(form.kernel, case.y(N), case.loss(C), norm=form.norm)
    expansion = expand(cp.Problem(cp.Minimize(risk), list(form.set)))
    expected = dual_value(case, name, risk.learner.bias is not None)
    assert solved(expansion.problem) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert not any(isinstance(node, ko.Risk) for node in expansion.problem.objective.args)
    assert expansion.risks[0].risk is risk


def alphas(objective, *extra, **options):
    problem, risk, _ = ball_problem(objective, *extra, **options)
    expansion = expand(problem)
    value = solved(problem)
    assert solved(expansion.problem, MULTIPLIER_RUNGS) == pytest.approx(value, rel=1e-6)
    return expansion, risk


@cases
def test_alpha_is_the_multiplier_of_the_fit(case):
    options = {"y": case.y(N), "loss": case.loss(C)}
    expansion, risk = alphas(lambda r, t: cp.Minimize(r + 0.1 * cp.sum_squares(t)), **options)
    assert expansion.risks[0].weight() == 1.0
    digits = 1e-4 if case.name == "logistic" else 1e-5  # the oracle is an exponential cone there
    assert expansion.risks[0].alpha() == pytest.approx(risk.oracle().alpha, abs=digits)


RATE = cp.Parameter(pos=True, value=0.5)
COMPOSED = {
    "coefficient 2": (lambda r, t: cp.Minimize(2 * r), 2.0),
    "coefficient 2 - (-1)": (lambda r, t: cp.Minimize(2 * r - (-r)), 3.0),
    "divided": (lambda r, t: cp.Minimize(cp.sum(t) + r / 4), 0.25),
    "parameter": (lambda r, t: cp.Minimize(RATE * r), 0.5),
    "Maximize": (lambda r, t: cp.Maximize(-r), 1.0),
    "Maximize, coefficient": (lambda r, t: cp.Maximize(1 - 3 * r), 3.0),
    "square": (lambda r, t: cp.Minimize(cp.square(r)), None),
    "maximum": (lambda r, t: cp.Minimize(cp.maximum(r, 0.1)), 1.0),
}


@pytest.mark.parametrize(("objective", "weight"), COMPOSED.values(), ids=COMPOSED)
@every("loss", [ko.hinge(C), ko.squared_hinge(C)], ids=["hinge", "squared_hinge"])
def test_alpha_is_the_multiplier_divided_by_the_weight(objective, weight, loss):
    expansion, risk = alphas(objective, loss=loss)
    (written,) = expansion.risks
    weight = 2 * risk.value if weight is None else weight
    assert written.weight() == pytest.approx(weight, rel=1e-5)
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-5)
    names = [c.label for c in expansion.problem.constraints if c.label is not None]
    assert names[-1] == "fit" and ("risk" in names) == (written.bound is not None)


def test_the_weight_of_a_bounded_risk_is_a_multiplier(least):
    bound = 1.1 * least
    expansion, risk = alphas(lambda r, t: cp.Minimize(cp.sum(t)), lambda r, t: (r <= bound).set_label("cap"))
    (written,) = expansion.risks
    (cap,) = [pair.copy for pair in expansion.constraints if pair.original.label == "cap"]
    assert cap.label == "cap" and written.bound.label == "risk" and written.fit.label == "fit"
    assert written.weight() == pytest.approx(float(cap.dual_value), rel=1e-5) and written.weight() > 0
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-4)


def test_a_risk_in_objective_and_constraint_has_the_sum_of_both_weights(least):
    expansion, risk = alphas(
        lambda r, t: cp.Minimize(0.5 * r + cp.sum(t)), lambda r, t: (r <= 1.1 * least).set_label("cap")
    )
    (written,) = expansion.risks
    (cap,) = [pair.copy for pair in expansion.constraints if pair.original.label == "cap"]
    assert written.weight() == pytest.approx(0.5 + float(cap.dual_value), rel=1e-5)
    assert written.alpha() == pytest.approx(risk.oracle().alpha, abs=1e-4)


def test_an_inactive_risk_has_no_alpha():
    expansion, _ = alphas(lambda r, t: cp.Minimize(cp.maximum(r, 100) + 0.1 * cp.sum_squares(t)))
    assert expansion.risks[0].weight() == pytest.approx(0.0, abs=1e-6)
    assert expansion.risks[0].alpha() is None


def test_several_risks_are_numbered():
    second = []

    def objective(r, t):
        second.append(ko.risk(ko.combine(t, RIDGED), targets(N), ko.squared(C)))
        return cp.Minimize(2 * r + cp.square(second[0]))

    expansion, first = alphas(objective)
    assert [written.fit.label for written in expansion.risks] == ["fit 0", "fit 1"]
    assert expansion.risks[0].bound is None and expansion.risks[1].bound.label == "risk 1"
    assert [written.risk for written in expansion.risks] == [first, second[0]]
    for written in expansion.risks:
        assert written.alpha() == pytest.approx(written.risk.oracle().alpha, abs=1e-5)


def test_labels_of_the_user_survive_and_the_problem_stays():
    problem, _, theta = ball_problem(
        lambda r, t: cp.Minimize(r), lambda r, t: (t[0] >= 0.1).set_label("floor")
    )
    expansion = expand(problem)
    assert [pair.copy.label for pair in expansion.constraints] == ["ball", "floor"]
    assert all(p.original is c for p, c in zip(expansion.constraints, problem.constraints, strict=True))
    assert theta.id in [variable.id for variable in expansion.problem.variables()]


@pytest.mark.parametrize("problem", [None, cp.Variable()])
def test_only_problems_are_expanded(problem):
    with pytest.raises(ParameterError, match=r"problem must be a cvxpy\.Problem, got"):
        expand(problem)
    with pytest.raises(ParameterError, match=r"continuous variables.*Relax them"):
        expand(cp.Problem(cp.Minimize(cp.Variable(boolean=True))))


def test_lazy_kernels_arrays_and_matrices_have_one_risk():
    X, y = points(N), labels(N)
    grams = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)
    w = [1.0, 0.5]
    kernels = (ko.combine(w, grams), ko.combine(w, np.asarray(grams)), grams.combine(w))
    values = [float(ko.risk(K, y, ko.hinge(C)).value) for K in kernels]
    assert values == pytest.approx(values[:1] * 3, rel=1e-10)
