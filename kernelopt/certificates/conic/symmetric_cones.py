"""Zero, non-negative, second-order, semidefinite cones: bounds, and verified points of the dual cones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelopt.numerics.ball import Ball
from kernelopt.numerics.decompositions import semidefinite_beyond
from kernelopt.validation import Array, Index, Mask

DOUBLINGS = 12  # of the shift of a semidefinite block, from its rounding error on
ROOT_TWO = Ball(2.0).power(0.5)  # the scale of off-diagonal entries of semidefinite blocks
ENTRIES_PER_COLUMN = 1.5e4  # of the matrix of F -> ZFZ, formed in the time of one column, measured


def verified_semidefinite(M: Ball, bound: Array | float = 0.0) -> Mask:
    """Whether all eigenvalues of the symmetric matrices in a ball are verified to be at least `bound`.

    For a stack of balls there is one answer each.
    """
    radius = Ball(np.broadcast_to(M.rad, M.mid.shape)).norm(2, axis=(-2, -1))
    return semidefinite_beyond(M.mid, (Ball(-np.asarray(bound)) - radius.above).below)


@dataclass(frozen=True, eq=False)
class Cone:
    """Equal cones in consecutive rows; its own methods are right for zero cones, whose duals are free.

    Arrays have one row for every cone. `parameter` is the order of a semidefinite block, the length of
    second-order cones, or the exponents of power cones.
    """

    rows: slice  # of the program
    parameter: Any = None
    upper_triangle: bool = True  # of semidefinite blocks, in the rows
    dense: bool = True  # matrices A'HA

    @property
    def length(self) -> int:
        """The number of rows of the program in one cone."""
        return 1

    @property
    def is_free(self) -> bool:
        """Whether the dual cone is the whole space, and the cone zero."""
        return type(self) is Cone

    def of(self, a: Any) -> Any:
        """Return the entries of these rows of the program, one row for every cone."""
        return a[self.rows].reshape(-1, self.length)

    def interior(self) -> Any:
        """Return a point in the interior of one dual cone; zero in a free part."""
        return 0.0

    def inside(self, v: Ball) -> Array | None:
        """Return points near v with all points within `v.rad` in the dual cones; None where none are found.

        About the smallest multiple of an interior point is added for which this is shown in floating point.
        """
        return np.asarray(v.mid)

    def depth(self, v: Array, reach: float) -> Any:
        """Return about the change of each entry that keeps v in the dual cones, zero where none is known."""
        return reach

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return bounds of the points of the cones (not the dual ones) that have the given bounds."""
        return np.zeros_like(low), np.zeros_like(high)

    def significant(self, v: Array, threshold: float) -> Any:
        """Return which entries of v >= 0 belong to cones whose largest entry exceeds `threshold`."""
        return True

    def polar(self, s: Array) -> Any:
        """Return minus the gradient of the barrier at s inside the cones; an interior point without one."""
        return self.interior()

    def scaled(self, v: Array, V: Array) -> Any:
        """Return H V, with H as in `LocalMetric`."""
        return V

    def gram(self, v: Array, A: sp.csr_array) -> sp.csc_array:
        """Return A'HA, for the rows A of these cones."""
        diagonal = np.ravel(self.scaled(v, np.ones_like(v)))
        return sp.csc_array(A.T @ (sp.diags_array(diagonal) @ A))


class Orthant(Cone):
    """Non-negative rows."""

    def interior(self) -> Any:
        return 1.0

    def inside(self, v: Ball) -> Array | None:
        return np.asarray(np.maximum(v.mid, v.rad))

    def depth(self, v: Array, reach: float) -> Array:
        return v

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        return np.maximum(low, 0.0), high

    def significant(self, v: Array, threshold: float) -> Mask:
        return np.asarray(v.max(axis=1, keepdims=True) > threshold)

    def polar(self, s: Array) -> Any:
        return 1 / s

    def scaled(self, v: Array, V: Array) -> Any:
        return v * v * V


