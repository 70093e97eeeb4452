"""Gap-safe screening: what is dropped has weight zero at every optimum, and the inequality behind it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.learner import learn
from kernelopt.methods import gap_safe
from kernelopt.methods.gap_safe import Distance, curvatures, dominated, screened
from kernelopt.numerics.ball import Ball
from kernelopt.structure import Structure
from kernelopt.structure.ball import read_ball
from tests.calls import endless
from tests.every import every
from tests.problems import labels, points, targets

N, M = 24, 5
LOSSES = {
    "hinge": ko.hinge(2.0),
    "squared hinge": ko.squared_hinge(1.0),
    "huberized hinge": ko.huberized_hinge(1.0, 0.3),
    "logistic": ko.logistic(3.0),
    "squared": ko.squared(1.0),
    "epsilon-insensitive": ko.epsilon_insensitive(1.0, 0.2),
    "weighted hinge": ko.hinge(np.linspace(0.5, 2, N)),
}


def problem(loss, seed, bias=True):
    X = points(N, d=M, seed=seed)
    kernels = [ko.on_columns(ko.gaussian(1.0), [j]) for j in range(M)]
    grams = ko.Grams.from_kernels(kernels, X)
    y = targets(N, seed) if loss.kind == "targets" else labels(N, seed)
    return lp_norm.primal(grams, y, p=1, loss=loss, bias=bias)


def ball(formulation):
    return read_ball(Structure(formulation.problem))


@every("name", LOSSES)
def test_dropped_kernels_are_those_of_weight_zero(name):
    dropped = 0
    for seed in range(3):
        formulation = problem(LOSSES[name], seed, bias=seed != 1)
        solution = formulation.solve("exact", tol=1e-7)
        names = ko.screen(solution)
        listed = ball(formulation).whole.names
        zero = {one for one, w in zip(listed, solution.weights, strict=True) if w < 1e-5}
        assert set(names) <= zero
        dropped += len(names)
    assert dropped >= 2


@every("name", ["hinge", "logistic", "epsilon-insensitive"])
def test_a_dropped_kernel_with_a_weight_raises_the_value(name):
    formulation = problem(LOSSES[name], 0)
    solution = formulation.solve("exact", tol=1e-7)
    names, theta = ball(formulation).whole.names, formulation.weights
    for dropped in ko.screen(solution)[:2]:
        forced = [*formulation.problem.constraints, theta[names.index(dropped)] >= 0.02]
        value = ko.solve(cp.Problem(formulation.problem.objective, forced), "exact", tol=1e-7)
        assert value.lower > solution.upper


@every("name", LOSSES)
def test_the_distance_of_an_optimal_alpha_is_within_the_proved_one(name):
    """Against an optimum of an interior point, from machines at rough weights whose alpha is rough too."""
    formulation = problem(LOSSES[name], 3)
    read, best = ball(formulation), formulation.solve("exact", tol=1e-7)
    optimal, rng = best.certificate.alphas[0], np.random.default_rng(0)
    for share in (0.3, 0.01, 1e-4):
        w = (1 - share) * np.maximum(best.weights, 0) + share * rng.dirichlet(np.ones(M))
        w /= w.sum()
        K = read.grams.combine(w)
        machine = learn(K, read.y, read.loss, True, tol=share / 10)
        alpha = read.loss.project(machine.alpha, read.y, True)
        f = K @ alpha
        value, _, b = read.loss.primal(f, alpha @ f / 2, read.y, True)
        G = value - best.lower
        lam, extras, slope, distance = curvatures(read, alpha, Ball(f + b, np.full(N, 1e-12)), G)
        d, extra = optimal - alpha, extras.sum()
        assert (lam >= 0).all() and (extras >= 0).all() and (slope >= 0).all()
        sloping = np.isfinite(slope)
        assert slope[sloping] @ np.abs(d[sloping]) <= G + slope[sloping] @ distance[sloping] + 1e-4
        assert np.sqrt(d @ K @ d) <= 1.001 * np.sqrt(2 * G) + 1e-4
        assert np.sqrt(d @ K @ d + lam @ d**2) <= 1.001 * np.sqrt(2 * (G + extra)) + 1e-4


@every("name", ["hinge", "squared"])
def test_a_larger_gap_drops_no_more_and_nothing_that_is_used(name):
    formulation = problem(LOSSES[name], 2)
    read, best = ball(formulation), formulation.solve("exact", tol=1e-7)
    machine, w = best.certificate.machines[0], np.maximum(best.weights, 0)
    counts = []
    for loosened in (0.0, 1e-6, 1e-4, 1e-2, 1.0, np.inf):
        dropped = screened(read, w, machine, best.lower - loosened * abs(best.lower))
        assert (best.weights[dropped] < 1e-6).all()
        counts.append(dropped.sum())
    assert (np.diff(counts) <= 0).all() and counts[0] > 0 and counts[-1] == 0


def test_a_hard_margin_is_screened_though_rounding_violates_it():
    formulation = problem(ko.hard_margin(), 0)
    solution = formulation.solve("newton", tol=1e-6)
    best = formulation.solve("exact", tol=1e-7)
    zero = {name for name, w in zip(ball(formulation).whole.names, best.weights, strict=True) if w < 1e-5}
    assert set(solution.details["dropped"]) | set(ko.screen(best)) <= zero


def test_a_trace_is_a_simplex_in_units_of_the_traces():
    formulation = problem(LOSSES["hinge"], 0)
    read = ball(formulation)
    names = ko.screen(formulation.solve("exact", tol=1e-7))
    theta = cp.Variable(M, nonneg=True)
    K = ko.combine(theta, ko.Grams.from_array(np.asarray(read.whole) * np.arange(1, M + 1)[:, None, None]))
    scaled = cp.Problem(cp.Minimize(3 * ko.risk(K, read.y, read.loss) + 1), [ko.trace(K) == N])
    found = ko.screen(ko.solve(scaled, "exact", tol=1e-7))
    assert [int(name[2]) for name in found] == [read.whole.names.index(name) for name in names]


@every("name", ["hinge", "squared hinge", "epsilon-insensitive"])
def test_newton_names_kernels_of_weight_zero(name):
    """The prices s_m / 2 of the named kernels are below that of the optimum, by another method."""
    formulation = problem(LOSSES[name], 0)
    found = formulation.solve("newton", tol=1e-6).details["dropped"]
    best = formulation.solve("exact", tol=1e-8)
    listed = ball(formulation).whole.names
    s = ball(formulation).reach * ball(formulation).whole.forms(best.alpha)
    assert found and set(found) <= {one for one, w in zip(listed, best.weights, strict=True) if w < 1e-6}
    assert all(s[listed.index(one)] < (1 - 1e-5) * s.max() for one in found)


def test_none_of_two_equal_kernels_that_are_used_is_named_nor_any_at_another_exponent():
    formulation = problem(LOSSES["hinge"], 0)
    read = ball(formulation)
    used = int(np.argmax(formulation.solve("newton", tol=1e-6).weights))
    stack = np.asarray(read.whole)
    twice = ko.Grams.from_array(np.concatenate([stack, stack[used : used + 1]]), [*"abcdef"])
    learning = lp_norm.primal(twice, read.y, p=1, loss=LOSSES["hinge"])
    solution = learning.solve("newton", tol=1e-6)
    for names in (solution.details["dropped"], ko.screen(learning.solve("exact", tol=1e-7))):
        assert not {"abcdef"[used], "f"} & set(names) and names
    assert f"dropped {len(solution.details['dropped'])}" in str(solution)
    again = lp_norm.primal(twice, read.y, p=2, loss=LOSSES["hinge"]).solve("newton")
    assert "dropped" not in again.details


def test_a_limited_number_of_operations_excludes_the_easiest():
    formulation = problem(LOSSES["hinge"], 0)
    read, best = ball(formulation), formulation.solve("exact", tol=1e-7)
    machine, w = best.certificate.machines[0], np.maximum(best.weights, 0)
    counts = []
    for most in (0, 1e3, 1e4, 1e5, np.inf):
        with endless() as call:
            dropped = screened(read, w, machine, best.lower, most)
        assert (best.weights[dropped] < 1e-6).all()
        counts.append(dropped.sum())
    assert counts[0] == 0 < counts[-1] and call.checks and (np.diff(counts) >= 0).all()


def test_the_samples_of_the_proof_are_few_where_most_have_steep_losses():
    """Points of two distant clusters: all but the support vectors are far from their margins."""
    rng, y = np.random.default_rng(0), np.repeat([-1.0, 1.0], 60)
    X = np.column_stack([rng.normal(size=120) + 2 * y, rng.normal(size=120)])
    grams = ko.Grams.from_kernels([ko.on_columns(ko.gaussian(1.0), [j]) for j in range(2)], X)
    formulation = lp_norm.primal(grams, y, p=1)
    best, read = formulation.solve("newton", tol=1e-8), ball(formulation)
    assert best.details["dropped"] == (read.whole.names[1],)
    distance = Distance(read, best.weights / read.reach, best.certificate.machines[0], best.lower)
    F = distance.flat(np.flatnonzero(distance.room > 0))
    assert 0 < F.size < 60 and (np.abs(best.alpha[np.setdiff1d(np.arange(120), F)]) % 1 < 1e-9).all()


def test_kernels_are_combined_in_blocks_of_rows(monkeypatch):
    """The lower triangles are those of the sums, whatever the number of rows that are read at a time."""
    read = ball(problem(LOSSES["hinge"], 0))
    best = problem(LOSSES["hinge"], 0).solve("exact", tol=1e-7)
    distance = Distance(read, best.weights, best.certificate.machines[0], best.lower)
    F, weights = np.arange(1, N, 2), np.random.default_rng(0).random((3, M))
    block = np.asarray(read.whole)[np.ix_(range(M), F, F)]
    expected = np.tensordot(weights * read.reach, block, 1)
    for entries in (1, 3 * M * F.size, 1 << 17):
        monkeypatch.setattr(gap_safe, "AT_ONCE", entries)
        np.testing.assert_allclose(np.tril(distance._combined(weights, F)), np.tril(expected), rtol=1e-14)


def test_the_proof_of_a_semidefinite_matrix_includes_rounding():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, N))
    K, other = A @ A.T, np.outer(A[:, 0], A[:, 0])
    zero = np.zeros(N)

    def proved(c, unit=1.0):
        first, second = (unit * matrix * np.reshape(unit, (-1, 1)) for matrix in (c * K, other))
        sizes = np.diag(first) + np.diag(second)
        found = dominated(first, zero, second, sizes, 90)
        assert found == dominated(np.tril(first), zero, np.tril(second), sizes, 90)
        return found

    assert proved(1.1)
    assert not proved(1.0)  # singular: true, and not to be proved in doubles
    assert not proved(0.9)
    assert proved(1.1, np.exp2(rng.integers(-200, 200, N).astype(float)))


def test_what_can_be_screened():
    solution = lp_norm.primal([np.eye(2)] * 2, [1, -1], p=2).solve("exact")
    with pytest.raises(ko.InputError, match="p = 1"):
        ko.screen(solution)
    for bad in (None, 1.0, "solution"):
        with pytest.raises(ko.InputError, match="must be a Solution"):
            ko.screen(bad)
    risk = ko.risk(np.eye(2), [1, -1], ko.hinge())
    with pytest.raises(ko.errors.MethodError, match="l_p ball"):
        ko.screen(ko.solve(cp.Problem(cp.Minimize(risk))))
