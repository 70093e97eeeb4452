"""The numba decorator of this package, and the seconds that numba takes before the machine code runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from kernelopt.running import count_compilation, say

Loop = Callable[..., Any]

REASSOCIATION = {"reassoc", "contract"}  # LLVM flags: sums in any order, and fused multiply-add


def is_loaded() -> bool:
    """Whether numba has been imported, so that a short loop is worth its call."""
    return "numba" in sys.modules


@cache
def compiled(loop: Loop, any_order: bool = False) -> Loop:
    """Return a function that numba compiles at its first call, for a decorator or at the place of the call.

    The machine code divides as numpy does, runs without the interpreter lock, and is cached on disk where
    that is possible. numba is imported by the first call of `compiled`, which takes about a second.

    Parameters
    ----------
    loop : function of arrays and numbers
    any_order : bool, default False
        Whether sums may be taken in any order, so that they vectorise. NaN and infinity are respected.
    """
    numba_clock.start()
    try:
        return _dispatcher(loop, {"fastmath": REASSOCIATION} if any_order else {})
    finally:
        numba_clock.stop()


def _dispatcher(loop: Loop, options: dict[str, Any]) -> Loop:
    njit = _numba().njit
    try:
        fast: Any = njit(loop, cache=True, error_model="numpy", nogil=True, **options)
    except RuntimeError:  # no directory that numba may write to
        return njit(loop, error_model="numpy", nogil=True, **options)  # type: ignore[no-any-return]
    # The cached machine code contains the compiled functions that this one calls, also functions of other
    # files of its package, while numba compares the time of its own file only. The stamp of all files
    # replaces that time. The attribute is private: without it numba would use its own stamp.
    cache_file: Any = getattr(getattr(fast, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamp(Path(loop.__code__.co_filename).parent)
    return fast  # type: ignore[no-any-return]


@lru_cache
def stamp(package: Path) -> list[tuple[str, float, int]]:
    """Return name, time of change and size of every source file of a package."""
    files = [(file.name, file.stat()) for file in sorted(package.glob("*.py"))]
    return [(name, found.st_mtime, found.st_size) for name, found in files]


class NumbaClock(threading.local):
    """Counts for the running calls the seconds that numba takes in this thread, without those of its code.

    They are the seconds of its import, of compiling, and of reading machine code from the disk. They occur
    once in a process, or once on a machine, so that predicted times of methods do not contain them.
    """

    _depth, _started, _line = 0, 0.0, ""

    def start(self) -> None:
        """Start the clock, unless it runs already: a compiled function may need another one compiled."""
        if not self._depth:
            self._started = time.perf_counter()
            self._line = say("compiling (first call on this machine)")
        self._depth += 1

    def stop(self) -> None:
        """Stop the clock when every start has been followed by a stop."""
        self._depth -= 1
        if not self._depth:
            count_compilation(time.perf_counter() - self._started)
            say(self._line)


numba_clock = NumbaClock()


@cache
def _numba() -> Any:
    """Import numba, and let the clock run while numba holds the lock of its compiler, as its events tell.

    numba is slow to import, and only some methods need it. It is imported in another thread, since Ctrl-C
    interrupts the main thread alone: after half an import every later one would fail.
    """
    with ThreadPoolExecutor(1, "kernelopt import") as other:
        numba = other.submit(import_module, "numba").result()

    class Listener(numba.core.event.Listener):  # type: ignore[misc, name-defined]
        def on_start(self, event: Any) -> None:
            numba_clock.start()

        def on_end(self, event: Any) -> None:
            numba_clock.stop()

    numba.core.event.register("numba:compiler_lock", Listener())
    return numba
