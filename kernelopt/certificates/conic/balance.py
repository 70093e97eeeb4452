"""Small changes of a multiplier that give A'z wanted values."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from kernelopt.validation import Array

REFINEMENTS = 4
RIDGE = 1e-14


class Repair:
    """The least change of z that gives A'z a wanted value in chosen columns.

    The columns are scaled to length one. Where the normal equations cannot be factored there is none.
    """

    def __init__(self, A: sp.csc_array, columns: NDArray[np.bool_]) -> None:
        self.columns = np.flatnonzero(columns)
        self.A = A[:, self.columns]
        self.solver = None
        if self.columns.size:
            with np.errstate(all="ignore"):
                largest = np.asarray(abs(self.A).max(axis=0).todense()).ravel()
                scaled = self.A @ sp.diags_array(1 / np.where(largest > 0, largest, 1.0))
                length = np.sqrt((scaled**2).sum(axis=0)) * largest
                self.scale = np.where(length > 0, 1 / length, 1.0)
                self.A = sp.csc_array(self.A @ sp.diags_array(self.scale))
                normal = sp.csc_array(self.A.T @ self.A + RIDGE * sp.eye_array(self.columns.size))
            if np.isfinite(normal.data).all():
                try:
                    self.solver = splu(normal)
                except RuntimeError:  # singular to working precision
                    self.solver = None

    def __call__(self, z: Array, wanted: Array) -> Array | None:
        """Return z changed so that A'z is `wanted` in the chosen columns, None where it cannot be."""
        if not self.columns.size:
            return z
        if self.solver is None:
            return None
        with np.errstate(all="ignore"):
            right = wanted[self.columns] * self.scale
            for _ in range(REFINEMENTS):
                z = z + self.A @ self.solver.solve(right - self.A.T @ z)
        return z if np.isfinite(z).all() else None
