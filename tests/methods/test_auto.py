"""What "auto" chooses, in which order, what its predictions say, and how it revises a choice.

The grid on which the predictions are calibrated, and the measured times, are in
`benchmarks/auto_choice.py`; here are a few characteristic cells.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet, lp_norm, similarity, triplet_lp
from kernelopt.extend import Cost, Method, Outcome
from kernelopt.methods import driver
from kernelopt.methods.selection import METHODS, applicable, preference
from kernelopt.structure.structure import Structure
from tests.problems import points

TOL = 1e-5


@cache
def data(n, m):
    """Return m Gaussian kernels on pairs of features, labels with noise, and targets."""
    X, rng = points(n, 4), np.random.default_rng(1)
    Ks = []
    for k, width in enumerate(np.geomspace(0.5, 4.0, m)):
        F = X[:, [k % 4, (k + 1) % 4]]
        Ks.append(np.exp(-((F[:, None] - F[None]) ** 2).sum(2) / (2 * width**2)))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    labels = np.where(signal + 0.5 * rng.normal(size=n) > np.median(signal), 1.0, -1.0)
    return np.array(Ks), labels, 2 * signal + 0.5 * rng.normal(size=n)


def soft_margin(n, m, weights="nonnegative"):
    Ks, y, _ = data(n, m)
    return lanckriet.soft_margin(Ks, y, weights=weights)


def norm_ball(n, m, p, loss=None):
    Ks, y, targets = data(n, m)
    regression = isinstance(loss, ko.squared | ko.epsilon_insensitive)
    return lp_norm.primal(Ks, targets if regression else y, p=p, loss=loss or ko.hinge(1.0))


def near(n, m=1, **options):
    Ks, y, _ = data(n, m)
    noise = np.random.default_rng(2).normal(size=(m, n, n))
    S = Ks + 0.1 * (noise + noise.transpose(0, 2, 1))
    return similarity.single_kernel(S, y, rho=0.05, trace=similarity.default_trace(S), **options)


def compared(n, m):
    Ks, y, _ = data(n, m)
    triplets = ko.sample_triplets(y, 3 * n, random_state=0)
    return triplet_lp.kernel_design(np.concatenate([Ks, np.eye(n)[None]]), triplets, gamma1=0.1, gamma2=0.01)


def chosen(formulation):
    """Return the names of the methods that apply, in the order of "auto"."""
    return [c.method.name for c in applicable(Structure(formulation.problem))]


def seconds(formulation):
    """Return the predicted seconds of every method that applies."""
    return {c.method.name: c.seconds for c in applicable(Structure(formulation.problem))}


@pytest.mark.parametrize(
    ("build", "first"),
    [
        (lambda: soft_margin(300, 10), "newton"),
        (lambda: soft_margin(10, 3), "exact"),
        (lambda: norm_ball(12, 3, 4 / 3), "interleaved"),
        (lambda: soft_margin(16, 3, "free"), "exact"),
        (lambda: soft_margin(60, 3, "free"), "spectral-master"),
        (lambda: near(60, fidelity="squared_frobenius"), "first-order-dual"),
        (lambda: compared(30, 6), "column-generation"),
        (lambda: norm_ball(60, 6, 1.5, ko.epsilon_insensitive(10.0, 0.5)), "interleaved"),
    ],
    ids=["large", "tiny", "tiny ball", "tiny free sign", "free sign", "similarity", "triplets", "regression"],
)
def test_the_method_that_auto_takes_first(build, first):
    """It meets the tolerance, as on a regression with a steep loss, where block descent crept."""
    formulation = build()
    assert chosen(formulation)[0] == first
    if formulation.problem.size_metrics.num_scalar_variables < 100 and first != "spectral-master":
        solution = formulation.solve()
        assert solution.method == first and solution.gap <= TOL


def test_a_psd_variable_with_a_smooth_loss_is_not_refused():
    """One method of three fits both: none of them may be left out by the size of the cone alone."""
    formulation = near(60, fidelity="squared_frobenius", loss=ko.logistic(1.0))
    assert set(chosen(formulation)) & {"mirror-descent", "exact"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ko.ConvergenceWarning)
        solution = formulation.solve(time_limit=4.0)
    assert solution.method in METHODS
    assert np.isfinite(solution.gap)


BUILDS = {
    "lanckriet": soft_margin,
    "norm": lambda n, m: norm_ball(n, m, 1.5),
    "logistic": lambda n, m: norm_ball(n, m, 1.0, ko.logistic(1.0)),
    "similarity": lambda n, m: near(n, m, fidelity="l1"),
    "triplets": compared,
}


@pytest.mark.parametrize("name", BUILDS)
def test_methods_are_ordered_by_predicted_seconds(name):
    """`exact` goes before methods that are predicted to be faster by what nobody notices."""
    for n, m in [(12, 3), (60, 4)]:
        found = applicable(Structure(BUILDS[name](n, m).problem))
        keys = [preference(c) for c in found]
        assert keys == sorted(keys)
        assert all(c.seconds / 2.5 - 1e-9 <= k <= c.seconds for c, k in zip(found, keys, strict=True))
        assert all(c.seconds - 0.025 <= k + 1e-9 for c, k in zip(found, keys, strict=True))
        assert all(c.seconds > c.certification > 0 for c in found)


@pytest.mark.parametrize("name", BUILDS)
def test_predictions_grow_with_points_and_kernels(name):
    build = BUILDS[name]
    for small, large in [((20, 3), (40, 3)), ((40, 3), (160, 3)), ((20, 3), (20, 12))]:
        less, more = seconds(build(*small)), seconds(build(*large))
        assert set(less) == set(more)
        # A kernel near several similarities costs its decompositions, whatever their number.
        assert all(more[method] >= less[method] for method in less)
        assert any(more[method] > less[method] for method in less)


def test_explain_prints_the_predictions_in_the_order_of_auto():
    problem = soft_margin(40, 4).problem
    lines = [
        line.split(";")[0] for line in str(ko.explain(problem)).splitlines() if ": applies, about " in line
    ]
    expected = [
        f"method {c.method.name!r}: applies, about {c.seconds:.2g} s" for c in applicable(Structure(problem))
    ]
    assert lines == expected


@dataclass(frozen=True)
class Refusing(Method):
    """Predicted to cost nothing, and refuses."""

    name: ClassVar[str] = "refusing"
    asked: ClassVar[list[str]] = []

    def match(self, structure):
        return structure

    def cost(self, match):
        return Cost(0.0)

    def run(self, match, control):
        self.asked.append(self.name)
        raise ko.errors.MethodError("it refuses.")


@dataclass(frozen=True)
class Poor(Refusing):
    """Returns equal weights, and the dual point 0 as their proof."""

    name: ClassVar[str] = "poor"

    def run(self, match, control):
        self.asked.append(self.name)
        (variable,) = match.variables
        weights = np.full(variable.shape, 1e-3)
        return Outcome({variable.id: weights}, [np.zeros(t.learner.n) for t in match.risks])


@pytest.fixture
def registered(monkeypatch):
    """Return a function that adds methods to the registry for the time of a test."""
    Refusing.asked.clear()
    before = dict(METHODS)

    def register(*methods):
        for method in methods:
            monkeypatch.setitem(METHODS, method.name, method)
        return Refusing.asked

    yield register
    monkeypatch.undo()
    METHODS.clear()
    METHODS.update(before)  # in their order, which messages show


@pytest.mark.parametrize(
    "methods", [(Refusing(),), (Poor(),), (Refusing(), Poor())], ids=["raises", "poor", "both"]
)
def test_a_method_that_fails_is_followed_by_the_next(registered, methods):
    expected = norm_ball(14, 3, 2.0).solve("exact")
    asked = registered(*methods)
    solution = norm_ball(14, 3, 2.0).solve()
    assert asked == [method.name for method in methods]
    assert solution.method not in asked
    assert solution.gap <= TOL
    assert solution.value == pytest.approx(expected.value, rel=2 * TOL)


def test_the_better_result_is_returned_where_no_method_meets_the_tolerance(registered, monkeypatch):
    """Alone, the poor method is the answer; after a refusal too."""
    for name in list(METHODS):
        monkeypatch.delitem(METHODS, name)
    registered(Refusing(), Poor())
    formulation = norm_ball(14, 3, 2.0)
    with pytest.warns(ko.ConvergenceWarning):
        solution = formulation.solve()
    assert solution.method == "poor"
    assert TOL < solution.gap < np.inf


def test_a_refusal_of_all_is_the_refusal_of_the_first(registered, monkeypatch):
    for name in list(METHODS):
        monkeypatch.delitem(METHODS, name)
    registered(Refusing())
    with pytest.raises(ko.errors.MethodError, match="it refuses"):
        norm_ball(14, 3, 2.0).solve()


@dataclass(frozen=True)
class Slow(Refusing):
    """Never ends by itself; after it was told to end it has nothing, or the second time the optimum."""

    name: ClassVar[str] = "slow"

    def run(self, match, control):
        self.asked.append(self.name)
        if self.asked.count(self.name) > 1:
            return Poor().run(match, control)
        while True:
            control.check()
            time.sleep(0.01)


def test_a_first_method_that_takes_much_longer_than_predicted_is_ended_for_the_next(registered, monkeypatch):
    monkeypatch.setattr(driver, "PATIENCE", replace(driver.PATIENCE, first_overrun=(10.0, 0.2)))
    asked = registered(Slow())
    solution = norm_ball(14, 3, 2.0).solve()
    assert asked == ["slow"]
    assert solution.gap <= TOL


def test_a_slow_method_gets_its_time_where_no_other_is_better(registered, monkeypatch):
    for name in list(METHODS):
        monkeypatch.delitem(METHODS, name)
    monkeypatch.setattr(driver, "PATIENCE", replace(driver.PATIENCE, first_overrun=(10.0, 0.2)))
    asked = registered(Slow(), Refusing())
    with pytest.warns(ko.ConvergenceWarning):
        solution = norm_ball(14, 3, 2.0).solve()
    assert asked == ["slow", "refusing", "slow", "poor"]
    assert solution.method == "slow"


@dataclass(frozen=True)
class Nearly(Refusing):
    """Returns a point beside the optimum of `exact`, with its alpha."""

    name: ClassVar[str] = "nearly"

    def run(self, match, control):
        from kernelopt.methods.exact.method import Exact

        outcome = Exact().run(match, control)
        (theta,) = outcome.point.values()
        beside = theta * np.linspace(0.98, 1.0, theta.size)
        return Outcome(dict.fromkeys(outcome.point, beside), outcome.alphas)


@pytest.mark.parametrize("method", ["interleaved", "block-descent", "smooth-dual", "cutting-plane"])
def test_the_next_method_goes_on_from_the_point_of_the_last(registered, monkeypatch, method):
    """Its first report is already near the optimum: from equal weights and alpha = 0 it is not."""
    loss = ko.squared_hinge(1.0)
    cold, warm = [], []
    expected = norm_ball(40, 5, 4 / 3, loss).solve(method, callback=cold.append).value
    for name in list(METHODS):
        if name != method:
            monkeypatch.delitem(METHODS, name)
    registered(Nearly())
    solution = norm_ball(40, 5, 4 / 3, loss).solve(tol=1e-9, callback=warm.append)
    warm = [report for report in warm if report["method"] == method]
    assert solution.value == pytest.approx(expected, rel=2e-5)
    assert warm[0]["upper"] - expected < 0.05 * (cold[0]["upper"] - expected)


def test_a_method_that_is_named_is_matched_alone(monkeypatch):
    """The others are matched only for the advice of a call that does not reach the tolerance."""
    matched = []

    def recorded(match):
        return lambda method, structure: matched.append(method.name) or match(method, structure)

    for kind in {type(method) for method in METHODS.values()}:
        monkeypatch.setattr(kind, "match", recorded(kind.match))
    assert norm_ball(12, 2, 2).solve("exact").status == "optimal"
    assert set(matched) == {"exact"}
    with pytest.warns(ko.ConvergenceWarning, match="Methods that apply too, the fastest first: '"):
        norm_ball(12, 2, 2).solve("cutting-plane", max_iterations=1)
    assert set(matched) == set(METHODS)
