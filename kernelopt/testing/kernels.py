"""`check_kernel`: the properties of a Gram matrix, and the methods of a kernel against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.errors import ParameterError
from kernelopt.kernels import Kernel
from kernelopt.testing.findings import Findings
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
    X : array of shape (points, columns), or strings for a kernel of strings, at least four points, optional
        By default twelve normal points with three columns, of which two are equal.
    seed : int, default 0

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
    if not isinstance(kernel, Kernel):
        raise ParameterError(
            f"check_kernel takes a Kernel, got {type(kernel).__name__}: {kernel!r:.60}. Create one, such as "
            "kernelopt.gaussian(1.0)."
        )
    if X is None:
        X = np.random.default_rng(seed).normal(size=(POINTS, COLUMNS))
        X[-1] = X[0]  # data sets have equal points too
    points = kernel.domain(X, "X", None)
    if len(points) < 4:
        raise ParameterError(f"X must have at least four points, got {len(points)}. Pass more rows.")
    findings = Findings(repr(kernel))
    for what, check in CHECKS.items():
        with findings.part(what):
            check(findings, kernel, points.copy())
    findings.raise_if_wrong()
    return findings


def difference(one: Array, two: Array) -> float:
    """Return the largest difference of two arrays, relative to their largest entry."""
    if one.shape != two.shape:
        return np.inf
    return float(np.abs(one - two).max()) / (float(np.abs(two).max()) or 1.0)


def check_gram(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check that the Gram matrix is finite, repeatable and positive semidefinite, and leaves X alone."""
    before = X.copy()
    K = kernel(X)
    shape = (len(X), len(X))
    findings.state("X is not changed", np.array_equal(X, before), "changed points")
    if not findings.state(f"the Gram matrix has shape {shape}", K.shape == shape, K.shape):
        return
    findings.state("the Gram matrix is the same at every call", np.array_equal(K, kernel(X)), "another one")
    values = np.linalg.eigvalsh(K)
    least, largest = float(values[0]), float(np.abs(values).max())
    shown = f"an eigenvalue of {least:.1e} beside {largest:.1e}"
    findings.state("the Gram matrix is positive semidefinite", least >= -NEGATIVE * largest, shown)


def check_new_points(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check values between two sets of points against the Gram matrix of both."""
    K, half = kernel(X), len(X) // 2
    missed = difference(kernel(X[:half], X[half:]), K[:half, half:])
    missed = max(missed, difference(kernel(X[half:], X[:half]), K[half:, :half]))
    shown = f"a difference of {missed:.1e}"
    findings.state("k(X, Z) is a block of the Gram matrix of X and Z", missed <= CLOSE, shown)


def check_order(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check that another order of the points gives the same entries."""
    order = np.roll(np.arange(len(X))[::-1], len(X) // 2)
    missed = difference(kernel(X[order]), kernel(X)[np.ix_(order, order)])
    findings.state(
        "reordered points have the reordered Gram matrix", missed <= CLOSE, f"a difference of {missed:.1e}"
    )


def check_diagonal(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check the diagonal against the Gram matrix."""
    missed = difference(kernel.diagonal(X), np.diag(kernel(X)))
    shown = f"a difference of {missed:.1e}"
    findings.state("the diagonal is that of the Gram matrix", missed <= CLOSE, shown)


def check_rank(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check the bound of the rank."""
    values = np.abs(np.linalg.eigvalsh(kernel(X)))
    found = int((values > NEGATIVE * values.max()).sum())
    bound = kernel.rank(X)
    findings.state("the rank is at most its bound", found <= bound, f"{found} for the bound {bound}")


def check_profile(findings: Findings, kernel: Kernel, X: Array) -> None:
    """Check the function of one distance against the Gram matrix, where the kernel has one, and its signs."""
    profile, missed = kernel.profile(), 0.0
    if profile is not None:
        points = X if profile.columns is None else X[:, list(profile.columns)]
        values = profile.function(distances(points, profile.metric))
        values[np.diag_indices(len(X))] = profile.own
        missed = difference(values, kernel(X))
    what = "the profile, if there is one, gives the Gram matrix"
    findings.state(what, missed <= CLOSE, f"a difference of {missed:.1e}")
    lowest = 0.0
    if profile is not None and profile.completely_monotone:
        f = profile.function(np.linspace(0, distances(points, profile.metric).max(), GRID)) / profile.own
        lowest = min(float(((-1) ** k * np.diff(f, k)).min()) / 2**k for k in range(ORDERS + 1))
    what = "the differences of a profile alternate in sign where it says that it is completely monotone"
    findings.state(what, lowest >= -ROUNDED, f"{lowest:.1e} for (-1/2)^k times one of an order k <= {ORDERS}")


def distances(X: Array, metric: str | None) -> Array:
    """Return the distances of a profile between all points, by their definition."""
    differences = X[:, None] - X[None]
    if metric is None:
        return np.zeros((len(X), len(X)))
    return np.asarray((differences**2 if metric == "sqeuclidean" else np.abs(differences)).sum(axis=2))


CHECKS = {
    "the Gram matrix": check_gram,
    "new points": check_new_points,
    "the order": check_order,
    "the diagonal": check_diagonal,
    "the rank": check_rank,
    "the profile": check_profile,
}
