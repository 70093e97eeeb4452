"""The best bound from multipliers near the approximate one that a solver returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import interior_point, into_dual_cone
from kernelopt.certificates.conic.lagrangian import dual_value, gradient
from kernelopt.certificates.conic.least_norm import LeastNormCorrection
from kernelopt.certificates.conic.tightening import Interval
from kernelopt.numerics.rounding import column_sums
from kernelopt.validation import Array

REPAIRS = 5  # the step into the cone grows at least sixteenfold each time: from 1e-15 to 1e-10
FIRST_STEP = 1e-15  # into the cone, relative to the multiplier: its rounding error
NEGLIGIBLE_LOSS = 1e-9  # a loss, relative to the bound, with which no further attempt is made
SIGN_MARGIN = 8.0  # error bounds by which a slope of a column with one bound keeps its sign


class RepairedBound(NamedTuple):
    """A lower bound with its multiplier; `loss` and `unbounded_slopes` are those of `DualValue`."""

    value: float
    loss: float
    z: Array
    unbounded_slopes: Array


def repaired_bound(
    program: ConeProgram, box: Interval, x: Array, z: Array, shift: Array, correction: LeastNormCorrection
) -> RepairedBound:
    """Return the best bound found from multipliers near z + shift, for columns in `box`.

    An attempt corrects A'z in the chosen columns (`LeastNormCorrection`), which may leave the dual cone, and
    then moves z into the cone, which changes A'z again. While the loss of the bound is not negligible, the
    next attempt starts from z moved inside by at least four times the change of the last move.
    """
    best = RepairedBound(-np.inf, np.inf, z, np.zeros(program.c.size))
    near = into_dual_cone(program, z)
    if near is None:
        return best
    slope, near, e = gradient(program, x).value, near + shift, interior_point(program)
    one_sided = np.isfinite(box.lower).astype(float) - np.isfinite(box.upper)
    step = FIRST_STEP * float(np.abs(near).max(initial=0.0))
    for _ in range(REPAIRS):
        margin = SIGN_MARGIN * column_sums(slope, program.A, near).error * one_sided
        corrected = correction(near, margin - slope)
        near = None if corrected is None else into_dual_cone(program, corrected)
        if corrected is None or near is None:
            break
        found = dual_value(program, x, near, box)
        worse = -np.inf < found.value <= best.value
        if found.value > best.value or best.value == -np.inf:
            best = RepairedBound(found.value, found.loss, near, found.unbounded_slopes)
        if worse or found.loss <= NEGLIGIBLE_LOSS * abs(found.value):
            break
        step = max(4 * float(np.abs(near - corrected).max(initial=0.0)), 16 * step)
        near = near + step * e
    return best
