"""Farkas rays: proofs that a cone program has no feasible point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import into_dual_cone
from kernelopt.certificates.conic.lagrangian import dual_value
from kernelopt.certificates.conic.least_norm import LeastNormCorrection
from kernelopt.certificates.conic.proofs import repaired_bound
from kernelopt.certificates.conic.tightening import Interval, tightened
from kernelopt.validation import Array, Mask

NEGLIGIBLE = (1e-6, 0.0)  # of the largest entry: smaller entries of a ray are set to zero, then none
ROUNDING_BITS = (6, 20, 30)  # after the binary point, to which a ray is rounded


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
    """Return the entries of cones whose largest entry exceeds `threshold`.

    In a semidefinite block, those of the rows and columns whose diagonal entry exceeds it.
    """
    present: Mask = np.ones(z.size, dtype=bool)
    for kind, rows, parameter in program.blocks():
        v = np.abs(z[rows])
        if kind == "nonneg":
            present[rows] = v > threshold
        elif kind == "psd":
            first, second = program.triangle(parameter)
            significant = np.zeros(parameter, dtype=bool)
            significant[first[first == second]] = v[first == second] > threshold
            present[rows] = significant[first] & significant[second]
        elif kind != "zero":
            present[rows] = float(v.max()) > threshold
    return present
