"""What a certificate says."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.certificates.cases import KS, SIZES, Library, N, made, visible, weights


def test_the_gap_is_relative_to_the_larger_bound_and_to_the_floor():
    large = ko.Certificate(lower=90.0, upper=100.0, route="closed")
    small = ko.Certificate(lower=0.1, upper=0.3, route="closed")
    negative = ko.Certificate(lower=-12.0, upper=-10.0, route="conic")
    nothing = ko.Certificate(lower=0.0, upper=1e-9, route="closed", floor=1e-6)
    found = (large.gap, small.gap, negative.gap, nothing.gap)
    assert found == pytest.approx((0.1, 2 / 3, 1 / 6, 1e-3))


def test_the_gap_does_not_depend_on_units():
    """Kernels c K and weights C / c give c times smaller values: the gap stays."""
    K, y = np.array([np.eye(3), np.ones((3, 3))]), [1, -1, 1]
    gaps = []
    for c in (2.0**-20, 1.0, 2.0**20):
        theta = cp.Variable(2, nonneg=True)
        risk = ko.risk(ko.combine(theta, c * K), y, ko.hinge(1 / c))
        problem = cp.Problem(cp.Minimize(risk), [cp.norm(theta, 2) <= 1])
        gaps.append(ko.certify(problem, weights=[0.5, 0.5]).gap)
    assert gaps == pytest.approx([gaps[1]] * 3, rel=1e-6) and gaps[1] > 0.01


@pytest.mark.parametrize("bounds", [(-np.inf, 1.0), (0.0, np.inf), (-np.inf, np.inf), (np.inf, np.inf)])
def test_the_gap_is_infinite_where_a_bound_is_missing(bounds):
    assert ko.Certificate(*bounds, route="none").gap == np.inf


def test_bounds_that_cross_have_no_gap():
    """Both are moved outward by their rounding errors: where they cross one of them is false."""
    assert ko.Certificate(lower=1.0 + 1e-15, upper=1.0, route="closed").gap == np.inf


def test_a_certificate_prints_its_bounds_route_and_reason():
    text = str(ko.Certificate(lower=0.25, upper=0.5, route="closed"))
    assert "0.25 <= optimum <= 0.5" in text and "closed" in text and "5.0e-01" in text
    assert str(ko.Certificate(-np.inf, 1.0, "none", reason="x needs bounds")).endswith("x needs bounds")


def test_a_certificate_holds_the_point_that_attains_its_bound():
    problem, _ = made("comparisons")
    certificate = ko.certify(problem, weights=[4.0, -1.0, 2.0])
    for variable, value in certificate.point.items():
        variable.value = value
    assert problem.objective.value == pytest.approx(certificate.upper, rel=1e-12)
    assert all(c.violation().max() <= 1e-9 for c in problem.constraints)
    assert min(v.min() for v in certificate.point.values()) >= 0


def test_residuals_name_what_the_candidate_violates():
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(
        cp.Minimize(Library.risk(K)),
        [
            (ko.trace(K) == N).set_label("trace"),
            (mu[0] <= 0.5).set_label("cap"),
            (mu[2] <= 9).set_label("roof"),
        ],
    )
    certificate = ko.certify(problem, weights=[1.5, -1.0, 0.0])
    assert set(certificate.residuals) == {"trace", "cap", "the attributes of mu"}
    assert 0.3 <= certificate.residuals["cap"] <= 1.0  # by 1.0, with sides of 1.5 and 0.5
    assert list(certificate.residuals.values()) == sorted(certificate.residuals.values(), reverse=True)
    assert np.isfinite(certificate.upper)


def test_a_feasible_candidate_has_no_residuals_and_its_own_value():
    problem, _ = made("simplex")
    (mu,) = visible(problem)
    mu.value = N * np.array([0.5, 0.3, 0.2]) / SIZES
    certificate = ko.certify(problem)
    assert certificate.residuals == {}
    assert certificate.upper == pytest.approx(float(problem.objective.value), rel=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_contradictory_constraints_are_a_proof(order):
    """Scale the candidate as one likes: mu[0] >= 2 and mu[0] <= 1 leave nothing."""
    mu = weights()
    K = ko.combine(mu, KS)
    contradiction = [(mu[0] >= 2).set_label("floor"), (mu[0] <= 1).set_label("ceiling")]
    problem = cp.Problem(cp.Minimize(Library.risk(K)), [ko.trace(K) <= 100, *contradiction[::order]])
    certificate = ko.certify(problem, weights=[1.0, 1.0, 1.0])
    assert (certificate.lower, certificate.upper) == (np.inf, np.inf)
    assert certificate.gap == np.inf
    assert certificate.proof is not None and np.isfinite(certificate.proof).all()
    assert "infeasible" in str(certificate)
    assert "floor" in certificate.residuals and "ceiling" not in certificate.residuals
    assert certificate.point == {}


def test_an_infeasible_maximisation_has_no_value_above_minus_infinity():
    x = cp.Variable(2, name="x")
    certificate = ko.certify(cp.Problem(cp.Maximize(cp.sum(x)), [x >= 2, x <= 1]), {x: np.ones(2)})
    assert (certificate.lower, certificate.upper) == (-np.inf, -np.inf)
    assert certificate.proof is not None


def test_the_ray_proves_infeasibility():
    """With plain variables the cone form is cvxpy's own: b - Ax in K, so z in K*, A'z = 0, b'z < 0."""
    x = cp.Variable(2, name="x")
    constraints = [x[0] + x[1] == 1, x[0] >= 2, x[1] >= 0]
    certificate = ko.certify(cp.Problem(cp.Minimize(x[0]), constraints), {x: np.ones(2)})
    z = certificate.proof
    data, _, _ = cp.Problem(cp.Minimize(x[0]), constraints).get_problem_data(cp.CLARABEL)
    assert certificate.lower == np.inf
    assert np.abs(data["A"].T @ z).max() <= 1e-9 * np.abs(z).max()
    assert data["b"] @ z < -1e-9
    assert z[data["dims"].zero :].min() >= 0


