"""Coordinates of the weights with a PSD combination of given trace, and a matrix inside that cone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sl

from kernelopt.numerics.decompositions import SECONDS, eigenpairs, eigenvalues, lower_factor
from kernelopt.numerics.matrix_inequality import SmallProgram, solve_small
from kernelopt.running import check
from kernelopt.structure.combined.basis import FrobeniusBasis, frobenius_basis
from kernelopt.structure.combined.cone import (
    Centring,
    CombinedCone,
    centred,
    has_intercepts,
    read_centring,
    read_combined_cone,
)
from kernelopt.structure.combined.settings import SETTINGS
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array, Index


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The set {mu: K(mu) >> 0, tr K(mu) = c} as mu = centre + D x with a linear matrix inequality in x.

    K0 = K(centre) is PSD, and its range holds the ranges of all K_i. On the points `pivots` K0 = L L' is
    positive definite, so that F = L^-T V with orthonormal V gives F'K0 F = I. The matrix inequality
    F'K(mu)F >> 0 follows from K(mu) >> 0.

    Attributes
    ----------
    cone : CombinedCone
    stack : array of shape (m, N, N)
    basis : FrobeniusBasis
    centre : array of shape (m,)
    D : array of shape (m, d - 1)
        Directions of trace zero, whose combinations are orthonormal up to the factor c.
    pivots : array of shape (r,) of int
    L : array of shape (r, r), lower triangular
    centring : Centring or None
        Where the kernels are centred but for rounding, and every risk has an intercept.
    """

    cone: CombinedCone
    stack: Array
    basis: FrobeniusBasis
    centre: Array
    D: Array
    pivots: Index
    L: Array
    centring: Centring | None

    @property
    def rank(self) -> int:
        """The rank of K0."""
        return self.pivots.size

    @cached_property
    def null(self) -> Array:
        """An orthonormal basis of the null space of K0, shape (N, N - r), on which all K_i vanish."""
        N, r = self.stack.shape[1], self.rank
        if r == N:
            return np.zeros((N, 0))
        others = np.setdiff1d(np.arange(N), self.pivots)
        K0 = self.kernel(self.centre)
        vectors = np.zeros((N, N - r))
        vectors[others] = np.eye(N - r)
        vectors[self.pivots] = -sl.cho_solve((self.L, True), K0[np.ix_(self.pivots, others)])
        return np.asarray(np.linalg.qr(vectors)[0])

    def null_share(self, mu: Array) -> float:
        """Return the share of mu - centre up to which rounding makes no eigenvalue of K negative.

        On the null space of K0 the stored kernels hold rounding errors. Large weights of both signs multiply
        them. An eigenvalue counts as non-negative down to the share `Settings.rounded` of the largest one.
        """
        if self.rank == self.stack.shape[1]:
            return 1.0
        K = self.accepted_kernel(mu)
        largest = float(np.vdot(K, K)) / self.cone.trace  # |K|_F^2 <= lambda_max tr K
        part = self.null.T @ K @ self.null
        lowest = float(np.linalg.eigvalsh((part + part.T) / 2)[0])
        return min(1.0, SETTINGS.rounded * largest / -lowest) if lowest < 0 else 1.0

    def kernel(self, mu: Array) -> Array:
        """Return K(mu) on all points."""
        N = self.stack.shape[1]
        return np.asarray((mu @ self.stack.reshape(mu.size, -1)).reshape(N, N))

    def accepted_kernel(self, mu: Array) -> Array:
        """Return the matrix that must be PSD: H K(mu) H with a `centring`, K(mu) without."""
        K = self.kernel(mu)
        return K if self.centring is None else centred(K)

    def vectors(self, V: Array) -> Array:
        """Return F = L^-T V as vectors on all points, zero beside the pivots; with a `centring` H F."""
        F = np.zeros((self.stack.shape[1], V.shape[1]))
        F[self.pivots] = sl.solve_triangular(self.L, V, lower=True, trans=1, check_finite=False)
        return F if self.centring is None else F - F.mean(axis=0)

    def images(self, F: Array) -> Array:
        """Return K_i F for all i, shape (m, N, k)."""
        m, N = self.stack.shape[:2]
        return np.asarray((self.stack.reshape(m * N, N) @ F).reshape(m, N, -1))

    def whitened(self, K: Array) -> Array:
        """Return the lower triangle of L^-1 K L^-T on the pivots, in which K0 is the identity."""
        part = np.asfortranarray(K[np.ix_(self.pivots, self.pivots)])
        lower, _ = sl.lapack.dsygst(part, self.L, itype=1, lower=1, overwrite_a=1)
        return np.asarray(lower)

    def lowest(self, mu: Array, count: int) -> tuple[Array, Array]:
        """Return the lowest eigenvalues of K(mu) relative to K0, and the orthonormal V of their vectors."""
        B = self.whitened(self.accepted_kernel(mu))
        return eigenpairs(B, min(count, self.rank), lower=True, check_finite=False, overwrite_a=True)


