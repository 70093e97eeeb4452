"""Lower bounds, and the relative gap of two bounds, which does not depend on the units of the problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from kernelopt.errors import Stopped
from kernelopt.language.learner import Learner, on_labelled
from kernelopt.running import check
from kernelopt.structure.attributes import projected
from kernelopt.structure.evaluation import sum_of_magnitudes
from kernelopt.structure.structure import Structure, kept_in_structure
from kernelopt.validation import Array

FLOOR_SHARE = 1e-4  # of the value at f = 0: the smallest denominator of the relative gap
RISE = 1e-8  # of a bound: the accuracy of a conic solve
GAP_SHARE = 1e-2  # of upper - lower: a smaller rise of the bound lowers the gap by 1 % at most
ROUNDING_RESIDUE = 1e-28  # relative: a loss of squared rounding errors, (1e-14)^2
SMALLEST = np.finfo(float).tiny  # doubles below this one, 2.2e-308, have no relative precision


class Bound(NamedTuple):
    """A lower bound of a minimisation problem.

    Attributes
    ----------
    value : float
    reason : str
        Why the bound is -inf, or what a finite bound assumes.
    ray : array or None
        A Farkas ray, where the problem is infeasible.
    rounding : float
        The bound of the rounding errors by which the value was lowered.
    multipliers : dict from position to float
        Multipliers of the constraints, where the bound has a formula.
    possible : float
        No lower bound at the same dual variables exceeds it.
    """

    value: float
    reason: str = ""
    ray: Array | None = None
    rounding: float = 0.0
    multipliers: Mapping[int, float] = MappingProxyType({})
    possible: float = np.inf


def exhausted(bound: Bound, floor: float, attained: float, rise: float = RISE) -> bool:
    """Whether any other bound at this alpha is higher by a negligible amount only.

    That is `rise` times the size of the bound, or `GAP_SHARE` of its distance to the value `attained`.
    """
    small = rise * max(abs(bound.value), floor)
    if np.isfinite(attained):
        small = max(small, GAP_SHARE * (attained - bound.value))
    return bool(np.isfinite(bound.value) and bound.possible - bound.value <= small)


def largest(
    bounds: Iterable[Bound], floor: float, attained: float, rise: float = RISE, quick: bool = False
) -> Bound | None:
    """Return the largest of the bounds of a search, None where it has none.

    The search ends where the bound is `exhausted` or the running call has to stop, and with its first bound
    if `quick`.
    """
    best: Bound | None = None
    try:
        for found in bounds:
            possible = min(found.possible, (best or found).possible)
            best = max(best or found, found, key=lambda bound: bound.value)._replace(possible=possible)
            if quick or exhausted(best, floor, attained, rise):
                break
            check()
    except Stopped:
        if best is None or best.value == -np.inf:
            raise
    except np.linalg.LinAlgError:  # numbers of extreme size
        pass
    return best


def relative_gap(lower: float, upper: float, floor: float = 0.0) -> float:
    """Return (upper - lower) / max(|upper|, |lower|, floor, 2.2e-308); infinite where a bound is missing.

    The gap is zero where the bounds cross by rounding. The smallest normal double is the least denominator,
    since an upper bound of an optimum that is zero is rounded up to some 1e-323.
    """
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return np.inf
    distance = max(0.0, upper - lower)
    return float(distance / max(abs(upper), abs(lower), floor, SMALLEST)) if distance else 0.0


@kept_in_structure
@np.errstate(all="ignore")
def floor(structure: Structure) -> float:
    """Return the smallest denominator of the relative gap; zero where it is not finite or there is no risk.

    It is 1e-4 of the objective with all variables zero and every risk at f = 0 with its best intercept.
    Where that intercept makes the loss zero, as in one-class learning, f = 0 without an intercept is used.
    Where the value is zero and all kernels are zero too, it is 1e-4 of the terms of the objective with the
    variables at one.
    """
    if not structure.risks or structure.unset:
        return 0.0
    for term in structure.risks:
        term.stand_in.save_value(np.asarray(loss_at_zero(term.learner)))
    set_all(structure, 0.0)
    found = structure.lifted.objective.args[0].value
    value = 0.0 if found is None else abs(float(np.ravel(found)[0]))
    if value == 0:
        set_all(structure, 1.0)
        kernels = (K for term in structure.risks for K in on_labelled(term.kernels, term.learner.n))
        if not any(map(np.any, kernels)):
            return floor_of_coefficients(structure)
    return FLOOR_SHARE * value if np.isfinite(value) else 0.0


@np.errstate(all="ignore")
def floor_of_coefficients(structure: Structure) -> float:
    """Return 1e-4 of the objective's terms with all variables at one or at minus one.

    It serves problems all of whose terms are exactly zero at the optimum.
    """
    sizes = [0.0]
    for value in (1.0, -1.0):
        set_all(structure, value)
        sizes.append(sum_of_magnitudes(structure.lifted.objective.args[0]))
    return FLOOR_SHARE * max(size for size in sizes if np.isfinite(size))


def set_all(structure: Structure, value: float) -> None:
    """Set every entry of every variable to `value`, projected on the variable's attributes."""
    for variable in structure.variables:
        variable.save_value(projected(variable, np.broadcast_to(value, variable.shape)))


def loss_at_zero(learner: Learner) -> float:
    """Return the loss of f = 0 with its best intercept, without one where that is zero up to rounding."""
    zero = np.zeros(learner.n)
    without_intercept = float(learner.loss.primal(zero, 0.0, learner.y, False).value)
    if learner.bias is None:
        return without_intercept
    with_intercept = float(learner.loss.primal(zero, 0.0, learner.y, True).value)
    return with_intercept if with_intercept > ROUNDING_RESIDUE * without_intercept else without_intercept
