"""Factors of positive semidefinite matrices, projections of nearly semidefinite ones, and a proof of both."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from kernelopt.numerics.decompositions import eigenpairs, lower_factor
from kernelopt.numerics.rounding import TINY, gamma
from kernelopt.validation import PSD_TOLERANCE, Array, check_psd

RANK_TOLERANCE = 1e-11  # of the largest diagonal entry: smaller pivots are rounding
RESIDUAL_TOLERANCE = 1e-10  # of the largest diagonal entry: a larger |K - L L'| shows that K is indefinite


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

    Without `bias` it is M X = right, and b is zero. None where the factorisation of M fails.
    """
    try:
        factor = cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    X = np.asarray(cho_solve(factor, right, check_finite=False), dtype=float)
    if not bias:
        return X, np.zeros(right.shape[1:])
    ones = cho_solve(factor, np.ones(len(M)), check_finite=False)
    b = (X.sum(axis=0) - total) / ones.sum()
    return X - np.multiply.outer(ones, b), b


def semidefinite_beyond(X: Array, margin: float) -> bool:
    """Whether it is proved that the least eigenvalue of a symmetric matrix is at least minus `margin`.

    The margin may have either sign. A Cholesky factorisation in floating-point numbers that ends proves that
    M + t I is semidefinite, where t = gamma(n + 2) / (1 - gamma(n + 2)) tr M bounds the rounding of the
    factorisation (S. M. Rump, BIT 46 (2006)). Here M is X + s I, and s is what is left of `margin` beside t.
    The factorisation takes a tenth of the time of an eigendecomposition.
    """
    n = len(X)
    share = gamma(n + 2) / (1 - gamma(n + 2))
    diagonal = X.diagonal()
    s = margin - share * float(np.abs(diagonal).sum()) - n * TINY
    s /= 1 + np.copysign(share * n, s)
    s -= gamma(2) * (abs(s) + float(np.abs(diagonal).max(initial=0.0)))  # the rounding of the sums X_jj + s
    shifted = X.copy()
    shifted.flat[:: n + 1] += s
    try:
        return bool(np.isfinite(lower_factor(shifted)).all())  # NaN may end no factorisation
    except np.linalg.LinAlgError:
        return False
