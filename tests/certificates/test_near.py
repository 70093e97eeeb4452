"""`certify` of kernels near similarities: the bound at an alpha, without a conic solve."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import similarity
from kernelopt.certificates.gap import floor
from kernelopt.certificates.lower import choices
from kernelopt.certificates.lower.minorants import minorants
from kernelopt.certificates.lower.near import near_bound
from kernelopt.structure.nearness import read_nearness
from kernelopt.structure.structure import Structure
from kernelopt.witnesses.near import NearRelaxation
from tests.certificates.cases import relaxed_value

RNG = np.random.default_rng(0)
N = 9
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)[: N - 2]
NOISE = 0.3 * RNG.normal(size=(2, N, N))
S = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) + NOISE + NOISE.transpose(0, 2, 1)
SHORT = {"squared_frobenius": 1e-6, "frobenius": 1e-6, "l1": 1e-4}  # at any alpha; conic solves have 1e-7
KINDS = list(SHORT)
BUILDERS = {
    "one kernel": similarity.single_kernel,
    "a kernel for each": similarity.kernel_per_similarity,
    "spectra": similarity.restricted_spectral,
}


@cache
def solved_once(kind, trace, builder):
    formulation = BUILDERS[builder](S, Y, rho=0.3, trace=trace, fidelity=kind)
    solution = formulation.solve("first-order-dual", tol=1e-7)
    structure = Structure(formulation.problem)
    floor(structure)  # read once, at values of its own
    return formulation, solution, structure, [user.value for user in structure.user_variables]


def solved(kind, trace=float(N), builder="one kernel"):
    """A formulation, its solution, and its structure, with the values of the solution in both problems."""
    formulation, solution, structure, values = solved_once(kind, trace, builder)
    for copy, user, value in zip(structure.variables, structure.user_variables, values, strict=True):
        copy.save_value(value)
        user.save_value(value)
    return formulation, solution, structure


def kernels(structure):
    """The values of the kernels."""
    return [np.asarray(block.piece.variable.value) for block in read_nearness(structure).blocks]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_the_minimum_of_the_relaxation(kind, builder):
    """At the optimal alpha, one near it, and one that is far too short.

    An alpha that is too long for the kernels is none of them: the risk is zero at the minimiser of the
    relaxation then, and the search, which leaves out the positive part, finds a smaller bound.
    """
    _, solution, structure = solved(kind, builder=builder)
    noise = np.random.default_rng(1).normal(size=Y.size)
    for alpha in (solution.alpha, 0.9 * solution.alpha * (1 + 0.05 * noise), 0.3 * solution.alpha):
        relaxed = NearRelaxation(read_nearness(structure), alpha, kernels(structure))
        found, wanted = near_bound(structure, alpha), relaxed_value(structure, minorants(structure, [alpha]))
        forms = [np.vdot(P, X) for P, X in zip(relaxed.P, kernels(structure), strict=True)]
        assert relaxed.gain - sum(forms) > 0.01
        assert found.value <= wanted + 1e-6 * abs(wanted)
        assert found.value >= wanted - SHORT[kind] * abs(wanted)
        assert found.possible >= wanted - 1e-6 * abs(wanted)


@pytest.mark.parametrize("trace", [float(N), None], ids=["traced", "free"])
@pytest.mark.parametrize("kind", ["squared_frobenius", "frobenius"])
def test_no_conic_problem_is_solved_at_an_optimal_candidate(kind, trace, monkeypatch):
    formulation, _, _ = solved(kind, trace)

    def refused(*args):
        raise AssertionError("a conic solve")

    monkeypatch.setattr(choices, "conic_bound", refused)
    certificate = ko.certify(formulation.problem)
    assert (certificate.route, certificate.gap <= 1e-6) == ("closed", True)


def test_absolute_values_are_searched_from_kernels_of_any_memory_layout():
    """Evaluated kernels are stored by columns: their flat views are copies."""
    _, solution, structure = solved("l1")
    for variable in structure.variables:
        variable.save_value(np.asfortranarray(variable.value))
    found = near_bound(structure, solution.alpha)
    assert found.value == pytest.approx(solution.value, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_poor_alpha_has_a_bound_as_good_as_the_conic_one(kind, monkeypatch):
    """The positive part of the minorant counts there, which the search leaves to the conic solve."""
    formulation, solution, _ = solved(kind)
    poor = ko.certify(formulation.problem, solution, alpha=5 * solution.alpha, retrain=True)
    monkeypatch.setattr(choices, "near_bound", lambda *args: None)
    conic = ko.certify(formulation.problem, solution, alpha=5 * solution.alpha, retrain=True)
    assert poor.lower <= solution.value * (1 + 1e-7)
    assert poor.lower >= conic.lower - 1e-6 * abs(conic.lower)


@pytest.mark.parametrize("kind", KINDS)
def test_garbage_alphas_give_true_bounds(kind):
    _, solution, structure = solved(kind)
    rng = np.random.default_rng(2)
    for scale in (1e-8, 1.0, 1e6):
        found = near_bound(structure, scale * rng.normal(size=Y.size))
        assert found.value <= solution.certificate.upper
    assert near_bound(structure, np.full(Y.size, np.nan)) is None


@pytest.mark.parametrize("kind", ["squared_frobenius", "frobenius"])
def test_the_multiplier_of_the_trace_is_the_slope_of_the_value(kind):
    formulation, _, _ = solved(kind)
    problem = formulation.problem
    ko.solve(problem, "exact")
    ours = float(problem.constraints[0].dual_value)
    assert ours == pytest.approx(central_slope(kind), rel=1e-3)


def central_slope(kind, h=1e-2):
    """Minus the derivative of the value by the trace."""
    values = [
        similarity.single_kernel(S, Y, rho=0.3, trace=N + d, fidelity=kind)
        .solve("first-order-dual", tol=1e-9)
        .value
        for d in (-h, h)
    ]
    return (values[0] - values[1]) / (2 * h)


def test_forty_similarities_are_their_mean():
    """sum_k |K - S_k|^2 = 40 |K - S|^2 + sum_k |S_k - S|^2 with the mean S; the S_k nearly cancel in it."""
    rng = np.random.default_rng(3)
    parts = 10.0 * rng.integers(-9, 10, size=(20, N, N))
    many = np.concatenate([S[0] + parts + parts.transpose(0, 2, 1), S[1] - parts - parts.transpose(0, 2, 1)])
    mean = (S[0] + S[1]) / 2
    found = []
    for targets, price in ((many, 0.01), (mean[None], 0.4)):
        K = cp.Variable((N, N), PSD=True)
        risk = ko.risk(K, Y, ko.hinge())
        near = sum(price * ko.fidelity(K, T, "squared_frobenius") for T in targets)
        problem = cp.Problem(cp.Minimize(risk + near), [cp.trace(K) == N])
        found.append(ko.solve(problem, "first-order-dual", tol=1e-9))
    constant = 0.01 * float(((many - mean) ** 2).sum())
    one, other = found
    assert (
        one.lower <= other.upper + constant + 1e-12 * constant
        and other.lower + constant <= one.upper + 1e-12 * constant
    )
