"""Estimates of extreme eigenvalues against all eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

from kernelopt.numerics.decompositions import extreme_eigenvalues


def with_eigenvalues(values, seed=0):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (Q * values) @ Q.T


def test_estimates_lie_inside_and_find_eigenvalues_that_stand_apart():
    inner = np.random.default_rng(1).uniform(-1, 1, 298)
    K = with_eigenvalues(np.r_[-2.0, inner, 3.0])
    low, high = extreme_eigenvalues(K)
    assert low == pytest.approx(-2, abs=1e-10) and high == pytest.approx(3, abs=1e-10)
    low, high = extreme_eigenvalues(K, steps=4)
    assert -2 < low < -0.5 and 1 < high < 3
    assert extreme_eigenvalues(K) == extreme_eigenvalues(K)


def test_all_eigenvalues_are_found_where_there_are_few():
    for K in (np.eye(5), np.zeros((3, 3)), np.array([[-7.0]]), with_eigenvalues(np.array([1.0, 1, 4, -2]))):
        values = np.linalg.eigvalsh(K)
        assert extreme_eigenvalues(K) == pytest.approx((values[0], values[-1]), abs=1e-12)


def test_rounding_makes_no_copies_of_eigenvalues():
    K = with_eigenvalues(10.0 ** -np.arange(0, 12, 0.1))
    low, high = extreme_eigenvalues(K)
    assert -1e-15 < low < 1e-7 and high == pytest.approx(1)
