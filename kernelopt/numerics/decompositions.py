"""Decompositions and factors of symmetric matrices, started only where the running call has time for them.

LAPACK cannot be interrupted: of order 2,000 one takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.linalg import lapack

from kernelopt.numerics.rounding import SMALLEST_DIVISOR, gamma
from kernelopt.running import check
from kernelopt.validation import PSD_TOLERANCE, Array, Mask, check_psd

RANK_TOLERANCE = 1e-11  # of the largest diagonal entry: smaller pivots are rounding
RESIDUAL_TOLERANCE = 1e-10  # of the largest diagonal entry: a larger |K - L L'| shows that K is indefinite


@dataclass(frozen=True)
class Seconds:
    """Seconds over n^3 of decompositions of order n on one core, measured."""

    pairs: float = 2.0e-10  # eigenvalues with eigenvectors
    values: float = 9e-11  # eigenvalues alone
    factors: float = 2.1e-11  # a Cholesky factor
    singular: float = 3e-10  # a solution by singular values
    product: float = 3.5e-11  # a product of two matrices


SECONDS = Seconds()


def eigenpairs(M: Array, lowest: int | None = None, **options: Any) -> tuple[Array, Array]:
    """Return the ascending eigenvalues and the eigenvectors, of the `lowest` ones or of all.

    Raises
    ------
    Stopped
        If the running call has less time left than is predicted.
    """
    check(SECONDS.pairs * float(len(M)) ** 3)
    if lowest is None and not options:
        values, V = np.linalg.eigh(M)
        return values, V
    some = None if lowest is None else [0, min(lowest, len(M)) - 1]
    found: tuple[Array, Array] = sl.eigh(M, subset_by_index=some, **options)
    return found


def eigenvalues(M: Array) -> Array:
    """Return the ascending eigenvalues, zeros without a decomposition for zero; it raises as `eigenpairs`."""
    if not M.any():
        return np.zeros(len(M))
    check(SECONDS.values * float(len(M)) ** 3)
    return np.asarray(np.linalg.eigvalsh(M), dtype=float)


def lower_factor(M: Array) -> Array:
    """Return the Cholesky factors of positive definite matrices; it raises as `eigenpairs` does.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite to working precision.
    """
    check(SECONDS.factors * float(M.size) * M.shape[-1])
    return np.asarray(np.linalg.cholesky(M), dtype=float)


def shortest_solution(L: Array, R: Array, b: Array, dependent: float) -> Array:
    """Return the shortest x of the least |L R'x - b|; it raises as `eigenpairs` does.

    Singular values below the share `dependent` of the largest one count as zero.
    """
    check(SECONDS.singular * float(len(L)) ** 3)
    return np.asarray(np.linalg.lstsq(L @ R.T, b, rcond=dependent)[0], dtype=float)


def extreme_eigenvalues(K: Array, steps: int = 60) -> tuple[float, float]:
    """Return estimates of the smallest and the largest eigenvalue of a symmetric matrix, shape (N, N).

    They are the extreme eigenvalues of K on the Krylov space of a random vector, after so many products with
    K: outer eigenvalues are found first. So the first is never below the smallest eigenvalue of K, and the
    second never above the largest one, but for rounding. Each vector of the basis is orthogonalised against
    all before it, twice.
    """
    n = len(K)
    Q = np.zeros((min(steps, n), n))
    T = np.zeros((len(Q), len(Q)))
    size, v = 0.0, np.random.default_rng(0).normal(size=n)
    for j in range(len(Q)):
        Q[j] = v / np.linalg.norm(v)
        v = K @ Q[j]
        size = max(size, float(np.linalg.norm(v)))
        for _ in range(2):
            along = Q[: j + 1] @ v
            v -= along @ Q[: j + 1]
            T[j, : j + 1] += along
        T[: j + 1, j] = T[j, : j + 1]
        if np.linalg.norm(v) <= 1e-12 * size:  # the subspace is invariant
            T = T[: j + 1, : j + 1]
            break
    values = np.linalg.eigvalsh(T)
    return float(values[0]), float(values[-1])


def pivoted_cholesky(K: Array, what: str) -> Array:
    """Return L, shape (N, r), with K = L L', by Cholesky's method with diagonal pivoting.

    It ends at pivots below 1e-11 of the largest diagonal entry. `what` is the name of K in errors: where K is
    not positive semidefinite, `check_psd` raises.
    """
    largest = float(np.diag(K).max(initial=0.0))
    if largest <= 0:
        check_psd(K, what)
        return np.zeros((len(K), 0))
    lower, pivots, rank, _ = lapack.dpstrf(K, tol=RANK_TOLERANCE * largest, lower=1)
    L = np.zeros((len(K), rank))
    L[pivots - 1] = np.tril(lower)[:, :rank]
    if float(np.abs(K - L @ L.T).max()) > RESIDUAL_TOLERANCE * largest:
        check_psd(K, what)
    return L


def nearest_psd(K: Array) -> Array | None:
    """Return K, or its projection on the semidefinite matrices where it is indefinite by rounding.

    None where an eigenvalue is below -PSD_TOLERANCE times the spectral norm.
    """
    try:
        lower_factor(K)
        return K
    except np.linalg.LinAlgError:
        eigenvalues, vectors = eigenpairs(K)
        if eigenvalues[0] < -PSD_TOLERANCE * max(abs(eigenvalues[-1]), abs(eigenvalues[0])):
            return None
        psd: Array = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
        return psd


def absolute_value(K: Array) -> Array:
    """Return (K^2)^(1/2), which is K itself where that is semidefinite, but for rounding.

    Eigenvalues that are zero up to the rounding of a decomposition are zero in it.
    """
    if nearest_psd(K) is not None:
        return K
    lam, V = eigenpairs(K)
    size = np.abs(lam)
    return np.asarray((V * np.where(size > gamma(size.size) * size.max(), size, 0.0)) @ V.T)


def pseudoinverse(lam: Array, V: Array) -> Array:
    """Return V diag(1 / lam) V' over the eigenvalues that are not zero up to rounding."""
    kept = np.abs(lam) > RANK_TOLERANCE * np.abs(lam).max()
    return np.asarray((V[:, kept] / lam[kept]) @ V[:, kept].T)


