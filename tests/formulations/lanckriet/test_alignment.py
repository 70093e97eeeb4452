"""Lanckriet et al. (2004): alignment."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.formulations.lanckriet.cases import KS, N, Y, close, learned, n, random_kernels, vectors
from tests.problems import solved


def angles(Ks, y, norm="full"):
    """q_i = y'K_{i,tr}y and S_ij = <K_i, K_j>."""
    labelled = Ks[:, : y.size, : y.size]
    blocks = labelled if norm == "train" else Ks
    return np.einsum("i,mij,j->m", y, labelled, y), np.einsum("aij,bij->ab", blocks, blocks)


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_is_the_printed_sdp(weights, seed):
    size, y = 8, Y[:6]
    Ks = random_kernels(size, 3, 2, seed)
    solution = learned(lanckriet.alignment(Ks, y, weights=weights))
    mu, A = cp.Variable(3), cp.Variable((size, size), symmetric=True)
    K = cp.sum([mu[i] * Ks[i] for i in range(3)])
    sign = [mu >= 0] if weights == "nonnegative" else [K >> 0]
    target = cp.sum(cp.multiply(np.outer(y, y), K[:6, :6]))
    lmi = [cp.trace(A) <= 1, cp.bmat([[A, K.T], [K, np.eye(size)]]) >> 0]
    assert solved(cp.Problem(cp.Maximize(target), [*lmi, *sign])) == close(solution.value)
    q, S = angles(Ks, y)
    assert solution.weights @ S @ solution.weights == close(1) and q @ solution.weights == close(
        solution.value
    )
    assert solution.weights == pytest.approx(mu.value, abs=1e-3)
    L = np.linalg.cholesky(S)
    short = solved(cp.Problem(cp.Maximize(q @ mu), [cp.norm2(L.T @ mu) <= 1, *sign]))
    assert short == close(solution.value)
    singles = q / np.sqrt(np.diag(S))
    assert solution.value >= max(singles.max(), q.sum() / np.sqrt(S.sum())) * (1 - 1e-9)


def test_free_signs_align_better():
    strict = 0
    for seed in range(6):
        Ks, y = random_kernels(8, 3, 5, seed), Y[:6]
        free = learned(lanckriet.alignment(Ks, y, weights="free"))
        tied = learned(lanckriet.alignment(Ks, y))
        assert free.value >= tied.value * (1 - 1e-6)
        strict += free.lower > tied.upper * (1 + 1e-3)
        assert np.linalg.eigvalsh(free.kernel)[0] >= -1e-8
    assert strict >= 1


@pytest.mark.parametrize("norm", ["full", "train"])
def test_alignment_is_a_quadratic_programme(norm):
    q, S = angles(KS, Y, norm)
    solution = learned(lanckriet.alignment(KS, Y, norm=norm))
    mu = cp.Variable(3)
    value = solved(cp.Problem(cp.Minimize(cp.quad_form(mu, S) - 2 * q @ mu), [mu >= 0]))
    assert value == close(-(solution.value**2))
    assert mu.value / solution.value == pytest.approx(solution.weights, abs=1e-4)
    assert mu.value / solution.value == pytest.approx(solution.weights, rel=1e-3, abs=1e-6)


def test_alignment_of_orthonormal_rank_one_kernels():
    V = vectors("orthonormal", m=6)
    solution = learned(lanckriet.alignment(ko.Grams.rank_one(V), Y))
    q = (V[:n].T @ Y) ** 2
    assert solution.value == close(np.linalg.norm(q))
    assert solution.weights == pytest.approx(q / np.linalg.norm(q), abs=1e-3)  # root of the gap


@pytest.mark.parametrize("norm", ["full", "train"])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_bounds_for_any_weights(norm, seed):
    rng = np.random.default_rng(seed)
    Ks = np.concatenate([KS, random_kernels(N, 2, 3, seed)])
    q, S = angles(Ks, Y, norm)
    solution = lanckriet.alignment(Ks, Y, norm=norm).solve(tol=1e-9)

    def bounds(mu):
        length = np.sqrt(mu @ S @ mu)
        return q @ mu / length, length * (q / (S @ mu)).max()

    for mu in [*rng.uniform(size=(20, 5)), *np.eye(5), solution.weights * rng.uniform(0.999, 1.001, 5)]:
        lower, upper = bounds(mu)
        assert lower <= solution.upper * (1 + 1e-12) and upper >= solution.lower * (1 - 1e-12)
        assert bounds(7 * mu) == pytest.approx((lower, upper), rel=1e-12)
    lower, upper = bounds(solution.weights)
    # the upper bound is of first order in the error of the weights, the root of the gap
    assert lower == close(solution.value) and upper == close(solution.value, 1e-4)


def test_alignment_norms():
    full, train = (learned(lanckriet.alignment(KS, Y, norm=norm)) for norm in ("full", "train"))
    assert train.value > full.value * 1.01  # a smaller norm
    K, L = full.kernel, train.kernel[:n, :n]
    assert np.linalg.norm(K) == close(1) and np.linalg.norm(L) == close(1)
    assert Y @ K[:n, :n] @ Y == close(full.value) and Y @ L @ Y == close(train.value)
    assert train.value / n <= 1
    square = KS[:, :n, :n]
    one, two = (learned(lanckriet.alignment(square, Y, norm=norm)) for norm in ("full", "train"))
    assert one.value == close(two.value) == close(train.value)
    assert one.weights == pytest.approx(two.weights, abs=1e-6)
    ideal = learned(lanckriet.alignment([np.outer(Y, Y), square[0]], Y))
    assert ideal.value / n == close(1)  # the labels' own kernel


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_has_no_scale(weights):
    plain = learned(lanckriet.alignment(KS, Y, weights=weights))
    s = np.array([0.1, 5.0, 3.0])
    scaled = learned(lanckriet.alignment(s[:, None, None] * KS, Y, weights=weights))
    flipped = learned(lanckriet.alignment(KS, -Y, weights=weights))
    assert plain.value == close(scaled.value) == close(flipped.value)
    assert s * scaled.weights == pytest.approx(plain.weights, abs=1e-3)
    zero = learned(lanckriet.alignment(np.concatenate([KS, np.zeros((1, N, N))]), Y, weights=weights))
    assert zero.value == close(plain.value) and zero.weights[3] == 0


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_needs_a_kernel_that_is_aligned(weights):
    y = np.array([1.0, -1, 1, -1])
    constant = np.ones((1, 4, 4))
    with pytest.raises(ValueError, match="none is aligned with the labels. Add a kernel, or centre them"):
        lanckriet.alignment(constant, y, weights=weights)
