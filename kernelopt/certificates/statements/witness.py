"""Exact witnesses near what a solver found: fractions and doubles that prove a bound without rounding."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor, frexp
from types import ModuleType
from typing import Any

import numpy as np

from kernelopt.numerics.norms import lp_length
from kernelopt.validation import Array

GRID = 46  # bits of the largest entry of an alpha: sums of up to 64 such numbers are doubles
EPS = float(np.finfo(float).eps)


def checker() -> ModuleType:
    """Return the module `check`, imported when it is used: `python -m` warns of what is there before it."""
    from kernelopt.certificates import check

    return check


def fractions(a: Any) -> Any:
    """Return an array of exact fractions."""
    return np.frompyfunc(Fraction, 1, 1)(a)


def slacks() -> Iterator[float]:
    """Yield relative amounts by which a witness is moved to the safe side, the smallest first."""
    slack = 8 * EPS
    while slack < 1e-3:
        yield slack
        slack *= 4


def on_grid(alpha: Array, low: Array, high: Array, balanced: bool) -> Array:
    """Return the multiples of a power of two near alpha that lie between the ends, with sum zero if balanced.

    Nothing is rounded: every entry is a double, and their sum is zero in exact arithmetic.
    """
    size = float(np.abs(alpha).max(initial=0.0))
    if size == 0:
        return np.zeros(alpha.size)
    unit = Fraction(2) ** (frexp(size)[1] - GRID)
    least = [None if v == -np.inf else ceil(Fraction(v) / unit) for v in low.tolist()]
    most = [None if v == np.inf else floor(Fraction(v) / unit) for v in high.tolist()]

    def fit(v: int, i: int) -> int:
        bottom, top = least[i], most[i]
        v = v if bottom is None else max(v, bottom)
        return v if top is None else min(v, top)

    whole = [fit(round(Fraction(v) / unit), i) for i, v in enumerate(alpha.tolist())]
    if balanced:
        for i in sorted(range(len(whole)), key=lambda i: -abs(whole[i])):
            whole[i] = fit(whole[i] - sum(whole), i)
    return np.array([float(v * unit) for v in whole])


def long_enough(v: Array, p: str) -> tuple[float, Array]:
    """Return (h, t) that pass `check.within`: h is |v|_p, moved up by as little as can be shown."""
    for slack in slacks():
        h = lp_length(v, np.inf) if p == "inf" else lp_length(v, float(Fraction(p))) * (1 + slack)
        t = shares(v, h, p, slack)
        if checker().within(fractions(v), Fraction(h), p, fractions(t)):
            return h, t
    raise ValueError(f"no length of {v} could be shown")


def in_ball(x: Array, B: Array, radius: float, p: str) -> tuple[Array, Array]:
    """Return (x, s), with x shrunk where that is needed, that pass `check.within`: |B x|_p <= radius."""
    length = lp_length(B @ x / radius, np.inf if p == "inf" else float(Fraction(p)))
    for slack in slacks():
        near = x / max(1.0, length * (1 + slack))
        s = shares(B @ near, radius, p, slack)
        if checker().within(fractions(B) @ fractions(near), Fraction(radius), p, fractions(s)):
            return near, s
    raise ValueError(f"{x} could not be moved into the ball")


def shares(v: Array, h: float, p: str, slack: float) -> Array:
    """Return (|v_i| / h)^p moved up, zero where h is."""
    if p == "inf" or h == 0:
        return np.zeros(v.size)
    return np.asarray((np.abs(v) / h) ** float(Fraction(p)) * (1 + slack / 2))


def factor(M: Array, exactly: Any, ridges: bool = True) -> tuple[float, Array] | None:
    """Return (ridge, L) by which `check.semidefinite` shows M + ridge I positive semidefinite.

    The ridge is zero where M is inside the cone by more than round-off, and as small as can be shown
    else. None where M is indefinite beyond 1e-6 of its size.

    Parameters
    ----------
    M : array of shape (n, n)
    exactly : array of fractions
        The matrix of which M is the rounding.
    ridges : bool, default True
        Whether a ridge is allowed.
    """
    n, size = len(M), float(np.abs(np.diag(M)).max(initial=0.0))
    if size == 0:
        return None if np.any(exactly) else (0.0, np.zeros((n, n)))
    shift = 2 * (n + 2) * EPS * size
    for ridge in (0.0, *(shift * (1 + 4.0**k) for k in range(-2, 40)))[: 43 if ridges else 1]:
        if ridge > 1e-6 * size:
            return None
        try:
            L = np.linalg.cholesky(M + (ridge - shift) * np.eye(n))
        except np.linalg.LinAlgError:
            continue
        if checker().semidefinite(exactly + Fraction(ridge) * np.eye(n, dtype=int), fractions(L)):
            return ridge, np.asarray(L)
    return None


def solved(S: Any, t: Any) -> list[Fraction] | None:
    """Return x with S x = t exactly, for a positive semidefinite S of fractions; None where there is none."""
    rows = [[*row, v] for row, v in zip(S, t, strict=True)]
    for j, pivot in enumerate(rows):
        for row in rows if pivot[j] else ():
            if row is not pivot and row[j]:
                ratio = row[j] / pivot[j]
                row[:] = [u - ratio * v for u, v in zip(row, pivot, strict=True)]
    x = [row[-1] / row[j] if row[j] else Fraction(0) for j, row in enumerate(rows)]
    return x if all(sum(map(Fraction.__mul__, row, x)) == v for row, v in zip(S, t, strict=True)) else None
