"""The check of a stack that is given as an array, in one pass over its entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from kernelopt.errors import ShapeError
from kernelopt.grams.caching import IN_PLACE_BYTES
from kernelopt.grams.stored import COMPILED_ENTRIES, ArrayStorage
from kernelopt.numerics.compiling import compiled
from kernelopt.threads import in_threads
from kernelopt.validation import Array, Floats, as_float_array, numeric, row_maxima, shown
from kernelopt.validation.matrices import asymmetry, symmetrised, taken_as_symmetric

TILE = 192
"""Order of the square tiles of the pass: a tile and its mirror image, 0.6 MB, fit the second cache."""


def as_stack(grams: Any, what: str = "grams") -> ArrayStorage:
    """Return an (m, N, N) stack of symmetric matrices.

    Parameters
    ----------
    grams : array of shape (m, N, N)
        An array of contiguous float64 or float32 numbers that takes at least `IN_PLACE_BYTES`, or is
        read-only and no view, is used itself. Others are copied.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such stack.
    """
    array = as_squares(grams, what)
    constant = array.base is None and (not array.flags.writeable or isinstance(grams, list | tuple))
    plain = array.flags.c_contiguous and array.flags.aligned
    used = plain and (constant or array.nbytes >= IN_PLACE_BYTES)
    stack = array if used else np.empty(array.shape, array.dtype)

    def inspect(i: int) -> tuple[Array, bool]:
        if stack is not array:
            stack[i] = array[i]  # the copy of one matrix is still in the cache when it is inspected
        return inspected(stack[i], array.size >= COMPILED_ENTRIES)

    parts = in_threads(lambda start, stop: [inspect(i) for i in range(start, stop)], len(stack), array.size)
    found = [each for part in parts for each in part]
    largest = np.stack([maxima for maxima, _ in found])
    skewed = [i for i, (_, symmetric) in enumerate(found) if not symmetric]
    if not np.isfinite(largest).all():
        as_float_array(stack, what)  # says which entry is not finite
    asymmetries = dict[str, float]()
    for i in skewed:
        K = stack[i]
        mean = symmetrised(K, f"{what}[{i}]")
        asymmetries[f"{what}[{i}]"] = asymmetry(K)
        if mean is not K:
            if stack is array:
                stack = stack.copy()
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


def inspected(K: Floats, compile_it: bool) -> tuple[Array, bool]:
    """Return the largest absolute entry of each row of K, and whether K equals its transpose.

    A row with NaN has NaN as its maximum, and K with NaN is not equal to its transpose.
    """
    if not compile_it:
        return row_maxima(K), np.array_equal(K, K.T)
    words = K.view(np.uint32 if K.dtype == np.float32 else np.uint64)
    integer: Any = words.dtype.type
    largest = np.zeros(len(K), integer)
    differing = compiled(inspect_words)(words, ~integer(0) >> integer(1), largest)
    symmetric = not differing and bool((largest <= np.array(np.inf, K.dtype).view(integer)).all())
    return largest.view(K.dtype) if symmetric else row_maxima(K), symmetric


def inspect_words(K: Any, magnitude: Any, largest: Any) -> Any:
    """Write the largest magnitude of each row of a symmetric K to `largest`; return how K differs from K'.

    The numbers are floats read as unsigned integers, and `magnitude` is the mask of all bits but the sign.
    Without their sign, floats have the order of these integers, and NaN is above infinity. Every tile on or
    above the diagonal and its mirror image are read while both are in a cache. Several rows are read at a
    time, since the memory answers requests for several rows sooner: 3.1 ms for 32 MB in the place of 4.2.
    Where K is not symmetric, `largest` has the maxima of the upper tiles.
    """
    n = K.shape[0]
    d0 = d1 = d2 = d3 = magnitude ^ magnitude
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        for left in range(first, n, TILE):
            right = min(left + TILE, n)
            below = largest[left:right]
            for i in range(first, last, 2):
                second = min(i + 1, last - 1)  # row i once more, where the tile has an odd number of rows
                row, other = K[i, left:right], K[second, left:right]
                top, top_of_other = largest[i], largest[second]
                for j in range(row.size):
                    size, size_of_other = row[j] & magnitude, other[j] & magnitude
                    top, top_of_other = max(top, size), max(top_of_other, size_of_other)
                    below[j] = max(below[j], max(size, size_of_other))  # row j has this entry too
                largest[i] = max(top, largest[i])
                largest[second] = max(top_of_other, largest[second])
            grouped = right - (right - left) % 8
            for j in range(left, grouped, 8):  # a column of eight rows is one cache line of the upper tile
                r0, r1, r2, r3 = (
                    K[j, first:last],
                    K[j + 1, first:last],
                    K[j + 2, first:last],
                    K[j + 3, first:last],
                )
                r4, r5, r6, r7 = (
                    K[j + 4, first:last],
                    K[j + 5, first:last],
                    K[j + 6, first:last],
                    K[j + 7, first:last],
                )
                for i in range(r0.size):
                    column = K[first + i, j : j + 8]
                    d0 |= (r0[i] ^ column[0]) | (r4[i] ^ column[4])
                    d1 |= (r1[i] ^ column[1]) | (r5[i] ^ column[5])
                    d2 |= (r2[i] ^ column[2]) | (r6[i] ^ column[6])
                    d3 |= (r3[i] ^ column[3]) | (r7[i] ^ column[7])
            for j in range(grouped, right):
                for i in range(first, last):
                    d0 |= K[j, i] ^ K[i, j]
    return d0 | d1 | d2 | d3