class SecondOrder(Orthant):
    """s_0 >= |s_1:|."""

    @property
    def length(self) -> int:
        return int(self.parameter)

    def interior(self) -> Any:
        return np.eye(self.length)[0]

    def inside(self, v: Ball) -> Array | None:
        least = v[:, 1:].norm(2, axis=1, keepdims=True) + v[:, :1].rad
        return np.hstack([np.maximum(v.mid[:, :1], least.above), v.mid[:, 1:]])

    def depth(self, v: Array, reach: float) -> Array:
        return np.maximum((Ball(v[:, :1]) - Ball(v[:, 1:]).norm(2, axis=1, keepdims=True)).below, 0.0)

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        head = high[:, :1]
        return np.maximum(low, np.where(self.interior() > 0, 0.0, -head)), np.minimum(high, head)

    def halves(self, v: Array) -> Array:
        """Return -J d / 2, one row for every cone."""
        half: Array = (v[:, :1] ** 2 - (v[:, 1:] ** 2).sum(axis=1, keepdims=True)) / 2
        return np.asarray(half * (1 - 2 * self.interior()))

    def polar(self, s: Array) -> Any:
        return -s / self.halves(s)

    def scaled(self, v: Array, V: Array) -> Any:
        return self.halves(v) * V + v * (v * V).sum(axis=1, keepdims=True)

    def gram(self, v: Array, A: sp.csr_array) -> sp.csc_array:
        rows = sp.csr_array((v.ravel(), np.arange(v.size), np.arange(0, v.size + 1, self.length))) @ A
        return sp.csc_array(A.T @ (sp.diags_array(self.halves(v).ravel()) @ A) + rows.T @ rows)


