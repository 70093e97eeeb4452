"""`explain`: how a problem is understood, without evaluating anything."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from kernelopt.certificates.impossible import weights_that_grow
from tests.problems import labels, stack

N = 8
KS = stack(N)
Y = labels(N)


class Counted:
    """A kernel that counts how often it is asked for anything that costs."""

    def __init__(self):
        self.calls = 0

    def __call__(self, X, Z=None):
        self.calls += 1
        return ko.linear()(X) if Z is None else ko.linear()(X, Z)

    def diagonal(self, X):
        self.calls += 1
        return np.sum(X**2, axis=1)

    def rank(self, X):
        return X.shape[1]

    def __repr__(self):
        return "counted"


def problem_of(attributes, constraints=lambda mu, K: [ko.trace(K) == N], loss=None):
    mu = cp.Variable(3, name="mu", **attributes)
    K = ko.combine(mu, KS)
    return cp.Problem(cp.Minimize(ko.risk(K, Y, loss or ko.hinge(C=2.0))), constraints(mu, K))


def bounded(mu, K):
    return [ko.risk(K, Y, ko.squared_hinge()) <= 3]


SAID = {  # of problems without weights of their own
    "a matrix that is a variable": (
        lambda K, x: cp.Problem(cp.Minimize(ko.risk(K, Y, ko.logistic())), [cp.trace(K) == 1]),
        ["not a combination", "PSD"],
    ),
    "a constant kernel": (
        lambda K, x: cp.Problem(cp.Minimize(ko.risk(KS[0], Y, ko.hinge(), bias=False))),
        ["constant kernel, quadratic", "without intercept"],
    ),
    "no risk": (
        lambda K, x: cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1]),
        ["1 variable(s): x (2,)", "exact"],
    ),
    "weights": (
        lambda K, x: problem_of({"nonneg": True}),
        ["hinge(C=2.0)", f"{N} points", "second-order cone", "mu (3,) nonneg", "'exact': applies", " s and ",
         "GB", "compile at their first call on a machine"],
    ),
    "two risks": (lambda K, x: problem_of({"nonneg": True}, bounded), ["risk 0: hinge", "risk 1: squared_h"]),
    "no sign": (lambda K, x: problem_of({}, lambda mu, K: [K >> 0]), ["unknown sign", "semidefinite"]),
    "not convex": (
        lambda K, x: cp.Problem(cp.Maximize(problem_of({"nonneg": True}).objective.args[0])), ["not DCP"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "words"), SAID.values(), ids=SAID)
def test_it_says_which_variables_risks_cones_and_methods_there_are(build, words):
    text = str(ko.explain(build(cp.Variable((N, N), PSD=True, name="K"), cp.Variable(2, name="x"))))
    assert all(word in text for word in words)


def test_the_size_counts_the_coordinates():
    """Ranks are bounded before anything is factored: full rank for arrays, one for rank-one stacks."""
    size = ko.explain(problem_of({"nonneg": True})).size
    assert (size.coordinates, size.nonzeros, size.order) == (3 * N, 3 * N * N, 0)
    assert set(ko.explain(problem_of({}, lambda mu, K: [K >> 0])).size.semidefinite) == {N, N + 1}
    mu = cp.Variable(3, nonneg=True)
    thin = ko.risk(ko.combine(mu, ko.Grams.rank_one(np.ones((N, 3)))), Y, ko.hinge())
    assert ko.explain(cp.Problem(cp.Minimize(thin))).size.coordinates == 3


HINTS = {
    "sign as a constraint": (
        lambda: problem_of({}, lambda mu, K: [mu >= 0, ko.trace(K) == N]),
        ["mu >= 0", "nonneg=True"],
    ),
    "the sign the other way round": (
        lambda: problem_of({}, lambda mu, K: [mu <= 1, 0 <= mu, ko.trace(K) == N]),
        ["nonneg=True"],
    ),
    "trace of cvxpy": (
        lambda: problem_of({"nonneg": True}, lambda mu, K: [cp.trace(K) == N]),
        ["cp.trace", "kernelopt.trace(K)"],
    ),
    "weights that nothing bounds": (
        lambda: problem_of({"nonneg": True}, lambda mu, K: []),
        ["Nothing bounds mu", f"trace(K) == {N}"],
    ),
}


@pytest.mark.parametrize("name", HINTS)
def test_costly_formulations_get_a_hint(name):
    make, words = HINTS[name]
    explanation = ko.explain(make())
    assert len(explanation.hints) == 1
    assert all(word in explanation.hints[0] for word in words)
    assert "hint: " + explanation.hints[0] in str(explanation)


def test_good_formulations_get_no_hint():
    assert ko.explain(problem_of({"nonneg": True})).hints == ()
    assert ko.explain(problem_of({}, lambda mu, K: [K >> 0, ko.trace(K) == N])).hints == ()
    free = cp.Variable(3)
    other = problem_of({"nonneg": True}, lambda mu, K: [free >= 0, cp.trace(cp.diag(free)) <= 1, mu <= 1])
    assert ko.explain(other).hints == ()


def test_following_the_hint_gives_the_same_optimum_in_a_cheaper_cone():
    costly = problem_of({}, lambda mu, K: [mu >= 0, ko.trace(K) == N])
    cheap = problem_of({"nonneg": True})
    assert ko.explain(costly).size.order > ko.explain(cheap).size.order == 0
    with pytest.warns(
        ko.errors.ConditionWarning, match=r"semidefinite of order .*mu >= 0 is a constraint.*nonneg=True"
    ):
        value = ko.solve(costly).value  # a small problem: the warning does not depend on the size
    assert value == pytest.approx(ko.solve(cheap).value, abs=2e-5)


def unbounded_or_not():
    """Problems with the names of the weights that nothing bounds, as far as the structure shows it."""
    mu = cp.Variable(3, nonneg=True, name="mu")
    capped = cp.Variable(3, nonneg=True, bounds=[0, 2], name="capped")
    K = ko.combine(mu, KS)
    risk = ko.risk(K, Y, ko.hinge())
    least = cp.Minimize(risk)
    yield "nothing", cp.Problem(least), ["mu"]
    yield "a bound of one weight", cp.Problem(least, [mu[0] <= 1]), []
    yield "a price", cp.Problem(cp.Minimize(risk + cp.norm1(mu))), []
    yield (
        "a bound as an attribute",
        cp.Problem(cp.Minimize(ko.risk(ko.combine(capped, KS), Y, ko.hinge()))),
        [],
    )
    yield "a risk that is only bounded", cp.Problem(cp.Minimize(0), [risk <= 3]), []
    yield "a maximum, attained", cp.Problem(cp.Minimize(cp.maximum(risk, 3))), []
    constant = ko.risk(K, np.ones(N), ko.squared())
    yield "a constant machine", cp.Problem(cp.Minimize(constant)), []


def test_what_nothing_bounds_is_seen_and_nothing_else():
    for what, problem, names in unbounded_or_not():
        found = [v.name() for v in weights_that_grow(ko.Structure(problem))]
        assert found == names, what


def test_weights_that_nothing_bounds_are_told_before_the_solve():
    mu = cp.Variable(3, nonneg=True, name="mu")
    problem = cp.Problem(cp.Minimize(ko.risk(ko.combine(mu, KS), Y, ko.hinge())))
    said = []

    def ended(report):
        said.append(len(caught))
        raise StopIteration

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ko.solve(problem, callback=ended, time_limit=5)
    assert said[0] == 1 and issubclass(caught[0].category, ko.errors.ConditionWarning)
    assert str(caught[0].message).startswith(f"Nothing bounds mu: add trace(K) == {N}.")


@pytest.mark.parametrize("attributes", [{}, {"nonneg": True}], ids=["semidefinite", "second-order cone"])
def test_nothing_is_evaluated(attributes):
    kernel = Counted()
    mu = cp.Variable(2, name="mu", **attributes)
    n = 5000
    K = ko.combine(mu, ko.Grams.from_kernels([kernel, kernel], np.ones((n, 3))))
    y = np.tile([1.0, -1.0], n // 2)
    constraints = [mu <= 1] if attributes else [mu <= 1, K >> 0]
    problem = cp.Problem(cp.Minimize(ko.risk(K, y, ko.hinge())), constraints)
    assert "exact" in str(ko.explain(problem))
    assert kernel.calls == 0
    assert all(v.value is None for v in problem.variables())


def test_parameters_without_values_stand_in_the_way():
    C, price = cp.Parameter(pos=True, name="C"), cp.Parameter(nonneg=True, name="price")
    theta = cp.Variable(2, nonneg=True)
    K = ko.combine(theta, np.array([np.eye(4), np.ones((4, 4))]))
    for objective, name in (
        (ko.risk(K, [1, -1, 1, -1], ko.logistic(C)), "C"),
        (price * ko.risk(K, [1, -1, 1, -1], ko.hinge()), "price"),
    ):
        text = str(ko.explain(cp.Problem(cp.Minimize(objective), ko.lp_ball(theta, 2))))
        assert f"method 'smooth-dual': no: the parameters {name} have no values" in text
