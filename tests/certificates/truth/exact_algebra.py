"""Numbers, norms and linear algebra in 320 bits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
from mpmath import mp, mpf

from tests import exact_fractions as fractions

mp.prec = 320
ZERO, ONE = mpf(0), mpf(1)
INFINITE = mpf("inf")
NEGLIGIBLE = mpf(2) ** -250  # of the terms: what rounding to 320 bits leaves


def exact(values: Any) -> np.ndarray:
    """An array of doubles as one of 320-bit numbers."""
    array = np.asarray(values)
    if array.dtype == object:
        return array
    return np.array([mpf(float(v)) for v in array.ravel()], dtype=object).reshape(array.shape)


def double(values: np.ndarray) -> np.ndarray:
    return np.array([float(v) for v in np.ravel(values)]).reshape(np.shape(values))


def each(function: Any, *arrays: np.ndarray) -> np.ndarray:
    return np.array([function(*entries) for entries in zip(*arrays, strict=True)], dtype=object)


def p_norm(values: Any, p: float) -> mpf:
    """|values|_p; the exponent is the stored double."""
    values = [abs(v) for v in values]
    largest = max(values)
    if largest == 0 or p == np.inf:
        return largest
    return largest * sum((v / largest) ** mpf(p) for v in values) ** (1 / mpf(p))


def dual_norm(values: Any, p: float) -> mpf:
    """The norm dual to |.|_p."""
    if p == 1:
        return p_norm(values, np.inf)
    return p_norm(values, 1.0) if p == np.inf else p_norm(values, mpf(p) / (mpf(p) - 1))


def definite(K: np.ndarray) -> bool:
    """Whether a Cholesky factorisation in 320 bits goes through, zero pivots with zero rows included."""
    K = K.copy()
    size = max(abs(v) for v in K.ravel())
    for i in range(len(K)):
        if K[i, i] < -NEGLIGIBLE * size:
            return False
        if K[i, i] <= NEGLIGIBLE * size:
            if max((abs(v) for v in K[i, i + 1 :]), default=ZERO) > mpf(2) ** -120 * size:
                return False
            continue
        K[i + 1 :, i + 1 :] -= np.outer(K[i + 1 :, i], K[i + 1 :, i]) / K[i, i]
    return True


def least_eigenvalue(Z: np.ndarray) -> mpf:
    """A number below the least eigenvalue, near it."""
    size = max(abs(v) for v in Z.ravel())
    return min(mp.eigsy(mp.matrix(Z.tolist()), eigvals_only=True)) - NEGLIGIBLE * size


def spanned(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A solution of the consistent system S x = right with a PSD S, columns that depend on others unused."""
    m = len(right)
    M, x, rows = np.column_stack([S, right]), np.array([ZERO] * m), []
    for i in range(m):
        if abs(M[i, i]) > mpf(2) ** -150 * abs(S[i, i]):
            rows.append(i)
            for r in range(m):
                if r != i:
                    M[r] = M[r] - M[i] * (M[r, i] / M[i, i])
    for i in rows:
        x[i] = M[i, m] / M[i, i]
    return x


def first_multiplier(units: np.ndarray, a: np.ndarray) -> np.ndarray:
    """A multiplier Z of the PSD constraint from a solver: only its quality depends on that solver."""
    n = a.size
    Z, nu = cp.Variable((n, n), PSD=True), cp.Variable()
    size = max(float(a @ a), 1e-300)
    rules = [cp.sum(cp.multiply(K, Z)) + nu * np.trace(K) == -a @ K @ a / (2 * size) for K in units]
    try:
        cp.Problem(cp.Maximize(nu), rules).solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return np.zeros((n, n))
    if Z.value is None or not np.isfinite(Z.value).all():
        return np.zeros((n, n))
    return size * (Z.value + Z.value.T) / 2


def corners(numbers: dict[str, Any]) -> list[np.ndarray]:
    """The corners of {mu >= 0, A mu <= b}, exact."""
    A, b = fractions.exact(numbers["A"]), fractions.exact(numbers["b"])
    rows, m = A.shape
    found = [np.full(m, Fraction(0))]
    for size in range(1, min(rows, m) + 1):
        for R in itertools.combinations(range(rows), size):
            for S in itertools.combinations(range(m), size):
                x = fractions.eliminated(A[np.ix_(R, S)], b[list(R)])
                if x is None or min(x) < 0:
                    continue
                mu = np.full(m, Fraction(0))
                mu[list(S)] = x
                if (A @ mu <= b).all():
                    found.append(mu)
    return [np.array([mpf(v.numerator) / v.denominator for v in mu]) for mu in found]


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of a square system.

    Raises
    ------
    ZeroDivisionError
        If it is singular.
    """
    return np.array(list(mp.lu_solve(mp.matrix(A.tolist()), mp.matrix(b.tolist()))), dtype=object)
