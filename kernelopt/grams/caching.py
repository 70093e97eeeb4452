"""Caches of the arrays that a stack computes, and passes over matrices that are too large to cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelopt.running import check
from kernelopt.validation import Array, Index

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

CACHE_BYTES = 1_000_000_000
"""Largest size of the cache of a stack's matrices, and of the cache of its factors."""

IN_PLACE_BYTES = 32_000_000
"""From this size on an array is used in place. A smaller one is copied in 20 ms, and may then be changed."""

CHUNK_BYTES = 64_000_000
"""Approximate size of the rows that are held at a time where the matrices are not cached."""


def read_only(array: AnyArray) -> AnyArray:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def by_columns(function: Callable[..., Array], *arrays: Array) -> Array:
    """Return a function of arrays of shape (m, N) that is computed for each column alone.

    Arrays that repeat one column take no memory, as `np.broadcast_to` makes them for kernels whose diagonals
    are constant. The function is then evaluated at one column, and the result repeats its column.
    """
    if all(array.ndim == 2 and array.strides[1] == 0 for array in arrays):
        found = function(*(array[:, :1] for array in arrays))
        return np.broadcast_to(found, (len(found), arrays[0].shape[1]))
    return function(*arrays)


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
            array = self.compute(stack) if known is None else by_columns(lambda a: a[chosen], known)
            return vars(stack).setdefault(self.name, read_only(array))


class BoundedCache:
    """A cache of read-only arrays by number, or another key, limited to CACHE_BYTES in total.

    An array that does not fit is computed anew at every request, and nothing is evicted. Solvers request all
    matrices in turn, and eviction of the oldest array would then discard each one before its next use. Each
    computation has a lock: a thread that requests an array which another thread is computing waits for it and
    takes it, also where it is not kept, and different arrays are computed side by side. An array is computed
    from arrays of the stacks below alone, so that no two threads can wait for each other. Copies start empty.
    """

    def __init__(self, origin: tuple[BoundedCache, Index] | None = None) -> None:
        self._origin = origin  # of a part: the whole, and the numbers of the arrays there
        self._arrays: dict[Hashable, Array] = {}
        self._bytes, self._lock = 0, RLock()
        self._running: dict[Hashable, tuple[Any, list[Array]]] = {}  # a lock, and the array once it is known

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedCache, ()

    def clear(self) -> None:
        """Free the arrays, which a part and its whole share."""
        if self._origin is not None:
            self._origin[0].clear()
            return
        with self._lock:
            self._arrays, self._bytes = {}, 0

    def part(self, chosen: Index) -> BoundedCache:
        """Return a cache of some of the arrays, numbered anew, with the arrays and the limit of this one."""
        return BoundedCache((self, chosen))

    def __contains__(self, i: Any) -> bool:
        if self._origin is None:
            return i in self._arrays
        whole, chosen = self._origin
        return int(chosen[i]) in whole

    def get(self, i: Any, compute: Callable[[Any], Array]) -> Array:
        """Return array i, from the cache or from `compute(i)`."""
        if self._origin is not None:
            whole, chosen = self._origin
            return whole.get(int(chosen[i]), lambda _: compute(i))
        with self._lock:
            if i in self._arrays:
                return self._arrays[i]
            lock, found = self._running.setdefault(i, (RLock(), []))
        with lock:
            if not found:
                try:
                    found.append(read_only(compute(i)))
                finally:
                    with self._lock:
                        self._running.pop(i, None)
                        if found and i not in self._arrays and self._bytes + found[0].nbytes <= CACHE_BYTES:
                            self._arrays[i], self._bytes = found[0], self._bytes + found[0].nbytes
            return found[0]


def all_cached(shape: tuple[int, int, int]) -> bool:
    """Whether the cache can hold all matrices of a stack of this shape."""
    m, n_points, _ = shape
    return 8 * m * n_points**2 <= CACHE_BYTES


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
