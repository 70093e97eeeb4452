"""Bounds of the optimum of the second stage, from any weights: the dual objective at their residual."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import scipy.optimize

import kernelopt as ko
from formulations.linear_functional.method.combination import Combination, excess
from formulations.linear_functional.method.ranges import Range, square
from kernelopt.extend import FLOOR_SHARE, Array, Ball, on_simplex

ROUND_OFF = 1e-14  # cosines this far below zero count as orthogonal: some dozens of roundings of a double


def stage_certificate(stage: Combination, c: Array) -> ko.Certificate:
    """Bound the optimum at weights: by them, and by the dual at their residual.

    Both bounds hold in exact arithmetic for lambda, v and all columns within the errors of X.
    """
    c = stage.feasible(c)
    with np.errstate(all="ignore"):  # numbers that overflow give no bound
        below, above, size = lower(stage, c), stage.value(c), float(stage.v @ stage.v) / stage.n
    reason = unknown(stage)
    return ko.Certificate(below, above, "closed", reason=reason, feasible=True, floor=FLOOR_SHARE * size)


def unknown(stage: Combination) -> str:
    """Return why the bound may be loose: columns that are zero up to rounding, at weights without a price."""
    lost = np.flatnonzero(~stage.X.any(axis=0) & (stage.doubts > 0))
    if not lost.size or stage.ridge > 0 or stage.weights == "simplex":
        return ""
    return (
        f"the function of kernel {lost[0]} is zero up to rounding, so that its weight is zero, and no bound "
        "is known for larger ones: leave that kernel out, or take a ridge"
    )


def lower(stage: Combination, c: Array) -> float:
    """Return a lower bound of the optimum: the dual objective at the residual of c, rounded down.

    The value is never negative, so that zero bounds it where the residual proves less.
    """
    if stage.ridge > 0 or stage.weights == "simplex":
        found = by_residual(stage, c)
    else:
        found = by_range(stage, c) if stage.weights == "free" else by_cone(stage)
    return max(float(found.below), 0.0)


def by_residual(stage: Combination, c: Array) -> Ball:
    r"""Return the dual objective at r = v - X c, where every r is feasible.

    Notes
    -----
    With s = X'r and t = 2 s / n - mu the dual objective is

    .. math::

        \tfrac1n \|r\|^2 + \lambda \|c\|^2 + \mu (1'c - 1) - \lambda \|c - t_+ / (2 \lambda)\|^2
        - c't_-.

    On the simplex every mu is feasible; for other sets mu = 0. For free weights t takes the place of t_+, and
    the last term is left out. Without a ridge, t_+ = 0 is a constraint: what violates it is subtracted. All
    terms with a minus vanish at the optimum, so that little is lost by rounding; each is bounded with its
    errors.
    """
    r = stage.residual(c)
    g = stage.products(r) * 2.0 / stage.n
    mu = multiplier(stage, g.mid)
    t = g - mu
    found = square(r) / stage.n
    if stage.weights == "simplex":
        found = found + excess(c) * mu
    if stage.ridge > 0:
        best = Ball(t.mid if stage.weights == "free" else np.maximum(t.mid, 0.0), t.rad) / (2 * stage.ridge)
        found = found + (square(Ball(c)) - square(best - c)) * stage.ridge
    else:
        found = found - max(float(t.above.max(initial=0.0)), 0.0)
    if stage.weights != "free":
        found = found - Ball(np.maximum(-t.mid, 0.0), t.rad).dots(c[None]).sum()
    return found


def multiplier(stage: Combination, g: Array) -> float:
    """Return the multiplier mu of 1'c = 1, zero where there is no such constraint."""
    if stage.weights != "simplex":
        return 0.0
    if stage.ridge == 0:
        return float(g.max())
    return float((g - 2 * stage.ridge * on_simplex(g / (2 * stage.ridge), 1.0)[0]).max())


def by_range(stage: Combination, c: Array) -> Ball:
    r"""Return a lower bound of the minimum over free c without a ridge.

    Notes
    -----
    With P the projection on the range of X, the minimum is :math:`(\|r\|^2 - \|P r\|^2) / n` for the
    residual r = v - X c of any c: r need not be orthogonal to X, since its part P r is subtracted.
    """
    if stage.range_of_X is None:
        return Ball(0.0)
    r = stage.residual(c)
    return (square(r) - Ball(stage.range_of_X.reach(r)).power(2)) / stage.n


def by_cone(stage: Combination) -> Ball:
    r"""Return a lower bound of the minimum over c >= 0 without a ridge, from weights by `nnls`.

    Notes
    -----
    Let A be the columns that the weights use or that are nearly orthogonal to their residual r, and P the
    projection on the range of A. Then r - P r is orthogonal to A, and it is feasible for the dual if
    :math:`x_j'r + \|x_j\| \|P r\| \le 0` for all other columns. It proves :math:`(\|r\|^2 - \|P r\|^2) / n`.
    Where this condition fails, the bound is the bound of `by_shift`.
    """
    lengths = np.linalg.norm(stage.X, axis=0)
    seen = lengths > 0
    c = np.zeros(lengths.size)
    if seen.any():  # scipy's nnls frees memory twice where there are no columns
        with suppress(RuntimeError):  # no convergence: any weights give a bound
            c[seen] = scipy.optimize.nnls(stage.X[:, seen] / lengths[seen], stage.v)[0] / lengths[seen]
    r = stage.residual(c)
    s = stage.products(r)
    active = (c > 0) | (s.above >= -ROUND_OFF * lengths * float(np.linalg.norm(stage.v)))
    kept = np.flatnonzero(active)
    keys = tuple(stage.keys[j] for j in kept) if stage.keys else ()
    basis = Range.of(stage.X[:, active], stage.doubts[active], keys)
    if basis is not None:
        projected = basis.reach(r)  # at least |P r|
        most = s + (Ball(stage.X).norm(2, axis=0) + stage.doubts) * projected
        if (most.above[~active] <= 0).all():
            return (square(r) - Ball(projected).power(2)) / stage.n
    return by_shift(stage, Ball(r.mid), s)


def by_shift(stage: Combination, r: Ball, s: Ball) -> Ball:
    r"""Return a lower bound for c >= 0 from r - tau v, given s = X'r.

    Notes
    -----
    tau >= 0 is the smallest number with :math:`X'(r - \tau v) \le 0`, which makes r - tau v feasible for the
    dual. It exists where X'v > 0; where there is none the bound is zero.
    """
    v = Ball(stage.v)
    along = stage.products(v)
    up = (s.above > 0) & (along.below > 0)
    tau = Ball((Ball(s.above[up]) / along.below[up]).above.max(initial=0.0))
    if ((s - along * tau).above[~up] > 0).any():
        return Ball(0.0)
    gain = r.dots(stage.v[None]).sum()  # of r as it is stored, which need not be a residual
    return ((tau + 1.0) * 2.0 * gain - square(r) - tau * (tau + 2.0) * square(v)) / stage.n
