"""Factors of positive semidefinite matrices, and the semidefinite matrix behind round-off."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kernelopt.validation import PSD_TOLERANCE, Array, check_psd

RANK_TOLERANCE = 1e-11


def pivoted_cholesky(K: Array, what: str) -> Array:
    """Return L, shape (N, r), with K = L L' up to pivots below 1e-11 of the largest diagonal entry."""
    largest = float(np.diag(K).max(initial=0.0))
    if largest <= 0:
        check_psd(K, what)
        return np.zeros((len(K), 0))
    lower, pivots, rank, _ = lapack.dpstrf(K, tol=RANK_TOLERANCE * largest, lower=1)
    L = np.zeros((len(K), rank))
    L[pivots - 1] = np.tril(lower)[:, :rank]
    if float(np.abs(K - L @ L.T).max()) > 1e-10 * largest:
        check_psd(K, what)
    return L


def nearest_psd(K: Array) -> Array | None:
    """Return K with round-off negative eigenvalues removed, None if it is truly indefinite."""
    try:
        np.linalg.cholesky(K)
        return K
    except np.linalg.LinAlgError:
        eigenvalues, vectors = np.linalg.eigh(K)
        if eigenvalues[0] < -PSD_TOLERANCE * max(abs(eigenvalues[-1]), abs(eigenvalues[0])):
            return None
        psd: Array = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
        return psd
