"""What a conic problem costs a solver, predicted from the sizes of its cones.

The constants were fitted to the runs of `benchmarks/conic_cost.py`: seconds of one core of a 2023 server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

INTERIOR_ITERATIONS = 18  # Clarabel took 10 to 28 in nine cells of ten
CURVED_ITERATIONS = 25  # with exponential or power cones, whose steps are shorter
FIRST_ORDER_ITERATIONS = 1500  # SCS to 1e-7 took 225 to 20000: about the mean of the logarithms
LONGEST_ITERATIONS = 100_000  # of the last attempt with SCS
SPARSE_RATE = 8e8  # multiplications a second, where the factor is sparse or its dense blocks are narrow
DENSE_RATE = 8e9  # and in the dense block of a semidefinite cone
WORTH_WAITING = 60.0  # seconds, up to which the more accurate solver is tried first in any case
FASTER = 10.0  # predictions of first-order methods are good to a factor of ten
PATIENCE = 3600.0  # seconds, beyond which a solver is not tried
ROOM = 16e9  # bytes, that a solver may be predicted to take


@dataclass(frozen=True)
class Cones:
    """The cone form of a problem in numbers."""

    semidefinite: tuple[int, ...] = ()  # orders
    second_order: int = 0  # number of cones
    exponential: int = 0  # number of cones
    power: int = 0  # number of cones
    rows: int = 0
    columns: int = 0
    nonzeros: int = 0  # of the constraint matrix
    fill: float = 0.0  # multiplications that eliminate its linear and second-order part once

    @property
    def order(self) -> int:
        """The largest semidefinite order, 0 if there is none."""
        return max(self.semidefinite, default=0)

    @property
    def interior_seconds(self) -> float:
        """Predicted time of an interior-point solve.

        Each iteration factors a matrix with a dense block of order t = n (n + 1) / 2 for a semidefinite
        cone of order n: t^3 / 3 multiplications, and t^2 numbers that are written and read.
        """
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        step = sum(t**3 / 3 / DENSE_RATE + 4e-8 * t**2 for t in blocks)
        step += 1e-7 * self.nonzeros + self.fill / SPARSE_RATE
        step += 2e-7 * (self.rows + self.columns) + 2e-6 * (self.exponential + self.power)
        curved = self.exponential + self.power > 0
        return 0.001 + (CURVED_ITERATIONS if curved else INTERIOR_ITERATIONS) * step

    @property
    def first_order_seconds(self) -> float:
        """Predicted time of a first-order solve, where the number of iterations is a guess."""
        return self._first_order(FIRST_ORDER_ITERATIONS)

    @property
    def longest_first_order_seconds(self) -> float:
        """Predicted time of a first-order method that makes all iterations that it is allowed."""
        return self._first_order(LONGEST_ITERATIONS)

    def _first_order(self, iterations: int) -> float:
        """Each iteration decomposes every semidefinite cone and solves with a factor made once."""
        step = sum(6e-10 * order**3 + 7e-8 * order**2 for order in self.semidefinite)
        step += 5.5e-9 * self.nonzeros + 5e-8 * (self.rows + self.columns)
        step += 5e-7 * (self.exponential + self.power)
        return 0.001 + 1e-7 * self.nonzeros + self.fill / SPARSE_RATE + iterations * step

    @property
    def interior_memory(self) -> float:
        """Predicted bytes of an interior-point solve: the dense blocks, their factor and its workspace."""
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        return 1e8 + 24 * sum(t**2 for t in blocks) + 100 * self.nonzeros

    @property
    def first_order_memory(self) -> float:
        """Predicted bytes of a first-order solve: some vectors and the constraint matrix."""
        blocks = [order * (order + 1) / 2 for order in self.semidefinite]
        return 1e8 + 400 * sum(blocks) + 100 * self.nonzeros

    @property
    def intractable(self) -> bool:
        """Whether an interior-point method cannot finish, for its time or its memory."""
        return self.interior_seconds > PATIENCE or self.interior_memory > ROOM

    @property
    def first_order_first(self) -> bool:
        """Whether a first-order method should be tried before an interior-point method."""
        slow = self.interior_seconds > max(WORTH_WAITING, FASTER * self.first_order_seconds)
        return slow or self.intractable

    @property
    def solve_seconds(self) -> float:
        """Predicted time of the solver that is tried first."""
        return self.first_order_seconds if self.first_order_first else self.interior_seconds

    @property
    def memory(self) -> float:
        """Predicted peak of the memory of that solver in bytes."""
        return self.first_order_memory if self.first_order_first else self.interior_memory


def compiled(dims: Any, A: sp.csc_array) -> Cones:
    """Return the numbers of a compiled problem."""
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


def elimination(A: sp.csc_array, semidefinite: int, curved: int) -> float:
    """Return the multiplications that eliminate the rows of A outside the semidefinite cones."""
    stop = A.shape[0] - curved
    kept = sp.csr_array(A)
    rows = np.diff(kept.indptr).astype(float)
    outside = np.ones(A.shape[0], dtype=bool)
    outside[stop - semidefinite : stop] = False  # cvxpy orders: zero, nonneg, soc, psd, exp, power
    linear = sp.csc_array(kept[outside])
    columns = np.diff(linear.indptr).astype(float)
    return 2 * float(min((columns**2).sum(), (rows[outside] ** 2).sum()))
