"""Symmetric matrices and stacks of them from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelopt.errors import NotPSDError, NotSymmetricError, ShapeError
from kernelopt.validation.arrays import Array, as_float_array

SYMMETRY_TOLERANCE = 1e-8
PSD_TOLERANCE = 1e-8
SINGLE = float(np.finfo(np.float32).eps)  # times n, of the largest eigenvalue: rounding to float32


def as_symmetric(matrix: Any, what: str) -> Array:
    """Return a square symmetric matrix; asymmetry up to 1e-8 relative is round-off and is averaged.

    Parameters
    ----------
    matrix : array of shape (N, N), N >= 1
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such matrix.
    """
    array = as_float_array(matrix, what, ndim=2)
    if array.shape[0] != array.shape[1]:
        raise ShapeError(
            f"{what} must be square, got shape {array.shape}. "
            "Pass the matrix between all points; new points go in as cross kernels."
        )
    if not array.size:
        raise ShapeError(f"{what} must hold at least one point, got shape {array.shape}. Pass the matrix.")
    with np.errstate(over="ignore"):  # entries of 1e308 of different signs
        scale = float(np.abs(array).max())
        skew = float(np.abs(array - array.T).max())
    if skew > SYMMETRY_TOLERANCE * scale:
        i, j = np.unravel_index(int(np.abs(array - array.T).argmax()), array.shape)
        raise NotSymmetricError(
            f"{what} must be symmetric to {SYMMETRY_TOLERANCE:g} relative, got "
            f"{array[i, j]:.6g} at ({i}, {j}) against {array[j, i]:.6g} at ({j}, {i}). "
            "If the average is what you mean, pass (K + K.T) / 2."
        )
    return array if skew == 0.0 else (array + array.T) / 2


def as_stack(grams: Any, what: str = "grams") -> Array:
    """Return an (m, N, N) stack of symmetric matrices."""
    array = as_float_array(grams, what)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        raise ShapeError(
            f"{what} must have shape (m, N, N), got {array.shape}. Wrap a single matrix with {what}[None]."
        )
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise ShapeError(
            f"{what} must have shape (m, N, N), got {array.shape}. Stack the m square matrices first."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ShapeError(
            f"{what} must hold at least one kernel on one point, got shape {array.shape}. Add a kernel."
        )
    return np.stack([as_symmetric(K, f"{what}[{i}]") for i, K in enumerate(array)])


def smallest_relative_eigenvalue(matrix: Array) -> float:
    """Return lambda_min / max(|lambda|) of a symmetric matrix, 0 for the zero matrix."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    scale = float(np.abs(eigenvalues).max(initial=0.0))
    return 0.0 if scale == 0.0 else float(eigenvalues[0]) / scale


def check_psd(matrix: Array, what: str) -> None:
    """Raise `NotPSDError` unless lambda_min >= -1e-8 max |lambda|."""
    smallest = smallest_relative_eigenvalue(matrix)
    if smallest < -PSD_TOLERANCE:
        cure = (
            "It is as large as the rounding of single precision: compute the kernel in float64."
            if smallest > -SINGLE * len(matrix)
            else "Give the weights no sign and add K >> 0, or clip the spectrum yourself if that is meant."
        )
        raise NotPSDError(
            f"{what} must be positive semidefinite (smallest eigenvalue at least "
            f"-{PSD_TOLERANCE:g} of the largest), got {smallest:.3g} of the largest. {cure}"
        )
