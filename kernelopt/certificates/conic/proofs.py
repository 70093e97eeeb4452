"""The best bound, and the Farkas ray, near the approximate multiplier that a solver returned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram, Interval
from kernelopt.certificates.conic.dual_cones import cones, interior_point, into_dual_cone
from kernelopt.certificates.conic.lagrangian import DualValue, dual_value, gradient
from kernelopt.certificates.conic.least_norm import LeastNormCorrection
from kernelopt.certificates.conic.tightening import tightened
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array, Mask

REPAIRS = 5  # the step into the cone grows at least sixteenfold each time: from 1e-15 to 1e-10
FIRST_STEP = 1e-15  # into the cone, relative to the multiplier: its rounding error
NEGLIGIBLE_LOSS = 1e-9  # a loss, relative to the bound, with which no further attempt is made
SIGN_MARGIN = 8.0  # error bounds by which a slope of a column with one bound keeps its sign
NEGLIGIBLE = (1e-6, 0.0)  # of the largest entry: smaller entries of a ray are set to zero, then none
ROUNDING_BITS = (6, 20, 30)  # after the binary point, to which a ray is rounded


def repaired_bound(
    program: ConeProgram, box: Interval, x: Array, z: Array, shift: Array, correction: LeastNormCorrection
) -> DualValue:
    """Return the best bound found from multipliers near z + shift, for columns in `box`.

    An attempt corrects A'z in the chosen columns (`LeastNormCorrection`), which may leave the dual cone, and
    then moves z into the cone, which changes A'z again. While the loss of the bound is not negligible, the
    next attempt starts from z moved inside by at least four times the change of the last move.
    """
    best = DualValue(-np.inf, np.inf, z, np.zeros(program.c.size))
    near = into_dual_cone(program, z)
    if near is None:
        return best
    slope, near, e = Ball(gradient(program, x).mid), near + shift, interior_point(program)
    one_sided = np.isfinite(box.lower).astype(float) - np.isfinite(box.upper)
    step = FIRST_STEP * float(np.abs(near).max(initial=0.0))
    for _ in range(REPAIRS):
        margin = SIGN_MARGIN * (slope + program.A.T @ Ball(near)).rad * one_sided
        corrected = correction(near, margin - slope.mid)
        near = None if corrected is None else into_dual_cone(program, corrected)
        if corrected is None or near is None:
            break
        found = dual_value(program, x, near, box)
        worse = -np.inf < found.value <= best.value
        if found.value > best.value or best.value == -np.inf:
            best = found
        if worse or found.loss <= NEGLIGIBLE_LOSS * abs(found.value):
            break
        step = max(4 * float(np.abs(near - corrected).max(initial=0.0)), 16 * step)
        near = near + step * e
    return best


def farkas(program: ConeProgram, z: Array, known: Interval) -> Array | None:
    """Return a ray near z that proves infeasibility, None where none is found.

    z in the dual cone proves it where

        -b'z + min over the box of (A'z)'x > 0:

    by weak duality this number is a lower bound of the program with the objective zero. It is computed by
    `lagrangian.dual_value`, with all rounding errors. Where that uses a Delta which exists but is not
    computed, the returned ray lacks it: it proves infeasibility up to this rounding.
    """
    n, size = program.c.size, float(np.abs(z).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    zero_objective = replace(program.with_objective(sp.csc_array((n, n)), np.zeros(n)), offset=0.0)
    box = tightened(zero_objective, known)
    for threshold in NEGLIGIBLE:
        present = significant_entries(program, z / size, threshold)
        ray = np.where(present, z / size, 0.0)
        A = sp.csc_array(sp.diags_array(present.astype(float)) @ program.A)
        every: Mask = np.ones(n, dtype=bool)
        for columns in (every, ~known.bounded):
            bound = repaired_bound(
                zero_objective, box, np.zeros(n), ray, np.zeros(z.size), LeastNormCorrection(A, columns)
            )
            if bound.value > 0.0:
                return bound.z
    # Where columns are dependent there is no correction, but a rounded ray may have A'z = 0 exactly.
    for bits in ROUNDING_BITS:
        rounded = into_dual_cone(program, np.ldexp(np.round(np.ldexp(z / size, bits)), -bits))
        if rounded is not None and dual_value(zero_objective, np.zeros(n), rounded, box).value > 0.0:
            return rounded
    return None


def significant_entries(program: ConeProgram, z: Array, threshold: float) -> Mask:
    """Return the entries of cones whose largest entry exceeds `threshold` (`Cone.significant`)."""
    present: Mask = np.ones(z.size, dtype=bool)
    for cone in cones(program):
        cone.of(present)[:] = cone.significant(np.abs(cone.of(z)), threshold)
    return present
