"""The method "spectral-master" against the semidefinite programme, on ordinary and on degenerate families."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.methods.spectral_master.cases import families, gaussians, learning, optimum, points
from tests.problems import why_not

LOSSES = {
    "hinge": ko.hinge(1.0),
    "squared hinge": ko.squared_hinge(1.0),
    "squared": ko.squared(1.0),
    "epsilon-insensitive": ko.epsilon_insensitive(1.0, 0.1),
    "logistic": ko.logistic(1.0),
}
REFERENCE = 2e-7  # relative error of the values that `solved` returns


def brackets(solution, value):
    """Whether all bounds that were reported, and the certificate, are on their side of the optimum."""
    slack = REFERENCE * abs(value)
    pairs = [(low, high) for _, low, high in solution.history]
    pairs.append((solution.certificate.lower, solution.certificate.upper))
    return all(low <= value + slack and high >= value - slack for low, high in pairs)


@every("name", list(families()))
def test_the_bounds_bracket_the_optimum_and_meet_on_degenerate_families(name):
    kernels, (_, y, _) = families()[name], points()
    solution = ko.solve(learning(kernels, y[:10], LOSSES["hinge"]), "spectral-master")
    assert solution.gap <= 1e-5
    assert brackets(solution, optimum(kernels, y[:10], LOSSES["hinge"]))


@every("name", LOSSES)
def test_every_loss_that_is_finite(name):
    kernels, (_, y, _) = families()["full rank"], points()
    solution = ko.solve(learning(kernels, y[:10], LOSSES[name]), "spectral-master", tol=1e-6)
    assert solution.gap <= 1e-6
    assert brackets(solution, optimum(kernels, y[:10], LOSSES[name]))


@every(("family", "C"), [("full rank", 1e-4), ("full rank", 1e4), ("indefinite", 1e4), ("rank one", 1e-4)])
def test_small_and_large_C(family, C):
    """risk(K; C) = C risk(C K; 1): the reference is of size one."""
    kernels, (_, y, _) = families()[family], points()
    solution = ko.solve(learning(kernels, y[:10], ko.hinge(C)), "spectral-master")
    assert solution.gap <= 1e-5
    if C < 1:
        value = C * optimum(kernels, y[:10], ko.hinge(1.0), trace=C * 14)
        assert brackets(solution, value)


def test_unbalanced_classes_and_no_intercept():
    kernels = families()["full rank"]
    y = np.array([1.0, *[-1.0] * 9])
    for bias in (True, False):
        solution = ko.solve(learning(kernels, y, LOSSES["hinge"], bias=bias), "spectral-master")
        assert solution.gap <= 1e-5
        assert brackets(solution, optimum(kernels, y, LOSSES["hinge"], bias=bias))


def test_the_weights_are_feasible_and_attain_the_upper_bound():
    kernels, (_, y, _) = families()["full rank"], points()
    solution = ko.solve(learning(kernels, y[:10], LOSSES["hinge"], trace=5.0), "spectral-master")
    K = np.tensordot(solution.weights, kernels, 1)
    assert np.trace(K) == pytest.approx(5.0, rel=1e-13)
    assert np.linalg.eigvalsh(K)[0] >= -1e-13 * np.abs(K).max()
    value = ko.solve(cp.Problem(cp.Minimize(ko.risk(cp.Constant(K), y[:10], LOSSES["hinge"]))), "exact").value
    assert solution.value == pytest.approx(value, rel=1e-5)


def test_a_negative_weight_is_found_where_it_helps():
    """K = mu_1 I + mu_2 ee' with the trace 2: the least eigenvalue mu_1 is at most 2, at mu_2 = -1."""
    kernels = np.array([np.eye(2), np.ones((2, 2))])
    solution = ko.solve(learning(kernels, np.array([1.0, -1.0]), ko.hinge(10.0)), "spectral-master", tol=1e-7)
    assert solution.weights == pytest.approx([2.0, -1.0], abs=1e-3)
    assert solution.value == pytest.approx(0.5, rel=1e-6)  # half of omega = 1: example of `lanckriet.sdp`


def test_the_multipliers_meet_the_optimality_conditions():
    """Z >> 0, <Z, K> = 0, and -1/2 alpha'K_i alpha + nu tr K_i - <Z, K_i> = 0 in the signs of cvxpy."""
    kernels, (_, y, _) = families()["full rank"], points()
    problem = learning(kernels, y[:10], LOSSES["hinge"])
    solution = ko.solve(problem, "spectral-master", tol=1e-7)
    cone, edge = problem.constraints
    Z, nu = cone.dual_value, float(np.ravel(edge.dual_value)[0])
    forms = [solution.alpha @ K[:10, :10] @ solution.alpha for K in kernels]
    conditions = [-f / 2 + nu * np.trace(K) - np.vdot(Z, K) for f, K in zip(forms, kernels, strict=True)]
    assert np.linalg.eigvalsh(Z)[0] >= -1e-12 * np.trace(Z)
    assert np.abs(conditions).max() <= 1e-3 * solution.value
    assert abs(np.vdot(Z, np.tensordot(solution.weights, kernels, 1))) <= 1e-5 * solution.value


