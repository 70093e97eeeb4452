"""Predicted time and memory of conic solves, from the sizes of the cones.

The coefficients of the predictions were fitted by hand to the table that `benchmarks/conic_cost.py` prints:
seconds of one core of a 2023 server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

INTERIOR_ITERATIONS = 18  # Clarabel took 10 to 28 in nine problems of ten
NONSYMMETRIC_ITERATIONS = 25  # with exponential or power cones, where steps are shorter
FIRST_ORDER_ITERATIONS = 1500  # SCS to 1e-7 took 225 to 20000: about their geometric mean
MAX_FIRST_ORDER_ITERATIONS = 100_000  # the limit of the last attempt with SCS
SPARSE_RATE = 8e8  # multiplications per second in sparse factors and in narrow dense blocks
DENSE_RATE = 8e9  # multiplications per second in the dense block of a semidefinite cone
ACCEPTED_SECONDS = 60.0  # up to which the interior-point method, more accurate, is always tried first
FIRST_ORDER_ERROR = 10.0  # predictions for first-order methods are good to about this factor
PROCESS_BYTES = 1e8  # cvxpy, the solver and their libraries
NONZERO_BYTES = 100  # an entry of the cone form in the copies that cvxpy and a solver keep
MAX_SECONDS = 3600.0  # beyond this predicted time an interior-point method is not tried
MAX_BYTES = 16e9  # beyond this predicted memory neither
# Measured seconds of a compilation by cvxpy: in all, for a non-zero entry, a row, a second-order cone and two
# of them, since their parts are stacked one by one. DENSE_ENTRY is for an entry of a dense factor.
COMPILATION_FIXED, COMPILATION_ENTRY, COMPILATION_ROW = 0.025, 8e-7, 6e-7
COMPILATION_CONE, COMPILATION_PAIR, DENSE_ENTRY = 2e-3, 4e-6, 3.3e-7
SPARSE_PRODUCT = 4e-8  # measured seconds of a multiplication in the product of two sparse matrices


@dataclass(frozen=True)
class Cones:
    """The sizes of the cones and of the constraint matrix of a problem."""

    semidefinite: tuple[int, ...] = ()  # orders
    second_order: int = 0  # number of cones
    exponential: int = 0  # number of cones
    power: int = 0  # number of cones
    rows: int = 0
    columns: int = 0
    nonzeros: int = 0  # of the constraint matrix
    fill: float = 0.0  # multiplications of one elimination of its rows outside the semidefinite cones

    def __add__(self, other: Cones) -> Cones:
        """The cones of both."""
        return Cones(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def order(self) -> int:
        """The largest semidefinite order, 0 if there is none."""
        return max(self.semidefinite, default=0)

    @property
    def compilation_seconds(self) -> float:
        """Predicted time of cvxpy's compilation."""
        of_entries = COMPILATION_ENTRY * self.nonzeros + COMPILATION_ROW * self.rows
        of_cones = COMPILATION_CONE * self.second_order + COMPILATION_PAIR * self.second_order**2
        return COMPILATION_FIXED + of_entries + of_cones

    @property
    def interior_seconds(self) -> float:
        """Predicted time of an interior-point solve.

        Each iteration factors a matrix with a dense block of order t = n (n + 1) / 2 for every semidefinite
        cone of order n, which takes t^3 / 3 multiplications and the transfer of t^2 numbers.
        """
        # The numbers are seconds measured with Clarabel: for a number moved, a nonzero, a row or column, an
        # exponential or power cone, and one call.
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        step = sum(t**3 / 3 / DENSE_RATE + 4e-8 * t**2 for t in blocks)
        step += 1e-7 * self.nonzeros + self.fill / SPARSE_RATE
        step += 2e-7 * (self.rows + self.columns) + 2e-6 * (self.exponential + self.power)
        symmetric = self.exponential + self.power == 0
        return 0.001 + (INTERIOR_ITERATIONS if symmetric else NONSYMMETRIC_ITERATIONS) * step

    @property
    def first_order_seconds(self) -> float:
        """Predicted time of a first-order solve with the average number of iterations."""
        return self._first_order(FIRST_ORDER_ITERATIONS)

    @property
    def longest_first_order_seconds(self) -> float:
        """Predicted time of a first-order solve that ends at its limit of iterations."""
        return self._first_order(MAX_FIRST_ORDER_ITERATIONS)

    def _first_order(self, iterations: int) -> float:
        """One factorisation; each iteration solves with it and decomposes every semidefinite block."""
        # The numbers are seconds measured with SCS: for an eigendecomposition, a nonzero, a row or column, an
        # exponential or power cone; and for the set-up, one call and a nonzero.
        step = sum(6e-10 * order**3 + 7e-8 * order**2 for order in self.semidefinite)
        step += 5.5e-9 * self.nonzeros + 5e-8 * (self.rows + self.columns)
        step += 5e-7 * (self.exponential + self.power)
        return 0.001 + 1e-7 * self.nonzeros + self.fill / SPARSE_RATE + iterations * step

    @property
    def interior_memory(self) -> float:
        """Predicted bytes of an interior-point solve: three dense matrices a block, and the problem."""
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        return PROCESS_BYTES + 24 * sum(t**2 for t in blocks) + NONZERO_BYTES * self.nonzeros

    @property
    def first_order_memory(self) -> float:
        """Predicted bytes of a first-order solve: about fifty numbers for each entry of a block."""
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        return PROCESS_BYTES + 400 * sum(blocks) + NONZERO_BYTES * self.nonzeros

    @property
    def intractable(self) -> bool:
        """Whether an interior-point method is predicted to exceed MAX_SECONDS or MAX_BYTES."""
        return self.interior_seconds > MAX_SECONDS or self.interior_memory > MAX_BYTES

    @property
    def first_order_first(self) -> bool:
        """Whether a first-order method should be tried before an interior-point method."""
        slow = self.interior_seconds > max(ACCEPTED_SECONDS, FIRST_ORDER_ERROR * self.first_order_seconds)
        return slow or self.intractable

    @property
    def solve_seconds(self) -> float:
        """Predicted time of the solver that is tried first."""
        return self.first_order_seconds if self.first_order_first else self.interior_seconds

    @property
    def memory(self) -> float:
        """Predicted peak memory of the solver that is tried first, in bytes."""
        return self.first_order_memory if self.first_order_first else self.interior_memory


