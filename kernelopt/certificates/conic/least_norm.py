"""The least-norm change of a multiplier z that gives A'z wanted values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from kernelopt.conic.costs import SPARSE_PRODUCT
from kernelopt.running import check, running_call
from kernelopt.threads import interruptible
from kernelopt.validation import Array

REFINEMENTS = 4  # steps of iterative refinement: each reduces what the ridge and rounding leave
RIDGE = 1e-14  # added to the normal equations of columns of length one: rounding of their entries


def factored(M: sp.csc_array) -> Any:
    """Return the sparse LU factors of a matrix; the running call may end while they are computed."""
    if running_call() is None:
        return splu(M)
    return interruptible(lambda: splu(M), lambda: None)


class LeastNormCorrection:
    """The least-norm Delta with (A'(z + Delta))_j = w_j in chosen columns j, computed in floating point.

    With the chosen columns scaled to length one, Delta = A (A'A)^-1 (w - A'z), by a sparse LU factorisation
    of A'A and iterative refinement.
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
                normal = self.normal_matrix()
            if np.isfinite(normal.data).all():
                try:
                    self.solver = factored(normal)
                except RuntimeError:  # singular to working precision
                    self.solver = None

    def normal_matrix(self) -> sp.csc_array:
        """Return A'A with the ridge, which is started only where the running call has time for it."""
        check(SPARSE_PRODUCT * float((np.diff(sp.csr_array(self.A).indptr) ** 2.0).sum()))
        ridged = sp.vstack([self.A, RIDGE**0.5 * sp.eye_array(self.columns.size)], format="csc")
        return (ridged.T @ ridged).T  # by rows, which are the columns of a symmetric matrix

    def __call__(self, z: Array, wanted: Array) -> Array | None:
        """Return z + Delta with w = `wanted`, None where A'A cannot be factored or the result overflows."""
        if not self.columns.size:
            return z
        if self.solver is None:
            return None
        with np.errstate(all="ignore"):
            right = wanted[self.columns] * self.scale
            for _ in range(REFINEMENTS):
                z = z + self.A @ self.solver.solve(right - self.A.T @ z)
        return z if np.isfinite(z).all() else None
