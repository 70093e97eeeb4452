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

from heapq import heappop, heappush

import numpy as np
from scipy.spatial.distance import pdist, squareform

from kernelopt.extend import Array

HIGHEST, LOWEST = 0.3091, 0.1613  # bounds of z (z - 1) exp(-z) and of its negative, rounded up
ROUNDINGS = 64  # more than an entry of a kernel and of its derivative have, beside one per coordinate
FIRST = 16  # intervals at the start
EVALUATIONS = 20_000  # of the form at most; beyond them the bound is looser
PEAKS = 3  # maxima that are returned


def largest_form(
    X: Array, alpha: Array, gaussian: bool, low: float, high: float, slack: float
) -> tuple[float, list[float]]:
    """Return a bound that exceeds the largest alpha'K_sigma alpha by about `slack`, and the widths of maxima.

    Parameters
    ----------
    X : array of shape (n, d), the labelled points
    alpha : array of shape (n,)
    gaussian : bool
        Whether the family is `ko.gaussian`; otherwise it is `ko.laplacian`.
    low, high : float
        The interval of widths.
    slack : float

    Returns
    -------
    float
    list of float, the width of the largest maximum first
    """
    power, distances = (2, pdist(X, "sqeuclidean") / 2) if gaussian else (1, pdist(X, "cityblock"))
    low, high = np.nextafter(np.log([low, high]), [-np.inf, np.inf]).tolist()
    products = squareform(2 * np.outer(alpha, alpha), checks=False)
    used = products != 0
    c, distances = products[used], distances[used]
    total, square = float(np.abs(c).sum()), float(alpha @ alpha)
    curvature = power**2 * float(np.where(c > 0, HIGHEST, LOWEST) @ np.abs(c))
    # k operations lose at most k / 2 times the distance of doubles, and less than k times it
    roundings = c.size + X.shape[1] + ROUNDINGS + 8 * max(abs(low), abs(high))
    error = np.finfo(float).eps * roundings * (total + square)
    heap: list[tuple[float, float, float]] = []  # minus the bound, centre, half length
    values: dict[float, float] = {}

    def push(u: float, h: float) -> None:
        z = distances * np.exp(-power * u)
        e = np.exp(-z)
        values[u], slope = square + float(c @ e), power * float(c @ (z * e))
        bound = values[u] + (abs(slope) + power * error) * h + curvature * h**2 / 2
        heappush(heap, (-(bound + error) * (1 + 1e-14 * np.sign(bound)), u, h))

    h = (high - low) / (2 * FIRST)
    for k in range(FIRST):
        push(low + (2 * k + 1) * h, h * (1 + 1e-12))  # the intervals overlap by their rounding
    push(low, 0.0)
    push(high, 0.0)
    best = max(values.values())
    while -heap[0][0] > best + slack and len(values) < EVALUATIONS and heap[0][2] > 0:
        _, u, h = heappop(heap)
        for centre in (u - h / 2, u + h / 2):
            push(centre, h / 2 * (1 + 1e-12))
            best = max(best, values[centre])
    places, s = np.array(sorted(values.items())).T
    padded = np.concatenate([[-np.inf], s, [-np.inf]])
    local = np.flatnonzero((s >= padded[:-2]) & (s >= padded[2:]))
    peaks = places[local[np.argsort(-s[local], kind="stable")][:PEAKS]]
    return -heap[0][0], np.exp(np.clip(peaks, low, high)).tolist()
