"""Exact witnesses near the results of solvers: fractions and doubles that prove a bound without rounding."""

from __future__ import annotations

from fractions import Fraction
from math import frexp, fsum, lcm
from types import ModuleType
from typing import Any

import numpy as np

from kernelopt.numerics.norms import lp_length
from kernelopt.validation import Array

GRID_BITS = 46  # of the largest entry of alpha: sums of up to 2^7 such numbers are exact doubles
FACTOR_BITS = 60  # of the largest entry of a factor L, whose entries are doubles of 53 bits
EPS = float(np.finfo(float).eps)
GROWTH = 4.0  # of a margin or a ridge after a failure; the first that suffices is at most so much too large
# Relative margins for rounding, from the rounding of a few operations to 5e-4: with a larger margin the bound
# is of little use.
SLACKS = tuple(8 * EPS * GROWTH**k for k in range(20))
RIDGE_POWERS = range(-2, 40)  # of GROWTH: the ridges from the rounding error to above the largest one
LARGEST_RIDGE = 1e-6  # of the largest diagonal entry: a larger one changes the value visibly


def checker() -> ModuleType:
    """Return the module `check`, imported at use: `python -m` would warn if it were imported already."""
    from kernelopt.certificates import check

    return check


def exact_seconds(m: int, n: int) -> float:
    """Return the predicted seconds of a statement of m kernels on n points and of its bounds.

    Every entry of the kernels becomes an integer four times, and every factor is multiplied out twice. The
    constants were measured at n = 50 to 400 and m = 5 and 20.
    """
    return 4e-6 * n**2 * (m + 2) + 2.5e-8 * n**3


def fractions(a: Any) -> Any:
    """Return an array of exact fractions."""
    return np.frompyfunc(Fraction, 1, 1)(a)


def on_dyadic_grid(alpha: Array, low: Array, high: Array, balanced: bool) -> Array:
    """Return multiples of a power of two near alpha and within [low, high], with sum zero if `balanced`.

    The conditions hold in exact arithmetic, and every entry is a double.
    """
    shift = GRID_BITS - frexp(float(np.abs(alpha).max(initial=0.0)))[1]
    with np.errstate(over="ignore"):  # a bound that is infinite in these units binds nothing
        lowest, highest = np.ceil(np.ldexp(low, shift)), np.floor(np.ldexp(high, shift))
    multiples = np.clip(np.rint(np.ldexp(alpha, shift)), lowest, highest)
    for i in np.argsort(-np.abs(multiples), kind="stable") if balanced else ():
        multiples[i] = np.clip(multiples[i] - fsum(multiples), lowest[i], highest[i])
    return np.asarray(np.ldexp(multiples, -shift) + 0.0)  # without negative zeros


def verified_length(v: Array, p: str) -> tuple[float, Array]:
    """Return (h, t) that pass `check.within`: h is the least verified upper bound of |v|_p that is found."""
    for slack in SLACKS:
        h = lp_length(v, np.inf) if p == "inf" else lp_length(v, float(Fraction(p))) * (1 + slack)
        t = relative_powers(v, h, p, slack)
        if checker().within(fractions(v), Fraction(h), p, fractions(t)):
            return h, t
    raise ValueError(f"no length of {v} could be shown")


def into_ball(x: Array, B: Array, radius: float, p: str) -> tuple[Array, Array]:
    """Return (x, s) that pass `check.within`, |B x|_p <= radius, with x shrunk where that is needed."""
    length = lp_length(B @ x / radius, np.inf if p == "inf" else float(Fraction(p)))
    for slack in SLACKS:
        nearby = x / max(1.0, length * (1 + slack))
        s = relative_powers(B @ nearby, radius, p, slack)
        if checker().within(checker().product(B, nearby), Fraction(radius), p, fractions(s)):
            return nearby, s
    raise ValueError(f"{x} could not be moved into the ball")


