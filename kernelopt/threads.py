"""The lock on cvxpy, the number of threads, and work in a thread that the running call can leave.

cvxpy numbers its variables by a counter without a lock, and `warnings.catch_warnings` changes the filters of
the whole process. One lock guards both. It is held while a problem is compiled and while its results are
unpacked, but never while a solver runs, so that problems can be solved at the same time.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from kernelopt.running import check, running_call

T = TypeVar("T")

POLL = 0.025
"""Seconds between two calls of `check`: not noticeable as a delay, and a thousand times what a call takes."""

LARGE = 4e6
"""Entries from which several threads read them: one takes milliseconds for them, its start takes 0.1 ms."""

COMPILING = threading.RLock()
"""The lock for compiling and unpacking cvxpy problems and for changing the warning filters."""


@contextmanager
def quietly() -> Iterator[None]:
    """Hold COMPILING and suppress warnings; the running call may end while it waits for the lock."""
    while not COMPILING.acquire(timeout=-1 if running_call() is None else POLL):
        check()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        COMPILING.release()


def interruptible(
    work: Callable[[], T], abandon: Callable[[], object], poll: Callable[[], object] = check
) -> T:
    """Return `work()`, run in a new thread while `poll` is called in this one, by default `check`.

    An exception of `poll`, or a KeyboardInterrupt, ends the wait at once: `abandon` is called and the
    exception is passed on, while the thread may go on. It is a daemon thread, which does not keep the process
    alive. `work` should release the interpreter's lock, as compiled solvers do. `poll` is called once
    before the thread starts, so `abandon` must also be correct when no thread was started.
    """
    finished = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()  # holds the running call, and numpy.errstate

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # raised again in the waiting thread
            errors.append(error)
        finally:
            finished.set()

    try:
        poll()
        threading.Thread(target=run, name="kernelopt solver", daemon=True).start()
        while not finished.wait(POLL):  # returns as soon as the event is set
            poll()
    except BaseException:
        abandon()
        raise
    if errors:
        raise errors[0]
    return results[0]


def in_threads(work: Callable[[int, int], T], size: int, entries: float) -> list[T]:
    """Return the results of `work(start, stop)` on consecutive parts of range(size), in order.

    There is one part for each thread that BLAS uses at the time, and inside of `work` BLAS uses one. `work`
    should release the interpreter's lock for most of its time, as compiled loops do.

    Parameters
    ----------
    work : function of two integers
    size : int >= 1
    entries : float
        The numbers that are read in all. Few of them are read by this thread alone.
    """
    threads = min(size, blas_threads()) if entries >= LARGE else 1
    if threads == 1:
        return [work(0, size)]
    bounds = [size * k // threads for k in range(threads + 1)]
    with one_blas_thread(), ThreadPoolExecutor(threads - 1, "kernelopt") as pool:
        others = [pool.submit(work, *part) for part in pairwise(bounds[1:])]
        return [work(0, bounds[1]), *(other.result() for other in others)]


def blas_threads() -> int:
    """Return the number of threads that BLAS uses at the time; some of its builds have one in any case."""
    return max((library.num_threads for library in blas_libraries(len(sys.modules))), default=1)


class _BlasLimits:
    """The limits that are in force in all threads, and the numbers of BLAS threads before the first.

    A threadpoolctl context restores at its exit the number at its entry. Where contexts of several threads
    overlap, the first exit would lift the limit of the others, and the last exit would restore a limit.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[int] = []
        self.initial: list[tuple[Any, int]] = []  # BLAS libraries and their numbers of threads

    def add(self, limit: int, libraries: list[Any]) -> None:
        with self.lock:
            if not self.limits:
                self.initial = [(library, library.num_threads) for library in libraries]
            self.limits.append(limit)
            self._apply()

    def remove(self, limit: int) -> None:
        with self.lock:
            self.limits.remove(limit)
            self._apply()

    def _apply(self) -> None:
        # From 3.7 on threadpoolctl lets only one thread at a time change OpenBLAS. This lock replaces that.
        clear = getattr(OpenBLASController, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
        smallest = min(self.limits, default=None)
        for library, number in self.initial:
            library.set_num_threads(number if smallest is None else smallest)
        if clear is not None and smallest is None:
            clear(force=True)


_LIMITS = _BlasLimits()


@lru_cache(maxsize=1)
def blas_libraries(modules: int) -> list[Any]:
    """Return threadpoolctl's controllers of the BLAS libraries, when `modules` modules are imported.

    The search takes milliseconds, as long as a small problem takes to solve, so its result is cached. Only
    an import loads another library: the number of modules is the key of the cache.
    """
    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


@contextmanager
def one_blas_thread(limit: int | None = 1) -> Iterator[None]:
    """Limit the threads of BLAS to `limit`; None changes nothing.

    In most builds of BLAS the number of threads belongs to the process. Where calls overlap, nested or in
    several threads, the smallest limit is in force, and the last exit restores the initial number.
    """
    if limit is None:
        yield
        return
    libraries = blas_libraries(len(sys.modules))
    # In builds on OpenMP each thread has a number of its own.
    own = [library for library in libraries if getattr(library, "threading_layer", "") == "openmp"]
    before = [(library, library.num_threads) for library in own]
    _LIMITS.add(limit, [library for library in libraries if library not in own])
    for library in own:
        library.set_num_threads(limit)
    try:
        yield
    finally:
        for library, number in before:
            library.set_num_threads(number)
        _LIMITS.remove(limit)
