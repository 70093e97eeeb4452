"""The minimum of an affine function over weights with a PSD combination of given trace: its multipliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg as sl

from kernelopt.numerics.matrix_inequality import SmallProgram, solve_small
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.structure.combined.coordinates import Coordinates
from kernelopt.validation import Array

ROUNDS = 60  # of eigenvectors, at most
VECTORS = 12  # new ones in a round, at most
LARGEST_SPACE = 90  # vectors of V; beyond it those are dropped on which K(mu) is large
BOX = 2.1  # |x_j| <= 2 on the set, since |y| <= 1 there and at the centre, up to rounding
NEARLY_ACTIVE = 1e-6  # eigenvalues relative to K0 below which an eigenvector is added
GAP = 1e-9  # of the value: the duality gap of a relaxation
INTERIOR = 1e-9  # the lowest eigenvalue relative to K0 of a point that counts as feasible


class Subspace:
    """A growing space V of vectors, with F = L^-T V and the compressed kernels F'K_i F.

    The inequality F'K(mu)F >> 0 is a relaxation of K(mu) >> 0 of small order.
    """

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates
        m, N = coordinates.stack.shape[:2]
        self.V, self.F = np.zeros((coordinates.rank, 0)), np.zeros((N, 0))
        self.compressed = np.zeros((m, 0, 0))

    def add(self, new: Array) -> int:
        """Add vectors, those that are not in the space yet; return their number."""
        for _ in range(2):  # once more removes the rounding of the first projection
            new = new - self.V @ (self.V.T @ new)
            new, R, _ = sl.qr(new, mode="economic", pivoting=True)
            new = new[:, np.abs(np.diag(R)) > 1e-8]
        if new.shape[1]:
            F = self.coordinates.vectors(new)
            images = self.coordinates.images(F)
            cross = np.einsum("nj,ank->ajk", self.F, images, optimize=True)
            own = np.einsum("nj,ank->ajk", F, images, optimize=True)
            upper = np.concatenate([self.compressed, cross], axis=2)
            lower = np.concatenate([cross.transpose(0, 2, 1), (own + own.transpose(0, 2, 1)) / 2], axis=2)
            self.compressed = np.concatenate([upper, lower], axis=1)
            self.V, self.F = np.hstack([self.V, new]), np.hstack([self.F, F])
        return int(new.shape[1])

    def reduce(self, mu: Array) -> None:
        """Keep two thirds of a large space: the directions in which K(mu) is smallest."""
        if self.V.shape[1] <= LARGEST_SPACE:
            return
        keep = np.linalg.eigh(np.tensordot(mu, self.compressed, 1))[1][:, : 2 * LARGEST_SPACE // 3]
        self.V, self.F = self.V @ keep, self.F @ keep
        self.compressed = keep.T @ self.compressed @ keep

    def inequality(self) -> tuple[Array, Array]:
        """Return S_0 and the S_j of the matrix inequality in x."""
        k, at = self.V.shape[1], self.coordinates
        S = (np.column_stack([at.centre, at.D]).T @ self.compressed.reshape(len(at.centre), -1)).reshape(
            -1, k, k
        )
        return S[0], S[1:]

    def factor(self, Z: Array) -> Array:
        """Return the vectors G with G G' = F Z F' for a positive definite Z."""
        return np.asarray(self.F @ sl.cholesky(Z, lower=True, check_finite=False))


def feasible_share(lowest: float) -> float:
    """Return the largest s <= 1 for which centre + s (mu - centre) has eigenvalues above a margin.

    `lowest` is the lowest eigenvalue of K(mu) relative to K0; the lowest eigenvalue of the centre is one.
    """
    margin = INTERIOR
    return 1.0 if lowest >= margin else (1 - margin) / (1 - lowest)


def factors(
    at: Coordinates, constant: float, slope: Array, mu: Array, least: float
) -> Iterator[tuple[Array, float]]:
    """Minimise constant + slope'mu over {K(mu) >> 0, r'mu = total}, from the weights mu.

    `least` is the size of a value below which differences do not matter. Each iteration appends the lowest
    eigenvectors of K(mu) to a `Subspace`.

    Yields
    ------
    F : array of shape (N, k)
        F F' is about the best multiplier of K(mu) >> 0 in the span of the vectors so far.
    attained : float
        The least value of the function at the feasible weights so far.
    """
    subspace, p = Subspace(at), at.D.shape[1]
    attained = constant + float(slope @ at.centre)
    yield subspace.F, attained
    along = at.D.T @ slope
    size = float(np.linalg.norm(along))
    if size < SMALLEST_DIVISOR:  # the function is constant over the weights of the given trace
        return
    subspace.add(at.lowest(mu, 2 * VECTORS)[1])
    reach = max(min(abs(attained), size), least)
    box, sides = np.vstack([np.eye(p), -np.eye(p)]), np.full(2 * p, BOX)
    for _ in range(ROUNDS):
        program = SmallProgram(along, np.zeros((p, p)), box, sides, *subspace.inequality())
        x, _, Z = solve_small(program, np.zeros(p), GAP * reach, size + least)
        mu = at.centre + at.D @ x
        values, vectors = at.lowest(mu, VECTORS)
        inside = at.centre + feasible_share(float(values[0])) * (mu - at.centre)
        attained = min(attained, constant + float(slope @ inside))
        reach = max(abs(constant + float(slope @ mu)), least)
        yield subspace.factor(Z), attained
        subspace.reduce(inside)
        if not subspace.add(vectors[:, values < NEARLY_ACTIVE]):
            return