def bordered_solution(
    M: Array, right: Array, bias: bool, total: Array | float = 0.0
) -> tuple[Array, Array] | None:
    """Return X and b of M X + 1 b' = right with 1'X = total, for a positive definite M, which is overwritten.

    Without `bias` it is M X = right, and b is zero. The factorisation is in the numbers of M. None where it
    fails.
    """
    try:
        factor = sl.cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    X = np.asarray(sl.cho_solve(factor, right.astype(M.dtype), check_finite=False), dtype=float)
    if not bias:
        return X, np.zeros(right.shape[1:])
    ones = np.asarray(sl.cho_solve(factor, np.ones(len(M), M.dtype), check_finite=False), dtype=float)
    b = (X.sum(axis=0) - total) / ones.sum()
    return X - np.multiply.outer(ones, b), b


def semidefinite_beyond(X: Array, margin: Array | float) -> Mask:
    """Whether it is proved that the least eigenvalue of each of the symmetric matrices is at least -`margin`.

    The margin may have either sign. A Cholesky factorisation in floating-point numbers that ends proves that
    M + t I is semidefinite, where t = gamma(n + 2) / (1 - gamma(n + 2)) tr M bounds the rounding of the
    factorisation (S. M. Rump, BIT 46 (2006)). Here M is X + s I, and s is what is left of `margin` beside t.
    The factorisation takes a tenth of the time of an eigendecomposition.
    """
    n = X.shape[-1]
    share = gamma(n + 2) / (1 - gamma(n + 2))
    diagonal = np.abs(X.diagonal(axis1=-2, axis2=-1))
    s = margin - share * diagonal.sum(axis=-1) - n * SMALLEST_DIVISOR
    s = s / (1 + np.copysign(share * n, s))
    s = s - gamma(2) * (np.abs(s) + diagonal.max(axis=-1, initial=0.0))  # the rounding of the sums X_jj + s
    shifted = X.copy()
    np.einsum("...ii->...i", shifted)[...] += s[..., None]
    try:
        return np.asarray(np.isfinite(lower_factor(shifted)).all(axis=(-2, -1)))  # NaN may end none
    except np.linalg.LinAlgError:
        if X.ndim == 2:
            return np.array(False)
        each = zip(X, np.broadcast_to(margin, len(X)), strict=True)
        return np.array([semidefinite_beyond(*pair) for pair in each])
