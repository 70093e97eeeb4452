"""The record that a solve returns: its text, its weights, its machines, and its copies."""

from __future__ import annotations

import copy
import importlib
import pickle
import time

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from tests.every import every
from tests.problems import labels, points, targets

N, LABELLED = 12, 9
X, X_NEW = points(N), points(4, seed=5)
Y, T = labels(N), targets(N)
GRAMS = ko.Grams.from_kernels([ko.gaussian(1.0), ko.linear()], X)
CROSS = GRAMS.cross(X_NEW)


def weights(name="mu"):
    return cp.Variable(2, nonneg=True, name=name)


def shared_problem(attributes=None):
    """Two risks over one mu, the first on a part of the points."""
    mu = cp.Variable(2, name="mu", **(attributes or {"nonneg": True}))
    K = ko.combine(mu, GRAMS)
    risks = ko.risk(K, Y[:LABELLED], ko.hinge()), ko.risk(K, T, ko.squared(C=2.0))
    extra = [] if mu.is_nonneg() else [K >> 0]
    return cp.Problem(cp.Minimize(risks[0] + risks[1]), [ko.trace(K) == N, *extra])


def ridge_problem():
    """A kernel of three terms: a combination, a ridge and a matrix that is fixed."""
    mu, tau = weights(), cp.Variable(nonneg=True, name="tau")
    K = ko.combine(mu, GRAMS) + tau * np.eye(N) + 0.5 * X @ X.T
    risk = ko.risk(K, Y[:LABELLED], ko.logistic(C=cp.Parameter(pos=True, value=2.0, name="C")))
    return cp.Problem(cp.Minimize(risk), [cp.sum(mu) + tau <= 1])


def single_problem(n=LABELLED):
    mu = weights()
    return cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, GRAMS), Y[:n], ko.hinge())), ko.lp_ball(mu, 2))


def block_problem():
    return cp.Problem(cp.Minimize(ko.risk(list(GRAMS), Y, ko.hinge(), norm=1.5)))


def plain_problem():
    x = cp.Variable(3, name="x")
    return cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.sum(x) == 0])


PROBLEMS = {
    "one risk": single_problem,
    "two risks": shared_problem,
    "free signs": lambda: shared_problem({"symmetric": False}),
    "ridge": ridge_problem,
    "block norm": block_problem,
    "no risk": plain_problem,
}


@pytest.fixture(scope="module")
def solved():
    """Each problem of PROBLEMS with its solution."""
    found = {}
    for name, build in PROBLEMS.items():
        problem = build()
        found[name] = problem, ko.solve(problem)
    return found


@pytest.fixture
def one(solved):
    return solved["one risk"][1]


@pytest.fixture
def two(solved):
    return solved["two risks"][1]


# ---------------------------------------------------------------------------------- weights


def test_risks_over_one_variable_have_one_array_and_of_two_variables_two(solved):
    """Which shape the weights have does not depend on the numbers that a solver found."""
    for name in ("two risks", "free signs"):
        problem, solution = solved[name]
        (mu,) = ko.Structure(problem).user_variables
        np.testing.assert_array_equal(solution.weights, mu.value)
    pair = weights(), weights("nu")
    total = sum(ko.risk(ko.combine(w, GRAMS), Y, ko.hinge()) for w in pair)
    found = ko.solve(cp.Problem(cp.Minimize(total), [cp.norm(w, 2) <= 1 for w in pair])).weights
    assert isinstance(found, tuple) and [w.shape for w in found] == [(2,), (2,)]


# --------------------------------------------------------------------- which of several risks


ASKING = {
    "all points": lambda s, **k: s.decision_function(**k),
    "new points": lambda s, **k: s.decision_function(CROSS, **k),
    "kernel": lambda s, **k: s.kernel_at(CROSS, **k),
}
asking = pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)


@asking
def test_several_risks_ask_which(two, ask):
    with pytest.raises(ko.InputError, match=r"risk must be given.*2 machines") as error:
        ask(two)
    text = str(error.value)
    assert f"0: hinge(C=1.0) on {LABELLED} of {N} points" in text
    assert "1: " in text and f"{N} points" in text and "risk=0..1" in text


