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

import numpy as np
from scipy.spatial.distance import pdist, squareform

from kernelopt.extend import Array


@dataclass(frozen=True)
class Tuned:
    """The tuned numbers of the search over widths."""

    # more roundings than an entry of a kernel and of its derivative, beside one per coordinate
    roundings: int = 64
    first: int = 16  # intervals at the start
    evaluations: int = 20_000  # of the form at most; beyond them the bound is looser
    peaks: int = 3  # maxima that are returned
    first_widths: int = 6  # in equal ratios, at the start
    share: float = 0.2  # of the tolerance: for a solve, and for the search of a width
    same: float = 1e-6  # relative difference of widths that count as equal
    used: float = 1e-7  # share of the largest weight from which a width is chosen


TUNED = Tuned()


HIGHEST, LOWEST = 0.3091, 0.1613  # bounds of z (z - 1) exp(-z) and of its negative, rounded up


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
        self.power = 2 if gaussian else 1
        self.distances = pdist(X, "sqeuclidean") / 2 if gaussian else pdist(X, "cityblock")
        self.ends = np.nextafter(np.log([low, high]), [-np.inf, np.inf])
        self.roundings = X.shape[1] + TUNED.roundings + 8 * float(np.abs(self.ends).max())

    def highest(self, alpha: Array, slack: float) -> tuple[float, list[float]]:
        """Return a bound that exceeds the largest form at alpha by about `slack`, and the widths of maxima.

        The largest maximum comes first.
        """
        products = squareform(2 * np.outer(alpha, alpha), checks=False)
        used = products != 0
        c, distances = products[used], self.distances[used]
        total, square = float(np.abs(c).sum()), float(alpha @ alpha)
        curvature = self.power**2 * float(np.where(c > 0, HIGHEST, LOWEST) @ np.abs(c))
        # k operations lose at most k / 2 times the distance of doubles, and less than k times it
        error = np.finfo(float).eps * (c.size + self.roundings) * (total + square)
        heap: list[tuple[float, float, float]] = []  # minus the bound, centre, half length
        values: dict[float, float] = {}

        def push(u: float, h: float) -> None:
            z = distances * np.exp(-self.power * u)
            e = np.exp(-z)
            values[u], slope = square + float(c @ e), self.power * float(c @ (z * e))
            bound = values[u] + (abs(slope) + self.power * error) * h + curvature * h**2 / 2
            heappush(heap, (-(bound + error) * (1 + 1e-14 * np.sign(bound)), u, h))

        low, high = self.ends.tolist()
        h = (high - low) / (2 * TUNED.first)
        for k in range(TUNED.first):
            push(low + (2 * k + 1) * h, h * (1 + 1e-12))  # the intervals overlap by their rounding
        push(low, 0.0)
        push(high, 0.0)
        best = max(values.values())
        while -heap[0][0] > best + slack and len(values) < TUNED.evaluations and heap[0][2] > 0:
            _, u, h = heappop(heap)
            for centre in (u - h / 2, u + h / 2):
                push(centre, h / 2 * (1 + 1e-12))
                best = max(best, values[centre])
        places, s = np.array(sorted(values.items())).T
        padded = np.concatenate([[-np.inf], s, [-np.inf]])
        local = np.flatnonzero((s >= padded[:-2]) & (s >= padded[2:]))
        peaks = places[local[np.argsort(-s[local], kind="stable")][: TUNED.peaks]]
        return -heap[0][0], np.exp(np.clip(peaks, low, high)).tolist()
