"""Lower bounds in closed form, where the problem falls apart over disjoint variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from kernelopt.certificates.lower.minima import Slope, minimum, over_signs
from kernelopt.certificates.lower.minorants import Minorant
from kernelopt.numerics.rounding import UNIT, exact_sum, gamma, upwards
from kernelopt.structure.affine import Affine
from kernelopt.structure.separation import Separation, read_separation
from kernelopt.structure.structure import Structure
from kernelopt.validation import Array

SMALLER = 0.999  # of the minorants: where that proves more, their best multiple is searched
HALVINGS = 60
GOLDEN = (5**0.5 - 1) / 2


class ClosedBound(NamedTuple):
    """The minimum of a minorant of the objective, and the multipliers of the constraints by position."""

    value: float
    multipliers: dict[int, float]
    rounding: float = 0.0  # by how much the value was moved down for its rounding errors


class Numbers(NamedTuple):
    """A share of a risk's affine minorant, or the affine part of the objective, as numbers."""

    share: float
    constant: float
    error: float
    slopes: dict[cp.Variable, Array]
    errors: dict[cp.Variable, Array]


class Objective(NamedTuple):
    """An affine objective, and bounds of the errors of its constant and of its coefficients."""

    constant: float
    error: float
    slopes: dict[cp.Variable, Slope]


def closed_bound(structure: Structure, minorants: list[Minorant]) -> ClosedBound | None:
    """Return the minimum of the objective with every risk replaced by an affine minorant, else None.

    It is known where the objective is affine in the risks and otherwise a sum of an affine function and of
    prices (`minima.minimum`), every constraint is a set of the kinds listed there, and no variable
    stands in two of them. As no risk is negative, every multiple of its minorant in [0, 1] is one too.
    The minimum is concave in the multiple, and the best one is taken.

    All roundings are paid for: in exact arithmetic the minimum is not below the value.
    """
    read = read_separation(structure)
    if read is None:
        return None
    known = [
        numbers(share, below) for share, below in zip(read.coefficients, minorants, strict=True) if share > 0
    ]
    signed = {v for slopes in (read.affine.matrices, *(part.slopes for part in known)) for v in slopes}
    signed -= set(read.used)  # bounded by their signs alone
    if not all(v.is_nonneg() for v in signed):
        return None

    def bound(multiple: float) -> ClosedBound:
        return bound_at(read, combined(read.affine, known, multiple), signed)

    found = bound(1.0)
    if not (known and (read.terms or signed or read.affine.matrices or read.affine.constant.any())):
        return found  # the bound is linear in the multiple, or there is none
    if not found.value > bound(SMALLER).value:
        found = bound(best_multiple(lambda t: bound(t).value))
    return None if found.value == -np.inf else found


def bound_at(read: Separation, objective: Objective, signed: set[cp.Variable]) -> ClosedBound:
    """Return the minimum of an affine objective and the prices over the sets, and x >= 0 for the others."""
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
    """Return about the largest maximiser in [0, 1] of a concave function, -inf from somewhere on."""
    low, high = 0.0, 1.0
    left, right = high - GOLDEN, low + GOLDEN
    at_left, at_right = value(left), value(right)
    for _ in range(HALVINGS):
        if at_right > at_left:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
    return low


def numbers(share: float, below: Minorant) -> Numbers:
    """Return a share of a minorant as numbers."""
    slopes = {v: row.toarray()[0] for v, row in below.read.matrices.items()}
    return Numbers(share, float(below.read.constant[0]), below.error, slopes, dict(below.slopes))


def combined(rest: Affine, parts: list[Numbers], multiple: float = 1.0) -> Objective:
    """Return rest + multiple * sum of share * minorant."""
    k = gamma(2 * len(parts) + 10)
    constants, error = [float(rest.constant[0])], 0.0
    slopes = {v: matrix.toarray()[0] for v, matrix in rest.matrices.items()}
    sizes = {v: np.abs(slope) for v, slope in slopes.items()}
    errors = {v: np.zeros(slope.size) for v, slope in slopes.items()}
    for part in parts:
        share = multiple * part.share
        constants.append(share * part.constant)
        error += share * part.error
        for variable, given in part.slopes.items():
            slope = share * given
            slopes[variable] = slopes.get(variable, 0.0) + slope
            sizes[variable] = sizes.get(variable, 0.0) + np.abs(slope)
        for variable, lost in part.errors.items():
            errors[variable] = errors.get(variable, 0.0) + share * lost
    error += k * sum(map(abs, constants)) + k * error
    for variable, size in sizes.items():
        errors[variable] = errors.get(variable, 0.0) * (1 + k) + k * size
    return Objective(exact_sum(constants), error, {v: Slope(slope, errors[v]) for v, slope in slopes.items()})


def lowered(objective: Objective, change: float, lost: float) -> float:
    """Return constant + change, moved down by the errors of both and of the sum."""
    value = objective.constant + change
    rounded = UNIT * (abs(objective.constant) + abs(change))
    return -upwards(-value + (objective.error + lost + rounded) * (1 + gamma(4)))