def cone_sizes(dims: Any, A: sp.csc_array) -> Cones:
    """Return the sizes of a problem that cvxpy has compiled."""
    return Cones(
        tuple(int(order) for order in dims.psd),
        len(dims.soc),
        int(dims.exp),
        len(dims.p3d),
        int(A.shape[0]),
        int(A.shape[1]),
        int(A.nnz),
        elimination(A, sum(order * (order + 1) // 2 for order in dims.psd), 3 * (dims.exp + len(dims.p3d))),
    )


def elimination(A: sp.csc_array, semidefinite: int, nonsymmetric: int) -> float:
    """Return an estimate of the multiplications that eliminate the rows of A outside semidefinite cones.

    It is the cheaper of forming A'A and A A', with r_i entries in row i and c_j in column j of that part:
    2 min(sum_j c_j^2, sum_i r_i^2). `semidefinite` and `nonsymmetric` are the numbers of rows of the
    semidefinite, and of the exponential and power cones.
    """
    stop = A.shape[0] - nonsymmetric
    by_rows = sp.csr_array(A)
    rows = np.diff(by_rows.indptr).astype(float)
    outside = np.ones(A.shape[0], dtype=bool)
    outside[stop - semidefinite : stop] = False  # cvxpy orders: zero, nonneg, soc, psd, exp, power
    linear = sp.csc_array(by_rows[outside])
    columns = np.diff(linear.indptr).astype(float)
    return 2 * float(min((columns**2).sum(), (rows[outside] ** 2).sum()))
