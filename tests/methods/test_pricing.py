"""The price of a kernel: bounds of the decrease, against the problem solved again with it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from tests.every import every
from tests.problems import labels, points, stack, targets

N = 24
X, Y = points(N), labels(N)
OLD = [ko.gaussian(3.0), ko.linear()]
LOSSES = {"hinge": ko.hinge(1.0), "logistic": ko.logistic(1.0), "epsilon": ko.epsilon_insensitive(1.0, 0.1)}
NEW = {"narrow": ko.gaussian(0.7), "wide": ko.gaussian(30.0), "quadratic": ko.polynomial(2)}


def solved(p, loss, kernels=OLD, tol=1e-7):
    y = targets(N) if loss.kind == "targets" else Y
    return lp_norm.primal(ko.Grams.from_kernels(kernels, X), y, p=p, loss=loss).solve("exact", tol=tol)


@every(
    "name, p, kernels", [*[("hinge", p, NEW) for p in (1, np.inf)], *[(n, 1.3, ["narrow"]) for n in LOSSES]]
)
def test_the_decrease_is_between_its_bounds(name, p, kernels):
    solution = solved(p, LOSSES[name])
    for new in map(NEW.get, kernels):
        again, found = solved(p, LOSSES[name], [*OLD, new]), ko.price(solution, new)
        assert found.at_least <= solution.upper - again.lower
        assert found.at_most >= solution.lower - again.upper
        assert found.lower <= again.upper and again.lower <= found.upper
        assert 0 <= found.at_least <= found.at_most
        if found.helps:
            assert again.upper < solution.lower and found.weight > 0
        if found.helps is False:
            assert again.upper >= solution.lower and found.at_most == 0


def test_the_bounds_are_near_each_other():
    solution = solved(2, LOSSES["hinge"])
    found, again = ko.price(solution, NEW["narrow"]), solved(2, LOSSES["hinge"], [*OLD, NEW["narrow"]])
    decrease = solution.value - again.value
    assert found.helps and found.at_least >= 0.9 * decrease and found.at_most <= 1.5 * decrease


def test_a_kernel_that_is_there_already_does_not_help_at_p_1_and_helps_beyond():
    assert ko.price(solved(1, LOSSES["hinge"]), OLD[1]).helps is not True
    assert ko.price(solved(2, LOSSES["hinge"]), OLD[0]).helps is True
    zero = ko.price(solved(2, LOSSES["hinge"]), np.zeros((N, N)))
    assert zero.helps is False and zero.at_most == 0


def test_at_p_1_a_screened_kernel_is_proved_not_to_help():
    solution = solved(1, ko.squared(1.0), [ko.gaussian(0.7), ko.gaussian(1.5)])
    found = ko.price(solution, np.outer(X[:, 2], X[:, 2]) * 1e-3)
    assert found.helps is False and found.at_most == 0 and "does not help" in repr(found)


def test_a_rough_solution_has_wider_bounds_that_hold():
    with pytest.warns(ko.ConvergenceWarning):
        rough = lp_norm.primal(ko.Grams.from_kernels(OLD, X), Y, p=2).solve("block-descent", max_iterations=1)
    again, found = solved(2, LOSSES["hinge"], [*OLD, NEW["narrow"]]), ko.price(rough, NEW["narrow"])
    assert found.lower <= again.upper and again.lower <= found.upper
    assert found.at_least <= rough.upper - again.lower and found.at_most >= rough.lower - again.upper


def test_under_a_trace_a_kernel_enters_in_units_of_its_trace():
    mu, KS = cp.Variable(2, nonneg=True), stack(N)
    grams = ko.Grams.from_array(KS[1:])
    K = ko.combine(mu, grams)
    solution = ko.solve(
        cp.Problem(cp.Minimize(2 * ko.risk(K, Y, ko.hinge()) + 1), [ko.trace(K) == N]), "exact", tol=1e-7
    )
    both = cp.Variable(3, nonneg=True)
    K = ko.combine(both, ko.Grams.from_array(np.array([*KS[1:], KS[0]])))
    again = ko.solve(
        cp.Problem(cp.Minimize(2 * ko.risk(K, Y, ko.hinge()) + 1), [ko.trace(K) == N]), "exact", tol=1e-7
    )
    for factor in (1.0, 50.0):
        found = ko.price(solution, factor * KS[0])
        assert found.at_least <= solution.upper - again.lower
        assert found.lower <= again.upper and again.lower <= found.upper
        assert found.helps == (again.upper < solution.lower - 1e-3)


def test_forms_of_the_kernel_agree():
    solution = solved(2, LOSSES["hinge"])
    by_function = ko.price(solution, NEW["narrow"])
    for form in (NEW["narrow"](X), ko.Grams.from_kernels([NEW["narrow"]], X)):
        found = ko.price(solution, form)
        assert found.at_least == pytest.approx(by_function.at_least)
        assert found.at_most == pytest.approx(by_function.at_most)
    assert by_function._repr_html_().startswith("<table>") and "helps" in repr(by_function)


def test_wrong_kernels_are_refused():
    solution = solved(2, LOSSES["hinge"])
    stored = lp_norm.primal(stack(N), Y).solve("block-descent")
    for given, bad, error, words in (
        (solution, np.eye(3), ko.errors.ShapeError, "24 points"),
        (solution, stack(N), ko.InputError, "kernel"),
        (solution, ko.Grams.from_array(stack(N)), ko.errors.ShapeError, "one kernel, got 3"),
        (solution, -np.eye(N), ko.errors.NotPSDError, "eigenvalue|semidefinite"),
        (stored, ko.gaussian(1.0), ko.InputError, "Gram matrix"),
        (1.0, np.eye(N), ko.InputError, "must be a Solution"),
    ):
        with pytest.raises(error, match=words):
            ko.price(given, bad)
