"""The forms in which a candidate is given to `certify`, and the bounds of variables."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates.gap import Bound
from kernelopt.extend import BoundedProblem
from tests.certificates.cases import KS, OTHER, Library, N, Y, encloses, made, visible, weights

# -------------------------------------------------------------------------------- forms of a candidate


def test_the_three_forms_of_a_candidate_agree():
    mu = weights()
    K = ko.combine(mu, KS)
    problem = cp.Problem(cp.Minimize(Library.risk(K)), [ko.trace(K) == N])
    w, alpha = np.array([0.5, 0.3, 0.2]), 0.1 * Y
    by_weights = ko.certify(problem, weights=w, alpha=alpha)
    by_value = ko.certify(problem, {mu: w}, alpha=alpha)
    mu.value = w
    current = ko.certify(problem, alpha=(alpha,))
    bounds = [(c.lower, c.upper, c.route) for c in (by_weights, by_value, current)]
    assert bounds[0] == bounds[1] == bounds[2]


def test_without_any_candidate_there_are_still_bounds():
    problem, value = made("comparisons")
    certificate = ko.certify(problem)
    assert encloses(certificate, value)
    assert np.isfinite(certificate.gap)
    assert all(v.value is None for v in problem.variables())


def test_a_missing_variable_keeps_its_current_value():
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    problem = cp.Problem(cp.Minimize(cp.abs(x) + cp.abs(z)), [x + z == 2])
    z.value = 0.5
    certificate = ko.certify(problem, {x: 1.5})
    assert certificate.upper == pytest.approx(2)
    assert certificate.point[z] == pytest.approx(0.5)


@pytest.mark.parametrize("value", [None, [1.0, 2.0, 3.0], [-1.0, 0.0, 0.0]])
def test_the_variables_keep_their_values(value):
    problem, _ = made("comparisons")
    (mu,) = visible(problem)
    if value is not None:
        mu.save_value(np.array(value))
    before = {v.id: v.value for v in problem.variables()}
    ko.certify(problem, weights=[3.0, 1.0, -2.0], alpha=Y)
    for variable in problem.variables():
        np.testing.assert_array_equal(variable.value, before[variable.id])


def test_the_multipliers_keep_their_values():
    problem, _ = made("comparisons")
    ko.solve(problem)
    before = [np.copy(c.dual_value) for c in problem.constraints]
    ko.certify(problem, weights=[3.0, 1.0, -2.0], alpha=Y)
    for constraint, dual in zip(problem.constraints, before, strict=True):
        np.testing.assert_array_equal(constraint.dual_value, dual)


def test_the_variables_keep_their_values_when_the_candidate_is_refused():
    problem, _ = made("simplex")
    (mu,) = visible(problem)
    mu.value = np.ones(3)
    with pytest.raises(ko.errors.ShapeError):
        ko.certify(problem, weights=[1.0, 2.0])
    np.testing.assert_array_equal(mu.value, np.ones(3))


OTHERS = [np.zeros(3), np.zeros((N, 2)), [np.zeros(N), np.zeros(N)], 0.0, []]
STRANGER = cp.Variable(3, name="stranger")
REFUSED = [
    *(
        ("simplex", {"weights": np.zeros(shape)}, "shape", r"shape \(3,\)")
        for shape in [(2,), (4,), (3, 1), ()]
    ),
    *(("simplex", {"weights": np.ones(3), "alpha": a}, "shape", "alpha must have one entry") for a in OTHERS),
    *(
        (name, {"weights": np.ones(3)}, "parameter", "candidate=")
        for name in ("with ridge", "several kernels")
    ),
    ("simplex", {"candidate": {STRANGER: np.ones(3)}, "weights": np.ones(3)}, "parameter", "candidate"),
    ("simplex", {"candidate": {STRANGER: np.ones(3)}}, "parameter", "stranger"),
    ("comparisons", {"weights": np.ones(3), "bounds": {STRANGER: (0, 1)}}, "parameter", "stranger"),
]


@pytest.mark.parametrize(("name", "options", "kind", "said"), REFUSED, ids=range(len(REFUSED)))
def test_candidates_of_other_forms_are_refused(name, options, kind, said):
    """Leaving out the value of another problem's variable in silence would certify another point."""
    error = {"shape": ko.errors.ShapeError, "parameter": ko.errors.ParameterError}[kind]
    with pytest.raises(error, match=said):
        ko.certify(made(name).problem, **options)


def test_two_risks_need_two_alphas():
    problem, value = made("two risks")
    with pytest.raises(ko.errors.ShapeError, match=r"2 risk\(s\)"):
        ko.certify(problem, weights=np.ones(3), alpha=Y)
    assert encloses(ko.certify(problem, weights=np.ones(3), alpha=(0.1 * Y, 0.1 * OTHER)), value)


@pytest.mark.parametrize("problem", [3, None, cp.Variable() >= 0], ids=["number", "none", "constraint"])
def test_only_problems_are_certified(problem):
    with pytest.raises(ko.errors.ParameterError, match=r"cvxpy\.Problem"):
        ko.certify(problem)


# --------------------------------------------------------------------------------------------- bounds=


