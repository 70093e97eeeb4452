"""The gate for outside data: shape, finiteness, symmetry, labels and ranges."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelopt.errors import (
    LabelError,
    NotFiniteError,
    NotPSDError,
    NotSymmetricError,
    ParameterError,
    ShapeError,
)

Array: TypeAlias = NDArray[np.float64]

SYMMETRY_TOLERANCE = 1e-8
PSD_TOLERANCE = 1e-8
FEW = 3  # numbers that a message prints one by one


def shown(value: object) -> str:
    """Return a value as messages show it: a long array by the number and the range of its entries."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return repr(value)
    if value.size <= FEW:
        return repr(value.tolist())
    low, high = value.min(), value.max()
    return f"[{value.size} values, " + (f"all {low:g}]" if low == high else f"{low:g} to {high:g}]")


def as_float_array(value: ArrayLike, what: str, ndim: int | tuple[int, ...] | None = None) -> Array:
    """Return `value` as a finite float64 array, or say what is wrong with it."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{what} must be an array of real numbers, got {type(value).__name__}: {error}. "
            "Convert it with numpy.asarray(..., dtype=float) first."
        ) from error
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if allowed is not None and array.ndim not in allowed:
        wanted = " or ".join(str(d) for d in allowed)
        raise ShapeError(
            f"{what} must have {wanted} dimension(s), got shape {array.shape}. Reshape it first."
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NotFiniteError(
            f"{what} must be finite, got {array[where]} at index {where} "
            f"({int((~np.isfinite(array)).sum())} such entries). Impute or drop them first."
        )
    return array


def as_symmetric(matrix: ArrayLike, what: str) -> Array:
    """Return a square symmetric matrix; asymmetry up to 1e-8 relative is round-off and is averaged."""
    array = as_float_array(matrix, what, ndim=2)
    if array.shape[0] != array.shape[1]:
        raise ShapeError(
            f"{what} must be square, got shape {array.shape}. "
            "Pass the matrix between all points; new points go in as cross kernels."
        )
    scale = float(np.abs(array).max(initial=0.0))
    skew = float(np.abs(array - array.T).max(initial=0.0))
    if skew > SYMMETRY_TOLERANCE * scale:
        i, j = np.unravel_index(int(np.abs(array - array.T).argmax()), array.shape)
        raise NotSymmetricError(
            f"{what} must be symmetric to {SYMMETRY_TOLERANCE:g} relative, got "
            f"{array[i, j]:.6g} at ({i}, {j}) against {array[j, i]:.6g} at ({j}, {i}). "
            "If the average is what you mean, pass (K + K.T) / 2."
        )
    return array if skew == 0.0 else (array + array.T) / 2


def as_stack(grams: ArrayLike, what: str = "grams") -> Array:
    """Return an (m, N, N) stack of symmetric matrices."""
    array = as_float_array(grams, what)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        raise ShapeError(
            f"{what} must have shape (m, N, N), got {array.shape}. Wrap a single matrix with grams[None]."
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
        raise NotPSDError(
            f"{what} must be positive semidefinite (smallest eigenvalue at least "
            f"-{PSD_TOLERANCE:g} of the largest), got {smallest:.3g} of the largest. "
            "Give the weights no sign and add K >> 0, or clip the spectrum yourself if that is meant."
        )


def as_labels(y: ArrayLike, what: str = "y") -> Array:
    """Return labels in {-1, +1}, both present."""
    if np.asarray(y).dtype.kind in "OUS":
        raise LabelError(
            f"{what} must hold labels -1 and +1, got {np.asarray(y).ravel()[:1].tolist()} of type "
            f"{np.asarray(y).dtype}. Map two classes with numpy.where(y == positive_class, 1.0, -1.0)."
        )
    array = as_float_array(y, what, ndim=1)
    outside = np.flatnonzero(~np.isin(array, (-1.0, 1.0)))
    if outside.size:
        raise LabelError(
            f"{what} must hold labels -1 and +1, got {array[outside[0]]:g} at index {outside[0]} "
            f"(values {np.unique(array)[:5].tolist()}). Map two classes with "
            "numpy.where(y == positive_class, 1.0, -1.0)."
        )
    if np.unique(array).size < 2:
        raise LabelError(
            f"{what} must hold both labels, got only {array[0]:+.0f} on {array.size} points. "
            "With one class every kernel is optimal; use one_class(C) for novelty detection."
            if array.size
            else f"{what} must hold both labels, got no label at all. Pass at least one point of each class."
        )
    return array


def as_targets(y: ArrayLike, what: str = "y") -> Array:
    """Return finite real targets, at least one."""
    array = as_float_array(y, what, ndim=1)
    if array.size == 0:
        raise LabelError(f"{what} must hold at least one target, got none. Pass the training targets.")
    return array


def positive(value: Any, what: str, *, allow_zero: bool = False, allow_inf: bool = False) -> float:
    """Return a positive real number."""
    wanted = "non-negative" if allow_zero else "positive"
    wanted += " number" if allow_inf else " finite number"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(
            f"{what} must be a {wanted}, got {shown(value)} ({type(value).__name__}). Pass one number."
        )
    number = float(value)
    if np.isinf(number) and what == "C" and not allow_inf:
        raise ParameterError("C must be finite, got inf. The limit is hard_margin().")
    good = number >= 0 if allow_zero else number > 0
    if not good or (np.isinf(number) and not allow_inf):
        raise ParameterError(f"{what} must be a {wanted}, got {number:g}. Choose a value in that range.")
    return number


def whole(value: Any, what: str) -> int:
    """Return a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) <= 0:
        raise ParameterError(
            f"{what} must be a positive whole number, got {value!r} ({type(value).__name__}). Pass an int."
        )
    return int(value)


def boolean(value: Any, what: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{what} must be True or False, got {value!r} ({type(value).__name__}).")
    return bool(value)


def one_of(value: Any, what: str, choices: Iterable[str]) -> None:
    """Raise unless a value is one of the words `choices`."""
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise ParameterError(f"{what} must be {words}, got {value!r}. Choose one of these.")
