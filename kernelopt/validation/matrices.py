"""Validation of symmetric matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import issymmetric

from kernelopt.errors import NotPSDError, NotSymmetricError, ShapeError
from kernelopt.validation.arrays import Array, Floats, as_float_array

AnyFloats = TypeVar("AnyFloats", NDArray[np.float64], NDArray[np.float32])

SYMMETRY_TOLERANCE = 1e-8  # largest asymmetry relative to the largest entry: about the root of the roundoff
ROUNDED = 1e-12  # asymmetry that the rounding of sums leaves; certificates say nothing about it
LISTED = 3  # matrices that a sentence names
PSD_TOLERANCE = 1e-8  # smallest eigenvalue allowed, as a negative multiple of the largest one


def as_symmetric(matrix: Any, what: str) -> Array:
    """Return a square symmetric matrix; a relative asymmetry up to 1e-8 is rounding, and is averaged.

    Parameters
    ----------
    matrix : array of shape (N, N), N >= 1
        What the user has passed.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such matrix.

    Examples
    --------
    >>> from kernelopt.extend import as_symmetric
    >>> as_symmetric([[2, 1], [1, 2]], "K")
    array([[2., 1.],
           [1., 2.]])
    """
    array = as_float_array(matrix, what, ndim=2)
    if array.shape[0] != array.shape[1]:
        raise ShapeError(
            f"{what} must be square, got shape {array.shape}. "
            "Pass the matrix between all points; new points go in as cross kernels."
        )
    if not array.size:
        raise ShapeError(f"{what} must hold at least one point, got shape {array.shape}. Pass the matrix.")
    return symmetrised(array, what)


def symmetrised(array: AnyFloats, what: str) -> AnyFloats:
    """Return (K + K') / 2 for a finite square matrix that is symmetric up to rounding."""
    if issymmetric(array):
        return array
    with np.errstate(over="ignore"):  # entries of 1e308 of different signs
        scale = float(row_maxima(array).max())
        skew = float(np.abs(array - array.T).max())
    if skew > SYMMETRY_TOLERANCE * scale:
        i, j = np.unravel_index(int(np.abs(array - array.T).argmax()), array.shape)
        name = what if what.isidentifier() else "K"  # `what` may say which kernel of a stack
        raise NotSymmetricError(
            f"{what} must be symmetric to {SYMMETRY_TOLERANCE:g} relative, got "
            f"{array[i, j]:.6g} at ({i}, {j}) against {array[j, i]:.6g} at ({j}, {i}). "
            f"If the average is what you mean, pass ({name} + {name}.T) / 2."
        )
    mean: AnyFloats = np.divide(array + array.T, 2, dtype=array.dtype)
    return mean


def asymmetry(array: Floats) -> float:
    """Return the largest entry of |K - K'| relative to the largest of |K|, 0 up to the rounding of sums."""
    if issymmetric(array):
        return 0.0
    found = float(np.abs(array - array.T).max()) / float(row_maxima(array).max())
    return found if found > ROUNDED else 0.0


def taken_as_symmetric(asymmetries: Mapping[str, float]) -> tuple[str, ...]:
    """Return what a bound assumes that is computed for (K + K') / 2, given the asymmetry of K by its name."""
    names = [name for name, size in asymmetries.items() if size]
    if not names:
        return ()
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return (
        f"{', '.join(names[:LISTED])}{more}: K is taken as (K + K') / 2, and differs from K' by up to "
        f"{max(asymmetries.values()):.0e} of its largest entry",
    )


def row_maxima(array: Floats) -> Array:
    """Return the largest absolute value along the last axis; NaN for rows with a NaN."""
    return np.asarray(np.maximum(array.max(axis=-1), -array.min(axis=-1)), dtype=np.float64)


def smallest_relative_eigenvalue(matrix: Array) -> float:
    """Return lambda_min / max(|lambda|) of a symmetric matrix, 0 for the zero matrix."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    scale = float(np.abs(eigenvalues).max(initial=0.0))
    return 0.0 if scale == 0.0 else float(eigenvalues[0]) / scale


def check_psd(matrix: Array, what: str) -> None:
    """Raise `NotPSDError` unless lambda_min >= -1e-8 max |lambda|."""
    smallest = smallest_relative_eigenvalue(matrix)
    if smallest < -PSD_TOLERANCE:
        hint = " It is no larger than the rounding of float32: compute the kernel in float64."
        raise NotPSDError(
            f"{what} must be positive semidefinite (smallest eigenvalue at least "
            f"-{PSD_TOLERANCE:g} of the largest), got {smallest:.3g} of the largest. "
            "Learn from similarities by formulations.similarity, make a kernel by "
            'kernelopt.repair(K, "clip") if that is meant, or give the weights no sign and add K >> 0.'
            + (hint if smallest > -np.finfo(np.float32).eps * len(matrix) else "")
        )
