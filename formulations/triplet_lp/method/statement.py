"""The linear programme of triplets as a `Statement`, with multipliers that are feasible in fractions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.rows import Rows
from formulations.triplet_lp.method.settings import SETTINGS
from kernelopt.extend import Array, Statement


def fractions(a: Any) -> Any:
    """Return an array of exact fractions."""
    return np.frompyfunc(Fraction, 1, 1)(a)


@dataclass(frozen=True, eq=False)
class Source:
    """The programme of checked data at a price of the weights, with the multipliers y of a certificate."""

    data: ComparisonData
    gamma1: float
    multipliers: Array

    @property
    def seconds(self) -> float:
        """The predicted seconds: some operations in fractions for every kernel in every row."""
        data = self.data
        pairs = data.points.size**2 if data.cone == "dominant" else 0
        return SETTINGS.seconds * data.m * (data.T + data.F + pairs)

    def statement(self) -> Statement:
        """Return the programme, without a witness: its columns are eps, s, r and alpha, its rows are `Rows`.

        The rows have the labels of the constraints of the programme. eps >= 0 is a sign of its columns.
        """
        data, rows = self.data, Rows.of(self.data, self.gamma1)
        m, T, P, n = data.m, data.T, data.pairs[0].size, data.points.size
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
        """Set multipliers that are feasible for the dual exactly: sum_f |z| <= gamma1, and |w| <= v_i + v_j.

        The multipliers (u, v, w) = (0, gamma2 e, 0) have z = 0 up to the rounding of the stored traces. The
        share of y in a convex combination with them is lowered until sum_f |z| <= gamma1 holds in fractions:
        by 2^-52 of it first, then by four times as much each time, at last to zero.
        """
        data, cuts = self.data, [self.data.T, self.data.T + self.data.points.size]
        first, second = data.pairs
        A, y, cost = (fractions(a) for a in (data.rows, self.multipliers, stated.cost[-data.m :]))
        _, v, w = np.split(y, cuts)
        reach = v[first] + v[second]
        np.clip(w, -reach, reach, out=w)  # w is a part of y, and was within them up to rounding
        centre = 0 * y
        centre[slice(*cuts)] = Fraction(data.gamma2)
        full, none = A.T @ y, A.T @ centre
        largest = max(float(v) for v in self.group_sums(full - cost))
        share = Fraction(min(1.0, self.gamma1 / largest)) if largest > 0 else Fraction(1)
        for k in range(27):
            z = share * full + (1 - share) * none - cost
            if max(self.group_sums(z)) <= Fraction(self.gamma1):
                break
            share *= 1 - Fraction(4) ** (k - 26)
        u, v, w = np.split(share * y + (1 - share) * centre, cuts)
        reach = v[first] + v[second]
        below = np.maximum(-z, 0) * (data.cone == "dominant")
        stated.u = [*u, *np.maximum(z, 0), *below, *((reach - w) / 2), *((reach + w) / 2), *v]

    def group_sums(self, z: Any) -> list[Any]:
        """Return the sum over every group of |z_p|, or of its positive part for non-negative weights."""
        sizes = self.data.sizes(z)
        return [sum(sizes[self.data.groups == f]) for f in range(self.data.F)]

    def point(self, alpha: Array) -> list[Fraction]:
        """Return all variables at weights near alpha, exactly feasible."""
        data = self.data
        for weights in self.moved(np.maximum(alpha, 0.0) if data.cone == "nonnegative" else alpha):
            near = fractions(weights)
            r, room = abs(fractions(data.off) @ near), fractions(data.diagonal) @ near
            for ends in data.pairs:
                np.subtract.at(room, ends, r)
            if data.cone != "dominant" or (room >= 0).all():
                break
        s = [max(abs(near[data.groups == f])) for f in range(data.F)]
        eps = np.maximum(Fraction(data.margin) - fractions(data.D) @ near, 0)
        return [*eps, *s, *r, *near]

    def moved(self, alpha: Array) -> Iterator[Array]:
        """Yield the weights, then weights that are moved inside ever farther, then zero weights."""
        yield alpha
        inner, size = self.data.interior_weights(), float(np.abs(alpha).max())
        for k in range(-26, 4):
            yield alpha + size * 4.0**k * inner
        yield 0 * alpha
