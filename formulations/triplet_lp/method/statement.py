"""The linear programme of triplets as a `Statement`, with multipliers that are feasible in fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from formulations.triplet_lp.comparison_data import ComparisonData
from formulations.triplet_lp.method.interior import interior_weights
from formulations.triplet_lp.method.multipliers import Multipliers
from kernelopt.extend import Array, Statement

SECONDS = 1e-5  # a few operations of fractions
TRIES = 40  # corrections until a point is feasible in fractions, each four times as large as the previous one
SHARES = 25  # corrections after which the share is set to zero: the last was 4^24 2^-52, a sixteenth
MOVES = 30  # corrections after which the weights are set to zero: the last was 4^3 times as large as they


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
        return SECONDS * data.m * (data.T + data.F + pairs)

    def statement(self) -> Statement:
        """Return the programme, without a witness.

        Its columns are alpha, s, r and eps, and its rows in the order of `rows`.
        """
        data = self.data
        sizes = {"alpha": data.m, "s": data.F, "r": data.first.size, "eps": data.T}
        columns = [f"{name}[{i}]" for name, size in sizes.items() for i in range(size)]
        signs = [name != "r" and (name != "alpha" or data.cone == "nonnegative") for name in sizes]
        repeated = np.repeat(signs, list(sizes.values())).tolist()
        stated = Statement(columns, repeated)
        starts = dict(zip(sizes, np.cumsum([0, *sizes.values()])[:-1].tolist(), strict=True))
        stated.cost[: data.m] = data.gamma2 * data.q
        stated.cost[starts["s"] : starts["r"]] = self.gamma1
        stated.cost[starts["eps"] :] = 1.0
        self.rows(stated, starts)
        return stated

    def prove(self, stated: Statement, certificate: Any) -> None:
        """Set the witnesses of both bounds."""
        self.set_multipliers(stated)
        given = {variable.name(): value for variable, value in certificate.point.items()}
        stated.x = self.point(np.asarray(given["alpha"], dtype=float))

    def rows(self, stated: Statement, starts: dict[str, int]) -> None:
        """Add the comparisons, the groups above and below, and dominance: above, below and the sums."""
        data, alphas = self.data, range(self.data.m)
        for t, (i, j, k) in enumerate(data.triplets.tolist()):
            name = f"{i} is closer to {j} than to {k}"
            stated.row(name, [*alphas, starts["eps"] + t], [*-data.D[t], -1.0], -data.margin)
        for side in (1.0, -1.0):
            for p, f in enumerate(data.groups.tolist()):
                stated.row(f"size of weight {p}", [p, starts["s"] + f], [side, -1.0], 0.0)
        pairs = list(zip(data.first.tolist(), data.second.tolist(), strict=True))
        for side in (1.0, -1.0):
            for c, (a, b) in enumerate(pairs):
                name = f"size of entry ({data.points[a]}, {data.points[b]})"
                stated.row(name, [*alphas, starts["r"] + c], [*(side * data.off[c]), -1.0], 0.0)
        if data.cone == "dominant":
            for i, point in enumerate(data.points.tolist()):
                ends = [starts["r"] + c for c, pair in enumerate(pairs) if i in pair]
                stated.row(
                    f"dominance of {point}", [*alphas, *ends], [*-data.diagonal[i], *(1.0 for _ in ends)], 0.0
                )

    def set_multipliers(self, stated: Statement) -> None:
        """Set multipliers that are feasible for the dual exactly: sum_f |z| <= gamma1, and all columns agree.

        The multipliers (u, v, w) = (0, gamma2 e, 0) have z = 0 up to the rounding of the stored traces. A
        convex combination with them multiplies z and u by the same share, which is lowered until
        sum_f |z| <= gamma1 holds in fractions.
        """
        data, one, n = self.data, Fraction(1), self.data.points.size
        dominant = data.cone == "dominant"
        u, cone = fractions(self.multipliers.u), fractions(self.multipliers.cone)
        v, w = (cone[:n], cone[n:]) if dominant else (cone[:0], cone[:0])
        cost = fractions(stated.cost[: data.m])
        D, diagonal, off = fractions(data.D), fractions(data.diagonal), fractions(data.off)
        centre = np.full(v.size, Fraction(data.gamma2))
        full = D.T @ u + (diagonal.T @ v + off.T @ w if dominant else 0)
        none = diagonal.T @ centre if dominant else np.zeros(data.m, dtype=int)
        largest = max(float(v) for v in self.group_sums(full - cost))
        share = Fraction(min(1.0, self.gamma1 / largest)) if largest > 0 else one
        for k in range(TRIES):
            z = share * full + (1 - share) * none - cost
            if all(total <= Fraction(self.gamma1) for total in self.group_sums(z)):
                break
            share *= 1 - Fraction(4) ** k * Fraction(1, 2**52) if k < SHARES else 0
        above, below = np.maximum(z, 0), np.maximum(-z, 0)
        if not dominant:
            stated.u = [*(share * u), *above, *(0 * below)]
            return
        v, w = share * v + (1 - share) * centre, share * w
        reach = v[data.first] + v[data.second]
        stated.u = [*(share * u), *above, *below, *((reach - w) / 2), *((reach + w) / 2), *v]

    def group_sums(self, z: Any) -> list[Any]:
        """Return the sum over every group of |z_p|, or of its positive part for non-negative weights."""
        sizes = np.maximum(z, 0) if self.data.cone == "nonnegative" else abs(z)
        return [sum(sizes[self.data.groups == f]) for f in range(self.data.F)]

    def point(self, alpha: Array) -> list[Fraction]:
        """Return all variables at weights near alpha, exactly feasible."""
        data = self.data
        incidence = [np.flatnonzero((data.first == i) | (data.second == i)) for i in range(data.points.size)]
        near = fractions(np.maximum(alpha, 0.0) if data.cone == "nonnegative" else alpha)
        r = np.array([Fraction(0)] * data.first.size)
        if data.cone == "dominant":
            inner, size = np.zeros(data.m), float(np.abs(alpha).max())
            for k in range(TRIES):
                r, room = abs(fractions(data.off) @ near), fractions(data.diagonal) @ near
                if all(sum(r[ends]) <= room[i] for i, ends in enumerate(incidence)):
                    break
                inner = interior_weights(data) if k == 0 else inner
                near = fractions(alpha + size * 4.0 ** (k - 26) * inner) if k < MOVES else 0 * near
        s = [max(abs(near[data.groups == f])) for f in range(data.F)]
        eps = np.maximum(Fraction(data.margin) - fractions(data.D) @ near, 0)
        return [*near, *s, *r, *eps]
