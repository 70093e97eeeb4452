"""What threads share: the lock on cvxpy, the number of threads of BLAS, and work that can be ended.

cvxpy numbers its variables by an unguarded counter, and `warnings.catch_warnings` changes the filters of
the whole process. Both need one lock, held while a problem is compiled or its results are unpacked. It is
never held while a solver runs, so two problems are solved at the same time.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

T = TypeVar("T")
Watch: TypeAlias = Callable[[], object]
"""A function that raises when the work should end: time is up, or the caller asked for it."""

POLL = 0.025
"""Seconds between two calls of a watch: nobody notices that delay, and a call costs a thousandth of it."""

COMPILING = threading.RLock()
"""Held by whoever compiles or unpacks a cvxpy problem, or changes the filters of warnings."""


@contextmanager
def quietly(watch: Watch | None = None) -> Iterator[None]:
    """Hold COMPILING without warnings; `watch` is called while another thread holds it."""
    while not COMPILING.acquire(timeout=-1 if watch is None else POLL):
        if watch is not None:
            watch()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        COMPILING.release()


def watched(work: Callable[[], T], watch: Watch, abandon: Callable[[], object]) -> T:
    """Return `work()`, done in a thread of its own while `watch` is called in this one.

    What `watch` raises, and a KeyboardInterrupt, end the wait at once: `abandon` is called, the exception
    goes on, and the thread is left behind. It is a daemon, so it does not keep the process alive. `work`
    should release the lock of the interpreter, as compiled solvers do. `watch` is called first before the
    thread is started, so `abandon` must do without one.
    """
    finished = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()  # numpy.errstate, for one

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # handed to the thread that waits
            errors.append(error)
        finally:
            finished.set()

    try:
        watch()
        threading.Thread(target=run, name="kernelopt solver", daemon=True).start()
        while not finished.wait(POLL):  # returns as soon as the event is set
            watch()
    except BaseException:
        abandon()
        raise
    if errors:
        raise errors[0]
    return results[0]


def seconds_left(watch: Watch | None) -> float:
    """Return the seconds for which a watch will let work go on, infinite where it does not say.

    It says so by `remaining`, an attribute of its own or of the object whose method it is.
    """
    owner = getattr(watch, "__self__", watch)
    return float(getattr(owner, "remaining", float("inf")))


class Noted:
    """A watch that notes what it raised, which is then not taken for a failure of the solver."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.raised: BaseException | None = None

    @property
    def remaining(self) -> float:
        """The seconds that the watch leaves."""
        return seconds_left(self.watch)

    def __call__(self) -> None:
        try:
            self.watch()
        except BaseException as error:
            self.raised = error
            raise


class _Shared:
    """The limits that all threads ask for at the moment, and the numbers of threads before the first.

    threadpoolctl alone restores what the thread that leaves first has found, while others still work.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[int] = []
        self.before: list[tuple[Any, int]] = []  # libraries of BLAS and their threads

    def add(self, limit: int, libraries: list[Any]) -> None:
        with self.lock:
            if not self.limits:
                self.before = [(library, library.num_threads) for library in libraries]
            self.limits.append(limit)
            self._apply()

    def remove(self, limit: int) -> None:
        with self.lock:
            self.limits.remove(limit)
            self._apply()

    def _apply(self) -> None:
        # From 3.7 on threadpoolctl obeys one thread alone until that one is done. Here they share.
        clear = getattr(OpenBLASController, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)
        least = min(self.limits, default=None)
        for library, number in self.before:
            library.set_num_threads(number if least is None else least)
        if clear is not None and least is None:
            clear(force=True)


_SHARED = _Shared()


@lru_cache(maxsize=1)
def blas_libraries(modules: int) -> list[Any]:
    """Return what controls each library of BLAS in this process, in which so many modules are imported.

    To find them takes milliseconds, as long as a small problem takes to solve. An import is what loads
    another one, so they are looked for again when the number of modules has changed.
    """
    libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return libraries


@contextmanager
def one_blas_thread(limit: int | None = 1) -> Iterator[None]:
    """Limit the threads of BLAS; with None nothing is changed.

    For most builds of BLAS the number belongs to the process. Where uses overlap, nested or in several
    threads, the smallest limit holds, and the last one out restores the number that the first one found.
    """
    if limit is None:
        yield
        return
    libraries = blas_libraries(len(sys.modules))
    # With OpenMP underneath every thread has a number of its own.
    own = [library for library in libraries if getattr(library, "threading_layer", "") == "openmp"]
    before = [(library, library.num_threads) for library in own]
    _SHARED.add(limit, [library for library in libraries if library not in own])
    for library in own:
        library.set_num_threads(limit)
    try:
        yield
    finally:
        for library, number in before:
            library.set_num_threads(number)
        _SHARED.remove(limit)
