"""Lower bounds in closed form, where the relaxation separates over disjoint variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernelopt.certificates.gap import Bound
from kernelopt.certificates.lower.minorants import Minorant, affine_image, total
from kernelopt.numerics.ball import Ball
from kernelopt.structure.learning import read_parts
from kernelopt.structure.parts import Part
from kernelopt.structure.structure import Objective, Structure

TEST_MULTIPLE = 0.999  # of the minorants: where its bound is larger, the best multiple is below one
SECTIONS = 60  # of the golden-section search, which reduce [0, 1] to 3e-13
GOLDEN = (5**0.5 - 1) / 2  # the golden ratio minus one


def closed_bound(structure: Structure, minorants: Sequence[Minorant]) -> Bound | None:
    """Return a lower bound of the objective with every risk replaced by an affine minorant, or None.

    It exists where the problem separates into parts. As risks are not negative, t times a minorant is a
    minorant for every t in [0, 1]. The minimum is concave in t, and its maximum over t is taken.

    The value is lowered by the bounds of all rounding errors: the exact minimum is not below it.
    """
    objective, parts, best = structure.objective, read_parts(structure), 1.0
    if objective is None or parts is None:
        return None
    linear, risks = objective_parts(objective, minorants)
    homogeneous = linear.vanishes and all(part.at for part in parts)  # linear in t
    if minorants and not homogeneous:
        at_zero, change = linear.falls(parts), risks.falls(parts)

        def value(t: float) -> float:
            slopes = {v: Ball(fall.mid + t * change[v].mid) for v, fall in at_zero.items()}
            supports = sum(part.support(slopes) for part in parts)
            return float(linear.constant.mid + t * risks.constant.mid) - supports

        best = 1.0 if value(1.0) > value(TEST_MULTIPLE) else best_multiple(value)
    lowered = linear + risks * best
    found = bound_over(parts, lowered)
    if found.value == -np.inf and not homogeneous:
        return None
    return found._replace(rounding=rounding_errors(parts, lowered))


def objective_parts(objective: Objective, minorants: Sequence[Minorant]) -> tuple[Minorant, Minorant]:
    """Return the affine function of an objective, and the weighted sum of the minorants of its risks."""
    pairs = zip(objective.exact_factors, minorants, strict=True)
    risks = total([below * factor for factor, below in pairs if factor.mid > 0])
    return total(map(affine_image, objective.affine_maps, (w for w, _ in objective.exact_terms))), risks


def bound_over(parts: Sequence[Part], objective: Minorant) -> Bound:
    """Return the bound of an affine objective plus the prices, over the sets, with its multipliers."""
    slopes = objective.falls(parts)
    supports = [part.support(slopes) for part in parts]
    value = float((objective.constant - Ball(np.array(supports)).sum()).below)
    pairs = zip(parts, supports, strict=True)
    known = {at: u for part, found in pairs for at, u in part.multipliers(slopes, found).items()}
    return Bound(value, multipliers=known)


def rounding_errors(parts: Sequence[Part], objective: Minorant) -> float:
    """Return by how much the errors of the objective lower its bound.

    A support function is at most the sum of its values at two terms.
    """
    slopes, exact = objective.falls(parts), objective.exact.falls(parts)
    widths = {v: Ball(np.zeros(v.size), slope.rad) for v, slope in slopes.items()}
    return sum(
        (part.support(widths) if part.at else part.support(slopes) - part.support(exact) for part in parts),
        start=float(objective.constant.rad),
    )


def best_multiple(value: Callable[[float], float]) -> float:
    """Return about the largest maximiser in [0, 1] of a concave function, by golden-section search.

    The function may be -inf on the right end of the interval.
    """
    low, high = 0.0, 1.0
    left, right = high - GOLDEN, low + GOLDEN
    at_left, at_right = value(left), value(right)
    for _ in range(SECTIONS):
        if at_right > at_left:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
    return low
