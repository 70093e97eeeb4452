"""The Frobenius norm of a combination: kernels of any scale, against exact rational arithmetic."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import kernelopt as ko
from formulations import lanckriet
from kernelopt.grams import join, triangle
from kernelopt.grams.triangular import BLOCK_BYTES

N = 10
KINDS = [ko.gaussian(100.0), ko.gaussian(1000.0), ko.linear(), ko.polynomial(2), ko.polynomial(3)]
EPSILON = 2.0**-52


def raw(n=N, seed=0):
    """Features as different in scale as those of breast cancer before they are standardised."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(size=(n, 4), sigma=0.3) * [15.0, 0.1, 100.0, 700.0]


def lazy():
    return ko.Grams.from_kernels(KINDS, raw())


V = np.random.default_rng(1).normal(size=(N, 4)) * [1e-6, 1.0, 1e5, 1.0]
EXTREME = [1e-200 * np.eye(N), 1e200 * np.ones((N, N)), np.diag(np.arange(1.0, N + 1)), np.zeros((N, N))]
STACKS = {
    "raw": lazy,
    "centred": lambda: lazy().center(),
    "trace": lambda: lazy().normalize("trace"),
    "some": lambda: lazy().subset([3, 0, 0]),
    "extreme": lambda: ko.Grams.from_array(np.stack(EXTREME)),
    "rank one": lambda: ko.Grams.rank_one(V),
    "parallel": lambda: ko.Grams.rank_one(np.column_stack([V, 1e3 * V[:, 1]])),
    "eigenvectors": lambda: ko.Grams.from_eigenvectors(lazy()[0]),
    "identity": lambda: ko.Grams.identity(N),
    "joined": lambda: join([(1e8, lazy()), (1.0, ko.Grams.rank_one(V)), (3.0, ko.Grams.identity(N))]),
}


def exact_square(Ks, mu):
    """|sum_i mu_i K_i|_F^2 for the doubles that are stored."""
    total = sum(
        (Fraction(float(m)) * fractions(K) for m, K in zip(mu, Ks, strict=True)), fractions(0 * Ks[0])
    )
    return sum(entry * entry for entry in total.ravel())


def fractions(K):
    return np.array([Fraction(float(entry)) for entry in np.ravel(K)], dtype=object)


def root(square):
    """The square root of a fraction to 100 bits."""
    if not square:
        return Fraction(0)
    shift = 2 * (200 + abs(square.numerator.bit_length() - square.denominator.bit_length()))
    return Fraction(math.isqrt(square.numerator * 2**shift // square.denominator), 2 ** (shift // 2))


@pytest.mark.parametrize("name", sorted(STACKS))
def test_the_triangle_measures_combinations_to_round_off(name):
    """In error by less than a few units of round-off of sum_i |mu_i| |K_i|_F, whatever cancels."""
    grams = STACKS[name]()
    Ks, R = list(grams), triangle(grams)
    assert R.shape[1] == len(grams) and np.array_equal(R, np.triu(R))
    sizes = [root(exact_square([K], [1.0])) for K in Ks]
    rng = np.random.default_rng(0)
    units = np.array([1 / float(s) if s else 1.0 for s in sizes])
    single = list(np.eye(len(grams)))
    for direction in [
        *single,
        *(rng.normal(size=len(grams)) * 10.0 ** rng.integers(-5, 6, len(grams)) for _ in range(4)),
    ]:
        mu = units * direction
        found = Fraction(float(np.linalg.norm(R @ mu)))
        terms = sum(Fraction(abs(float(m))) * s for m, s in zip(mu, sizes, strict=True))
        assert abs(found - root(exact_square(Ks, mu))) <= 8 * EPSILON * terms


def test_a_small_kernel_beside_large_ones_has_its_own_norm():
    """The eigendecomposition of squared products gave 2.6e6 for 31.8, beside polynomial(2) of raw data."""
    grams = lazy()
    for i, K in enumerate(grams):
        one = np.eye(len(grams))[i]
        assert ko.frobenius(ko.combine(one, grams)).value == pytest.approx(np.linalg.norm(K), rel=1e-14)


@pytest.mark.parametrize("tau", [1.0, 1e-6])
def test_terms_of_several_stacks_are_measured_together(tau):
    grams, weights = lazy(), np.array([1.0, -2.0, 1e-6, 0.0, 0.0])
    K = ko.combine(weights, grams) - tau * np.eye(N)
    assert ko.frobenius(K).value == pytest.approx(
        float(root(exact_square([*grams, np.eye(N)], [*weights, -tau]))), rel=1e-12
    )


@pytest.mark.parametrize("block", [1, 300, BLOCK_BYTES], ids=["rows", "some", "all"])
def test_blocks_of_rows_change_nothing(block, monkeypatch):
    whole = triangle(STACKS["raw"]())
    monkeypatch.setattr("kernelopt.grams.triangular.BLOCK_BYTES", block)
    monkeypatch.setattr("kernelopt.grams.triangular.TALL", 1)
    R = triangle(STACKS["raw"]())
    assert np.abs(R) == pytest.approx(np.abs(whole), rel=1e-9, abs=1e-12)


def test_matrices_that_are_not_kept_are_never_held(monkeypatch):
    """A stack of 24 MB is measured by 4 MB of its rows at a time."""
    X = np.random.default_rng(0).normal(size=(500, 3))
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in np.linspace(0.5, 4, 12)], X)
    monkeypatch.setattr("kernelopt.grams.triangular.all_cached", lambda shape: False)
    monkeypatch.setattr("kernelopt.grams.caching.CHUNK_BYTES", 4_000_000)
    tracemalloc.start()
    R = triangle(grams)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
    assert np.linalg.norm(R[:, 3]) == pytest.approx(np.linalg.norm(grams[3]), rel=1e-13)


# -------------------------------------------------------------- alignment of kernels of different scale


@pytest.mark.parametrize("weights", ["nonnegative", "free"])
def test_alignment_does_not_depend_on_the_scales_of_the_kernels(weights):
    """Value, weights times scale, and a bound that no weights pass; four raw kernels took 150 s."""
    X, y = raw(25, seed=3), np.where(np.arange(25) % 3 > 0, 1.0, -1.0)
    X[y > 0] *= 1.1
    kernels = [ko.gaussian(100.0), ko.gaussian(1000.0), ko.linear(), ko.polynomial(2)]
    grams = ko.Grams.from_kernels(kernels, X)
    powers = 2.0 ** -np.round(np.log2([np.linalg.norm(K) for K in grams]))
    one = lanckriet.alignment(grams, y, weights=weights).solve()
    other = lanckriet.alignment(join([(powers, grams)]), y, weights=weights).solve()
    assert one.certificate.gap <= 1e-5
    assert one.value == pytest.approx(other.value, rel=1e-6)
    for solution, factors in ((one, 1.0), (other, powers)):
        K = sum(w * k for w, k in zip(factors * solution.weights, grams, strict=True))
        attained = y @ K @ y / np.linalg.norm(K)
        bounds = solution.certificate
        assert bounds.lower * (1 - 1e-12) <= attained <= bounds.upper * (1 + 1e-12)
        assert np.linalg.norm(K) == pytest.approx(1, rel=1e-5)
