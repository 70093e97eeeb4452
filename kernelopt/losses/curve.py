"""The piecewise quadratic dual of a loss: best responses, their kinks, and the best intercept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernelopt.numerics.roots import even_zeros, last_above, step_zeros
from kernelopt.validation import Array, Index, Mask

FREE_MARGIN = 1e-9  # relative distance from its bounds at which an entry of alpha is free
ROUNDING = 1e-13  # a sum below this share of the sum of absolute values counts as zero


class Steps(NamedTuple):
    """Step functions a_i(t_i) of predictions, by their falls.

    The sample `samples_k` falls by `drops_k` > 0 at the prediction `knots_k`; all start with the sum `start`.
    Where all drops are equal, `places` are those of the zeros of the sum, see `even_zeros`.
    """

    samples: Index
    knots: Array
    drops: Array
    start: float
    places: tuple[int, int] | None


class Curve(NamedTuple):
    r"""The dual of a loss, a piecewise quadratic function of one number for each sample.

    .. math:: \mathrm{linear}\, a - \tfrac12 \mathrm{curvature}\, a^2 - l_1 |a|
        \quad\text{on}\quad [\mathrm{lower}, \mathrm{upper}]

    Parameters
    ----------
    linear, curvature, l1 : arrays of shape (n,)
        The coefficients of each sample; curvature and l1 are not negative.
    lower, upper : arrays of shape (n,)
        The ends of the interval of a, -inf and inf where it has none.
    """

    linear: Array
    curvature: Array
    l1: Array
    lower: Array
    upper: Array

    def at(self, samples: Index) -> Curve:
        """Return the curve of some samples.

        Parameters
        ----------
        samples : integer array or slice
            Their positions.
        """
        return Curve(*(np.ascontiguousarray(of[samples]) for of in self))

    def free(self, a: Array, margin: float = FREE_MARGIN) -> Mask:
        """Return which entries of a are inside their bounds and not at a kink, where the dual is smooth.

        Parameters
        ----------
        a : array of shape (n,)
            Between the bounds.
        margin : float > 0, default 1e-9
            The distance from bounds and kinks, relative to the distance of the bounds, or without a bound to
            the largest entry.
        """
        width = self.upper - self.lower
        width = margin * np.where(np.isfinite(width), width, np.abs(a).max(initial=0.0))
        inside = (a > self.lower + width) & (a < self.upper - width)
        return np.asarray(inside & ((self.l1 == 0) | (np.abs(a) > width)))

    def responder(self) -> Callable[[Array], Array]:
        r"""Return the function :math:`t \mapsto \arg\max_a \ell(a) - a't`."""
        linear, curvature, l1, lower, upper = self
        curved, kinked, middle = curvature.any(), l1.any(), np.minimum(np.maximum(lower, 0.0), upper)

        def respond(t: Array) -> Array:
            residual = linear - t
            if kinked:
                residual = np.sign(residual) * np.maximum(np.abs(residual) - l1, 0.0)
            if not curved:  # a quarter of the time of the quotient
                return np.where(residual > 0, upper, np.where(residual < 0, lower, middle))
            with np.errstate(divide="ignore", invalid="ignore"):
                free = np.where(residual == 0, 0.0, residual / curvature)
            return np.clip(free, lower, upper)

        return respond

    def knots(self) -> Array:
        """Return the predictions at which the response is not differentiable, shape (k, n)."""
        linear, curvature, l1, lower, upper = self
        knots = [linear - l1, linear + l1]
        for bound in (lower, upper):
            finite = np.where(np.isfinite(bound), bound, 0.0)
            knots.append(linear - curvature * finite - np.sign(finite) * l1)
        return np.array(knots)

    def steps(self) -> Steps | None:
        """Return where the step functions a(t) fall; None if a(t) is no step function."""
        linear, curvature, l1, lower, upper = self
        if curvature.any() or not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            return None
        middle = np.minimum(np.maximum(lower, 0.0), upper)
        drops, knots = np.array([upper - middle, middle - lower]), np.array([linear - l1, linear + l1])
        falling = drops > 0  # half of the knots of a hinge are no drops
        falls, start = drops[falling], float(upper.sum())
        return Steps(np.nonzero(falling)[1], knots[falling], falls, start, even_zeros(falls, start))


def piecewise_intercept(
    curve: Curve, f: Array, respond: Callable[[Array], Array], steps: Steps | None
) -> float:
    """Return the minimiser over b of the loss of f + b, or the midpoint of all minimisers.

    `respond` and `steps` are those of the curve, which callers with one curve and many f keep.
    """
    slope = descent(respond, f)
    if steps is not None:
        knots = steps.knots - f[steps.samples]
        if steps.places is not None:
            return float(np.sort(knots)[[*steps.places]].sum()) / 2
        return sum(step_zeros(slope, knots, steps.drops, steps.start)) / 2
    knots = np.unique(curve.knots() - f)
    left = last_above(slope, knots)
    # The slope is linear up to the next knot. If it is negative there, the minimiser is unique.
    after = knots[np.searchsorted(knots, left, side="right") :]
    if slope((left + float(after[0])) / 2 if after.size else left + 1) < 0:
        return left
    return (left + max(left, last_above(slope, knots, or_zero=True))) / 2


def descent(respond: Callable[[Array], Array], f: Array) -> Callable[[float], float]:
    """Return minus the derivative by b of the loss of f + b; up to rounding zero is zero."""

    def slope(b: float) -> float:
        a = respond(f + b)
        total = float(a.sum())
        return 0.0 if abs(total) <= ROUNDING * float(np.abs(a).sum()) else total

    return slope
