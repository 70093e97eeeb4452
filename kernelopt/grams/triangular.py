"""Frobenius norms of combinations of a stack from a QR factorisation, without the normal equations."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kernelopt.grams.caching import all_cached, pieces
from kernelopt.grams.grams import Grams
from kernelopt.grams.normalized import ScaledStorage
from kernelopt.grams.storage import EVERY, Storage
from kernelopt.validation import Array

BLOCK_BYTES = 500_000
"""Approximate size of the rows that are factored at a time, chosen to fit the cache of a processor."""

TALL = 8
"""Smallest ratio of the rows of a block to the rows of the triangle that is factored with it."""

PANEL = 64
"""Columns that LAPACK eliminates at a time (its block size)."""

WELL_CONDITIONED = 1e-2
"""Smallest eigenvalue of the cosines at which their Cholesky factor is as accurate as R from QR."""


def triangle(grams: Grams) -> Array:
    r"""Return R with :math:`|R\mu| = |\sum_i \mu_i K_i|_F` for every mu, shape (k, m), k <= m.

    R is the triangular factor of the matrix with vec K_i as column i.

    Notes
    -----
    Householder's method is backward stable in every column by itself: the error of the value at mu is a
    small multiple of :math:`\varepsilon \sum_i |\mu_i| |K_i|_F`, whatever the scales of the kernels. With a
    Cholesky factor of the inner products it would be a multiple of
    :math:`\sqrt{\varepsilon} \max_i |\mu_i| |K_i|_F`.

    The rows of the matrix are factored block by block, each block together with the triangle of the blocks
    before it. This takes N^2 m^2 operations, and O(m^2) numbers besides the rows of a block. The inner
    products of rank-one matrices and the identity are known without the matrices. If all kernels are of
    these kinds, and the cosines between them have eigenvalues above 0.01, their Cholesky factor is returned
    instead.
    """
    return factored(grams.storage)


def factored(storage: Storage) -> Array:
    """Return the triangular factor of the matrices of a storage; see `triangle`."""
    if isinstance(storage, ScaledStorage):
        return factored(storage.base) / storage.constants
    short = by_cosines(storage) if storage.of_vectors else None
    if short is not None:
        return short
    m, N, _ = storage.shape
    cached = list(storage) if all_cached(storage.shape) else None
    step = 1 + max(BLOCK_BYTES // (8 * m * N), TALL * m // N)
    R = np.zeros((0, m))
    for chunk in pieces(N, m * N):
        strips = storage.between(chunk, EVERY) if cached is None else [K[chunk] for K in cached]
        for start in range(chunk.start, chunk.stop, step):
            part = slice(start - chunk.start, start - chunk.start + step)
            R = extended(R, [strip[part] for strip in strips], start)
    return R


def extended(R: Array, strips: list[Array], start: int) -> Array:
    """Return the triangular factor of R and of the rows from `start` on of each matrix.

    By symmetry, entries to the left of the diagonal block have been counted already as their mirror images.
    For the same reason entries to its right count twice, and are multiplied by sqrt(2).
    """
    stop, (k, m) = start + len(strips[0]), R.shape
    size, rest = (stop - start) ** 2, (stop - start) * (strips[0].shape[1] - stop)
    stacked = np.empty((m, k + size + rest))
    stacked[:, :k] = R.T
    for row, strip in zip(stacked, strips, strict=True):
        row[k : k + size] = strip[:, start:stop].ravel()
        np.multiply(strip[:, stop:], 2**0.5, out=row[k + size :].reshape(len(strip), -1))
    # numpy's qr copies the matrix twice, which takes longer than the factorisation.
    upper = lapack.dgeqrf(stacked.T, lwork=PANEL * m, overwrite_a=1)[0]
    return np.asarray(np.triu(upper[:m]))


def by_cosines(storage: Storage) -> Array | None:
    """Return the Cholesky factor of the inner products, or None where it is not accurate enough."""
    products = storage.inner()
    lengths = np.sqrt(np.diag(products))
    if not (lengths > 0).all():
        return None
    cosines = products / lengths[:, None] / lengths
    if np.linalg.eigvalsh(cosines)[0] < WELL_CONDITIONED:
        return None
    return np.asarray(np.linalg.cholesky(cosines).T * lengths)
