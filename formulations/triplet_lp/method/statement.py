"""The linear programme of triplets as a `Statement`, with multipliers that are feasible in fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.multipliers import TOLERANCES, Multipliers
from formulations.triplet_lp.method.rows import Rows
from kernelopt.extend import Array, Statement


def fractions(a: Any) -> Any:
    """Return an array of exact fractions."""
    return np.frompyfunc(Fraction, 1, 1)(a)


@dataclass(frozen=True, eq=False)
class Source:
    """The programme of checked data at a price of the weights, with the multipliers of a certificate."""

    data: ComparisonData
    gamma1: float
    multipliers: Multipliers

    @property
    def seconds(self) -> float:
        """The predicted seconds: some operations in fractions for every kernel in every row."""
        data = self.data
        pairs = data.points.size**2 if data.cone == "dominant" else 0
        return TOLERANCES.seconds * data.m * (data.T + data.F + pairs)

    def statement(self) -> Statement:
        """Return the programme, without a witness: its columns are eps, s, r and alpha, its rows are `Rows`.

        The rows have the labels of the constraints of the programme. eps >= 0 is a sign of its columns.
        """
        data, rows = self.data, Rows.of(self.data, self.gamma1)
        m, T, P, n = data.m, data.T, data.first.size, data.points.size
        x = rows.c.size - len(rows.K)
        columns = np.repeat(["eps", "s", "r", "alpha"], [T, data.F, P, m])
        signed = np.repeat([True, False, data.cone == "nonnegative"], [T + data.F, P, m])
        stated = Statement([f"{name}[{j}]" for j, name in enumerate(columns)], signed.tolist())
        stated.cost[:] = [*rows.c[:x], *rows.c[-m:]]
        labels = ["comparisons", "eps", "group above", "group below", "above", "below", "dominance"]
        A = sp.hstack([rows.G[:, :x], sp.csr_array(rows.G[:, x:] @ rows.K)], format="csr")
        for i, label in enumerate(np.repeat(labels, [T, T, m, m, P, P, n])[: A.shape[0]]):
            if label != "eps":
                at = slice(A.indptr[i], A.indptr[i + 1])
                stated.row(f"{label}[{i}]", A.indices[at].tolist(), (-A.data[at]).tolist(), -rows.h[i])
        return stated

    def prove(self, stated: Statement, certificate: Any) -> None:
        """Set the witnesses of both bounds."""
        self.set_multipliers(stated)
        given = {variable.name(): value for variable, value in certificate.point.items()}
        stated.x = self.point(np.asarray(given["alpha"], dtype=float))

    def set_multipliers(self, stated: Statement) -> None:
        """Set multipliers that are feasible for the dual exactly: sum_f |z| <= gamma1, and all columns agree.

        The multipliers (u, v, w) = (0, gamma2 e, 0) have z = 0 up to the rounding of the stored traces. A
        convex combination with them multiplies z and u by the same share, which is lowered until
        sum_f |z| <= gamma1 holds in fractions.
        """
        data, T, n = self.data, self.data.T, self.data.points.size
        A = fractions(np.vstack([data.D, data.cone_entries]))
        y, cost = fractions(np.concatenate(self.multipliers)), fractions(stated.cost[-data.m :])
        centre = np.array([Fraction(0)] * y.size)
        centre[T : T + n] += Fraction(data.gamma2)
        full, none = A.T @ y, A.T @ centre
        largest = max(float(v) for v in self.group_sums(full - cost))
        share = Fraction(min(1.0, self.gamma1 / largest)) if largest > 0 else Fraction(1)
        for k in range(TOLERANCES.tries):
            z = share * full + (1 - share) * none - cost
            if all(total <= Fraction(self.gamma1) for total in self.group_sums(z)):
                break
            share *= 1 - Fraction(4) ** k * Fraction(1, 2**52) if k < TOLERANCES.shares else 0
        u, v, w = np.split(share * y + (1 - share) * centre, [T, T + n])
        reach, below = v[data.first] + v[data.second], np.maximum(-z, 0) * (data.cone == "dominant")
        stated.u = [*u, *np.maximum(z, 0), *below, *((reach - w) / 2), *((reach + w) / 2), *v]

    def group_sums(self, z: Any) -> list[Any]:
        """Return the sum over every group of |z_p|, or of its positive part for non-negative weights."""
        sizes = np.maximum(z, 0) if self.data.cone == "nonnegative" else abs(z)
        return [sum(sizes[self.data.groups == f]) for f in range(self.data.F)]

    def point(self, alpha: Array) -> list[Fraction]:
        """Return all variables at weights near alpha, exactly feasible."""
        data = self.data
        near = fractions(np.maximum(alpha, 0.0) if data.cone == "nonnegative" else alpha)
        inner, size, off, diagonal = np.zeros(data.m), float(np.abs(alpha).max()), data.off, data.diagonal
        for k in range(TOLERANCES.tries):
            r, room = abs(fractions(off) @ near), fractions(diagonal) @ near
            for ends in (data.first, data.second):
                np.subtract.at(room, ends, r)
            if data.cone != "dominant" or (room >= 0).all():
                break
            inner = data.interior_weights() if k == 0 else inner
            near = fractions(alpha + size * 4.0 ** (k - 26) * inner) if k < TOLERANCES.moves else 0 * near
        s = [max(abs(near[data.groups == f])) for f in range(data.F)]
        eps = np.maximum(Fraction(data.margin) - fractions(data.D) @ near, 0)
        return [*eps, *s, *r, *near]
