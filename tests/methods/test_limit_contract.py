"""What comes back at a time limit, for every formulation and method: bounds of a point, or an error.

The clock of these tests advances at every reading, so that a call ends at the same step on any machine.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity, triplet_lp
from kernelopt import running
from kernelopt.language.learner import Learner
from kernelopt.methods import describe, fallback
from kernelopt.methods.selection import applicable
from kernelopt.numerics import decompositions
from kernelopt.structure import affine as reading
from kernelopt.structure import attributes
from kernelopt.structure.attributes import projected
from tests.methods.test_limits import ball, near
from tests.problems import points


def semidefinite_design(rng):
    triplets = ko.sample_triplets(np.repeat([0, 1], 6), 30, random_state=rng)
    X = rng.normal(size=(12, 2)) + 3 * np.outer(np.arange(12) > 5, [1, 0])
    kernels = ko.Grams.from_kernels([ko.gaussian(0.3), ko.gaussian(1.0), ko.gaussian(3.0)], X)
    return triplet_lp.kernel_design(kernels, triplets, gamma1=0.05, gamma2=0.02, cone="psd")


EXAMPLES = {name: entry.example for name, entry in ko.catalogue().items()}
EXAMPLES["triplet_lp.kernel_design, psd"] = semidefinite_design
MANY = 2000  # readings of the clock, more than a call makes that ends at a limit of some of them


class Ticks:
    """A clock that advances at every reading."""

    def __init__(self, limit, step):
        self.now, self.limit, self.step, self.late = 0.0, limit, step, 0

    def __call__(self):
        self.now += self.step
        self.late += self.now > self.limit
        return self.now


@pytest.fixture
def ticks(monkeypatch):
    def start(limit, step=1e-3):
        clock = Ticks(limit, step)
        monkeypatch.setattr(running, "clock", clock)
        return clock

    return start


@cache
def formulation(name):
    return EXAMPLES[name](np.random.default_rng(0))


@cache
def optimum(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = formulation(name).solve(tol=1e-6)
    return solution.lower, solution.upper


def solved(problem, method, limit):
    """Return the solution, or None and the message of the error."""
    try:
        return problem.solve(method, time_limit=limit), ""
    except ko.SolverError as error:
        return None, str(error)


def cells():
    for name in sorted(EXAMPLES):
        for candidate in applicable(ko.Structure(formulation(name).problem)):
            yield name, candidate.method.name


@pytest.mark.parametrize("limit", [1e-6, 0.02, 0.1])
@pytest.mark.parametrize(("name", "method"), list(cells()))
def test_at_a_limit_bounds_come_back_or_an_error_that_names_it(name, method, limit, ticks):
    lower, upper = optimum(name)
    clock = ticks(limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution, message = solved(formulation(name), method, limit)
    assert clock.late < MANY
    if solution is None:
        assert f"before the time limit of {limit:g} s was reached (" in message
        return
    assert solution.certificate.feasible and np.isfinite(solution.upper)
    assert solution.lower <= upper and lower <= solution.upper
    told = any(issubclass(w.category, ko.ConvergenceWarning) for w in caught)
    assert told == (solution.status != "optimal")


def test_no_decomposition_is_started_that_would_take_longer_than_there_is_time(monkeypatch):
    started, real = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: started.append(len(M)) or real(M))
    slow = decompositions.Seconds(pairs=1.0, values=1.0)  # a slow machine
    monkeypatch.setattr(decompositions, "SECONDS", slow)
    with pytest.raises(ko.SolverError, match=r"before the time limit of 100 s .*\(.*explain"):
        ko.solve(near(8), "first-order-dual", time_limit=100.0)
    assert not started
    assert ko.solve(near(8), "first-order-dual").status == "optimal"  # without a limit nothing is left out


def test_zero_is_psd_without_a_decomposition(monkeypatch):
    started, real = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: started.append(len(M)) or real(M))
    X = cp.Variable((4, 4), PSD=True)
    assert not projected(X, np.zeros((4, 4))).any() and not started
    np.testing.assert_allclose(projected(X, np.diag([1.0, -1, 2, 0])), np.diag([1.0, 0, 2, 0]), atol=1e-15)
    assert started == [4]
    monkeypatch.setattr(attributes, "SECONDS", decompositions.Seconds(pairs=1.0))
    with running.Call(time_limit=50.0) as call:
        projected(X, np.eye(4))
        call.doing = "decomposed"
    assert call.doing != "decomposed" and started == [4]


def test_before_the_sample_no_machine_of_several_kernels_is_trained(monkeypatch):
    n, trained, real = 60, [], Learner.train
    monkeypatch.setattr(fallback, "PATIENCE", replace(fallback.PATIENCE, sample=20))
    monkeypatch.setattr(Learner, "train", lambda self, Ks: trained.append(self.n) or real(self, Ks))
    S = np.array([np.eye(n), np.ones((n, n)) / n])
    learning = similarity.restricted_spectral(S, np.resize([1.0, -1.0], n), rho=1.0, trace=1.0)
    with pytest.warns(ko.ConvergenceWarning, match="time limit"):
        learning.solve("exact", time_limit=1e-6)
    assert trained[0] < n


def test_a_master_problem_that_would_exceed_the_memory_is_refused():
    with pytest.raises(ko.errors.MethodError, match=r"cone of order 300 needs about \d+ GB, more than 16 GB"):
        ko.solve(near(300), "cutting-plane")


def test_what_is_not_concluded_before_the_limit_is_unknown(monkeypatch):
    known = ko.solve(ball(20), "newton", time_limit=1000.0)
    assert known.weights_unique is True
    monkeypatch.setattr(describe, "weights_are_unique", lambda *_: running.check(1e6))
    unknown = ko.solve(ball(20), "newton", time_limit=1000.0)
    assert unknown.status == "optimal" and unknown.weights_unique is None


def test_a_limit_that_is_over_while_the_problem_is_read_is_named(monkeypatch):
    monkeypatch.setattr(
        importlib.import_module("kernelopt.methods.solve"), "Structure", lambda problem: running.check(1e6)
    )
    with pytest.raises(
        ko.TimeLimitError, match=r"before the time limit of 9 s was reached \(reading the problem\)"
    ):
        ko.solve(near(8), time_limit=9.0)


def test_a_limit_that_is_over_before_a_method_is_chosen_leaves_a_trained_machine(monkeypatch):
    solving = importlib.import_module("kernelopt.methods.solve")
    monkeypatch.setattr(solving, "candidates", lambda *_: running.check(1e6))
    with pytest.warns(ko.ConvergenceWarning, match="the time limit of 9 s"):
        solution = ko.solve(near(8), time_limit=9.0)
    assert solution.method == "none" and solution.alpha.any()


def test_traces_parts_and_shapes_are_read_without_gradients(monkeypatch):
    sizes, real = [], reading.unit_rows
    X, x = cp.Variable((4, 4), PSD=True), cp.Variable(6)
    expressions = [
        cp.trace(X),
        cp.vec(X[:3, :3], order="F"),
        cp.vec(X, order="C"),
        x[::2],
        cp.reshape(x, (2, 3), order="C"),
        cp.trace(X[1:, 1:]) - x[3],
    ]
    expected = [reading.affine_by_gradients(e) for e in expressions]
    monkeypatch.setattr(reading, "affine_by_gradients", None)
    monkeypatch.setattr(reading, "unit_rows", lambda e, size: sizes.append(e.size) or real(e, size))
    reading.affine(cp.trace(X))
    assert sizes == [4]  # a trace is read from the diagonal alone
    for expression, wanted in zip(expressions, expected, strict=True):
        found = reading.affine(expression)
        np.testing.assert_array_equal(found.constant, wanted.constant)
        assert set(found.matrices) == set(wanted.matrices)
        for variable, matrix in wanted.matrices.items():
            np.testing.assert_array_equal(found.matrices[variable].toarray(), matrix.toarray())


def test_risks_of_one_kernel_have_equal_weights_before_the_first_point(ticks):
    """A classifier of three classes came back with weights of zero."""
    X, theta = points(21), cp.Variable(3, nonneg=True)
    K = ko.combine(theta, ko.Grams.from_kernels([ko.gaussian(s) for s in (0.5, 1.0, 2.0)], X))
    y = np.arange(21) % 3
    risks = [ko.risk(K, np.where(y == k, 1.0, -1.0), ko.hinge()) for k in range(3)]
    problem = cp.Problem(cp.Minimize(sum(risks)), [cp.sum(theta) <= 1])
    ticks(1e-6)
    with pytest.warns(ko.ConvergenceWarning, match="time limit"):
        solution = ko.solve(problem, time_limit=1e-6)
    np.testing.assert_allclose(solution.weights, solution.weights.sum() / 3)
    assert solution.weights.sum() > 0.9
