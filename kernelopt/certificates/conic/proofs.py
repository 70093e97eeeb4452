"""Multipliers near one that a solver proposes, and the best bound that they prove."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelopt.certificates.conic.balance import Repair
from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.certificates.conic.dual_cones import interior, pushed
from kernelopt.certificates.conic.lagrangian import dual_value, gradient
from kernelopt.certificates.conic.tightening import Interval
from kernelopt.numerics.rounding import column_sums
from kernelopt.validation import Array

ATTEMPTS = 5
LEAST_STEP = 1e-15  # of the multiplier, into the cone
CHEAP = 1e-9  # a price, relative to the bound, that no further attempt could save
SPARE = 8.0  # rounding errors by which a slope is kept on its side


class Proof(NamedTuple):
    """A lower bound, what rounding and repairs take from it, its multiplier, and slopes that prevent one."""

    value: float
    price: float
    z: Array
    open_slopes: Array


def proof_near(
    program: ConeProgram, box: Interval, x: Array, z: Array, shift: Array, repair: Repair
) -> Proof:
    """Return the best bound found near z + shift, for points in `box`.

    Repairs leave the cone and pushes into the cone spoil the repair: where what is left is dear, the next
    attempt starts further inside the cone than the last one was outside.
    """
    best = Proof(-np.inf, np.inf, z, np.zeros(program.c.size))
    near = pushed(program, z)
    if near is None:
        return best
    slope, near, e = gradient(program, x).value, near + shift, interior(program)
    one_sided = np.isfinite(box.lower).astype(float) - np.isfinite(box.upper)
    extra = LEAST_STEP * float(np.abs(near).max(initial=0.0))
    for _ in range(ATTEMPTS):
        spare = SPARE * column_sums(slope, program.A, near).error * one_sided
        mended = repair(near, spare - slope)
        near = None if mended is None else pushed(program, mended)
        if mended is None or near is None:
            break
        found = dual_value(program, x, near, box)
        worse = -np.inf < found.value <= best.value
        if found.value > best.value or best.value == -np.inf:
            best = Proof(found.value, found.price, near, found.open_slopes)
        if worse or found.price <= CHEAP * abs(found.value):
            break
        extra = max(4 * float(np.abs(near - mended).max(initial=0.0)), 16 * extra)
        near = near + extra * e
    return best
