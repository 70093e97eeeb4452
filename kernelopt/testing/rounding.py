"""Whether rounding errors are as small as a ball states, without a computation in more digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import numpy as np

from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array

SHARES = np.geomspace(1e-8, 0.5, 12)  # of a point of a convex domain: small ones, where sums cancel
BITS = range(4, 52, 6)  # of the distance of three points, in units in the last place: rounding errors differ

Line = tuple[Array, Array]
"""A point U and a distance V, where U - V, U and U + V are exact."""


def lines(project: Callable[[Array], Array], points: Iterable[Array]) -> Iterator[Line]:
    """Yield lines in a convex domain with zero, whose points a projection leaves as they are."""
    for point in points:
        for share in SHARES:
            U = share * point
            for bits in BITS:
                V = np.ldexp(np.spacing(np.abs(U)), bits)
                exact = ((U + V) - U == V).all() and (U - (U - V) == V).all()
                if exact and all(np.array_equal(project(X), X) for X in (U - V, U + V)):
                    yield U, V


def not_convex(bounded: Callable[[Array], Ball], found: Iterable[Line]) -> Iterator[float]:
    """Yield by how much balls around the values of a convex function contain no values of one.

    A convex function has 2 L(U) <= L(U - V) + L(U + V), and so have the ends of true balls, in exact
    arithmetic. Rounding errors of close points differ: where they are larger than the balls state, some
    three points break this.
    """
    for U, V in found:
        low, middle, high = (bounded(X) for X in (U - V, U, U + V))
        ends = [float(low.above), float(high.above), float(middle.below)]
        if np.isfinite(ends).all():
            below, above, least = map(Fraction, ends)
            yield float(2 * least - below - above)
