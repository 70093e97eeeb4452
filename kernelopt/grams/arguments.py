"""Checks of the arguments of a stack's methods: points, kernels, weights and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelopt.errors import ParameterError, ShapeError
from kernelopt.grams.storage import Storage
from kernelopt.validation import Array, Index, as_list, numeric, plain, shown


def positions(
    storage: Storage, indices: Any, things: str, where: str, what: str = "indices", least: int = 0
) -> Index:
    """Return a slice, a mask or a sequence of numbers of points or of kernels as an array of indices."""
    count = storage.n_points if things == "points" else len(storage)
    key = indices if isinstance(indices, slice) else np.atleast_1d(plain(indices, what, ParameterError))
    try:
        if isinstance(key, np.ndarray) and key.size and key.dtype.kind not in "biu":
            raise IndexError(f"of dtype {key.dtype}")
        chosen = np.atleast_1d(np.arange(count)[key if isinstance(key, slice) or key.size else []])
    except (IndexError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{what} must be integers below {count}, the number of {things}, got {shown(indices)} in {where} "
            f"({error}). Number the {things} from zero, in the order of the stack."
        ) from error
    if chosen.ndim > 1:
        raise ParameterError(
            f"{what} must be one list of integers, got shape {chosen.shape} in {where}. "
            "Pass one after the other, such as indices.ravel()."
        )
    if chosen.size < least:
        raise ParameterError(
            f"{what} must choose at least one {things[:-1]}, got {shown(indices)} in {where} of "
            f"{storage.described()}. Pass the numbers of the {things} to keep."
        )
    return chosen


def as_pairs(storage: Storage, rows: Any, columns: Any) -> tuple[Index, Index]:
    """Return row and column indices of entries as two vectors of one length."""
    i = positions(storage, rows, "points", "Grams.entries", "rows")
    j = positions(storage, columns, "points", "Grams.entries", "columns")
    if i.size != j.size:
        raise ShapeError(
            f"rows and columns must have one length, got {i.size} and {j.size}. "
            "Pass one row and one column per entry."
        )
    return i, j


def as_weights(storage: Storage, weights: Any) -> Array:
    """Return one number per matrix, shape (m,). Numbers that are not finite are passed on."""
    w = np.atleast_1d(numeric(weights, "weights"))
    if w.shape != (len(storage),):
        raise ShapeError(
            f"weights must have shape ({len(storage)},), one per kernel, got {w.shape} for "
            f"{storage.described()}. Take some of the kernels with grams.subset(indices)."
        )
    return w


def as_alpha(storage: Storage, alpha: Any) -> Array:
    """Return one number for each of the first n points, shape (n,), finite or not."""
    a = numeric(alpha, "alpha")
    if a.ndim != 1 or a.size > storage.n_points:
        raise ShapeError(
            f"alpha must have shape (n,) with n <= {storage.n_points} points, got {a.shape} for "
            f"{storage.described()}. Pass one number per point, the first points first."
        )
    return a


def as_names(names: Sequence[str], m: int) -> tuple[str, ...]:
    """Return the names of m kernels, after checking them."""
    found = tuple(as_list(names, "names", f"{m} strings, one per kernel"))
    if len(found) != m or not all(isinstance(name, str) for name in found):
        raise ShapeError(
            f"names must be {m} strings, one per kernel, got {shown(names)}. Pass a list of words, or "
            "leave it out."
        )
    for name in found:
        if found.count(name) > 1:
            raise ParameterError(
                f"names must be different, got {shown(name)} for two kernels. Number them, or leave "
                "names out."
            )
    return tuple(map(str, found))
