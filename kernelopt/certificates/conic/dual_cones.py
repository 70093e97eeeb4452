"""The dual cones of a program: an interior point, a verified point near a given one, the local metric."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kernelopt.certificates.conic.cones import ConeProgram
from kernelopt.numerics.ball import Ball
from kernelopt.validation import Array


def interior_point(program: ConeProgram) -> Array:
    """Return a point e in the interior of the dual cone, zero in the free part."""
    return program.by_cone(lambda cone: cone.interior())


def barrier_gradient(program: ConeProgram, s: Array) -> Array:
    """Return minus the gradient of the barrier at s, a point inside the dual cone; zero in free rows.

    At this point H of `LocalMetric` is the Hessian of the barrier at s.
    """
    return program.by_cone(lambda cone: cone.polar(cone.of(s)))


def into_dual_cone(program: ConeProgram, z: Array, radius: Array | None = None) -> Array | None:
    """Return a point of the dual cone near z, None where the point of a block cannot be verified.

    With `radius` all points within it, entry by entry, are in the dual cone as well.
    """
    found, radius = z.copy(), np.zeros(z.size) if radius is None else radius
    for cone in program.cones:
        v = cone.inside(Ball(cone.of(z), cone.of(radius)))
        if v is None:
            return None
        cone.of(found)[:] = v
    return found


class LocalMetric:
    r"""The operator H of the norm |Delta|_z = <Delta, H^-1 Delta>^(1/2) at a point z inside the dual cone.

    H^-1 is the Hessian of the cone's barrier at z, with J = diag(1, -1, ..., -1) and d = z'Jz:

    ============  ======================  =====================
    cone          barrier                 H Delta
    ============  ======================  =====================
    non-negative  -log z                  z^2 Delta
    second order  -log(z_0^2 - |z_1|^2)   z z'Delta - d/2 J Delta
    semidefinite  -log det Z              Z Delta Z
    ============  ======================  =====================

    The point z + Delta is in the cone where |Delta|_z < 1 (Nesterov and Nemirovskii, Interior-point
    polynomial algorithms (1994), theorem 2.1.1). A change of least norm |Delta|_z is large where z is far
    inside, and small near the boundary. Free rows have H = 1. The barriers of exponential and power cones are
    given at their `inverse_hessians`. H is formed at z divided by its largest entry where this exceeds 1: the
    change of least norm is the same, and no square overflows.

    Parameters
    ----------
    program : ConeProgram
    z : array of shape (rows,)
    """

    def __init__(self, program: ConeProgram, z: Array) -> None:
        self.program, self.z = program, z / max(float(np.abs(z).max(initial=0.0)), 1.0)

    def __call__(self, V: Array) -> Array:
        """Return H V."""
        return self.program.by_cone(lambda cone: cone.scaled(cone.of(self.z), cone.of(V)))

    def gram(self, A: sp.csr_array) -> sp.csc_array:
        """Return A'HA for a matrix with the rows of the program."""
        found = sp.csc_array((A.shape[1], A.shape[1]))
        for cone in self.program.cones:
            found = found + cone.gram(cone.of(self.z), A[cone.rows])
        return found
