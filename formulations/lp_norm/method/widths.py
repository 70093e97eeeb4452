r"""The largest form alpha'K_sigma alpha over an interval of widths, with a proved bound.

With u = log sigma, a Gaussian or Laplacian kernel is k = exp(-z) with z = (distance / sigma)^r up to a
constant, r = 2 or 1. Hence dk/du = r z exp(-z) and d2k/du2 = r^2 z (z - 1) exp(-z). The function
z (z - 1) exp(-z) has its maximum 0.3090... at (3 + sqrt 5) / 2 and its minimum -0.1611... at
(3 - sqrt 5) / 2. So the second derivative of s(u) = sum_ij alpha_i alpha_j k_ij is at most

    B = r^2 (0.3091 P + 0.1613 Q),  P, Q = the sums of |alpha_i alpha_j| over pairs i != j with positive and
                                    negative products,

and on [u - h, u + h] the form is at most s(u) + |s'(u)| h + B h^2 / 2. Intervals whose bound is too large are
halved, the largest bound first.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from formulations.lp_norm.multiple_kernel_data import MultipleKernelData
from kernelopt.extend import Array, Ball


@dataclass(frozen=True)
class Tuned:
    """The tuned numbers of the search over widths."""

    # more roundings than an entry of a kernel and of its derivative, beside one per coordinate
    roundings: int = 64
    first: int = 16  # intervals at the start
    evaluations: int = 20_000  # of the form at most; beyond them the bound is looser
    peaks: int = 3  # maxima that are returned
    first_widths: int = 6  # in equal ratios, at the start
    solve_share: float = 0.2  # of the tolerance: for a solve, and for the search of a width
    search_share: float = 0.2
    same: float = 1e-6  # relative difference of widths that count as equal
    used: float = 1e-7  # share of the largest weight from which a width is chosen


TUNED = Tuned()


HIGHEST, LOWEST = 0.3091, 0.1613  # bounds of z (z - 1) exp(-z) and of its negative, rounded up
EPS = np.finfo(float).eps  # k operations lose at most k / 2 times it, and less than k times it


class Highest(NamedTuple):
    """A bound of the form on the whole interval, the largest value found, and the widths of the maxima."""

    bound: float
    value: float
    widths: list[float]


class Widths:
    """The forms alpha'K_sigma alpha of a radial family as a function of log sigma.

    Parameters
    ----------
    X : array of shape (n, d), the labelled points
    gaussian : bool
        Whether the family is `ko.gaussian`; otherwise it is `ko.laplacian`.
    low, high : float
        The interval of widths.
    """

    def __init__(self, X: Array, gaussian: bool, low: float, high: float) -> None:
        self.power, self.d = (2, X.shape[1]) if gaussian else (1, X.shape[1])
        self.n = len(X)
        self.distances = pdist(X, "sqeuclidean") / 2 if gaussian else pdist(X, "cityblock")
        self.low = float(np.nextafter(np.log(low), -np.inf))
        self.high = float(np.nextafter(np.log(high), np.inf))
        self.i, self.j = np.triu_indices(self.n, 1)

    def highest(self, alpha: Array, slack: float) -> Highest:
        """Return the largest form at alpha, with a bound that exceeds it by about `slack`."""
        products = 2 * alpha[self.i] * alpha[self.j]
        used = products != 0
        c, distances = products[used], self.distances[used]
        total = float(np.abs(c).sum())
        positive = float(c[c > 0].sum())
        square = float(alpha @ alpha)
        curvature = self.power**2 * (HIGHEST * positive + LOWEST * (total - positive))
        largest_log = max(abs(self.low), abs(self.high))
        error = EPS * (c.size + self.d + TUNED.roundings + 8 * largest_log) * (total + square)

        def at(u: float) -> tuple[float, float]:
            z = distances * np.exp(-self.power * u)
            e = np.exp(-z)
            return square + float(c @ e), self.power * float(c @ (z * e))

        heap: list[tuple[float, float, float]] = []  # minus the bound, centre, half length
        values: dict[float, float] = {}

        def push(u: float, h: float) -> None:
            values[u], slope = at(u)
            bound = values[u] + (abs(slope) + self.power * error) * h + curvature * h**2 / 2
            heappush(heap, (-(bound + error) * (1 + 1e-14 * np.sign(bound)), u, h))

        h = (self.high - self.low) / (2 * TUNED.first)
        for k in range(TUNED.first):
            push(self.low + (2 * k + 1) * h, h * (1 + 1e-12))  # the intervals overlap by their rounding
        push(self.low, 0.0)
        push(self.high, 0.0)
        best = max(values.values())
        while -heap[0][0] > best + slack and len(values) < TUNED.evaluations and heap[0][2] > 0:
            _, u, h = heappop(heap)
            for centre in (u - h / 2, u + h / 2):
                push(centre, h / 2 * (1 + 1e-12))
                best = max(best, values[centre])
        return Highest(-heap[0][0], best, self.peaks(values))

    def peaks(self, values: dict[float, float]) -> list[float]:
        """Return the widths of the largest local maxima of the values, the largest first."""
        u = np.array(sorted(values))
        s = np.array([values[x] for x in u])
        padded = np.concatenate([[-np.inf], s, [-np.inf]])
        local = np.flatnonzero((s >= padded[:-2]) & (s >= padded[2:]))
        order = local[np.argsort(-s[local], kind="stable")][: TUNED.peaks]
        inside = np.clip(u[order], self.low, self.high)
        return [float(width) for width in np.exp(inside)]


def lower_bound(data: MultipleKernelData, alpha: Array, form: float) -> float:
    """Return l(alpha) - form / 2, rounded down."""
    gain = data.loss.bounded_dual_value(alpha, data.y)
    return float((Ball(gain.below) - form / 2).below)
