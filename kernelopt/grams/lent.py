"""Arrays that a stack uses in place although the caller can write to them, and their checksums."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import InputError
from kernelopt.grams.caching import read_only
from kernelopt.numerics.compiling import compiled
from kernelopt.validation import Floats
from kernelopt.validation.messages import LISTED

Words: TypeAlias = NDArray[np.uint64] | NDArray[np.uint32]
Sums: TypeAlias = NDArray[np.uint64]

HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)


def as_words(array: Floats) -> Words:
    """Return the bits of floats as unsigned integers of the same size, read-only."""
    view = read_only(array)
    return view.view(np.uint32) if array.dtype == np.float32 else view.view(np.uint64)


@lru_cache(maxsize=1)  # every matrix of a stack needs them
def keys(n_points: int) -> Sums:
    """Return one fixed random number for each point, read-only."""
    return read_only(np.random.default_rng(0).integers(2**64, size=n_points, dtype=np.uint64))


def checksums(array: Floats) -> Sums:
    """Return the checksum of each matrix of a stack, shape (m,), in one pass; see `add_checksums`."""
    sums = np.zeros(len(array), np.uint64)
    if array.size:
        compiled(add_checksums)(as_words(array), keys(array.shape[1]), sums)
    return sums


def add_checksums(words: Words, key: Sums, sums: Sums) -> None:
    """Add the checksum of each matrix to `sums`.

    It is the sum over the entries of (low half) * (high half) of `word ^ (key_i + key_j)`, modulo 2^64. A
    plain sum of the words would stay the same if the points were put in another order. A product of halves is
    one instruction of a vector unit, so that the pass takes no longer than reading the memory. The summand
    of an entry and that of its mirror image are equal: a symmetric matrix needs only one of the two.
    """
    m, n, _ = words.shape
    for k in range(m):
        total = sums[k]
        for i in range(n):
            row = words[k, i]
            for j in range(n):
                word = np.uint64(row[j]) ^ (key[i] + key[j])
                total += (word & LOW_HALF) * (word >> HALF)
        sums[k] = total


class LentArray:
    """An array of the caller that is used in place, with the checksums that it had when it was given.

    A change that somebody makes later goes unnoticed with a probability of about 2^-32. A copy has numbers
    of its own, so that there is nothing to check.
    """

    def __init__(self, array: Floats, sums: Sums, what: str) -> None:
        self.array, self.sums, self.what = array, sums, what

    def __reduce__(self) -> tuple[Any, ...]:
        self.check_unchanged()
        return LentArray, (np.empty((0, 0, 0)), np.empty(0, np.uint64), self.what)

    def check_unchanged(self) -> None:
        """Raise `InputError` if the numbers have changed since the array was given; one pass over it."""
        changed = np.flatnonzero(checksums(self.array) != self.sums)
        if changed.size:
            numbers = ", ".join(map(str, changed[:LISTED])) + (", ..." if changed.size > LISTED else "")
            raise InputError(
                f"{self.what} must stay unchanged while a problem uses its memory, got other numbers in "
                f"{changed.size} of {len(self.array)} matrices ({numbers}) since it was given. Build the "
                f"problem again from the new numbers, or from a copy: {self.what}.copy()."
            )
