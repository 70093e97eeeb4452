"""Diagonal dominance by column generation: the linear programme without its n_S^2 rows.

Dominance at point i is K_ii >= sum_j sigma_j K_ij for every choice of signs sigma: rows that are linear in
the weights; few weights are active. The dual of the programme has one column per triplet, one column per
row that has been generated, and m + F rows, however many triplets there are. HiGHS starts every solve from
its last basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.problem import point_and_multipliers
from kernelopt.errors import Stopped
from kernelopt.extend import Array, check


@dataclass(frozen=True)
class Tuned:
    """The tuned numbers of column generation."""

    # relative to the terms of K_ii: ten times what the tolerance of HiGHS below leaves
    violated: float = 1e-9
    accuracy: float = 1e-10  # tolerances of HiGHS: the smallest that it takes, and its default
    usual: float = 1e-7
    smallest_entry: float = 1e-12  # of the matrix of HiGHS, the smallest that it takes; its default is 1e-9
    rounds: int = 500  # an end to the loop; what is still violated then is made up for in the certificate


TUNED = Tuned()


class Columns:
    """max rho sum u over u in [0, 1], lam >= 0 and z with sum_f |z| <= gamma1, as columns of HiGHS.

    Row p says sum_t u_t d_tp + sum_c lam_c G_cp - z_p = gamma2 q_p; its multiplier is alpha_p. Where
    gamma1 is None, u = 1 is fixed, and the smallest gamma1 with sum_f |z| <= gamma1 is computed.
    """

    def __init__(self, data: ComparisonData, gamma1: float | None) -> None:
        self.data, self.rounds = data, 0
        self.cuts = sp.csr_array((0, len(data.cone_entries)))  # of each column lam, the price of each entry
        self.highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("parallel", "off")  # the number of threads must be the first HiGHS's
        self.highs.setOptionValue("small_matrix_value", TUNED.smallest_entry)
        m, F, infinity = data.m, data.F, highspy.kHighsInf
        empty = np.zeros(0)
        lower = np.concatenate([data.gamma2 * data.q, np.full(F, -infinity)])
        upper = np.concatenate([data.gamma2 * data.q, np.full(F, gamma1 or 0.0)])
        starts = np.zeros(m + F, dtype=np.int32)
        self.highs.addRows(m + F, lower, upper, 0, starts, empty.astype(np.int32), empty)
        counted = np.zeros((m, F))
        counted[np.arange(m), data.groups] = 1.0
        above = np.hstack([-np.eye(m), counted])  # z = above - below; what the cone leaves free has no price
        below = np.hstack([np.eye(m), counted if data.cone == "dominant" else 0 * counted])
        self._add(above, 0.0, infinity)
        self._add(below, 0.0, infinity)
        self._add(np.hstack([data.D, np.zeros((data.T, F))]), -data.margin, 1.0)
        if gamma1 is None:
            every = np.arange(2 * m, 2 * m + data.T, dtype=np.int32)
            self.highs.changeColsBounds(data.T, every, np.ones(data.T), np.ones(data.T))
            self.highs.changeColsCost(data.T, every, np.zeros(data.T))
            self._add(np.concatenate([np.zeros(m), -np.ones(F)])[None], 1.0, infinity)
        self.first = self.highs.getNumCol()  # of the columns lam
        if data.cone == "dominant":
            self.cut(sp.eye_array(data.points.size, len(data.cone_entries), format="csr"))

    def _add(self, rows: Array, cost: float, upper: float) -> None:
        """Add columns with these coefficients, cost (of the minimisation) and upper bound."""
        count, nonzero = len(rows), rows != 0
        starts = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))[:-1]]).astype(np.int32)
        columns = np.nonzero(nonzero)[1].astype(np.int32)
        self.highs.addCols(
            count,
            np.full(count, cost),
            np.zeros(count),
            np.full(count, upper),
            columns.size,
            starts,
            columns,
            rows[nonzero],
        )

    def cut(self, rows: Any) -> None:
        """Add rows K_ii >= sum_j sigma_j K_ij, given as coefficients of the constrained entries."""
        check()
        coefficients = np.pad(rows @ self.data.cone_entries, ((0, 0), (0, self.data.F)))
        self._add(coefficients, 0.0, highspy.kHighsInf)
        self.cuts = sp.vstack([self.cuts, rows], format="csr")

    def reprice(self, gamma1: float) -> None:
        """Change gamma1, keeping the columns and the basis."""
        for f in range(self.data.F):
            self.highs.changeRowBounds(self.data.m + f, -highspy.kHighsInf, gamma1)

    def solve(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Generate columns until no row of dominance is violated, or until `ended` says so after a round."""
        for _ in range(TUNED.rounds):
            self._run()
            self.rounds += 1
            if ended() or not self._violated():
                return

    def state(self) -> dict[str, Array]:
        """Return the columns that have been generated, from which `restore` makes them again."""
        generated = self.cuts[self.data.points.size :]  # the columns of the first round are always the same
        return {name: vars(generated)[name] for name in ("data", "indices", "indptr")}

    def restore(self, state: dict[str, Array]) -> None:
        """Add the columns of a state; an empty one has none."""
        if state:
            shape = len(state["indptr"]) - 1, self.cuts.shape[1]
            self.cut(sp.csr_array((state["data"], state["indices"], state["indptr"]), shape=shape))

    def _run(self) -> None:
        """Solve from the last basis; where that fails, from none and to the default tolerances of HiGHS."""
        for accuracy in (TUNED.accuracy, TUNED.usual):
            for kind in ("primal", "dual"):
                self.highs.setOptionValue(f"{kind}_feasibility_tolerance", accuracy)
            self.highs.run()
            status = self.highs.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return
            if status == highspy.HighsModelStatus.kTimeLimit:
                raise Stopped
            self.highs.clearSolver()
        got = self.highs.modelStatusToString(status)
        raise ko.SolverError(f"HiGHS must solve the linear programme, got {got}. Scale the kernels.")

    def _violated(self) -> bool:
        """Add a column for every point at which dominance fails, and say whether there was one."""
        data = self.data
        if data.cone != "dominant" or not data.first.size:
            return False
        alpha = self.weights()
        failing = np.flatnonzero(data.dominance(alpha) < -TUNED.violated * data.scale(alpha))
        signs = data.of_pairs(-np.sign(data.off @ alpha))
        self.cut(sp.hstack([sp.eye_array(data.points.size), signs], format="csr")[failing])
        return bool(failing.size)

    def weights(self) -> Array:
        """Return alpha, the multipliers of the rows; HiGHS minimises, so their sign is the other."""
        return -np.array(self.highs.getSolution().row_dual[: self.data.m])

    def multipliers(self) -> tuple[Array, Array]:
        """Return u, and for dominance v and w in one vector, of the hand-written dual."""
        data = self.data
        values = np.array(self.highs.getSolution().col_value)
        u, lam = values[2 * data.m : 2 * data.m + data.T], values[self.first :]
        return u, self.cuts.T @ np.maximum(lam, 0.0)

    def found(self, problem: cp.Problem) -> tuple[dict[int, Array], list[list[Array]]]:
        """Return the values of the programme's variables, by id, and the multipliers of its constraints."""
        return point_and_multipliers(problem, self.data, self.weights(), *self.multipliers())
