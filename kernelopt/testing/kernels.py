"""`check_kernel`: the properties of a Gram matrix, and the methods of a kernel against each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from kernelopt.errors import ParameterError
from kernelopt.kernels import Kernel
from kernelopt.testing.findings import Findings, Property, apart, require
from kernelopt.validation import Array

POINTS, COLUMNS = 12, 3  # of the default points
GRID, ORDERS = 65, 8  # distances at which a profile is evaluated, and the orders of its differences
ROUNDED = 1e-14  # of a difference of order k divided by 2^k, relative to the diagonal
CLOSE = 1e-10  # relative to the largest entry: the rounding of some hundred operations
NEGATIVE = (
    1e-8  # of an eigenvalue, relative to the largest one: the limit at which `solve` raises NotPSDError
)


def check_kernel(kernel: Kernel, X: Any = None, *, seed: int = 0) -> Findings:
    """Check the Gram matrices of a kernel, and its diagonal, rank and profile.

    It is checked that

    * the Gram matrix is finite, the same at every call, and positive semidefinite: no eigenvalue is below
      -1e-8 times the largest one;
    * k(X, Z) and k(Z, X) are blocks of the Gram matrix of X and Z together;
    * if the points are reordered, so are the entries of the Gram matrix;
    * `gram_diagonal` is the diagonal of the Gram matrix;
    * `gram_rank` is at least the number of eigenvalues above 1e-8 of the largest one;
    * `profile`, if it is not None, gives the Gram matrix: its function at the distances of the points, and
      `own` on the diagonal. Its differences alternate in sign if it says that it is completely monotone;
    * X is not changed.

    Parameters
    ----------
    kernel : Kernel
        What is checked.
    X : array of shape (points, columns), or strings for a kernel of strings, at least four points, optional
        By default twelve normal points with three columns, the last point equal to the first.
    seed : int, default 0
        Of the random points.

    Returns
    -------
    Findings
        `print` lists the statements that hold.

    Raises
    ------
    AssertionError
        With every statement that fails.
    ParameterError
        If it is not given a `Kernel`, or fewer than four points.

    Examples
    --------
    >>> import kernelopt as ko
    >>> from kernelopt.testing import check_kernel
    >>> len(check_kernel(ko.gaussian(1.0)).stated)
    10
    """
    require(kernel, Kernel, "check_kernel", "Create one, such as kernelopt.gaussian(1.0).")
    if X is None:
        X = np.random.default_rng(seed).normal(size=(POINTS, COLUMNS))
        X[-1] = X[0]  # data sets have equal points too
    points = kernel.domain(X, "X", None)
    if len(points) < 4:
        raise ParameterError(f"X must have at least four points, got {len(points)}. Pass more rows.")
    return Findings(repr(kernel)).state_all(properties(kernel, points.copy()))


def properties(kernel: Kernel, X: Array) -> Iterator[Property]:
    """Yield the properties of a kernel at some points."""
    before, shape = X.copy(), (len(X), len(X))
    K = kernel(X)
    yield "X is not changed", 0, [not np.array_equal(X, before)]
    yield f"the Gram matrix has shape {shape}", 0, [K.shape != shape]
    if K.shape != shape:
        return
    yield "the Gram matrix is the same at every call", 0, [not np.array_equal(K, kernel(X))]
    values = np.linalg.eigvalsh(K)
    largest = np.abs(values).max()
    yield "the Gram matrix is positive semidefinite", NEGATIVE * largest, [-values[0]]
    first, second = slice(len(X) // 2), slice(len(X) // 2, None)
    blocks = (near(kernel(X[a], X[b]), K[a, b]) for a, b in ((first, second), (second, first)))
    yield "k(X, Z) is a block of the Gram matrix of X and Z", CLOSE, blocks
    order = np.roll(np.arange(len(X))[::-1], len(X) // 2)
    reordered = (near(kernel(X[new]), K[np.ix_(new, new)]) for new in [order])
    yield "reordered points have the reordered Gram matrix", CLOSE, reordered
    diagonals = (near(k.diagonal(X), np.diag(K)) for k in [kernel])
    yield "`gram_diagonal` is the diagonal of the Gram matrix", CLOSE, diagonals
    found = (np.abs(values) > NEGATIVE * largest).sum()
    yield "the rank is at most its bound", 0, (found - k.rank(X) for k in [kernel])
    profile, missed, lowest = kernel.profile(), 0.0, 0.0
    if profile is not None:
        Z = X if profile.columns is None else X[:, list(profile.columns)]
        apart_by = np.zeros(shape) if profile.metric is None else cdist(Z, Z, profile.metric)
        given = profile.function(apart_by)
        np.fill_diagonal(given, profile.own)
        missed = near(given, K)
        if profile.completely_monotone:
            f = profile.function(np.linspace(0, apart_by.max(), GRID)) / profile.own
            lowest = min(float(((-1) ** k * np.diff(f, k)).min()) / 2**k for k in range(ORDERS + 1))
    yield "the profile, if there is one, gives the Gram matrix", CLOSE, [missed]
    what = "the differences of a profile alternate in sign where it says that it is completely monotone"
    yield what, ROUNDED, [-lowest]


def near(one: Array, two: Array) -> float:
    """Return the largest difference of two arrays, relative to their largest entry."""
    return apart(one, two, float(np.finfo(float).tiny))