@pytest.mark.parametrize(
    "objective",
    [
        lambda x: cp.Minimize(0 * x[0]),
        lambda x: cp.Minimize(cp.norm(x)),
        lambda x: cp.Maximize(-cp.abs(x[0])),
    ],
    ids=["feasibility", "norm", "maximise"],
)
def test_a_far_away_feasible_point_is_not_called_impossible(objective):
    """x = (6e8, 6e8 - 1) is feasible: a multiplier that is right to nine digits proves nothing."""
    x = cp.Variable(2, name="x")
    constraints = [x[0] - x[1] >= 1, x[0] - (1 + 1e-9) * x[1] <= 0.5]
    certificate = ko.certify(cp.Problem(objective(x), constraints), {x: np.array([6e8, 6e8 - 1])})
    assert certificate.proof is None
    assert abs(certificate.lower) < np.inf or abs(certificate.upper) < np.inf or certificate.reason


def test_a_candidate_that_cannot_be_repaired_is_named():
    """risk <= 0.1 has no solution with this trace, but alpha = 0 does not show it: only the upper bound."""
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(
        cp.Minimize(cp.sum(mu)),
        [(Library.risk(K) <= 0.1).set_label("budget"), (ko.trace(K) <= N).set_label("size")],
    )
    certificate = ko.certify(problem, weights=[1.0, 1.0, 1.0], alpha=np.zeros(N))
    assert certificate.upper == np.inf
    assert "budget" in certificate.reason and "budget" in certificate.residuals
    assert certificate.lower <= 1e-6
    better = ko.certify(problem, weights=[1.0, 1.0, 1.0])
    assert better.lower == np.inf or "budget" in better.reason
