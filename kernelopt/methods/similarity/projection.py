"""The projection of a diagonal matrix plus a rank-one term on the positive semidefinite matrices.

The projection in the Frobenius norm keeps the eigenvectors and projects the eigenvalues, on the non-negative
orthant or, where the trace is given, on a simplex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.methods.similarity.secular import secular_eigenvector, secular_root, separated
from kernelopt.validation import Array


class Eigenpairs(NamedTuple):
    """The eigenpairs of K = sum_k weights_k v_k v_k' / squares_k with squares_k = |v_k|^2.

    Row k of `vectors` is v_k where weights_k > 0: these come first. The arrays belong to one matrix, or to a
    stack of matrices along the first axis.
    """

    vectors: Array
    squares: Array
    weights: Array

    @classmethod
    def empty(cls, *shape: int) -> Eigenpairs:
        """Return arrays for the eigenpairs of matrices of order shape[-1]."""
        return cls(np.empty((*shape, shape[-1])), np.ones(shape), np.zeros(shape))


def project(
    spectrum: Array, u: Array, c: float, total: float, pairs: Eigenpairs, out: Array
) -> tuple[float, float, float, float]:
    """Project M = diag(spectrum) + c u u' on {K >= 0, tr K = total}, or on {K >= 0} where total is nan.

    With M = sum_k mu_k v_k v_k', the projection is K = sum_k (mu_k - theta)_+ v_k v_k', where theta solves
    sum_k (mu_k - theta)_+ = total, and theta = 0 where the trace is free. `spectrum` must ascend. The results
    are `pairs`, out = K u and, for B = diag(spectrum), the numbers u'Ku, |K - B|_F^2, |K|_F^2 and theta.

    The roots are found in descending order, as long as they are above theta. Root j is at most pole j + 1 by
    interlacing, and is computed only where this bound is above theta. theta is found by sorting (Held, Wolfe,
    Crowder, Math. Programming 6 (1974)): after r eigenvalues let theta_r = (mu_1 + ... + mu_r - total) / r.
    The loop ends at the first mu_{r+1} <= theta_r, and theta = theta_r. For accuracy all differences are
    taken from mu_1: height = mu_1 - theta_r.

    |K - B|^2 = |B|^2 + |K|^2 - 2 <K, B>, with <K, B> summed over the eigenvectors: no term is of the size of
    c, so that nothing cancels where c is large.
    """
    n = spectrum.size
    poles, s = separated(spectrum, np.sqrt(c) * u)
    rho = np.dot(s, s)
    z = s / np.sqrt(rho)
    z_squares, gaps, products, forms = z * z, np.empty(n), np.empty(n), np.empty(n)
    top, height, drop = 0.0, np.inf if total > 0 else 0.0, 0.0  # mu_1, mu_1 - theta, sum_k (mu_1 - mu_k)
    rank = 0
    for j in range(n - 1, -1, -1):
        if j < n - 1 and top - poles[j + 1] >= height:
            break
        origin, eta = secular_root(j, poles, z_squares, rho, gaps)
        value = poles[origin] + eta
        if top - value >= height:
            break
        pairs.squares[rank], forms[rank], products[rank] = secular_eigenvector(
            gaps, eta, z, poles, u, pairs.vectors[rank]
        )
        pairs.weights[rank] = value
        rank += 1
        if total > 0:
            top = value if rank == 1 else top
            drop += top - value
            height = (total + drop) / rank
    weights = above(pairs.weights[:rank], top, height, total)
    pairs.weights[:rank], pairs.weights[rank:] = weights, 0.0
    scaled = weights / pairs.squares[:rank]
    form, overlap = np.dot(scaled, products[:rank] ** 2), np.dot(scaled, forms[:rank])
    out[:] = np.dot(scaled * products[:rank], pairs.vectors[:rank])
    square = np.dot(weights, weights)
    distance = max(np.dot(spectrum, spectrum) + square - 2 * overlap, 0.0)
    return form, distance, square, top - height


def above(mu: Array, top: float, height: float, total: float) -> Array:
    """Return (mu - theta)_+ for theta = top - height, scaled to the sum `total` unless that is nan."""
    weights = np.maximum(height - (top - mu), 0.0)
    return weights * (total / weights.sum()) if total > 0 else weights


def project_diagonal(
    spectrum: Array, u: Array, c: float, total: float, pairs: Eigenpairs, out: Array
) -> tuple[float, float, float, float]:
    """Project diag(spectrum + c u^2) on the diagonal matrices, with the arguments and results of `project`.

    K = diag((mu - theta)_+) with mu = spectrum + c u^2, where theta solves sum_k (mu_k - theta)_+ = total.
    It is found by the iteration of Michelot (JOTA 50 (1986)): from theta = -infinity, the next theta is
    (the sum of the mu_k > theta, less total) / (their number). The sequence increases, and ends when the
    number of mu_k above it stays the same. Of `pairs` only the weights are set.
    """
    mu = spectrum + c * u * u
    top, height = 0.0, 0.0  # theta = top - height
    if total > 0:
        top, height, count = mu.max(), np.inf, mu.size + 1
        while True:
            drops = (top - mu)[top - mu < height]
            if drops.size >= count:  # unchanged; rounding may make it larger, and the iteration would cycle
                break
            count, height = drops.size, (total + drops.sum()) / drops.size
    weights = above(mu, top, height, total)
    pairs.weights[:] = weights
    out[:] = weights * u
    change = weights - spectrum
    return np.dot(out, u), np.dot(change, change), np.dot(weights, weights), top - height
