"""Proofs that a cone program has no feasible point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.balance import Repair
from kernelopt.certificates.cones import ConeProgram
from kernelopt.certificates.proofs import proof_near
from kernelopt.certificates.tightening import Interval, tightened
from kernelopt.validation import Array


def farkas(program: ConeProgram, z: Array, known: Interval, repairs: list[Repair]) -> Array | None:
    """Return a ray near z that proves infeasibility, if one is found.

    A ray z of the dual cone proves it where zero, minimised over the feasible points, is at least

        -b'z + min over the box of (A'z)'x > 0,

    all errors paid as in every bound. Rays have no scale, so none enters.
    """
    n = program.c.size
    nothing = replace(program.with_objective(sp.csc_array((n, n)), np.zeros(n)), offset=0.0)
    box = tightened(nothing, known)[0]
    size = float(np.abs(z).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    for repair in repairs:
        proof = proof_near(nothing, box, np.zeros(n), z / size, np.zeros(z.size), repair)
        if proof.value > 0.0:
            return proof.z
    return None
