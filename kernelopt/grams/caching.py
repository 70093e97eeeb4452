"""What a stack keeps of the arrays it computes, and how it goes through matrices too large to keep.

Several threads may read one stack. Nothing here holds a lock while it computes, so that kernels are
evaluated side by side and no two threads can wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelopt.errors import ParameterError
from kernelopt.validation import Array, plain, shown

CACHE_BYTES = 1_000_000_000
"""The most that one stack keeps of its evaluated matrices, and again of its factors."""

CHUNK_BYTES = 64_000_000
"""About the size of the rows that are held at a time where the matrices are not kept."""


def read_only(array: Array) -> Array:
    """Return a view that refuses to be written to; the array itself stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


if TYPE_CHECKING:
    from functools import cached_property

    cached_array = cached_property
else:

    class cached_array:
        """A property that is an array of all kernels, computed cached_array and read-only.

        Python 3.11 computes a `cached_property` under one lock for all instances. Stacks ask the stacks
        below them, so two threads could each hold the lock that the other waits for. Here two threads
        may compute the same array, and both get the first one. A subset takes its part of the array of
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
    """An array that a thread is computing; its result is None where that failed."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.result: Future[Array | None] = Future()


class _Entries:
    """The kept arrays by number, their bytes, those that a thread is computing, and the lock of all three."""

    def __init__(self) -> None:
        self.arrays: dict[int, Array] = {}
        self.bytes = 0
        self.pending: dict[int, _Computation] = {}
        self.lock = Lock()


class BoundedCache:
    """Arrays by number, kept while their total is at most CACHE_BYTES, computed anew each time beyond.

    What came first stays: solvers ask for all matrices in turn, and giving up the oldest for the newest
    would then keep none. Arrays are read-only. A thread that asks for an array which another is
    computing gets that one, kept or not. A copy starts empty.
    """

    def __init__(self) -> None:
        self._entries = _Entries()
        self._numbers: NDArray[np.intp] | None = None  # on the entries, where they are not 0, 1, ...

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundedCache, ()

    def part(self, chosen: NDArray[np.intp]) -> BoundedCache:
        """Return what is kept of some arrays only, numbered anew: one total, whoever asks."""
        part = BoundedCache()
        part._entries = self._entries
        part._numbers = chosen if self._numbers is None else self._numbers[chosen]
        return part

    def _number(self, i: int) -> int:
        return i if self._numbers is None else int(self._numbers[i])

    def __contains__(self, i: int) -> bool:
        return self._number(i) in self._entries.arrays

    def get(self, i: int, compute: Callable[[int], Array]) -> Array:
        """Return array i, from `compute(i)` unless it is kept."""
        entries, number, me = self._entries, self._number(i), get_ident()
        with entries.lock:
            if number in entries.arrays:
                return entries.arrays[number]
            waiting = entries.pending.setdefault(number, _Computation(me))
        if waiting.owner != me:
            found = waiting.result.result()
            return self.get(i, compute) if found is None else found  # what failed there may fail here
        # An earlier computation of this thread, which Ctrl-C has ended between two lines, is taken up again.
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
    """Whether a stack of this shape may keep every one of its matrices."""
    m, n_points, _ = shape
    return 8 * m * n_points**2 <= CACHE_BYTES


def chunks(shape: tuple[int, int, int]) -> Iterator[slice]:
    """Return the rows of a stack in turn, as many at a time as CHUNK_BYTES hold of all its matrices."""
    m, n_points, _ = shape
    step = max(1, CHUNK_BYTES // (8 * m * n_points))
    return (slice(start, min(start + step, n_points)) for start in range(0, n_points, step))


def positions(indices: Any, count: int, things: str, where: str, what: str = "indices") -> NDArray[np.intp]:
    """Return a slice, mask or sequence of indices of `count` things as an array of indices."""
    key = indices if isinstance(indices, slice) else np.atleast_1d(plain(indices, what, ParameterError))
    try:
        if isinstance(key, np.ndarray) and key.size and key.dtype.kind not in "biu":
            raise IndexError(f"of dtype {key.dtype}")
        chosen = np.arange(count)[key if isinstance(key, slice) or key.size else []]
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
    return np.atleast_1d(chosen)