@kept_in_structure
def read_coordinates(structure: Structure) -> Coordinates | str:
    """Return the coordinates of a problem over a `CombinedCone`, or a sentence why there are none."""
    cone = read_combined_cone(structure)
    if isinstance(cone, str):
        return cone
    stack = np.asarray(cone.whole, dtype=float)
    if not np.isfinite(stack).all():
        return "its kernels must be finite"
    basis = frobenius_basis(stack)
    if not basis.T.shape[1] or basis.shrink == 0:
        return "its kernels vanish up to rounding"
    T, c, traces = basis.T, cone.trace, cone.whole.traces
    a = traces @ T
    least = T @ a / float(a @ a)  # the combination of trace one and least Frobenius norm
    D = c * T @ sl.null_space(a[None], rcond=1e-12) if T.shape[1] > 1 else np.zeros((len(stack), 0))
    positive = np.where(traces > 0, 1 / np.where(traces > 0, traces, 1.0), 0.0)
    centring = read_centring(stack, basis.norms) if has_intercepts(structure) else None

    def centres() -> Iterator[Array]:
        yield c * positive / max(1, int((traces > 0).sum()))
        yield c * least
        yield from largest_least_eigenvalue(stack, c * least, D, c)

    for centre in centres():
        found = decomposed(stack, centre)
        if found is not None:
            return Coordinates(cone, stack, basis, centre, D, *found, centring)
    return "no combination was found that is positive definite where the kernels do not all vanish"


def decomposed(stack: Array, mu: Array) -> tuple[Index, Array] | None:
    """Return (pivots, L) for K(mu) >> 0 whose range holds the ranges of all K_i; None for any other mu."""
    m, N = stack.shape[:2]
    K = (mu @ stack.reshape(m, -1)).reshape(N, N)
    size = float(np.abs(K).max())
    if not size > 0 or not traceable(K, SETTINGS.shift * size * N):
        return None
    check(SECONDS.factors * float(N) ** 3)
    factor, order, rank, _ = sl.lapack.dpstrf(K, lower=1, tol=SETTINGS.rank * float(np.diag(K).max()))
    if not rank:
        return None
    pivots = order[:rank] - 1
    L = np.asfortranarray(np.tril(factor[:rank, :rank]))
    if rank < N:
        probes = np.random.default_rng(0).standard_normal((N, SETTINGS.probes))
        images = (stack.reshape(m * N, N) @ probes).reshape(m, N, SETTINGS.probes)
        lower = np.tril(factor)[:, :rank]
        rest = sl.solve_triangular(L, lower[rank:].T, lower=True, trans=1, check_finite=False).T
        outside = images[:, order[rank:] - 1] - rest @ images[:, pivots]
        if np.abs(outside).max() > SETTINGS.in_range * np.abs(images).max():
            return None
    return pivots, L


def traceable(K: Array, shift: float) -> bool:
    """Whether K + shift I has a Cholesky factor, so that no eigenvalue of K is below -shift."""
    try:
        lower_factor(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def largest_least_eigenvalue(stack: Array, mu: Array, D: Array, trace: float) -> Iterator[Array]:
    """Yield weights mu + D x for which K is well inside the PSD matrices on the joint range, if any are.

    The problem max t subject to K >> t I on the joint range of all K_i is solved on a growing space V of
    eigenvectors: V'K V >> t I follows from the former.
    """
    N, p = stack.shape[1], D.shape[1]
    if not p:
        return
    sizes = np.abs(stack).max(axis=(1, 2))
    values, vectors = eigenpairs(sum(K @ K / s**2 for K, s in zip(stack, sizes, strict=True) if s > 0))
    Q = vectors[:, values > SETTINGS.range * values[-1]]
    mean = trace / Q.shape[1]
    directions = np.vstack([mu, D.T]) @ stack.reshape(len(stack), -1)
    reduced = Q.T @ directions.reshape(-1, N, N) @ Q
    # |x_j| <= 2: |K(mu)|_F <= trace, both at mu and at the centre, and D is orthonormal times the trace.
    limits, most = np.vstack([np.eye(p, p + 1), -np.eye(p, p + 1)]), np.full(2 * p, 2.0)
    gain, flat = -np.eye(p + 1)[p], np.zeros((p + 1, p + 1))
    x, V = np.zeros(p), np.zeros((Q.shape[1], 0))
    for _ in range(SETTINGS.rounds):
        _, new = eigenpairs(np.tensordot(np.append(1.0, x), reduced, 1), SETTINGS.new_vectors)
        V = np.linalg.qr(np.hstack([V, new]))[0]
        S = V.T @ reduced @ V
        start = float(np.linalg.eigvalsh(np.tensordot(np.append(1.0, x), S, 1))[0]) - mean
        cone = np.concatenate([S[1:], -np.eye(V.shape[1])[None]])
        program = SmallProgram(gain, flat, limits, most, S[0], cone)
        inside = np.append(0.9 * x, start - abs(start) * 0.2)
        found, multipliers, Z = solve_small(program, inside, SETTINGS.precision * mean, 2 * mean)
        gap = float(np.vdot(Z, program.matrix(found))) + float(multipliers @ (limits @ found + most))
        x, bound = found[:-1], found[-1] + gap
        if not bound > SETTINGS.none * mean:
            return
        least = float(eigenvalues(np.tensordot(np.append(1.0, x), reduced, 1))[0])
        if least >= SETTINGS.accepted * bound:
            yield mu + D @ x
            return
