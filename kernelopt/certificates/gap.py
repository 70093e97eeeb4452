"""The gap of two bounds, free of units."""

from __future__ import annotations

import numpy as np

from kernelopt.language.learner import Learner
from kernelopt.structure.evaluation import sum_of_magnitudes
from kernelopt.structure.structure import Structure, once

FLOOR_SHARE = 1e-4  # of the value at f = 0, below which a gap is not asked to be smaller
VANISHED = 1e-28  # a loss relative to that without an intercept, which squared rounding errors leave


def relative_gap(lower: float, upper: float, floor: float = 0.0) -> float:
    """Return (upper - lower) / max(|upper|, |lower|, floor); infinite where a bound is missing.

    Bounds that cross by their rounding have the gap zero.
    """
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return np.inf
    distance = max(0.0, upper - lower)
    return float(distance / max(abs(upper), abs(lower), floor)) if distance else 0.0


@once
@np.errstate(all="ignore")
def floor(structure: Structure) -> float:
    """Return a small share of the objective at f = 0, zero where it is not finite or there is no risk.

    It is what a gap is relative to where the optimum vanishes: a share of 1e-4 of the value of the machine
    f = 0 with its best intercept, and with the variables at zero. Where an intercept alone leaves no loss,
    as in one-class learning, it is the machine without one; and where all kernels are zero too, the terms
    of the objective with the variables at one.
    """
    if not structure.risks or structure.unset:
        return 0.0
    for term in structure.risks:
        term.stand_in.save_value(np.asarray(at_zero(term.learner)))
    set_all(structure, 0.0)
    found = structure.lifted.objective.args[0].value
    value = 0.0 if found is None else abs(float(np.ravel(found)[0]))
    if value == 0:
        set_all(structure, 1.0)
        if not any(np.any(K) for term in structure.risks for K in term.values() or [np.ones(1)]):
            return floor_of_coefficients(structure)
    return FLOOR_SHARE * value if np.isfinite(value) else 0.0


@np.errstate(all="ignore")
def floor_of_coefficients(structure: Structure) -> float:
    """Return a small share of the objective's terms with all variables at one or at minus one.

    For problems in which nothing has a size: all terms of the objective vanish at the optimum, exactly.
    """
    sizes = [0.0]
    for value in (1.0, -1.0):
        set_all(structure, value)
        sizes.append(sum_of_magnitudes(structure.lifted.objective.args[0]))
    return FLOOR_SHARE * max(size for size in sizes if np.isfinite(size))


def set_all(structure: Structure, value: float) -> None:
    """Give every entry of every variable a value, as far as its attributes allow."""
    for variable in structure.variables:
        variable.save_value(np.asarray(variable.project(np.full(variable.shape, value))))


def at_zero(learner: Learner) -> float:
    """Return the loss of f = 0 with its best intercept, without one where that leaves nothing."""
    zero = np.zeros(learner.n)
    alone = float(learner.loss.primal(zero, 0.0, learner.y, False).value)
    if learner.bias is None:
        return alone
    best = float(learner.loss.primal(zero, 0.0, learner.y, True).value)
    return best if best > VANISHED * alone else alone
