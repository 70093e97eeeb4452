"""Points, kernels and oracles for the linear functional strategy."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest

import kernelopt as ko
from formulations import linear_functional as lf
from tests.problems import points, targets

N, ALPHA = 20, 0.03
X = points(N, d=2)
V = targets(N)
KERNELS = [ko.gaussian(0.5), ko.gaussian(1.0), ko.gaussian(4.0), ko.linear(), ko.polynomial(3)]
GRAMS = ko.Grams.from_kernels(KERNELS, X)
KS = np.asarray(GRAMS)
M = len(KERNELS)
CASES = [(w, ridge) for w in ("free", "nonnegative", "simplex") for ridge in (0.0, 0.02)]
cases = pytest.mark.parametrize(("weights", "ridge"), CASES)
COLUMNS = ("training", "leave-one-out", "split")


def learn(grams=GRAMS, v=V, **options):
    return lf.functional_strategy(grams, v, **{"regularization": ALPHA, **options})


def by_hand(K, v, level):
    return np.linalg.solve(K + level * np.eye(len(K)), v)


def value(**options):
    return learn(**options).solve().value


def rational(array):
    return np.array([Fraction(float(entry)) for entry in np.ravel(array)], dtype=object).reshape(
        np.shape(array)
    )


def eliminated(A, b):
    """The solution of A x = b by Gaussian elimination, None where A is singular."""
    n = len(b)
    M = np.concatenate([A, np.reshape(b, (n, 1))], axis=1)
    for i in range(n):
        pivot = next((j for j in range(i, n) if M[j, i]), None)
        if pivot is None:
            return None
        M[[i, pivot]] = M[[pivot, i]]
        M[i] = M[i] / M[i, i]
        for j in range(n):
            if j != i and M[j, i]:
                M[j] = M[j] - M[j, i] * M[i]
    return M[:, n]


def exact_optimum(X, v, ridge, weights):
    """The least value over all supports whose equations are regular: some optimal weights have one."""
    n, M = X.shape
    v, ridge = rational(v), Fraction(float(ridge))
    best = None if weights == "simplex" else v @ v / n
    for S in chain.from_iterable(combinations(range(M), k) for k in range(1, M + 1)):
        Y, k = X[:, list(S)], len(S)
        size = k + (weights == "simplex")
        A = np.array([[Fraction(0)] * size for _ in range(size)], dtype=object)
        b = np.array([Fraction(0)] * size, dtype=object)
        A[:k, :k], b[:k] = Y.T @ Y / n, Y.T @ v / n
        for i in range(k):
            A[i, i] += ridge
        if weights == "simplex":
            A[:k, k] = A[k, :k] = Fraction(1)
            b[k] = Fraction(1)
        found = eliminated(A, b)
        if found is None or (weights != "free" and min(found[:k]) < 0):
            continue
        c = found[:k]
        r = v - Y @ c
        value = r @ r / n + ridge * (c @ c)
        best = value if best is None else min(best, value)
    return best
