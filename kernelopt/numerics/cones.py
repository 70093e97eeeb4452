r"""Euclidean projections on the exponential cone and on power cones, each by the root of one function.

.. math::

    K_{\exp} = \mathrm{cl}\{(x, y, z) : y > 0,\ y e^{x/y} \le z\}, \qquad
    K_a = \{(w, z) : w \ge 0,\ \textstyle\prod_i w_i^{a_i} \ge |z|\}, \quad a > 0,\ \sum_i a_i = 1.

References
----------
.. [1] Friberg, Projection onto the exponential cone: a univariate root-finding problem, Optimization Methods
   and Software 38 (2023).
.. [2] Hien, Differential properties of Euclidean projection onto power cone, Mathematical Methods of
   Operations Research 82 (2015).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from kernelopt.validation import Array

LARGEST_EXPONENT = 700.0  # exp of it is a double
FARTHEST = 4.0  # entry of a point, in units of the largest of v: zero is nearer than a point beyond it
SMALLEST = np.finfo(float).tiny


def exponential_projection(v: Array) -> Array:
    """Return the point of the exponential cone nearest to v = (x, y, z).

    Points of the cone are returned as they are. By Moreau's decomposition any other v is b p + m q, b >= 0
    and m >= 0, with p = (s, 1, exp(s)) on the boundary of the cone and q = (1, 1 - s, -exp(-s)) on that of
    the polar cone. The first two entries give b and m as functions of s, and the third is an equation in s,
    whose left side increases where both are positive [1]_.
    """
    if in_exponential_cone(v):
        return v.copy()
    size = float(np.abs(v).max())
    x, y, z = v / size
    candidates = [exponential_ray(x, y, z)] if x > 0 or y > 0 else []
    candidates.append(np.array([min(x, 0.0), 0.0, max(z, 0.0)]))  # on the face y = 0
    above = y * np.exp(x / y) if y > 0 and x / y < LARGEST_EXPONENT else np.inf
    if above <= FARTHEST:
        candidates.append(np.array([x, y, above]))
    scaled = v / size
    return size * min(candidates, key=lambda p: excess_distance(p, scaled))


def in_exponential_cone(v: Array) -> bool:
    """Whether v is in the exponential cone."""
    x, y, z = v
    if y <= 0:
        return bool(y == 0 and x <= 0 and z >= 0)
    return bool(z > 0 and x / y <= LARGEST_EXPONENT and y * np.exp(x / y) <= z)


def exponential_ray(x: float, y: float, z: float) -> Array:
    """Return b (s, 1, exp(s)) where b p + m q has the third entry z; zero where it never has."""

    def weights(s: float) -> tuple[float, float]:
        size = s * (s - 1) + 1
        return (y - (1 - s) * x) / size, (x - s * y) / size

    def excess(s: float) -> float:
        b, m = weights(s)
        return float(b * np.exp(s) - m * np.exp(-s) - z)

    low, high = -LARGEST_EXPONENT, LARGEST_EXPONENT
    if x > 0:
        low = max(low, 1 - y / x)  # b > 0 above
    elif x < 0:
        high = min(high, 1 - y / x)
    if y > 0:
        high = min(high, x / y)  # m > 0 below
    elif y < 0:
        low = max(low, x / y)
    if not low < high:
        return np.zeros(3)
    s = root(excess, low, high)
    return on_ray(np.array([x, y, z]), np.array([s, 1.0, np.exp(s)]))


def power_projection(w: Array, z: float, exponents: Array) -> tuple[Array, float]:
    """Return the point of the power cone nearest to (w, z), w of shape (k,).

    Points of the cone are returned as they are. The nearest point has |z| = r and the other entries
    w_i(r) = (w_i + sqrt(w_i^2 + 4 a_i r (|z| - r))) / 2, where r is the root of prod_i w_i(r)^a_i = r in the
    open interval (0, |z|) [2]_. Where there is no root, the nearest point is zero.
    """
    positive = np.maximum(w, 0.0)
    reach = product(positive, exponents)
    if (w >= 0).all() and reach >= abs(z):
        return w.copy(), z
    size = max(float(np.abs(w).max()), abs(z))
    v, t = w / size, abs(z) / size
    candidates = []

    def at(r: float, rest: float) -> Array:
        square = 4 * exponents * r * rest
        rooted = np.sqrt(v**2 + square)
        small = square / np.maximum(rooted - v, SMALLEST)  # w + sqrt(...) without cancellation for w < 0
        return np.where(v < 0, small, rooted + v) / 2

    if t > 0:
        half = t / 2
        if product(at(half, half), exponents) < half:
            r = root(lambda r: r - product(at(r, t - r), exponents), 0.0, half)
            found = at(r, t - r)
        else:  # r may be |z| up to rounding, and the rest is what determines w
            rest = root(lambda d: product(at(t - d, d), exponents) - (t - d), 0.0, half)
            r, found = t - rest, at(t - rest, rest)
        nearest = on_ray(np.append(v, t), np.append(found, min(r, product(found, exponents))))
        candidates.append((nearest[:-1], float(nearest[-1])))
    candidates += [(positive / size, min(t, reach / size)), (np.zeros_like(v), 0.0)]
    best, r = min(candidates, key=lambda p: excess_distance(p[0], v) + p[1] * (p[1] - 2 * t))
    return size * best, float(np.copysign(size * r, z))


def on_ray(v: Array, ray: Array) -> Array:
    """Return the projection of v on a ray from zero; a root is known less well than this product."""
    unit = ray / (float(np.abs(ray).max()) or 1.0)
    return np.asarray(max(float(v @ unit), 0.0) / (float(unit @ unit) or 1.0) * unit)


def excess_distance(p: Array, v: Array) -> float:
    """Return |p - v|^2 - |v|^2, in which a short p is not lost beside a long v."""
    return float(p @ (p - 2 * v))


def product(w: Array, exponents: Array) -> float:
    """Return prod_i w_i^a_i for w >= 0."""
    return float(np.prod(w**exponents))


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that increases where it is, else the end at which it is smaller.

    Zero is a root at the lower end of the functions of power cones, which is not the root that is sought:
    the interval is entered by halves until the function is negative.
    """
    start = low
    if f(low) == 0:
        start = low + (high - low) / 2
        while f(start) > 0 and start - low > SMALLEST:
            start = low + (start - low) / 2
    if f(start) > 0:
        return low
    if f(high) < 0:
        return high
    finest = 4 * np.finfo(float).eps  # the smallest relative tolerance; fewer than 150 steps reach it
    return float(brentq(f, start, high, xtol=SMALLEST, rtol=finest, maxiter=500))
