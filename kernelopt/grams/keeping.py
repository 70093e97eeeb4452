"""What a stack keeps of the arrays it computes, and how it goes through matrices too large to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernelopt.validation import Array

CACHE_BYTES = 1_000_000_000
"""The most that one stack keeps of its evaluated matrices, and again of its factors."""

CHUNK_BYTES = 64_000_000
"""About the size of the rows that are held at a time where the matrices are not kept."""


class Kept:
    """Arrays by number, kept while their total is at most CACHE_BYTES, computed anew each time beyond.

    What came first stays: solvers ask for all matrices in turn, and giving up the oldest for the newest
    would then keep none.
    """

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}

    def __contains__(self, i: int) -> bool:
        return i in self._arrays

    def get(self, i: int, compute: Callable[[int], Array]) -> Array:
        """Return array i, from `compute(i)` unless it is kept."""
        if i in self._arrays:
            return self._arrays[i]
        array = compute(i)
        if array.nbytes + sum(kept.nbytes for kept in self._arrays.values()) <= CACHE_BYTES:
            self._arrays[i] = array
        return array


def all_kept(shape: tuple[int, int, int]) -> bool:
    """Whether a stack of this shape may keep every one of its matrices."""
    m, n_points, _ = shape
    return 8 * m * n_points**2 <= CACHE_BYTES


def chunks(shape: tuple[int, int, int]) -> Iterator[slice]:
    """Return the rows of a stack in turn, as many at a time as CHUNK_BYTES hold of all its matrices."""
    m, n_points, _ = shape
    step = max(1, CHUNK_BYTES // (8 * m * n_points))
    return (slice(start, min(start + step, n_points)) for start in range(0, n_points, step))
