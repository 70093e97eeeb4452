"""Lower bounds in closed form, where the relaxation separates over disjoint variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.lower.minima import Slope, minimum, over_signs
from kernelopt.certificates.lower.minorants import Minorant
from kernelopt.numerics.rounding import UNDERFLOW, UNIT, exact_sum, gamma, upwards
from kernelopt.structure.affine import Affine
from kernelopt.structure.separation import Separation, read_separation
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

TEST_MULTIPLE = 0.999  # of the minorants: where its bound is larger, the best multiple is below one
SECTIONS = 60  # of the golden-section search, which reduce [0, 1] to 3e-13
GOLDEN = (5**0.5 - 1) / 2  # the golden ratio minus one


class ClosedBound(NamedTuple):
    """A lower bound of the minimum of a minorant, and the multipliers of the constraints by position."""

    value: float
    multipliers: dict[int, float]
    rounding: float = 0.0  # the bound of the rounding errors by which the value was lowered


class WeightedMinorant(NamedTuple):
    """The constant and the slopes of a risk's affine minorant, its weight, and bounds of their errors."""

    weight: float
    constant: float
    error: float
    slopes: dict[cp.Variable, Array]
    errors: dict[cp.Variable, Array]


class AffineObjective(NamedTuple):
    """An affine objective with bounds of the errors of its constant and of its coefficients."""

    constant: float
    error: float
    slopes: dict[cp.Variable, Slope]


def closed_bound(structure: Structure, minorants: list[Minorant]) -> ClosedBound | None:
    """Return a lower bound of the objective with every risk replaced by an affine minorant, or None.

    It exists where the objective is a weighted sum of the risks, an affine function and prices
    (`minima.minimum`), every constraint is a set of the kinds listed there, and no variable is in two of
    them. As risks are not negative, t times a minorant is a minorant for every t in [0, 1]. The minimum is
    concave in t, and its maximum over t is taken.

    The value is lowered by the bounds of all rounding errors: the exact minimum is not below it.
    """
    read = read_separation(structure)
    if read is None:
        return None
    pairs = zip(read.coefficients, minorants, strict=True)
    parts = [weighted_minorant(weight, below) for weight, below in pairs if weight > 0]
    signed = {v for slopes in (read.affine.matrices, *(part.slopes for part in parts)) for v in slopes}
    signed -= set(read.used)  # the variables in no set: x >= 0 is their only constraint
    if not all(v.is_nonneg() for v in signed):
        return None

    def bound(multiple: float) -> ClosedBound:
        return bound_at(read, combined(read.affine, parts, multiple), signed)

    found = bound(1.0)
    if not (parts and (read.terms or signed or read.affine.matrices or read.affine.constant.any())):
        return found  # there is no minorant, or the bound is linear in t
    if not found.value > bound(TEST_MULTIPLE).value:
        found = bound(best_multiple(lambda t: bound(t).value))
    return None if found.value == -np.inf else found


def bound_at(read: Separation, objective: AffineObjective, signed: set[cp.Variable]) -> ClosedBound:
    """Return the bound of an affine objective plus the prices, over the sets and x >= 0 for `signed`."""
    minima = {i: minimum(part, objective.slopes) for i, part in read.sets.items()}
    prices = [minimum(part, objective.slopes) for part in read.terms]
    every = [*minima.values(), *prices]
    change = exact_sum([found.value for found in every])
    change += over_signs(signed, objective.slopes)
    return ClosedBound(
        lowered(objective, change, gamma(2) * sum(abs(found.value) for found in every)),
        {i: found.multiplier for i, found in minima.items()},
        objective.error + sum(found.rounding for found in every),
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


def weighted_minorant(weight: float, below: Minorant) -> WeightedMinorant:
    """Return a minorant with its weight as arrays."""
    slopes = {v: row.toarray()[0] for v, row in below.read.matrices.items()}
    return WeightedMinorant(weight, float(below.read.constant[0]), below.error, slopes, dict(below.slopes))


def combined(rest: Affine, parts: list[WeightedMinorant], multiple: float = 1.0) -> AffineObjective:
    """Return rest + multiple * sum of weight * minorant, with bounds of the rounding errors."""
    k = gamma(2 * len(parts) + 10)
    constants, error = [float(rest.constant[0])], 0.0
    slopes = {v: matrix.toarray()[0] for v, matrix in rest.matrices.items()}
    sizes = {v: np.abs(slope) for v, slope in slopes.items()}
    errors = {v: np.zeros(slope.size) for v, slope in slopes.items()}
    for part in parts:
        weight = multiple * part.weight
        underflow = UNDERFLOW if weight > 0 else 0.0  # of a product with the weight
        constants.append(weight * part.constant)
        error += weight * part.error + underflow
        for variable, given in part.slopes.items():
            slope = weight * given
            slopes[variable] = slopes.get(variable, 0.0) + slope
            sizes[variable] = sizes.get(variable, 0.0) + np.abs(slope)
        for variable, error_of_change in part.errors.items():
            errors[variable] = (
                errors.get(variable, 0.0) + weight * error_of_change + underflow * (error_of_change > 0)
            )
    error += k * sum(map(abs, constants)) + k * error
    for variable, size in sizes.items():
        errors[variable] = errors.get(variable, 0.0) * (1 + k) + k * size
    return AffineObjective(
        exact_sum(constants), error, {v: Slope(slope, errors[v]) for v, slope in slopes.items()}
    )


def lowered(objective: AffineObjective, change: float, error_of_change: float) -> float:
    """Return constant + change, lowered by the errors of both and of the sum."""
    value = objective.constant + change
    rounded = UNIT * (abs(objective.constant) + abs(change))
    return -upwards(-value + (objective.error + error_of_change + rounded) * (1 + gamma(4)))
