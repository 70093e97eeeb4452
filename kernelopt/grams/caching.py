"""Caches of the arrays that a stack computes, and passes over matrices that are too large to cache.

Several threads may read one stack. No lock is held during a computation, so that kernels are evaluated in
parallel and no two threads can wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelopt.running import check
from kernelopt.validation import Array

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

CACHE_BYTES = 1_000_000_000
"""Largest size of the cache of a stack's matrices, and of the cache of its factors."""

CHUNK_BYTES = 64_000_000
"""Approximate size of the rows that are held at a time where the matrices are not cached."""


def read_only(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


if TYPE_CHECKING:
    from functools import cached_property

    cached_array = cached_property
else:

    class cached_array:
        """A cached property that is a read-only array of all kernels.

        Python 3.11 computes a `cached_property` under one lock for all instances. A stack calls the stacks
        it is made of, so two threads could each hold the lock that the other waits for. Here two threads
        may compute the same array, and both get the first result. A subset takes its part of the array of
        the stack it was taken from, where that is known.
        """

        def __init__(self, compute: Callable[[Any], Array]) -> None:
            self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

        def __get__(self, stack: Any, owner: Any = None) -> Any:
            if stack is None:
                return self
            whole, chosen = stack.origin or (None, None)
            known = None if whole is None else vars(whole).get(self.name)
            array = self.compute(stack) if known is None else known[chosen]
            return vars(stack).setdefault(self.name, read_only(array))


class _Computation:
    """An array that a thread is computing. Its result is None if the computation failed."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.result: Future[Array | None] = Future()


class _Entries:
    """The cached arrays by number, their total size, the computations under way, and one lock for all."""

    def __init__(self) -> None:
        self.arrays: dict[Hashable, Array] = {}
        self.bytes = 0
        self.pending: dict[Hashable, _Computation] = {}
        self.lock = Lock()


class BoundedCache:
    """A cache of read-only arrays by number, or another key, limited to CACHE_BYTES in total.

    An array that does not fit is computed anew at every request, and nothing is evicted. Solvers request all
    matrices in turn, and eviction of the oldest array would then discard each one before its next use. A
    thread that requests an array which another thread is computing waits for that one. Copies start empty.
    """

    def __init__(self) -> None:
        self._entries = _Entries()
        self._numbers: NDArray[np.intp] | None = None  # positions in the entries; None means 0, 1, ...

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedCache, ()

    def clear(self) -> None:
        """Free the arrays, also of the caches that are parts of this one."""
        entries = self._entries
        with entries.lock:
            entries.arrays.clear()
            entries.bytes = 0

    def part(self, chosen: NDArray[np.intp]) -> BoundedCache:
        """Return a cache of some of the arrays, numbered anew, with the entries and the limit of this one."""
        part = BoundedCache()
        part._entries = self._entries
        part._numbers = chosen if self._numbers is None else self._numbers[chosen]
        return part

    def _number(self, i: Any) -> Any:
        return i if self._numbers is None else int(self._numbers[i])

    def __contains__(self, i: Hashable) -> bool:
        return self._number(i) in self._entries.arrays

    def get(self, i: Any, compute: Callable[[Any], Array]) -> Array:
        """Return array i, from the cache or from `compute(i)`."""
        entries, number, me = self._entries, self._number(i), get_ident()
        with entries.lock:
            if number in entries.arrays:
                return entries.arrays[number]
            waiting = entries.pending.setdefault(number, _Computation(me))
        if waiting.owner != me:
            found = waiting.result.result()
            return self.get(i, compute) if found is None else found  # if that thread failed, try here
        # The pending entry may be this thread's own, from a computation that Ctrl-C has interrupted.
        array = None
        try:
            array = read_only(compute(i))
            return array
        finally:
            with entries.lock:
                entries.pending.pop(number, None)
                if array is not None and number not in entries.arrays:
                    total = entries.bytes + array.nbytes
                    if total <= CACHE_BYTES:
                        entries.arrays[number], entries.bytes = array, total
                if not waiting.result.done():
                    waiting.result.set_result(array)


def all_cached(shape: tuple[int, int, int]) -> bool:
    """Whether the cache can hold all matrices of a stack of this shape."""
    m, n_points, _ = shape
    return 8 * m * n_points**2 <= CACHE_BYTES


def chunks(shape: tuple[int, int, int], count: int | None = None) -> Iterator[slice]:
    """Return slices that cover the rows of a stack, each of at most CHUNK_BYTES for all matrices together.

    With `count` they cover that many rows.
    """
    m, n_points, _ = shape
    return pieces(n_points if count is None else count, m * n_points)


def pieces(count: int, entries: int, most: int | None = None) -> Iterator[slice]:
    """Return slices that cover 0..count - 1, for rows of so many float64 entries each.

    A slice has at most CHUNK_BYTES, and at most `most` entries where that is given, but at least one row. The
    running call may end before each.
    """
    limit = CHUNK_BYTES // 8 if most is None else min(most, CHUNK_BYTES // 8)
    step = max(1, limit // max(1, entries))
    for start in range(0, count, step):
        check()
        yield slice(start, min(start + step, count))
