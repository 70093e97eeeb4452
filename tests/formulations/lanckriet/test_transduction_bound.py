"""Lanckriet et al. (2004): the error bound of transduction."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from tests.every import every
from tests.formulations.lanckriet.cases import CRITERIA, KS, Y, close, learned, random_kernels, with_learned


def halves(size, seed=0, m=3):
    """As many unlabelled points as labelled ones."""
    y = np.where(np.arange(size // 2) % 2 == 0, 1.0, -1.0)
    return random_kernels(size, m, size // 2, seed), y


def mean_over_signs(Ks):
    """E max_i sigma'K_i sigma / r_i over all signs, one at a time."""
    r = np.trace(Ks, axis1=1, axis2=2)
    signs = [np.array(s) for s in product((-1.0, 1.0), repeat=Ks.shape[1])]
    return float(np.mean([max(s @ K @ s / ri for K, ri in zip(Ks, r, strict=True)) for s in signs]))


@pytest.mark.parametrize("size", [6, 8])
@pytest.mark.parametrize("tau", [0.5, "learned"])
def test_the_complexity_is_the_mean_over_all_signs(size, tau):
    Ks, y = halves(size)
    solution = learned(lanckriet.margin(Ks, y, tau=tau, trace=float(size)))
    found = lanckriet.transduction_bound(solution, y=y)
    # a learned ridge is one more kernel of the set, I
    whole = np.concatenate([Ks, [np.eye(size)]]) if tau == "learned" else Ks
    assert found.complexity == pytest.approx(size * mean_over_signs(whole), rel=1e-9)
    r = np.trace(whole, axis1=1, axis2=2)
    largest = max(np.linalg.eigvalsh(K)[-1] / ri for K, ri in zip(whole, r, strict=True))
    assert found.complexity_bound == pytest.approx(size * min(len(whole), size * largest), rel=1e-9)
    assert found.complexity <= found.complexity_bound


def test_twelve_points_are_enumerated_exactly():
    Ks, y = halves(12)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=12.0))
    signs = np.array(list(product((-1.0, 1.0), repeat=12)))
    forms = np.stack([((signs @ K) * signs).sum(axis=1) / np.trace(K) for K in Ks])
    found = [lanckriet.transduction_bound(solution, y=y, random_state=seed).complexity for seed in (0, 1)]
    assert found[0] == found[1] == pytest.approx(12 * forms.max(axis=0).mean(), rel=1e-9)


def test_the_complexity_is_sampled_beyond_twelve_points():
    Ks, y = halves(14)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=14.0))
    signs = np.array(list(product((-1.0, 1.0), repeat=14)))
    forms = np.stack([((signs @ K) * signs).sum(axis=1) / np.trace(K) for K in Ks]).max(axis=0)
    found = lanckriet.transduction_bound(solution, y=y, samples=4000)
    assert found.complexity == pytest.approx(14 * forms.mean(), abs=14 * 5 * forms.std() / np.sqrt(4000))
    assert found.complexity == lanckriet.transduction_bound(solution, y=y, samples=4000).complexity
    other = lanckriet.transduction_bound(solution, y=y, samples=4000, random_state=1)
    assert other.complexity != found.complexity


def test_a_full_set_of_rank_one_kernels_attains_c_N():
    # N = 4 and all sigma sigma' / N: max_i (sigma'sigma_i)^2 / N = N for every sigma, so 4 c; printed: 2 c
    signs = np.array(list(product((-1.0, 1.0), repeat=4)))
    Ks, y, c = np.einsum("si,sj->sij", signs, signs) / 4, np.array([1.0, -1.0]), 3.0
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, trace=c))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == close(4 * c) and found.complexity_bound == close(4 * c)


def test_free_signs_have_complexity_c_N():
    Ks, y = halves(8)
    solution = learned(lanckriet.soft_margin(Ks, y, C=0.6, weights="free", trace=8.0))
    found = lanckriet.transduction_bound(solution, y=y)
    assert found.complexity == found.complexity_bound == close(64)


@with_learned
@every("delta", [0.05, 0.5])
def test_the_bound_is_the_sum_of_its_parts(criterion, delta):
    Ks, y = halves(12, seed=2)
    solution = learned(lanckriet.margin(Ks, y, **criterion, trace=12.0))
    found = lanckriet.transduction_bound(solution, delta, y=y)
    half = y.size
    error = np.maximum(1 - y * solution.decision_function()[:half], 0).mean()
    square = solution.alpha @ solution.kernel[:half, :half] @ solution.alpha  # |w|^2 = 1 / gamma^2
    capacity = np.sqrt(found.complexity * square / half)
    assert found.margin_error == pytest.approx(error, abs=1e-12)
    assert found.confidence == pytest.approx(np.sqrt(2 * np.log(1 / delta)), rel=1e-12)
    assert found.capacity == pytest.approx(capacity, rel=1e-9)
    assert found.bound == pytest.approx(
        error + (4 + np.sqrt(2 * np.log(1 / delta)) + capacity) / np.sqrt(half), rel=1e-9
    )
    if criterion == CRITERIA["hard margin"]:  # then |w|^2 = omega
        assert found.capacity == pytest.approx(np.sqrt(found.complexity * solution.value / half), rel=1e-3)


def test_the_bound_needs_equal_halves():
    solution = lanckriet.soft_margin(KS, Y).solve()
    with pytest.raises(ko.errors.ParameterError, match="got 14 labelled of 18.*Learn with n further points"):
        lanckriet.transduction_bound(solution, y=Y)
    Ks, y = halves(8)
    solution = lanckriet.soft_margin(Ks, y).solve()
    with pytest.raises(ko.errors.ParameterError, match="and 3 labels"):
        lanckriet.transduction_bound(solution, y=y[:3])
    for delta in (0.0, -1.0, 1.0, 2.0, np.nan):
        with pytest.raises(ko.errors.ParameterError, match="delta must be"):
            lanckriet.transduction_bound(solution, delta, y=y)
