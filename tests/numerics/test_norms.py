"""Weights in an l_p ball that minimise a sum of l^2 / theta, against a conic solver and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from kernelopt.certificates.lower.minorants import constant, optimal_block_weights
from kernelopt.numerics.norms import lp_length, minimizing_weights
from tests.every import every
from tests.problems import solved

LENGTHS = np.array([0.5, 2.0, 1.0, 0.1])
EXPONENTS = [1, 1.3, 2, 5, np.inf]


@every("p", EXPONENTS)
def test_minimizing_weights_attain_the_minimum_of_the_programme(p):
    theta = cp.Variable(4)
    ball = cp.norm(theta, p) if p in (1, 2, np.inf) else cp.pnorm(theta, p, approx=False)
    smallest = solved(
        cp.Problem(cp.Minimize(cp.sum(cp.multiply(LENGTHS**2, cp.inv_pos(theta)))), [ball <= 1])
    )
    weights = minimizing_weights(LENGTHS, p)
    assert lp_length(weights, p) == pytest.approx(1, rel=1e-14)
    assert float((LENGTHS**2 / weights).sum()) == pytest.approx(smallest, rel=1e-6)
    # In closed form the minimum is |lengths|_r^2 with r = 2 p / (p + 1).
    r = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    assert float((LENGTHS**2 / weights).sum()) == pytest.approx(lp_length(LENGTHS, r) ** 2, rel=1e-13)


@every("p", EXPONENTS)
def test_minimizing_weights_of_zero_lengths_and_of_extreme_sizes(p):
    assert minimizing_weights(np.zeros(3), p) == pytest.approx(np.full(3, 3 ** (-1 / p)))
    for factor in (1e-300, 1e300):
        assert minimizing_weights(factor * LENGTHS, p) == pytest.approx(minimizing_weights(LENGTHS, p))
    raised = minimizing_weights(np.array([0.0, 1.0]), p, floor=0.25)
    assert raised[0] == pytest.approx((0.25 if p < np.inf else 1.0) * raised[1])


def test_block_weights_lie_in_the_ball_in_exact_arithmetic():
    """For norm = inf, p is 1: weights with a sum above one by rounding would give a false lower bound."""
    rng = np.random.default_rng(0)
    for m in range(2, 40):
        forms = [constant(square) for square in rng.exponential(size=m)]
        gamma = optimal_block_weights(np.inf, forms)
        assert 1 - Fraction(1, 10**13) < sum(map(Fraction, gamma)) <= 1
