"""The largest lower bound of an affine function over weights with a PSD combination of given trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from kernelopt.certificates.gap import Bound, floor
from kernelopt.certificates.lower.closed import objective_parts
from kernelopt.certificates.lower.combined.proof import corrected_factor, proved_bound
from kernelopt.certificates.lower.minorants import Minorant
from kernelopt.errors import Stopped
from kernelopt.numerics.matrix_inequality import SmallProgram, SmallSolution, solve_small
from kernelopt.numerics.rounding import SMALLEST_DIVISOR
from kernelopt.running import check
from kernelopt.structure.combined.coordinates import Coordinates, read_coordinates
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array


@dataclass(frozen=True)
class Settings:
    """Numbers of vectors and relative sizes."""

    rounds: int = 60  # of eigenvectors, at most
    vectors: int = 12  # new ones in a round, at most
    largest_space: int = 90  # vectors of V; beyond it those are dropped on which K(mu) is large
    box: float = 2.1  # |x_j| <= 2 on the set, since |y| <= 1 there and at the centre, up to rounding
    nearly_active: float = 1e-6  # eigenvalues relative to K0 below which an eigenvector is added
    rise: float = 1e-9  # of the value: a smaller rise of the bound ends the search
    gap_share: float = 0.03  # of the distance to the attained value, likewise
    rounding: float = 1e-7  # of the value: a hundredth of the usual tolerance
    interior: float = 1e-9  # the lowest eigenvalue relative to K0 of a point that counts as feasible


SETTINGS = Settings()


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
        if self.V.shape[1] <= SETTINGS.largest_space:
            return
        keep = np.linalg.eigh(np.tensordot(mu, self.compressed, 1))[1][:, : 2 * SETTINGS.largest_space // 3]
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
    margin = SETTINGS.interior
    return 1.0 if lowest >= margin else (1 - margin) / (1 - lowest)


def minimise(subspace: Subspace, g: Array, gap: float, first_gap: float) -> SmallSolution:
    """Minimise g'mu over the relaxation, in the coordinates x."""
    at = subspace.coordinates
    p = at.D.shape[1]
    S0, S = subspace.inequality()
    box = np.vstack([np.eye(p), -np.eye(p)])
    program = SmallProgram(at.D.T @ g, np.zeros((p, p)), box, np.full(2 * p, SETTINGS.box), S0, S)
    return solve_small(program, np.zeros(p), gap, first_gap)


def combined_bound(
    structure: Structure,
    minorants: list[Minorant],
    attained: float = np.inf,
) -> Bound | None:
    """Return about the largest lower bound of the problem with every risk replaced by its minorant.

    The search starts at the current values of the structure's variables, or at the centre where there are
    none. It ends where the bound cannot rise noticeably, relative to its own size or to the distance from the
    value `attained`.

    None where the problem is not over a `CombinedCone`.
    """
    objective, coordinates = affine_objective(structure, minorants), read_coordinates(structure)
    if objective is None or isinstance(coordinates, str):
        return None
    if coordinates.basis.copies.any() and structure.objective and structure.objective.linear.matrices:
        return None  # equal kernels may have prices that differ
    current = {v.id: v.value for v in structure.variables}
    known = all(value is not None and np.isfinite(value).all() for value in current.values())
    mu = coordinates.cone.weights(current) if known else coordinates.centre
    least = floor(structure)  # the size of a value below which differences do not matter
    g = objective.over(coordinates.cone.variables).mid
    subspace = Subspace(coordinates)
    best = bound_of_factor(coordinates, objective, subspace.F, least)
    slope = float(np.linalg.norm(coordinates.D.T @ g))
    if slope < SMALLEST_DIVISOR:  # the objective is constant over the weights of the given trace
        return best
    possible = np.inf
    subspace.add(coordinates.lowest(mu, 2 * SETTINGS.vectors)[1])
    size = slope + least
    for _ in range(SETTINGS.rounds):
        try:
            check()
        except Stopped:
            if best.value == -np.inf:
                raise
            break
        reach = max(abs(best.value) if np.isfinite(best.value) else size, least)
        found = minimise(subspace, g, SETTINGS.rise * reach, size)
        best = max(best, bound_of_factor(coordinates, objective, subspace.factor(found.Z), least))
        mu = coordinates.centre + coordinates.D @ found.x
        values, vectors = coordinates.lowest(mu, SETTINGS.vectors)
        share = feasible_share(float(values[0]))
        inside = coordinates.centre + share * (mu - coordinates.centre)
        possible = min(possible, float(objective.constant.mid + g @ inside))
        rise = possible - best.value
        enough = SETTINGS.rise * max(abs(best.value), least)
        if np.isfinite(attained):
            enough = max(enough, SETTINGS.gap_share * (attained - best.value))
        subspace.reduce(inside)
        if rise <= enough or not subspace.add(vectors[:, values < SETTINGS.nearly_active]):
            break
    return best


def affine_objective(structure: Structure, minorants: list[Minorant]) -> Minorant | None:
    """Return the objective with every risk replaced by its minorant, None where it is not affine."""
    read = structure.objective
    if read is None or read.terms or min(read.factors, default=0.0) < 0 or any(structure.constrained):
        return None
    linear, risks = objective_parts(read, minorants)
    return linear + risks


def bound_of_factor(coordinates: Coordinates, objective: Minorant, F: Array, least: float) -> Bound:
    """Return `proved_bound`, in twice the working precision where its rounding errors are large.

    There the multiplier is corrected too: it was computed from rounded numbers.
    """
    plain = proved_bound(coordinates, objective, F)
    if plain.rounding <= SETTINGS.rounding * max(abs(plain.value), least):
        return plain
    corrected = corrected_factor(coordinates, objective, F)
    factors = [F] if corrected is None else [F, corrected]
    return max(plain, *(proved_bound(coordinates, objective, G, accurate=True) for G in factors))
