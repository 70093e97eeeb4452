"""Lanckriet et al. (2004), outlook: maximum determinants for Gaussian processes, and completions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as so
from scipy.stats import multivariate_normal

import kernelopt as ko
from formulations import lanckriet
from kernelopt.estimators import FormulationClassifier
from tests.problems import positive_definite, solved


def precisions(n, m, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(m, n, n))
    return roots @ roots.transpose(0, 2, 1) / n + 0.2 * np.eye(n), rng.normal(size=n)


def below(mu, Rs, y):
    """y'Ry - log det R and its gradient by the weights."""
    R = np.tensordot(mu, Rs, 1)
    forms = np.einsum("i,mij,j->m", y, Rs, y)
    traces = np.einsum("mij,ji->m", Rs, np.linalg.inv(R))
    return forms @ mu - np.linalg.slogdet(R)[1], forms - traces


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_gaussian_process_is_a_minimum_over_weights(seed):
    Rs, y = precisions(6, 4, seed)
    found = so.minimize(
        below, np.ones(4), (Rs, y), jac=True, bounds=[(1e-12, None)] * 4, options={"ftol": 1e-15}
    )
    formulation = lanckriet.gaussian_process(Rs, y)
    solution = formulation.solve()
    assert solution.value == pytest.approx(found.fun, rel=1e-5)
    K = solution.kernel
    assert pytest.approx(np.linalg.inv(np.tensordot(found.x, Rs, 1)), abs=3e-3 * np.abs(K).max()) == K
    slack = np.einsum("i,mij,j->m", y, Rs, y) - np.einsum("mij,ji->m", Rs, K)
    assert (slack >= -1e-6).all() and slack @ found.x == pytest.approx(0, abs=1e-3)
    assert y @ np.linalg.solve(K, y) == pytest.approx(6, rel=1e-3)
    by_weights = lanckriet.gaussian_process(Rs, y).solve(programme="precision")
    assert by_weights.value == pytest.approx(found.fun, rel=1e-5)
    assert solved(formulation.dual()) == pytest.approx(found.fun, rel=1e-5)
    assert ko.dualize(formulation.problem).solve() == pytest.approx(found.fun, rel=1e-5)


def test_one_precision_has_a_closed_form():
    (R,), y = precisions(5, 1)
    mu = 5 / (y @ R @ y)
    solution = lanckriet.gaussian_process(R[None], y).solve()
    assert solution.value == pytest.approx(5 - np.linalg.slogdet(mu * R)[1], rel=1e-5)
    K = np.linalg.inv(mu * R)
    assert solution.kernel == pytest.approx(K, abs=1e-3 * np.abs(K).max())  # the root of the gap


def test_the_value_is_the_density_of_a_normal_distribution():
    Rs, y = precisions(5, 3)
    solution = lanckriet.gaussian_process(Rs, y).solve()
    density = multivariate_normal(np.zeros(5), solution.kernel)
    # the kernel is the optimal one up to the root of the gap, 1e-6, and the density flat there up to the gap
    assert solution.value == pytest.approx(-2 * density.logpdf(y) - 5 * np.log(2 * np.pi), rel=1e-4)
    worse = multivariate_normal(np.zeros(5), np.linalg.inv(Rs.sum(axis=0)))
    assert worse.logpdf(y) < density.logpdf(y)


def test_the_kernel_does_not_depend_on_the_scale_of_the_precisions():
    Rs, y = precisions(5, 3)
    scaled = Rs * np.array([1e-3, 1.0, 50.0])[:, None, None]
    one, other = (lanckriet.gaussian_process(stack, y).solve() for stack in (Rs, scaled))
    assert other.value == pytest.approx(one.value, rel=1e-5)
    assert other.kernel == pytest.approx(one.kernel, abs=1e-3 * np.abs(one.kernel).max())


def test_a_precision_without_a_form_is_refused():
    laplacian = np.array([[1.0, -1], [-1, 1]])
    with pytest.raises(ko.InputError, match="y'R y must be positive .* got 0 for number 1"):
        lanckriet.gaussian_process([np.eye(2), laplacian], [1.0, 1])
    with pytest.raises(ko.InputError, match="sum of the precisions must be positive definite"):
        lanckriet.gaussian_process([laplacian], [1.0, -1])
    with pytest.raises(ko.errors.NotPSDError, match="positive semidefinite"):
        lanckriet.gaussian_process([-np.eye(2)], [1.0, 1])