@asking
def test_a_risk_is_chosen_by_its_number(two, ask):
    for k in (0, 1, np.int64(1)):
        assert np.isfinite(ask(two, risk=k)).all()
    assert np.abs(two.decision_function(risk=0) - two.decision_function(risk=1)).max() > 0.1


@asking
@every("risk", [2, -1, 0.0, "0", True, [0]])
def test_what_is_no_number_of_a_risk_is_refused(two, ask, risk):
    with pytest.raises(
        ko.errors.ParameterError,
        match=r"risk must be an integer from 0 to 1, got .*(Pass an int|risk=0\.\.1)",
    ):
        ask(two, risk=risk)


@asking
def test_one_risk_need_not_be_named(one, ask):
    np.testing.assert_array_equal(ask(one), ask(one, risk=0))
    with pytest.raises(
        ko.errors.ParameterError, match=r"risk must be an integer from 0 to 0, got 1\. Pass risk=0\.\.0"
    ):
        ask(one, risk=1)


@asking
def test_no_risk_is_said(solved, ask):
    with pytest.raises(ko.InputError, match="no risk|no combination"):
        ask(solved["no risk"][1])


# ----------------------------------------------------------------------------- points, not cross


NOT_CROSS = {
    "an array": (X_NEW, "an array of shape (4, 3)"),
    "lists": (X_NEW.tolist(), "an array of shape (4, 3)"),
    "one point": (X_NEW[0], "an array of shape (3,)"),
    "nodes": (["a", "b"], "a list of 2"),
    "mixed": ([(0, 1), "c"], "a list of 2"),
    "a number": (3.0, "an array of shape ()"),
}


@pytest.mark.parametrize(("given", "described"), NOT_CROSS.values(), ids=NOT_CROSS)
def test_points_are_told_from_cross_kernels(one, given, described):
    for ask in (one.decision_function, one.kernel_at):
        with pytest.raises(ko.errors.ShapeError, match="cross must have") as error:
            ask(given)
        text = str(error.value)
        assert f"shape (m, n_new, N) with m = 2 and N = {N}" in text and f"got {described}" in text
        assert f"For points X call {ask.__name__}(grams.cross(X))" in text


def test_cross_kernels_of_other_points_are_refused(one):
    for shape in ((1, 4, N), (2, 4, N - 1)):
        with pytest.raises(ko.errors.ShapeError, match=r"cross must have .*Use grams.cross\(X_new\)"):
            one.decision_function(np.zeros(shape))


def test_cross_kernels_that_are_not_finite_are_said_to_be_so(one):
    with pytest.raises(ko.errors.NotFiniteError, match="cross"):
        one.decision_function(np.full((2, 1, N), np.nan))


# ----------------------------------------------------------------------------------- the text


def test_transduction_is_said_in_print(one, two, solved):
    assert f", {LABELLED} of {N} points labelled, " in str(one)
    assert f", {LABELLED} to {N} of {N} points labelled, " in str(two)
    for name in ("block norm", "no risk"):
        assert "labelled" not in str(solved[name][1])
    assert "labelled" not in str(ko.solve(single_problem(N)))


def test_all_three_times_are_in_print(solved):
    for _, solution in solved.values():
        end = (
            f"build {solution.build_time:.2f} s, solve {solution.solve_time:.2f} s, "
            f"certify {solution.certify_time:.2f} s"
        )
        assert str(solution).endswith(end) and "\n" not in str(solution)
        assert repr(solution) == f"<Solution: {solution}>"


# --------------------------------------------------------------------- equality, copies, pickle


def test_solutions_are_compared_by_identity(solved):
    records = [s for _, s in solved.values()]
    machines = [m for s in records for m in s.learned]
    for record in [*records, *machines, *(p for m in machines for p in m.parts)]:
        other = copy.copy(record)
        assert record == record and record != other and hash(record) != hash(other)
        assert len({record, other, record}) == 2


