"""The nearest positive semidefinite matrix to a diagonal one plus a rank-one term."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelopt.methods.similarity.spectra.secular import deflate, image, root, turn_back
from kernelopt.numerics.compiling import compiled, summed
from kernelopt.validation import Array


class Pairs(NamedTuple):
    """The eigenpairs of a projection: K = sum_k weights_k v_k v_k' / squares_k, of one matrix or of a stack.

    The v_k are the first `counts[0]` rows of `vectors`, in the positions and after the rotations of
    `deflate`, of which there are `counts[1]`.
    """

    vectors: Array
    squares: Array
    weights: Array
    order: NDArray[np.intp]
    turns: NDArray[np.intp]
    angles: Array
    counts: NDArray[np.intp]

    @classmethod
    def room(cls, *shape: int) -> Pairs:
        """Return room for the eigenpairs of matrices of order shape[-1]."""
        return cls(
            vectors=np.empty((*shape, shape[-1])),
            squares=np.ones(shape),
            weights=np.zeros(shape),
            order=np.zeros(shape, dtype=np.intp),
            turns=np.zeros((*shape, 2), dtype=np.intp),
            angles=np.zeros((*shape, 2)),
            counts=np.zeros((*shape[:-1], 2), dtype=np.intp),
        )


class Values(NamedTuple):
    """What is known of the projection K of B + c z z': z'Kz, |K - B|^2, |K|^2 and the shift theta."""

    form: float
    distance: float
    square: float
    shift: float


@compiled
def project(spectrum: Array, u: Array, c: float, total: float, pairs: Pairs, out: Array) -> Values:
    """Project diag(spectrum) + c u u' on the K >= 0 of trace `total`, or of any trace where that is nan.

    K has the eigenvalues above theta, less theta, which is such that their sum is `total`; a free trace
    has theta = 0. They are found from the top, and none below theta is. `spectrum` ascends. Fills in
    `pairs` and out = K u. <K, B> is a sum over eigenvectors: nothing cancels where c is large.
    """
    n = spectrum.size
    poles, pulls = np.empty(n), np.empty(n)
    live, turned = deflate(spectrum, u, c, poles, pulls, pairs.order, pairs.turns, pairs.angles)
    images, forms = np.empty(n), np.empty(n)
    rank, shift = descend(poles, pulls, live, c, total, pairs, images, forms)
    pairs.counts[0], pairs.counts[1] = rank, turned
    form, overlap, square = 0.0, 0.0, 0.0
    for k in range(rank):
        w = pairs.weights[k]
        square += w * w
        overlap += w * forms[k] / pairs.squares[k]
        form += w * images[k] * images[k] / pairs.squares[k]
        images[k] *= w / pairs.squares[k]
    placed = np.dot(images[:rank], pairs.vectors[:rank])
    for k in range(n):
        out[pairs.order[k]] = placed[k]
    turn_back(out, pairs.turns, pairs.angles, turned)
    distance = max(np.dot(spectrum, spectrum) + square - 2 * overlap, 0.0)
    return Values(form, distance, square, shift)


@compiled
def descend(
    poles: Array,
    pulls: Array,
    live: int,
    c: float,
    total: float,
    pairs: Pairs,
    images: Array,
    forms: Array,
) -> tuple[int, float]:
    """Find the eigenvalues above theta, from the top; return their number and theta.

    Those of `deflate` that are done merge with the roots, and a root is found when its turn may have
    come: the pole above bounds it. `images` and `forms` become v'u and v'Bv of the eigenvectors.
    """
    n = poles.size
    length = np.sqrt(np.dot(pulls[:live], pulls[:live]))
    z, heads, rho = pulls[:live] / length, poles[:live], c * length * length
    parts, gaps = z * z, np.empty(live)
    fixed = not np.isnan(total)
    top, height, drop = 0.0, np.inf if fixed else 0.0, 0.0  # theta = top - height
    rank, j, done, found = 0, live - 1, live, False
    origin, eta, mu = 0, 0.0, 0.0
    while rank < n:
        bound = -np.inf if j < 0 else (np.inf if j == live - 1 else poles[j + 1])
        balanced = done < n and poles[done] >= (mu if found else bound)
        if not balanced and not found:
            if top - bound >= height:
                break
            origin, eta = root(j, heads, parts, rho, gaps)
            mu, found = poles[origin] + eta, True
            continue
        value = poles[done] if balanced else mu
        if top - value >= height:
            break
        row = pairs.vectors[rank]
        for k in range(live, n):
            row[k] = 0.0
        if balanced:
            for k in range(live):
                row[k] = 0.0
            row[done] = 1.0
            pairs.squares[rank], forms[rank], images[rank] = 1.0, poles[done], pulls[done]
            done += 1
        else:
            pairs.squares[rank], forms[rank] = image(gaps, eta, z, heads, row[:live])
            images[rank] = -length / rho  # by the secular equation
            j, found = j - 1, False
        pairs.weights[rank] = value
        rank += 1
        if fixed:
            top = value if rank == 1 else top
            drop += top - value
            height = (total + drop) / rank
    mass = 0.0
    for k in range(rank):
        pairs.weights[k] = height - (top - pairs.weights[k])
        mass += pairs.weights[k]
    for k in range(n):  # the trace is exact
        pairs.weights[k] *= (total / mass if fixed else 1.0) if k < rank else 0.0
    return rank, top - height


@summed
def project_diagonal(spectrum: Array, u: Array, c: float, total: float, pairs: Pairs, out: Array) -> Values:
    """Project diag(spectrum + c u^2) on the diagonal K >= 0 of trace `total`, or of any where that is nan."""
    n = spectrum.size
    mu = pairs.weights
    most = -np.inf
    for k in range(n):
        mu[k] = spectrum[k] + c * u[k] * u[k]
        most = max(most, mu[k])
    top, height = 0.0, 0.0
    if not np.isnan(total):
        top, height = most, np.inf
        count = n + 1
        while True:  # theta only grows as those below it are left out (Michelot, JOTA 50 (1986))
            drop, above = 0.0, 0
            for k in range(n):
                if top - mu[k] < height:
                    drop += top - mu[k]
                    above += 1
            if above >= count:  # more, by rounding: it would go back and forth
                break
            count, height = above, (total + drop) / above
    form, distance, square, kept = 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        mu[k] = max(height - (top - mu[k]), 0.0)
        kept += mu[k]
    rank = 0
    for k in range(n):
        if not np.isnan(total):
            mu[k] *= total / kept
        out[k] = mu[k] * u[k]
        form += out[k] * u[k]
        distance += (mu[k] - spectrum[k]) ** 2
        square += mu[k] * mu[k]
        rank += mu[k] > 0
    pairs.counts[0] = rank
    return Values(form, distance, square, top - height)


@compiled
def eigenvectors(pairs: Pairs) -> Array:
    """Return the unit eigenvectors of `project`, as rows."""
    rank, n = pairs.counts[0], pairs.order.size
    rows = np.empty((rank, n))
    for k in range(rank):
        scale = 1 / np.sqrt(pairs.squares[k])
        for position in range(n):
            rows[k, pairs.order[position]] = pairs.vectors[k, position] * scale
        turn_back(rows[k], pairs.turns, pairs.angles, pairs.counts[1])
    return rows
