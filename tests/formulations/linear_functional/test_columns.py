"""The columns of the linear functional strategy are computed: its bounds hold for the exact ones."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest

from formulations import linear_functional as lf
from formulations.linear_functional.method.certificate import stage_certificate
from tests.formulations.linear_functional.cases import eliminated, exact_optimum, rational


def exact_columns(Ks, v, alpha):
    """K (K + n alpha I)^-1 v for the doubles that are stored."""
    n, exact = len(v), rational(v)
    unit = np.array([[Fraction(int(i == j)) for j in range(n)] for i in range(n)], dtype=object)
    found = []
    for K in Ks:
        A = rational(K)
        found.append(A @ eliminated(A + n * Fraction(float(alpha)) * unit, exact))
    return np.array(found, dtype=object).T


def low_rank(rng, n, integer):
    x = rng.integers(-2, 3, size=(n, 1 + int(rng.integers(2)))).astype(float)
    return x if integer else x * rng.normal(size=x.shape)


def ordinary(rng, n):
    G = rng.normal(size=(int(rng.integers(1, 4)), n, n))
    return G @ G.transpose(0, 2, 1), rng.normal(size=n)


def scaled(rng, n):
    Ks, v = ordinary(rng, n)
    return Ks * 10.0 ** rng.integers(-13, 10, size=(len(Ks), 1, 1)), v


def orthogonal_integers(rng, n):
    """K v = 0 in exact arithmetic: the regularised function vanishes."""
    x = rng.integers(-2, 3, size=n).astype(float)
    v = np.zeros(n)
    v[0], v[1] = x[1], -x[0]
    return np.stack([np.outer(x, x), np.eye(n)][: int(rng.integers(1, 3))]), v


def orthogonal_doubles(rng, n):
    x = low_rank(rng, n, integer=False)
    v = rng.normal(size=n)
    return (x @ x.T)[None], v - x @ np.linalg.lstsq(x, v, rcond=None)[0]


def centred(rng, n):
    H = np.eye(n) - 1 / n
    x = low_rank(rng, n, integer=True)
    K = H @ (x @ x.T) @ H
    return (K + K.T)[None] / 2, np.full(n, rng.normal())


def repeated(rng, n):
    x = low_rank(rng, n, integer=True)
    K = x @ x.T + np.eye(n) * int(rng.integers(2))
    return np.stack([K, 0 * K, K, 3 * K][: int(rng.integers(2, 5))]), rng.integers(-2, 3, size=n).astype(
        float
    )


PROBLEMS = {
    p.__name__: p for p in (ordinary, scaled, orthogonal_integers, orthogonal_doubles, centred, repeated)
}
SETS = [("free", 0.0), ("nonnegative", 0.0), ("simplex", 0.0), ("free", 0.02), ("nonnegative", 1e-8)]


def false_bounds(kind, seed):
    """Return what is wrong with the bounds of one random problem, at its solution and elsewhere."""
    rng = np.random.default_rng(seed)
    n, alpha = int(rng.integers(3, 6)), 10.0 ** rng.uniform(-3, 1)
    Ks, v = PROBLEMS[kind](rng, n)
    strategy = lf.functional_strategy(Ks, v, regularization=alpha)
    X = exact_columns(Ks, v, alpha)
    wrong = []
    for weights, ridge in SETS:
        stage = strategy.with_weights(weights, ridge=ridge).stage
        optimum = exact_optimum(X, v, ridge, weights)
        points = [rng.normal(size=len(Ks)), np.full(len(Ks), 1 / len(Ks)), stage.directly("svd", 1e-12)[0]]
        for c in points:
            bounds = stage_certificate(stage, c)
            if not Fraction(bounds.lower) <= optimum <= Fraction(bounds.upper):
                wrong.append((kind, seed, weights, ridge, bounds, float(optimum)))
    return wrong


@pytest.mark.parametrize("kind", sorted(PROBLEMS))
def test_bounds_hold_for_the_exact_columns(kind):
    assert not list(chain.from_iterable(false_bounds(kind, seed) for seed in range(8)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(PROBLEMS))
def test_bounds_hold_for_the_exact_columns_of_many_problems(kind):
    assert not list(chain.from_iterable(false_bounds(kind, seed) for seed in range(100, 120)))


@pytest.mark.parametrize("seed", range(5))
def test_errors_of_the_columns_are_bounded_and_small(seed):
    rng = np.random.default_rng(seed)
    for make in PROBLEMS.values():
        Ks, v = make(rng, 5)
        found = lf.functional_strategy(Ks, v, regularization=0.1).candidates
        X = exact_columns(Ks, v, 0.1)
        for j, error in enumerate(found.errors):
            off = rational(found.columns[:, j]) - X[:, j]
            assert off @ off <= Fraction(float(error)) ** 2
            size = np.linalg.norm(Ks[j], 2) * np.linalg.norm(found.coefficients[j]) + np.linalg.norm(v)
            assert error <= 1e-13 * size


@pytest.mark.parametrize("weights", ["free", "nonnegative"])
@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0, 0.0], [3.0, -7.0, 1.0, 5.0]])
def test_a_function_that_vanishes_has_weight_zero(weights, x):
    """A column of rounding had the weight -4e13, and half the value with a gap of zero."""
    x = np.array(x) / 8
    v = np.array([x[1], -x[0], 0.0, 0.0])
    solution = lf.functional_strategy([np.outer(x, x)], v, regularization=0.01, weights=weights).solve()
    assert solution.weights == pytest.approx([0.0], abs=0)
    assert solution.value == pytest.approx(v @ v / 4, rel=1e-14) and solution.gap <= 1e-14


def test_rounding_of_a_kernel_is_not_fitted():
    """A centred kernel has K 1 = 0 only up to rounding: its column has no weight and proves nothing."""
    rng = np.random.default_rng(0)
    H = np.eye(6) - 1 / 6
    x = rng.normal(size=(6, 2))
    K = H @ (x @ x.T) @ H
    strategy = lf.functional_strategy([(K + K.T) / 2], np.ones(6), regularization=0.1)
    solution = strategy.solve_directly()
    assert solution.weights == pytest.approx([0.0], abs=0) and solution.rank == 0
    assert solution.certificate.upper == pytest.approx(1.0) and solution.certificate.lower == 0
    assert "kernel 0 is zero up to rounding" in solution.certificate.reason
    other = lf.functional_strategy([(K + K.T) / 2], np.ones(6), regularization=0.1, ridge=1e-6).solve()
    assert other.gap <= 1e-12


def test_a_small_kernel_is_a_kernel():
    """Its column is short but no rounding: K = 1e-14 I fits every target."""
    v = np.array([1.0, -2.0, 0.5])
    solution = lf.functional_strategy([1e-14 * np.eye(3)], v, regularization=1.0).solve()
    assert solution.value <= 1e-20 and solution.weights == pytest.approx([3e14], rel=1e-9)


SCRIPT = """
import numpy as np
from formulations import linear_functional as lf
for v in (np.array([1.0, 2, -1, 0, 0.5, 3]), -np.ones(6), np.zeros(6)):
    for Ks in (np.zeros((1, 6, 6)), np.zeros((3, 6, 6)), np.stack([np.zeros((6, 6)), np.eye(6)])):
        for weights in ("nonnegative", "free", "simplex"):
            solution = lf.functional_strategy(Ks, v, regularization=0.1, weights=weights).solve()
            best = 0.0 if Ks.any() and weights != "simplex" else None
            best = v @ v / 6 if not Ks.any() else best
            assert best is None or abs(solution.value - best) < 1e-6, (weights, solution)
            assert solution.gap < 1e-5 and (weights == "simplex" or solution.weights[0] == 0), solution
print("alive")
"""


@pytest.mark.slow
def test_zero_kernels_have_weight_zero_and_leave_the_interpreter_alive():
    """In a process of its own: scipy's nnls frees memory twice where no column is left."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)  # noqa: S603
    assert done.returncode == 0 and done.stdout.strip() == "alive", done.stderr[-2000:]