def test_precisions_are_no_kernels_of_new_samples():
    points = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(ko.InputError, match="one weight for each of the 2 kernels"):
        FormulationClassifier("lanckriet.gaussian_process", ["gaussian(1)", "linear()"]).fit(
            points, [0, 1] * 4
        )


def band(n, width):
    distance = np.abs(np.subtract.outer(range(n), range(n)))
    return distance <= width


@pytest.mark.parametrize("width", [1, 2])
def test_a_band_is_completed_in_closed_form(width):
    n = 7
    A = positive_definite(n)
    P = np.zeros((n, n))
    for start in range(n - width):
        block = slice(start, start + width + 1)
        P[block, block] += np.linalg.inv(A[block, block])
        if start:
            overlap = slice(start, start + width)
            P[overlap, overlap] -= np.linalg.inv(A[overlap, overlap])
    solution = lanckriet.completion(A, band(n, width)).solve()
    assert solution.value == pytest.approx(np.linalg.slogdet(P)[1], rel=1e-5)
    assert solution.kernel == pytest.approx(np.linalg.inv(P), abs=1e-3 * A.max())


def test_one_missing_entry_is_found_by_search():
    A, S = positive_definite(4), np.diag([1.0, 2, 0, 1]) + 0.5
    known = np.ones((4, 4), dtype=bool)
    known[0, 3] = known[3, 0] = False

    def value(entry):
        K = A.copy()
        K[0, 3] = K[3, 0] = entry
        return (S * K).sum() - np.linalg.slogdet(K)[1]

    # K is positive definite where the entry is less than the root of the product of the two Schur complements
    # away from its value for K^-1 = 0 there.
    inner = np.linalg.inv(A[1:3, 1:3])
    centre = A[0, 1:3] @ inner @ A[1:3, 3]
    ends = [A[i, i] - A[i, 1:3] @ inner @ A[1:3, i] for i in (0, 3)]
    reach = (1 - 1e-9) * np.sqrt(ends[0] * ends[1])
    best = so.minimize_scalar(
        value, bounds=(centre - reach, centre + reach), method="bounded", options={"xatol": 1e-9}
    )
    solution = lanckriet.completion(A, known, S).solve()
    assert solution.value == pytest.approx(best.fun, rel=1e-5)
    assert solution.kernel[0, 3] == pytest.approx(best.x, abs=1e-3)


def test_the_inverse_of_a_completion_is_the_price_at_unknown_pairs():
    A, S = positive_definite(6), positive_definite(6, seed=1)
    known = band(6, 1)
    known[0, 5] = known[5, 0] = True  # a cycle, which is not chordal
    formulation = lanckriet.completion(A, known, S)
    solution = formulation.solve()
    K = solution.kernel
    assert K[known] == pytest.approx(A[known], rel=1e-9)
    assert (np.linalg.inv(K) - S)[~known] == pytest.approx(0, abs=2e-3 * np.abs(S).max())
    assert solved(formulation.dual()) == pytest.approx(solution.value, rel=1e-5)
    assert ko.dualize(formulation.problem).solve() == pytest.approx(solution.value, rel=1e-5)


def test_a_matrix_without_a_completion_is_proved_to_have_none():
    A = np.array([[1.0, 0.9, 0, -0.9], [0.9, 1, 0.9, 0], [0, 0.9, 1, 0.9], [-0.9, 0, 0.9, 1]])
    with pytest.raises(ko.InfeasibleError):
        lanckriet.completion(A, A != 0).solve()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"known": 2 * np.eye(3)}, "known must be a symmetric array of bool"),
        ({"known": np.eye(2, dtype=bool)}, "known must be a symmetric array of bool"),
        ({"known": np.zeros((3, 3), dtype=bool)}, "known must be true on the diagonal"),
        ({"matrix": -np.eye(3)}, "the diagonal of matrix positive"),
        ({"S": np.eye(2)}, "S must have the shape"),
    ],
)
def test_a_completion_needs_a_pattern_with_the_diagonal(change, said):
    with pytest.raises(ko.InputError, match=said):
        lanckriet.completion(**{"matrix": np.eye(3), "known": np.eye(3, dtype=bool)} | change)
