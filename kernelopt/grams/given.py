"""The check of a stack that is given as an array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.errors import ShapeError
from kernelopt.grams.stored import ArrayStorage
from kernelopt.validation import Floats, as_float_array, numeric, row_maxima, shown
from kernelopt.validation.matrices import asymmetry, symmetrised, taken_as_symmetric

IN_PLACE_BYTES = 32_000_000
"""From this size on an array is used in place. A smaller one is copied in 20 ms, and may then be changed."""


def as_stack(grams: Any, what: str = "grams") -> ArrayStorage:
    """Return an (m, N, N) stack of symmetric matrices.

    Parameters
    ----------
    grams : array of shape (m, N, N)
        An array of contiguous float64 or float32 numbers that takes at least `IN_PLACE_BYTES` is used
        itself. Others are copied.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such stack.
    """
    array = as_squares(grams, what)
    used = array.flags.c_contiguous and array.flags.aligned and array.nbytes >= IN_PLACE_BYTES
    stack = array if used else array.copy(order="C")
    largest = row_maxima(stack)
    if not np.isfinite(largest).all():
        as_float_array(stack, what)  # says which entry is not finite
    asymmetries = dict[str, float]()
    for i, K in enumerate(stack):
        mean = symmetrised(K, f"{what}[{i}]")
        if mean is not K:
            asymmetries[f"{what}[{i}]"] = asymmetry(K)
            stack = stack.copy() if stack is array else stack
            stack[i], largest[i] = mean, row_maxima(mean)
    return ArrayStorage(stack, largest=largest, assumes=taken_as_symmetric(asymmetries))


def as_squares(grams: Any, what: str, *, one: bool = False) -> Floats:
    """Return a stack of square matrices, shape (m, N, N), which may be asymmetric and hold NaN.

    With `one`, a single matrix of shape (N, N) is a stack of one.
    """
    check_matrices(grams, what)
    array: Floats = numeric(grams, what, single=True)
    if array.ndim in (1, 2, 3) and not array.size:
        raise ShapeError(
            f"{what} must hold at least one kernel on one point, got shape {array.shape}. Add a kernel."
        )
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        if one:
            return array[None]
        raise ShapeError(
            f"{what} must have shape (m, N, N), got {array.shape}. Wrap a single matrix with {what}[None]."
        )
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        points = " For points X pass kernelopt.Grams.from_kernels(kernels, X)." if array.ndim == 2 else ""
        raise ShapeError(
            f"{what} must have shape (m, N, N), got {array.shape}. Stack the m square matrices first.{points}"
        )
    return array


def check_matrices(grams: Any, what: str) -> None:
    """Raise where kernels, or objects that hold them, are given in the place of their matrices."""
    if (cure := matrices_instead(grams)) is not None:
        raise ShapeError(f"{what} must be matrices of shape (m, N, N), got {shown(grams)}. {cure}")
    listed = isinstance(grams, list | tuple)
    shapes: set[Any] = {getattr(each, "shape", None) for each in grams} if listed else set()
    if len(shapes) > 1 and None not in shapes:
        raise ShapeError(
            f"{what} must be matrices on the same N points, got shapes {shown(sorted(shapes))}. Evaluate "
            "all kernels on the same points."
        )


def matrices_instead(grams: Any) -> str | None:
    """Return how to get matrices from what was given in their place, None for what may be matrices."""
    if isinstance(grams, Mapping):
        return "Pass kernelopt.Grams.from_array(list(matrices.values()), list(matrices))."
    members = grams if isinstance(grams, list | tuple) else [grams]
    if any(callable(each) or isinstance(each, str) for each in members):
        return (
            "Evaluate kernels on points: kernelopt.Grams.from_kernels(kernels, X), with a list of kernels; "
            "kernelopt.parse_kernel reads text."
        )
    numbers = isinstance(grams, Iterable | Real | cp.Expression) or sp.issparse(grams)
    if numbers or any(hasattr(grams, name) for name in ("__array__", "__array_interface__")):
        return None
    if hasattr(grams, "grams"):
        return "Pass its .grams."
    return "Pass the matrices of kernels on points: kernelopt.Grams.from_kernels(kernels, X)."
