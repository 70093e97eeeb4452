"""Proofs that a cone program has no feasible point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.balance import Repair
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import pushed
from kernelopt.certificates.conic.lagrangian import dual_value
from kernelopt.certificates.conic.proofs import proof_near
from kernelopt.certificates.conic.tightening import Interval, tightened
from kernelopt.validation import Array, Mask

ABSENT = (1e-6, 0.0)  # of the largest entry: cones with less take no part in a ray
GRIDS = (6, 20, 30)  # bits of a ray with few digits


def farkas(program: ConeProgram, z: Array, known: Interval) -> Array | None:
    """Return a ray near z that proves infeasibility, if one is found.

    A ray z of the dual cone proves it where zero, minimised over the feasible points, is at least

        -b'z + min over the box of (A'z)'x > 0,

    all errors paid as in every bound. Rays have no scale, so none enters. The ray may be corrected by a
    change that is known to exist, as in every bound: the ray returned proves it up to that rounding.
    """
    n, size = program.c.size, float(np.abs(z).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    nothing = replace(program.with_objective(sp.csc_array((n, n)), np.zeros(n)), offset=0.0)
    box = tightened(nothing, known)
    for least in ABSENT:
        present = taking_part(program, z / size, least)
        ray = np.where(present, z / size, 0.0)
        A = sp.csc_array(sp.diags_array(present.astype(float)) @ program.A)
        every: Mask = np.ones(n, dtype=bool)
        for columns in (every, ~known.bounded):
            proof = proof_near(nothing, box, np.zeros(n), ray, np.zeros(z.size), Repair(A, columns))
            if proof.value > 0.0:
                return proof.z
    # Where columns are dependent no correction is known, but equal multipliers may balance them exactly.
    for bits in GRIDS:
        short = pushed(program, np.ldexp(np.round(np.ldexp(z / size, bits)), -bits))
        if short is not None and dual_value(nothing, np.zeros(n), short, box).value > 0.0:
            return short
    return None


def taking_part(program: ConeProgram, z: Array, least: float) -> Mask:
    """Return which entries belong to a cone, or to rows of a semidefinite one, with more than `least`."""
    present: Mask = np.ones(z.size, dtype=bool)
    for kind, rows, parameter in program.blocks():
        v = np.abs(z[rows])
        if kind == "nonneg":
            present[rows] = v > least
        elif kind == "psd":
            first, second = program.triangle(parameter)
            kept = np.zeros(parameter, dtype=bool)
            kept[first[first == second]] = v[first == second] > least
            present[rows] = kept[first] & kept[second]
        elif kind != "zero":
            present[rows] = float(v.max()) > least
    return present
