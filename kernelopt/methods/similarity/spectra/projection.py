"""The projection of a diagonal matrix plus a rank-one term on the positive semidefinite matrices.

The projection in the Frobenius norm keeps the eigenvectors and projects the eigenvalues, on the non-negative
orthant or, where the trace is given, on a simplex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.spectra.secular import (
    deflate,
    secular_eigenvector,
    secular_root,
    undo_rotations,
)
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array


class Eigenpairs(NamedTuple):
    """The eigenpairs of a projection K = sum_k weights_k v_k v_k' / squares_k, with squares_k = |v_k|^2.

    Row k of `vectors` is v_k for k < rank, in the positions `order` and after the rotations that `deflate`
    returns. `counts` holds the rank and the number of these rotations. The arrays belong to one matrix, or
    to a stack of matrices along the first axis.
    """

    vectors: Array
    squares: Array
    weights: Array
    order: NDArray[np.intp]
    planes: NDArray[np.intp]
    rotations: Array
    counts: NDArray[np.intp]

    @classmethod
    def empty(cls, *shape: int) -> Eigenpairs:
        """Return arrays for the eigenpairs of matrices of order shape[-1]."""
        return cls(
            vectors=np.empty((*shape, shape[-1])),
            squares=np.ones(shape),
            weights=np.zeros(shape),
            order=np.zeros(shape, dtype=np.intp),
            planes=np.zeros((*shape, 2), dtype=np.intp),
            rotations=np.zeros((*shape, 2)),
            counts=np.zeros((*shape[:-1], 2), dtype=np.intp),
        )


class Values(NamedTuple):
    """Numbers of the projection K of B + c z z': z'Kz, |K - B|_F^2, |K|_F^2 and the shift theta."""

    form: float
    distance: float
    square: float
    shift: float


@compiled
def project(spectrum: Array, u: Array, c: float, total: float, pairs: Eigenpairs, out: Array) -> Values:
    """Project M = diag(spectrum) + c u u' on {K >= 0, tr K = total}, or on {K >= 0} where total is nan.

    With M = sum_k mu_k v_k v_k', the projection is K = sum_k (mu_k - theta)_+ v_k v_k', where theta solves
    sum_k (mu_k - theta)_+ = total, and theta = 0 where the trace is free. Only the eigenpairs with
    mu_k > theta are computed. `spectrum` must ascend. The results are `pairs` and out = K u.

    |K - B|^2 = |B|^2 + |K|^2 - 2 <K, B> for B = diag(spectrum), with <K, B> summed over the eigenvectors:
    no term is of the size of c, so that nothing cancels where c is large.
    """
    n = spectrum.size
    poles, components = np.empty(n), np.empty(n)
    n_poles, n_rotations = deflate(
        spectrum, u, c, poles, components, pairs.order, pairs.planes, pairs.rotations
    )
    products, forms = np.empty(n), np.empty(n)
    rank, shift = leading_eigenpairs(poles, components, n_poles, c, total, pairs, products, forms)
    pairs.counts[0], pairs.counts[1] = rank, n_rotations
    form, overlap, square = 0.0, 0.0, 0.0
    for k in range(rank):
        w = pairs.weights[k]
        square += w * w
        overlap += w * forms[k] / pairs.squares[k]
        form += w * products[k] * products[k] / pairs.squares[k]
        products[k] *= w / pairs.squares[k]
    image = np.dot(products[:rank], pairs.vectors[:rank])
    for k in range(n):
        out[pairs.order[k]] = image[k]
    undo_rotations(out, pairs.planes, pairs.rotations, n_rotations)
    distance = max(np.dot(spectrum, spectrum) + square - 2 * overlap, 0.0)
    return Values(form, distance, square, shift)


@compiled
def leading_eigenpairs(
    poles: Array,
    components: Array,
    n_poles: int,
    c: float,
    total: float,
    pairs: Eigenpairs,
    products: Array,
    forms: Array,
) -> tuple[int, float]:
    """Compute the eigenpairs of M with mu > theta, largest first; return their number and theta.

    Sets products_k = v_k'u and forms_k = v_k' B v_k, and the weights of `pairs` to (mu_k - theta)_+.

    The deflated eigenvalues and the roots of the secular equation are merged in descending order. Root j is
    at most pole j + 1 by interlacing. It is computed only where this bound is above theta, and above every
    deflated eigenvalue that remains.

    theta is found by sorting (Held, Wolfe, Crowder, Math. Programming 6 (1974)). After r eigenvalues let
    theta_r = (mu_1 + ... + mu_r - total) / r. The loop ends at the first mu_{r+1} <= theta_r, and
    theta = theta_r. For accuracy all differences are taken from mu_1: height = mu_1 - theta_r.
    """
    n = poles.size
    length = np.sqrt(np.dot(components[:n_poles], components[:n_poles]))
    z, secular_poles, rho = components[:n_poles] / length, poles[:n_poles], c * length * length
    z_squares, gaps = z * z, np.empty(n_poles)
    fixed = not np.isnan(total)
    top, height, drop = 0.0, np.inf if fixed else 0.0, 0.0  # mu_1, mu_1 - theta, sum_k (mu_1 - mu_k)
    rank, j, deflated, has_root = 0, n_poles - 1, n_poles, False
    origin, eta, mu = 0, 0.0, 0.0
    while rank < n:
        bound = -np.inf if j < 0 else (np.inf if j == n_poles - 1 else poles[j + 1])
        take_deflated = deflated < n and poles[deflated] >= (mu if has_root else bound)
        if not take_deflated and not has_root:
            if top - bound >= height:
                break
            origin, eta = secular_root(j, secular_poles, z_squares, rho, gaps)
            mu, has_root = poles[origin] + eta, True
            continue
        value = poles[deflated] if take_deflated else mu
        if top - value >= height:
            break
        row = pairs.vectors[rank]
        row[:] = 0.0
        if take_deflated:
            row[deflated] = 1.0
            pairs.squares[rank], forms[rank] = 1.0, poles[deflated]
            products[rank] = components[deflated]
            deflated += 1
        else:
            pairs.squares[rank], forms[rank] = secular_eigenvector(gaps, eta, z, secular_poles, row[:n_poles])
            products[rank] = -length / rho  # z'v = -1/rho is the secular equation, and u = length z
            j, has_root = j - 1, False
        pairs.weights[rank] = value
        rank += 1
        if fixed:
            top = value if rank == 1 else top
            drop += top - value
            height = (total + drop) / rank
    subtract_shift(pairs.weights, rank, top, height, total)
    return rank, top - height


@compiled
def subtract_shift(weights: Array, rank: int, top: float, height: float, total: float) -> None:
    """Replace the first `rank` eigenvalues mu_k by mu_k - theta, theta = top - height, and the others by 0.

    Unless `total` is nan, the results are scaled so that their sum is `total` to rounding.
    """
    weights[:rank] = height - (top - weights[:rank])
    weights[rank:] = 0.0
    if not np.isnan(total):
        weights *= total / weights.sum()


@compiled
def project_diagonal(
    spectrum: Array, u: Array, c: float, total: float, pairs: Eigenpairs, out: Array
) -> Values:
    """Project diag(spectrum + c u^2) on the diagonal K >= 0 of trace `total`, or of any where that is nan.

    K = diag((mu - theta)_+) with mu = spectrum + c u^2, where theta solves sum_k (mu_k - theta)_+ = total.
    It is found by the iteration of Michelot (JOTA 50 (1986)): from theta = -infinity, the next theta is
    (the sum of the mu_k > theta, less total) / (their number). The sequence increases, and ends when the
    number of mu_k above it stays the same. The results are the weights of `pairs` and out = K u.
    """
    mu, weights = spectrum + c * u * u, pairs.weights
    base, height = 0.0, 0.0  # theta = base - height
    if not np.isnan(total):
        base, height, count = mu.max(), np.inf, mu.size + 1
        while True:
            drops = (base - mu)[base - mu < height]
            if drops.size >= count:  # unchanged; rounding may make it larger, and the iteration would cycle
                break
            count, height = drops.size, (total + drops.sum()) / drops.size
    weights[:] = np.maximum(height - (base - mu), 0.0)
    if not np.isnan(total):
        weights *= total / weights.sum()
    out[:] = weights * u
    pairs.counts[0] = np.count_nonzero(weights)
    change = weights - spectrum
    return Values(np.dot(out, u), np.dot(change, change), np.dot(weights, weights), base - height)


@compiled
def eigenvectors(pairs: Eigenpairs) -> Array:
    """Return the unit eigenvectors v_k / |v_k| of `project` in the coordinates of `spectrum`, as rows."""
    rank, n = pairs.counts[0], pairs.order.size
    rows = np.empty((rank, n))
    for k in range(rank):
        scale = 1 / np.sqrt(pairs.squares[k])
        for position in range(n):
            rows[k, pairs.order[position]] = pairs.vectors[k, position] * scale
        undo_rotations(rows[k], pairs.planes, pairs.rotations, pairs.counts[1])
    return rows