def test_nearly_collinear_families_are_certified():
    """Five wide Gaussians: weights of 1e5 in both signs, whose combinations have no digits beside 1e-10."""
    X, y, _ = points(size=60)
    kernels = gaussians(X, [20.0, 40.0, 80.0, 160.0, 320.0])
    solution = lanckriet.soft_margin(kernels, y[:40], weights="free").solve("spectral-master")
    assert solution.gap <= 1e-5
    assert np.abs(solution.weights).max() > 1e2


def centred_and_collinear(size=60):
    """Five wide Gaussians, centred: rounding leaves 1e-14 of them on the ones, times weights of 1e5."""
    X, y, _ = points(size=size)
    H = np.eye(size) - 1 / size
    kernels = np.array([H @ K @ H for K in gaussians(X, [20.0, 40.0, 80.0, 160.0, 320.0])])
    return np.array([(K + K.T) * size / 2 / np.trace(K) for K in kernels]), y[: 2 * size // 3]


def test_centred_and_nearly_collinear_families_are_certified_on_the_complement_of_the_ones():
    kernels, y = centred_and_collinear()
    formulation = lanckriet.soft_margin(kernels, y, weights="free", trace=60.0)
    solution = formulation.solve("spectral-master")
    assert solution.gap <= 1e-5
    K = np.tensordot(solution.weights, kernels, 1)
    H = np.eye(60) - 1 / 60
    eigenvalues = np.linalg.eigvalsh(H @ K @ H)
    assert eigenvalues[0] >= -1e-13 * eigenvalues[-1]
    assert np.linalg.eigvalsh(K)[0] < -1e-13 * eigenvalues[-1]  # on the ones, where K is rounding
    assert "taken as exactly centred" in " ".join(solution.certificate.assumes)
    again = ko.certify(formulation.problem, weights=solution.weights, alpha=solution.alpha)
    assert again.gap <= 1e-5 and "taken as exactly centred" in " ".join(again.assumes)
    assert "; assumes: the kernels are taken as exactly centred" in str(solution)
    assert max(again.lower, solution.lower) <= min(again.upper, solution.upper)


def test_kernels_are_taken_as_centred_only_where_the_risk_cannot_see_the_difference():
    """A risk without an intercept depends on 1'K1, and weights that need no centring are not remarked on."""
    kernels, y = centred_and_collinear(30)
    plain = learning(kernels, y, LOSSES["hinge"], bias=False)
    with pytest.warns(ko.ConvergenceWarning, match="limited by rounding"):
        assert not ko.solve(plain, "spectral-master").certificate.assumes
    _, y, _ = points()
    ordinary = ko.solve(learning(families()["centred"], y[:10], LOSSES["hinge"]), "spectral-master")
    assert ordinary.certificate.reason == "" and not ordinary.certificate.assumes


def test_dependent_kernels_are_named_as_an_assumption_and_equal_ones_are_not():
    _, y, _ = points()
    scaled = ko.solve(learning(families()["scaled copies"], y[:10], LOSSES["hinge"]), "spectral-master")
    equal = ko.solve(learning(families()["equal"], y[:10], LOSSES["hinge"]), "spectral-master")
    (assumed,) = scaled.certificate.assumes
    assert "linearly dependent" in assumed
    assert f"assumes: {assumed}" in str(scaled.certificate)
    assert f"assumes: {assumed}" in str(scaled)
    assert equal.certificate.reason == "" and not equal.certificate.assumes


def test_certify_proves_the_bound_from_the_weights_and_alpha_alone():
    kernels, (_, y, _) = families()["full rank"], points()
    problem = learning(kernels, y[:10], LOSSES["hinge"])
    solution = ko.solve(problem, "spectral-master", tol=1e-6)
    certificate = ko.certify(problem, weights=solution.weights, alpha=solution.alpha)
    assert certificate.route == "closed" and certificate.gap <= 1e-5
    assert certificate.lower <= optimum(kernels, y[:10], LOSSES["hinge"]) * (1 + REFERENCE)


@every("scale", [1e-6, 1e6])
def test_the_units_of_the_kernels_do_not_matter(scale):
    kernels, (_, y, _) = families()["full rank"], points()
    plain = ko.solve(learning(kernels, y[:10], ko.hinge(1.0)), "spectral-master")
    other = ko.solve(learning(scale * kernels, y[:10], ko.hinge(1 / scale), 14 * scale), "spectral-master")
    assert other.gap <= 1e-5
    assert other.value * scale == pytest.approx(plain.value, rel=2e-5)


def test_what_does_not_apply_is_said():
    kernels, (_, y, _) = families()["full rank"], points()
    mu = cp.Variable(3)
    K = ko.combine(mu, kernels)
    risk = ko.risk(K, y[:10], ko.hinge())
    cases = {
        "the problem has": [K >> 0],
        "set the trace": [K >> 0, cp.sum(mu) == 1],
        "two constraints": [K >> 0, ko.trace(K) == 14, mu <= 1],
    }
    for text, constraints in cases.items():
        assert text in why_not("spectral-master", cp.Problem(cp.Minimize(risk), constraints))
    hard = learning(kernels, y[:10], ko.hard_margin())
    assert "finite for every kernel" in why_not("spectral-master", hard)


def test_a_set_without_an_inner_point_is_left_to_other_methods():
    """K = [[a, b], [b, 0]] is PSD at b = 0 alone."""
    kernels = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    problem = learning(kernels, np.array([1.0, -1.0]), ko.hinge(), trace=1.0)
    with pytest.raises(ko.errors.MethodError, match="positive definite"):
        ko.solve(problem, "spectral-master")
