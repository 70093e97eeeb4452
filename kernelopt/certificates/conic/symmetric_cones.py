"""Zero, non-negative, second-order, semidefinite cones: bounds, and verified points of the dual cones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ROOT_TWO, ConeProgram, verified_semidefinite
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Mask

DOUBLINGS = 12  # of the shift of a semidefinite block, from its rounding error on
MAX_TRIANGLE = 24  # order of a semidefinite block: up to it the square of its triangle is formed
MAX_DENSE = 1000  # columns of a program whose matrices A'HA are dense


@dataclass(frozen=True, eq=False)
class Cone:
    """Equal cones in consecutive rows; its own methods are right for zero cones, whose duals are free.

    Arrays have one row for every cone. `parameter` is the order of a semidefinite block, the length of
    second-order cones, or the exponents of power cones.
    """

    program: ConeProgram
    rows: slice
    parameter: Any

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
    """A symmetric block, its scaled triangle in the rows."""

    @property
    def length(self) -> int:
        return int(self.parameter) * (int(self.parameter) + 1) // 2

    def interior(self) -> Any:
        return self.program.vectorized(np.eye(self.parameter))

    def inside(self, v: Ball) -> Array | None:
        """Rows and columns of zeros stay zero."""
        v, order = v[0], self.parameter
        room = Ball(v.rad).length
        used = self.program.matrix(np.abs(v.mid) + v.rad, order).mid.any(axis=1)
        identity, shift, first, smallest = self.program.vectorized(np.diag(used.astype(float))), 0.0, 0.0, 0.0
        for k in range(DOUBLINGS + 1):
            found = v.mid + shift * identity
            M = self.program.matrix(found, order)[np.ix_(used, used)]
            if verified_semidefinite(M, room):
                return np.asarray(found)
            if k == 0:
                try:
                    smallest = float(np.linalg.eigvalsh(M.mid)[0])
                except np.linalg.LinAlgError:
                    return None
                first = 2 * order * float(np.spacing(np.abs(np.diag(M.mid)).sum()))
            shift = max(room - smallest, 0.0) + first * 2**k
        return None

    def depth(self, v: Array, reach: float) -> Any:
        try:
            return max(float(np.linalg.eigvalsh(self.program.matrix(v[0], self.parameter).mid)[0]), 0.0)
        except np.linalg.LinAlgError:
            return 0.0

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """As s_ij^2 <= s_ii s_jj."""
        first, second = self.program.triangle(self.parameter)
        roots = Ball(np.zeros(self.parameter))
        roots.mid[first[first == second]] = high[0, first == second]
        roots = roots.power(0.5)
        bound = np.where(first == second, np.inf, (ROOT_TWO * roots[first] * roots[second]).above)
        return np.maximum(low, np.where(first == second, 0.0, -bound)), np.minimum(high, bound)

    def significant(self, v: Array, threshold: float) -> Mask:
        """The rows and columns whose diagonal entry exceeds the threshold."""
        first, second = self.program.triangle(self.parameter)
        chosen = np.zeros(self.parameter, dtype=bool)
        chosen[first[first == second]] = v[0, first == second] > threshold
        return np.asarray(chosen[first] & chosen[second])

    def polar(self, s: Array) -> Any:
        return self.program.vectorized(np.linalg.inv(self.program.matrix(s[0], self.parameter).mid))[None]

    def scaled(self, v: Array, V: Array) -> Any:
        """Z V Z; with many columns (1/n tr Z)^2 V, so that A'HA stays sparse."""
        Z, matrix = self.program.matrix(v[0], self.parameter).mid, self.program.matrix
        if self.program.c.size > MAX_DENSE:
            return (np.trace(Z) / self.parameter) ** 2 * V
        return self.program.vectorized(Z @ matrix(V[0], self.parameter).mid @ Z)[None]

    def gram(self, v: Array, A: sp.csr_array) -> sp.csc_array:
        """<F_k, Z F_l Z> for the matrices F of the columns.

        Small blocks form the matrix of F -> ZFZ in the scaled triangle. For large ones the columns are taken
        one by one, with the rows of F that are not zero.
        """
        used = np.unique(A.indices)
        if self.program.c.size > MAX_DENSE or not used.size:
            return super().gram(v, A)
        Z, (first, second) = (
            self.program.matrix(v[0], self.parameter).mid,
            self.program.triangle(self.parameter),
        )
        if self.parameter <= MAX_TRIANGLE:
            scale = np.where(first == second, np.sqrt(0.5), 1.0)
            square = Z[first[:, None], first] * Z[second[:, None], second]
            square += Z[first[:, None], second] * Z[second[:, None], first]
            return sp.csc_array(A.T @ (scale[:, None] * square * scale @ A))
        columns, found = sp.csc_array(A)[:, used], np.zeros((used.size, used.size))
        entries = columns.data * np.where(first == second, 1.0, np.sqrt(0.5))[columns.indices]
        for k, (start, stop) in enumerate(pairwise(columns.indptr)):
            i, j = first[columns.indices[start:stop]], second[columns.indices[start:stop]]
            rows, place = np.unique(np.concatenate([i, j]), return_inverse=True)
            i, j = np.split(place, 2)
            F = np.zeros((rows.size, rows.size))
            F[i, j] = F[j, i] = entries[start:stop]
            found[:, k] = columns.T @ self.program.vectorized(Z[:, rows] @ F @ Z[rows])
        embedded = sp.csr_array(
            (np.ones(used.size), used, np.arange(used.size + 1)), shape=(used.size, A.shape[1])
        )
        return sp.csc_array(embedded.T @ (found @ embedded))