def relative_powers(v: Array, h: float, p: str, slack: float) -> Array:
    """Return (|v_i| / h)^p (1 + slack / 2), zero where h is zero."""
    if p == "inf" or h == 0:
        return np.zeros(v.size)
    return np.asarray((np.abs(v) / h) ** float(Fraction(p)) * (1 + slack / 2))


def verified_factor(M: Array, exact_matrix: Any, ridges: bool = True) -> tuple[float, Array] | None:
    """Return (ridge, L) for which `check.semidefinite` proves that M + ridge I is positive semidefinite.

    The ridge is zero where M is positive definite by more than round-off, and otherwise about the smallest
    one that can be proved. None where that exceeds 1e-6 of the largest diagonal entry.

    Parameters
    ----------
    M : array of shape (n, n)
    exact_matrix : array of fractions
        The exact matrix; M is its rounding.
    ridges : bool, default True
        Whether a positive ridge is allowed.
    """
    n, size = len(M), float(np.abs(np.diag(M)).max(initial=0.0))
    if size == 0:
        return None if np.any(exact_matrix) else (0.0, np.zeros((n, n)))
    shift = 2 * (n + 2) * EPS * size
    for ridge in (0.0, *(shift * (1 + GROWTH**k) for k in RIDGE_POWERS if ridges)):
        if ridge > LARGEST_RIDGE * size:
            return None
        try:
            L = on_grid(np.asarray(np.linalg.cholesky(M + (ridge - shift) * np.eye(n)), dtype=float))
        except np.linalg.LinAlgError:
            continue
        shifted = np.array(exact_matrix)
        shifted[np.diag_indices(n)] += Fraction(ridge)
        if checker().semidefinite(shifted, L):
            return ridge, L
    return None


def on_grid(L: Array) -> Array:
    """Return the multiples of 2^-60 times the size of L that are nearest to its entries.

    The entries are then integers of at most 60 bits times one power of two, which are multiplied fast. The
    change is below 2^-60 of the largest entry, and a Cholesky factor is accurate to 2^-53 of it.
    """
    unit = frexp(float(np.abs(L).max(initial=0.0)))[1] - FACTOR_BITS
    return np.asarray(np.ldexp(np.rint(np.ldexp(L, -unit)), unit))


def exact_solution(S: Any, t: Any) -> list[Fraction] | None:
    """Return x with S x = t exactly for a matrix S of fractions, None without a solution."""
    rows = [[*row, v] for row, v in zip(S, t, strict=True)]
    pivots = eliminated(rows, len(S))
    x = [Fraction(0)] * len(S)
    for row, j in zip(rows, pivots, strict=False):
        x[j] = row[-1]
    return None if any(row[-1] for row in rows[len(pivots) :]) else x


def eliminated(rows: list[list[Fraction]], columns: int) -> list[int]:
    """Bring rows to the reduced echelon form of their first columns; return the columns of the pivots.

    The elimination of Bareiss (Math. Comp. 22 (1968)) works in integers. All these integers are minors: their
    digits grow in proportion to the number of pivots, and no common divisor is computed before the end.
    """
    scales = [lcm(*(v.denominator for v in row)) for row in rows]
    whole = [[int(v * d) for v in row] for row, d in zip(rows, scales, strict=True)]
    M, pivots, last = np.array(whole, dtype=object).reshape(len(rows), -1), list[int](), 1
    others = np.arange(M.shape[1])  # the columns that are no pivots
    for j in range(columns):
        top = len(pivots)
        at = next((i for i in range(top, len(M)) if M[i, j]), None)
        if at is None:
            continue
        M[[top, at]] = M[[at, top]]
        pivot, others = M[top].copy(), others[others != j]
        M[:, others] = (pivot[j] * M[:, others] - np.outer(M[:, j], pivot[others])) // last
        M[top], last = pivot, pivot[j]
        pivots.append(j)
    M[:, pivots] = last * np.eye(len(M), len(pivots), dtype=object)
    rows[:] = [[Fraction(v, last) for v in row] for row in M.tolist()]
    return pivots