def usable(solution, original):
    """Whether all that `original` tells is told by `solution` too."""
    assert str(solution) == str(original) and repr(solution) == repr(original)
    assert solution.history == original.history and solution.weights_unique == original.weights_unique
    for name in ("weights", "kernel", "alpha", "intercept", "tau", "is_psd"):
        np.testing.assert_equal(getattr(solution, name), getattr(original, name))
    assert (solution.lower, solution.upper, solution.gap) == (original.lower, original.upper, original.gap)
    assert str(solution.certificate) == str(original.certificate)
    np.testing.assert_equal(solution.certificate.alphas, original.certificate.alphas)
    assert len(solution.certificate.point) == len(original.certificate.point)
    pairs = zip(solution.certificate.point.items(), original.certificate.point.items(), strict=True)
    for (left, value), (right, expected) in pairs:
        assert left.name() == right.name() and left in solution.certificate.point
        np.testing.assert_array_equal(solution.certificate.point[left], value)
        np.testing.assert_array_equal(value, expected)
    for k, learned in enumerate(original.learned):
        ask = {"risk": k}
        # a copy evaluates kernels anew, where the original may have their matrices: sums in another order
        f = original.decision_function(**ask)
        np.testing.assert_allclose(solution.decision_function(**ask), f, rtol=1e-13, atol=1e-13)
        if learned.inductive and len(learned.weights) == len(CROSS):
            for name in ("decision_function", "kernel_at"):
                new, old = getattr(solution, name), getattr(original, name)
                np.testing.assert_array_equal(new(CROSS, **ask), old(CROSS, **ask))
    return True


# S301: the bytes are our own.
COPIES = {"pickle": lambda s: pickle.loads(pickle.dumps(s)), "copy": copy.copy, "deepcopy": copy.deepcopy}  # noqa: S301


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_copies_are_whole(solved, name, again):
    solution = solved[name][1]
    assert usable(again(solution), solution)
    assert usable(again(again(solution)), solution)


def test_a_deep_copy_shares_no_array(one):
    deep = copy.deepcopy(one)
    assert not np.shares_memory(deep.weights, one.weights)
    assert not np.shares_memory(deep.alpha, one.alpha)
    (left,), (right,) = deep.certificate.point.values(), one.certificate.point.values()
    assert not np.shares_memory(left, right)


@pytest.mark.parametrize("name", ["one risk", "two risks", "no risk"])
def test_a_deep_copy_certifies_the_problem_still(solved, name):
    """The point is known by the variables of the problem, so a copy keeps them."""
    problem, solution = solved[name]
    deep = copy.deepcopy(solution)
    assert all(a is b for a, b in zip(deep.certificate.point, solution.certificate.point, strict=True))
    assert ko.certify(problem, deep).gap <= 1e-5


@pytest.mark.parametrize("again", [COPIES["pickle"], COPIES["deepcopy"]])
def test_variables_and_their_solution_travel_together(solved, again):
    problem, solution = solved["no risk"]
    (x,), moved = again((problem.variables(), solution))
    assert x is not problem.variables()[0]
    np.testing.assert_array_equal(moved.certificate.point[x], x.value)


@pytest.mark.parametrize(
    ("method", "certifier"),
    [
        ("exact", "kernelopt.methods.exact.method.certificate_at"),
        ("first-order-dual", "kernelopt.methods.similarity.method.certify_iterate"),
        ("mirror-descent", "kernelopt.methods.mirror_descent.method.certify_dual"),
        ("cutting-plane", "kernelopt.methods.results.certificate_at"),
    ],
)
def test_the_time_of_certificates_counts_those_that_a_method_makes_itself(monkeypatch, method, certifier):
    where, _, name = certifier.rpartition(".")
    fast = getattr(importlib.import_module(where), name)

    def slow(*args, **options):
        time.sleep(0.3)
        return fast(*args, **options)

    monkeypatch.setattr(certifier, slow)
    K = cp.Variable((6, 6), PSD=True)
    nearness = ko.risk(K, labels(6), ko.hinge(C=1.0)) + cp.sum_squares(K - np.eye(6))
    solution = ko.solve(cp.Problem(cp.Minimize(nearness), [cp.trace(K) == 6]), method)
    assert solution.certify_time >= 0.3
