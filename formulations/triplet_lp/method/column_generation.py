"""Column generation: the linear programme of relative comparisons without its n_S^2 rows.

Dominance at point i is K_ii >= sum_j sigma_j K_ij for every choice of signs sigma: rows that are linear in
the weights; few of them are active. The dual of the programme has one column per triplet, one column per
row that has been generated, and m + F rows, however many triplets there are. HiGHS starts every solve from
its last basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

import kernelopt as ko
from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.multipliers import cut, value
from formulations.triplet_lp.method.problem import TripletProgramme, matched
from formulations.triplet_lp.method.settings import SETTINGS
from kernelopt.errors import Stopped
from kernelopt.extend import Array, Cost, Method, Outcome, check, register_method


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
        self.highs.setOptionValue("small_matrix_value", SETTINGS.smallest_entry)
        m, F, infinity = data.m, data.F, highspy.kHighsInf
        right = data.gamma2 * data.q
        for lower, upper in [*zip(right, right, strict=True), *[(-infinity, gamma1 or 0.0)] * F]:
            self.highs.addRow(lower, upper, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
        one, counted = sp.eye_array(m), data.members.T
        self._add(sp.hstack([-one, counted]))  # z = above - below; what the cone leaves free has no price
        self._add(sp.hstack([one, counted if data.cone == "dominant" else 0 * counted]))
        if gamma1 is None:
            self._add(data.D, least=1.0, most=1.0)
            self._add(sp.coo_array(np.repeat([[0.0, -1.0]], [m, F], axis=1)), cost=1.0)
        else:
            self._add(data.D, cost=-data.margin, most=1.0)
        self.first = self.highs.getNumCol()  # of the columns lam
        if data.cone == "dominant":
            self.cut(sp.eye_array(data.points.size, len(data.cone_entries), format="csr"))

    def _add(
        self, columns: Any, *, cost: float = 0.0, least: float = 0.0, most: float = highspy.kHighsInf
    ) -> None:
        """Add columns, given by their coefficients in a row each, with a cost (of the minimisation)."""
        matrix = sp.csr_array(columns)
        matrix.eliminate_zeros()
        costs, lower, upper = (np.full(matrix.shape[0], number) for number in (cost, least, most))
        data = matrix.nnz, matrix.indptr[:-1], matrix.indices, matrix.data
        self.highs.addCols(costs.size, costs, lower, upper, *data)

    def cut(self, rows: Any) -> None:
        """Add rows K_ii >= sum_j sigma_j K_ij, given as coefficients of the constrained entries."""
        check()
        self._add(rows @ self.data.cone_entries)
        self.cuts = sp.vstack([self.cuts, rows], format="csr")

    def reprice(self, gamma1: float) -> None:
        """Change gamma1, keeping the columns and the basis."""
        for f in range(self.data.F):
            self.highs.changeRowBounds(self.data.m + f, -highspy.kHighsInf, gamma1)

    def solve(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Generate columns until no row of dominance is violated, or until `ended` says so after a round."""
        for _ in range(SETTINGS.rounds):
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
        for accuracy in (SETTINGS.accuracy, SETTINGS.usual_accuracy):
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
        if data.cone != "dominant" or not len(data.off):
            return False
        alpha = self.weights
        failing = np.flatnonzero(data.dominance(alpha) < -SETTINGS.violated * data.scale(alpha))
        signs = data.of_pairs(-np.sign(data.off @ alpha))
        self.cut(sp.hstack([sp.eye_array(data.points.size), signs], format="csr")[failing])
        return bool(failing.size)

    @property
    def weights(self) -> Array:
        """alpha, the multipliers of the rows; HiGHS minimises, so their sign is the other."""
        return -np.array(self.highs.getSolution().row_dual[: self.data.m])

    @property
    def multipliers(self) -> Array:
        """The multipliers y of the programme: u, and for dominance v and w, of the hand-written dual."""
        values = np.array(self.highs.getSolution().col_value)
        u = values[2 * self.data.m :][: self.data.T]
        return np.concatenate([u, self.cuts.T @ np.maximum(values[self.first :], 0.0)])


@dataclass(frozen=True)
class ColumnGeneration(Method):
    """Generates the rows of dominance as they are needed, as columns of the dual in HiGHS.

    For the programmes of `kernel_design` and `feature_selection` over the cones "dominant" and
    "nonnegative". The programme with all rows is never built.
    """

    name = "column-generation"

    def match(self, structure: ko.Structure) -> TripletProgramme | str:
        """Match the programmes of this package over the two linear cones."""
        found = matched(structure)
        linear = isinstance(found, str) or found.data.cone != "psd"
        return found if linear else 'cone="psd" is semidefinite'

    def cost(self, match: TripletProgramme) -> Cost:
        data = match.data
        n = data.points.size
        # The seconds of a simplex method on m rows and, for dominance, of the search for violated rows in all
        # n^2 entries of the m kernels, in every round.
        rows = 3e-7 * data.m * n**2 if data.cone == "dominant" else 0.0
        return Cost(0.01 + 2e-8 * data.m**2 * (data.T + 10 * n) + rows)

    def run(self, match: TripletProgramme, control: Any) -> Outcome | None:
        data, columns = match.data, Columns(match.data, match.gamma1)
        columns.restore(control.resumed)
        columns.highs.setOptionValue("time_limit", control.remaining)
        inside, depth = data.deepest

        def ended() -> bool:
            """Report the bounds of a round. A small gap ends nothing: the last round has a vertex."""
            alpha, y = columns.weights, columns.multipliers
            near = data.moved_inside(alpha, inside) if depth > 0 else np.zeros(data.m)
            upper = min(data.value(near, match.gamma1), data.margin * data.T)
            lower = value(data, match.gamma1, cut(data, y))
            control.report(lower, upper, point=alpha, proof=y, state=columns.state)
            return bool(control.stopped)

        with control:
            columns.solve(ended)
        if control.best is None:
            return None
        # A solve that the clock has ended leaves no point in HiGHS: the best of the earlier rounds is taken.
        alpha, y = control.best, control.proof
        if not control.stopped:
            alpha, y = columns.weights, columns.multipliers
        return match.outcome(alpha, y, "HIGHS", columns.rounds)


register_method(ColumnGeneration())
