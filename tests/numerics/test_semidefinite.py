"""The proof that a matrix is semidefinite up to a margin, for matrices of known eigenvalues."""

import numpy as np

from kernelopt.numerics.decompositions import semidefinite_beyond
from kernelopt.numerics.rounding import gamma
from tests.every import every


@every("n", [1, 2, 30, 200])
def test_semidefinite_is_proved_just_above_the_least_eigenvalue_and_never_below(n):
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    for least in (-1e-3, -1e-9):
        eigenvalues = np.append(least, rng.random(n - 1))
        M = (Q * eigenvalues) @ Q.T
        M = (M + M.T) / 2
        assert not semidefinite_beyond(M, 0.99 * abs(least))
        assert semidefinite_beyond(M, 1.01 * abs(least))


@every("rank", [0, 1, 7, 60])
def test_a_product_of_a_factor_with_itself_is_semidefinite_up_to_rounding(rank):
    half = np.random.default_rng(rank).normal(size=(rank, 60))
    X = half.T @ half
    margin = 4 * gamma(62) * np.trace(X)
    assert semidefinite_beyond(X, margin) == (rank > 0)  # a margin of zero is never proved
    before = X.copy()
    semidefinite_beyond(X, 1.0)
    assert np.array_equal(X, before)
