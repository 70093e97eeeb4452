"""The check of a stack that is given as an array, in one pass over its entries."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import ShapeError
from kernelopt.grams.caching import read_only
from kernelopt.grams.stored import COMPILED_ENTRIES
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Array, Floats, as_float_array, numeric, row_maxima
from kernelopt.validation.matrices import symmetrised

Bits: TypeAlias = NDArray[np.int64] | NDArray[np.int32]

TILE = 128
"""Order of the square tiles of the pass: a tile and its mirror image fit a processor's second cache."""


def as_stack(grams: Any, what: str = "grams") -> tuple[Floats, Array]:
    """Return an (m, N, N) stack of symmetric matrices that nobody else can change, and its row maxima.

    Parameters
    ----------
    grams : array of shape (m, N, N)
        The stack is a copy of an array that can be written to. An array whose memory is read-only is used
        itself, if its entries are contiguous float64 or float32 numbers.
    what : str
        The name of the argument, for the message.

    Returns
    -------
    stack : array of shape (m, N, N)
        Of dtype float32 where `grams` is, else float64.
    largest : array of shape (m, N)
        The largest absolute entry of each row.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such stack.
    """
    array: Floats = numeric(grams, what, single=True)
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
    readable = array.flags.c_contiguous and array.flags.aligned
    safe = readable and (is_new(array, grams) or is_immutable(array))
    stack = array if safe else np.empty(array.shape, array.dtype)
    largest, skewed = np.empty(array.shape[:2]), []
    for i, K in enumerate(stack):
        if not safe:
            K[...] = array[i]  # the copy of one matrix is still in the cache when it is inspected
        largest[i], symmetric = inspected(K, compile_it=array.size >= COMPILED_ENTRIES)
        if not symmetric:
            skewed.append(i)
    if not np.isfinite(largest).all():
        as_float_array(stack, what)  # says which entry is not finite
    for i in skewed:
        K = stack[i]
        mean = symmetrised(K, f"{what}[{i}]")
        if mean is not K:  # else only the signs of zeros differ
            stack = stack if stack.flags.writeable else stack.copy()
            stack[i], largest[i] = mean, row_maxima(mean)
    return stack, largest


def is_new(array: Floats, given: Any) -> bool:
    """Whether an array was made by converting what was given: nobody else has it."""
    if isinstance(given, np.ndarray):
        return not np.may_share_memory(array, given)
    return type(given) in (list, tuple)  # any other object may have returned an array that it keeps


def is_immutable(array: Floats) -> bool:
    """Whether the memory of an array is read-only: neither it nor what it is a view of can be written to."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    if part is None:
        return True
    try:
        return memoryview(part).readonly  # the memory belongs to bytes, to a mapped file, ...
    except TypeError:
        return False


def inspected(K: Floats, compile_it: bool) -> tuple[Array, bool]:
    """Return the largest absolute entry of each row, and whether K equals its transpose.

    A row with NaN or infinity has such a maximum.
    """
    if not compile_it:
        return row_maxima(K), np.array_equal(K, K.T)
    integer = np.int32 if K.dtype == np.float32 else np.int64
    largest = np.zeros(len(K), integer)
    bits = read_only(K).view(integer)  # as read-only arrays are: numba compiles each kind of array by itself
    differing = compiled(inspect_bits)(bits, integer(np.iinfo(integer).max), largest)
    return largest.view(K.dtype), not differing


def inspect_bits(K: Bits, magnitude: Any, largest: Bits) -> int:
    """Write the largest magnitude of each row of K to `largest`; return the bits that differ from K'.

    The numbers are floats read as integers. `magnitude` is the mask of all bits but the sign. Without their
    sign, floats have the order of these integers, infinity is above all numbers, and NaN is above infinity.
    Every entry is read from memory once, since a tile and its mirror image are inspected together.
    """
    n = K.shape[0]
    differing: int = magnitude ^ magnitude
    for first in range(0, n, TILE):
        for left in range(first, n, TILE):
            last, right = min(first + TILE, n), min(left + TILE, n)
            for i in range(first, last):
                row = K[i, left:right]
                top = largest[i]
                for j in range(row.size):
                    top = max(top, row[j] & magnitude)
                largest[i] = top
            for j in range(left, right):
                row = K[j, first:last]
                top = largest[j]
                for i in range(row.size):
                    top = max(top, row[i] & magnitude)
                    differing |= row[i] ^ K[first + i, j]
                largest[j] = top
    return differing