def test_bounds_of_the_caller_make_a_bound_finite():
    x, z = cp.Variable(name="x"), cp.Variable(name="far")
    problem = cp.Problem(cp.Minimize(cp.square(x - 1) - 0.1 * z), [x <= 3])
    without = ko.certify(problem, {x: 0.0, z: 1.0})
    assert without.lower == -np.inf
    assert "far" in without.reason
    helped = ko.certify(problem, {x: 0.0, z: 1.0}, bounds={z: (-5.0, 7.0)})
    assert helped.lower == pytest.approx(-0.7, abs=1e-6)
    assert helped.route == "conic"


def test_the_sign_of_the_objective_is_a_bound_where_there_is_no_other(monkeypatch):
    """Squares and the positive part are at least zero, also where duality gives nothing."""
    nothing = Bound(-np.inf, "no solver found multipliers")
    monkeypatch.setattr("kernelopt.certificates.lower.choices.conic_bound", lambda *_: nothing)
    x, z = cp.Variable(name="x"), cp.Variable(name="z")
    signed = cp.square(x - 1) + cp.pos(z)
    for sense, objective in ((cp.Minimize, signed), (cp.Maximize, -signed)):
        found = ko.certify(cp.Problem(sense(objective), [x <= 3]), {x: 1.0, z: 1.0})
        assert (found.route, found.reason) == ("sign", "")
        assert (found.lower if sense is cp.Minimize else found.upper) == 0.0
        assert (found.upper if sense is cp.Minimize else -found.lower) == pytest.approx(1.0)
    unsigned = ko.certify(cp.Problem(cp.Minimize(signed - 5), [x <= 3]), {x: 1.0, z: 1.0})
    assert unsigned.route != "sign"


def test_an_infeasible_problem_of_a_sign_stays_infeasible():
    x = cp.Variable(name="x")
    found = ko.certify(cp.Problem(cp.Minimize(cp.square(x)), [x >= 1, x <= 0]), {x: 0.0})
    assert found.lower == np.inf and found.proof is not None


class Halved(BoundedProblem):
    """min |x|^2 / 2 over sum x = 1, with the bounds of its own rule: 1 / (2 n), exactly."""

    def bounds(self, values, multipliers):
        (x,) = self.variables()
        self.asked = values, multipliers
        best = 1 / (2 * x.size)
        return ko.Certificate(best, best, "closed", feasible=True, point={x: np.full(x.size, 1 / x.size)})


def test_a_problem_with_bounds_of_its_own_is_certified_by_them():
    x = cp.Variable(4, name="x")
    problem = Halved(cp.Minimize(cp.sum_squares(x) / 2), [(cp.sum(x) == 1).set_label("sum")])
    found = ko.certify(problem, {x: [1.0, 0, 0, 0]})
    assert (found.lower, found.upper, found.route) == (0.125, 0.125, "closed")
    assert np.array_equal(found.point[x], np.full(4, 0.25))
    values, multipliers = problem.asked
    assert np.array_equal(values[x.id], [1.0, 0, 0, 0]) and multipliers == {"sum": None}
    plain = ko.certify(cp.Problem(problem.objective, problem.constraints), {x: [1.0, 0, 0, 0]})
    assert plain.upper == pytest.approx(0.5) and plain.lower <= found.lower


def test_bounds_may_be_arrays_and_one_sided_bounds_do_no_harm():
    x = cp.Variable(3, name="x")
    problem = cp.Problem(cp.Minimize(-cp.sum(x)), [x[0] <= 1])
    helped = ko.certify(problem, {x: np.zeros(3)}, bounds={x: (-np.ones(3), np.array([9.0, 2.0, 3.0]))})
    assert helped.lower == pytest.approx(-6, abs=1e-6)
    assert ko.certify(problem, {x: np.zeros(3)}, bounds={x: (0.0, np.inf)}).lower == -np.inf


def test_bounds_never_weaken_what_is_known():
    problem, value = made("comparisons")
    (mu,) = visible(problem)
    plain = ko.certify(problem, weights=np.ones(3))
    helped = ko.certify(problem, weights=np.ones(3), bounds={mu: (-100.0, 100.0)})
    assert encloses(helped, value)
    assert helped.lower >= plain.lower - 1e-6


def test_what_was_not_finite_is_said():
    mu = cp.Variable(2, nonneg=True, name="mu")
    K = ko.combine(mu, np.array([[[2.0, 0], [0, 2]], [[1, -1], [-1, 1]]]))
    problem = cp.Problem(cp.Minimize(ko.risk(K, [1, -1], ko.hinge())), [ko.trace(K) == 4])
    for value, held in ((np.nan, "NaN"), (np.inf, "infinite entries")):
        certificate = ko.certify(problem, weights=[value, 1])
        assert f"mu holds {held} and was not used" in certificate.reason
        certificate = ko.certify(problem, {mu: [value, 1]})
        assert f"mu holds {held} and was not used" in certificate.reason
        certificate = ko.certify(problem, weights=[0, 2], alpha=[value, 0.25])
        assert certificate.lower <= 0.25 <= certificate.upper
        assert f"alpha holds {held}, which zeros replaced" in certificate.reason
    assert not ko.certify(problem, weights=[0, 2]).reason
