"""The check of a stack that is given as an array, in one pass over its entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelopt.errors import ShapeError
from kernelopt.grams.caching import read_only
from kernelopt.grams.stored import COMPILED_ENTRIES
from kernelopt.numerics.compiling import compiled
from kernelopt.threads import in_threads
from kernelopt.validation import Array, Floats, as_float_array, numeric, row_maxima, shown
from kernelopt.validation.matrices import asymmetry, symmetrised, taken_as_symmetric

TILE = 192
"""Order of the square tiles of the pass: a tile and its mirror image, 0.6 MB, fit the second cache."""

IN_PLACE_BYTES = 32_000_000
"""From this size on an array is used in place. A smaller one is copied in 20 ms, and may then be changed."""

Words: TypeAlias = NDArray[np.uint64] | NDArray[np.uint32]


class GivenStack(NamedTuple):
    """A stack that was given as an array, after its check.

    Attributes
    ----------
    array : array of shape (m, N, N)
        Of dtype float32 where the given array is, else float64.
    largest : array of shape (m, N)
        The largest absolute entry of each row.
    assumes : tuple of str
        Which matrices were not symmetric to the last bit.
    """

    array: Floats
    largest: Array
    assumes: tuple[str, ...]


class Inspection(NamedTuple):
    """The largest absolute entry of each row of K, and whether K equals its transpose."""

    largest: Array
    symmetric: bool


def as_stack(grams: Any, what: str = "grams") -> GivenStack:
    """Return an (m, N, N) stack of symmetric matrices.

    Parameters
    ----------
    grams : array of shape (m, N, N)
        An array of contiguous float64 or float32 numbers is used itself, if its memory is read-only or it
        takes at least `IN_PLACE_BYTES`. Others are copied.
    what : str
        The name of the argument, for the message.

    Raises
    ------
    ShapeError, NotFiniteError, NotSymmetricError
        If it is no such stack.
    """
    array = as_squares(grams, what)
    readable = array.flags.c_contiguous and array.flags.aligned
    fixed = is_new(array, grams) or is_immutable(array)
    used = readable and (fixed or array.nbytes >= IN_PLACE_BYTES)
    stack = array if used else np.empty(array.shape, array.dtype)
    compile_it = array.size >= COMPILED_ENTRIES

    def inspect(i: int) -> Inspection:
        if stack is not array:
            stack[i] = array[i]  # the copy of one matrix is still in the cache when it is inspected
        return inspected(stack[i], compile_it)

    parts = in_threads(lambda start, stop: [inspect(i) for i in range(start, stop)], len(stack), array.size)
    found = [each for part in parts for each in part]
    largest = np.stack([each.largest for each in found])
    skewed = [i for i in range(len(stack)) if not found[i].symmetric]
    if not np.isfinite(largest).all():
        as_float_array(stack, what)  # says which entry is not finite
    asymmetries = dict[str, float]()
    for i in skewed:
        K = stack[i]
        mean = symmetrised(K, f"{what}[{i}]")
        asymmetries[f"{what}[{i}]"] = asymmetry(K)
        if mean is not K:
            if stack is array and not is_new(array, grams):
                stack = stack.copy()
            stack[i], largest[i] = mean, row_maxima(mean)
    return GivenStack(stack, largest, taken_as_symmetric(asymmetries))


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


def inspected(K: Floats, compile_it: bool) -> Inspection:
    """Return the row maxima and the symmetry of K, in one pass.

    A row with NaN or infinity has such a maximum.
    """
    if not compile_it:
        return Inspection(row_maxima(K), np.array_equal(K, K.T))
    words = as_words(K)
    integer = words.dtype.type
    largest = np.zeros(len(K), integer)
    magnitude = integer(np.iinfo(integer).max >> 1)
    if compiled(inspect_words)(words, magnitude, largest):
        return Inspection(row_maxima(K), False)
    return Inspection(largest.view(K.dtype), True)


def as_words(array: Floats) -> Words:
    """Return the bits of floats as unsigned integers of the same size, read-only."""
    view = read_only(array)
    return view.view(np.uint32) if array.dtype == np.float32 else view.view(np.uint64)


def inspect_words(K: Words, magnitude: Any, largest: Words) -> Any:
    """Write the largest magnitude of each row of a symmetric K to `largest`; return how it differs from K'.

    The numbers are floats read as unsigned integers. `magnitude` is the mask of all bits but the sign.
    Without their sign, floats have the order of these integers, infinity is above all numbers, and NaN is
    above infinity. Every entry is read from memory once: a tile on or above the diagonal is read by rows, and
    its mirror image is compared with it while both are in the cache. Several rows are read at a time, since
    the memory answers requests for several rows sooner than the requests of one row after another.

    Returns
    -------
    int
        The bits in which K and K' differ anywhere. Where K is not symmetric, `largest` has the maxima of the
        upper tiles.
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