class Semidefinite(Orthant):
    """Symmetric blocks of one order, the scaled triangle of each in one row."""

    @property
    def length(self) -> int:
        return int(self.parameter) * (int(self.parameter) + 1) // 2

    @cached_property
    def triangle(self) -> tuple[Index, Index]:
        """Row and column of each entry of the upper or the lower triangle, column by column."""
        second, first = np.tril_indices(self.parameter)
        return (first, second) if self.upper_triangle else np.triu_indices(self.parameter)[::-1]

    @cached_property
    def diagonal(self) -> Mask:
        """Which entries of the triangle stand on the diagonal."""
        return np.equal(*self.triangle)

    @cached_property
    def scale(self) -> Ball:
        """The factors of the entries: sqrt(2) off the diagonal."""
        off = ~self.diagonal
        return Ball(np.where(off, ROOT_TWO.mid, 1.0), np.where(off, ROOT_TWO.rad, 0.0))

    def vectorized(self, M: Array) -> Array:
        """Return the scaled triangles of symmetric matrices."""
        return np.asarray(M[..., *self.triangle] * self.scale.mid)

    def matrices(self, v: Array) -> Ball:
        """Return the symmetric matrices of scaled triangles: the inverse of `vectorized`."""
        entries = Ball(v) / self.scale
        first, second = self.triangle
        mid, rad = np.zeros((2, len(v), self.parameter, self.parameter))
        mid[:, first, second] = mid[:, second, first] = entries.mid
        rad[:, first, second] = rad[:, second, first] = entries.rad
        return Ball(mid, rad)

    def interior(self) -> Any:
        return self.diagonal.astype(float)

    def inside(self, v: Ball) -> Array | None:
        """Rows and columns of zeros stay zero."""
        found, room = v.mid.copy(), Ball(np.broadcast_to(v.rad, v.mid.shape)).norm(2, axis=1).above
        used, every = self.matrices(np.abs(v.mid) + v.rad).mid.any(axis=1), np.arange(self.parameter)
        left, first, smallest = np.arange(len(found)), np.zeros(len(found)), np.zeros(len(found))
        for k in range(DOUBLINGS + 1):
            M = self.matrices(found[left])
            size = np.abs(M.mid[:, every, every]).max(axis=1, keepdims=True)
            # Unused rows have a diagonal that proves nothing about the others.
            M.mid[:, every, every] += np.where(used[left], 0.0, np.where(size > 0, size, 1.0))
            below = ~verified_semidefinite(M, room[left])
            if not below.any():
                return np.asarray(found)
            left = left[below]
            if k == 0:
                try:
                    smallest[left] = np.linalg.eigvalsh(M.mid[below])[:, 0]
                except np.linalg.LinAlgError:
                    return None
                trace = np.abs(v.mid[:, self.diagonal]).sum(axis=1)
                first = 2 * self.parameter * np.spacing(trace)
            shift = np.maximum(room - smallest, 0.0) + first * 2**k
            found[np.ix_(left, self.diagonal)] = (v.mid[:, self.diagonal] + shift[:, None] * used)[left]
        return None

    def depth(self, v: Array, reach: float) -> Any:
        try:
            return np.maximum(np.linalg.eigvalsh(self.matrices(v).mid)[:, :1], 0.0)
        except np.linalg.LinAlgError:
            return 0.0

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """As s_ij^2 <= s_ii s_jj."""
        roots, (first, second) = Ball(high[:, self.diagonal]).power(0.5), self.triangle
        bound = (roots[:, first] * roots[:, second] * ROOT_TWO).above
        bound = np.where(self.diagonal, np.inf, bound)
        return np.maximum(low, np.where(self.diagonal, 0.0, -bound)), np.minimum(high, bound)

    def significant(self, v: Array, threshold: float) -> Mask:
        """The rows and columns whose diagonal entry exceeds the threshold."""
        chosen, (first, second) = v[:, self.diagonal] > threshold, self.triangle
        return np.asarray(chosen[:, first] & chosen[:, second])

    def polar(self, s: Array) -> Any:
        return self.vectorized(np.linalg.inv(self.matrices(s).mid))

    def scaled(self, v: Array, V: Array) -> Any:
        """Z V Z; with many columns (1/n tr Z)^2 V, so that A'HA stays sparse."""
        if not self.dense:
            return (v[:, self.diagonal].sum(axis=1, keepdims=True) / self.parameter) ** 2 * V
        Z = self.matrices(v).mid
        return self.vectorized(Z @ self.matrices(V).mid @ Z)

    def gram(self, v: Array, A: sp.csr_array) -> sp.csc_array:
        """<F_k, Z F_l Z> for the matrices F of the columns.

        The matrix of F -> ZFZ is formed in the entries of the scaled triangle that some F has. Where they are
        many, the columns are taken one by one, with the rows of F that are not zero.
        """
        if not self.dense or not A.nnz:
            return super().gram(v, A)
        Z, rows = self.matrices(v).mid, np.arange(v.size).reshape(v.shape)
        used = np.flatnonzero(np.diff(A.indptr).reshape(v.shape).any(axis=0))
        if v.shape[0] * used.size**2 > ENTRIES_PER_COLUMN * A.shape[1]:
            return sum(self.large_gram(block, A[own]) for block, own in zip(Z, rows, strict=True))
        (i, j), factor = np.array(self.triangle)[:, used], np.where(self.diagonal[used], np.sqrt(0.5), 1.0)
        first, second = Z[:, i], Z[:, j]
        square = first[:, :, i] * second[:, :, j] + first[:, :, j] * second[:, :, i]
        square *= factor[:, None] * factor
        A, every = A[rows[:, used].ravel()], np.arange(len(v) + 1)
        H = square[0] if len(v) == 1 else sp.bsr_array((square, every[:-1], every))
        return sp.csc_array(A.T @ (H @ A))

    def large_gram(self, Z: Array, A: sp.csr_array) -> sp.csc_array:
        """Return <F_k, Z F_l Z> for one block, from the rows of each F that are not zero."""
        used, (first, second) = np.unique(A.indices), self.triangle
        columns, found = sp.csc_array(A)[:, used], np.zeros((used.size, used.size))
        entries = columns.data / self.scale.mid[columns.indices]
        for k, (start, stop) in enumerate(pairwise(columns.indptr)):
            i, j = first[columns.indices[start:stop]], second[columns.indices[start:stop]]
            rows, place = np.unique(np.concatenate([i, j]), return_inverse=True)
            i, j = np.split(place, 2)
            F = np.zeros((rows.size, rows.size))
            F[i, j] = F[j, i] = entries[start:stop]
            found[:, k] = columns.T @ self.vectorized(Z[:, rows] @ F @ Z[rows])
        embedded = sp.csr_array(
            (np.ones(used.size), used, np.arange(used.size + 1)), shape=(used.size, A.shape[1])
        )
        return sp.csc_array(embedded.T @ (found @ embedded))
