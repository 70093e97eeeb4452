"""Loops that numba compiles, or that Python runs while their compilation would take longer than they do."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from kernelopt.running import count_compilation, extend_budgets, say

Loop = Callable[..., Any]

REASSOCIATION = {"reassoc", "contract"}  # LLVM flags: sums in any order, and fused multiply-add

IMPORT = 1.0  # measured seconds of the import of numba
COMPILATION = 0.25  # of the compilation of a function: a loop takes 0.15 to 0.6, one of arrays 0.3 to 3
PASS = 5e-7  # of one pass of an innermost loop in Python: it takes 0.1 to 0.5 microseconds

_unordered: set[Loop] = set()
_loops: dict[Loop, Loop] = {}  # by the functions of numpy in whose place they are compiled


def is_loaded() -> bool:
    """Whether numba has been imported, so that a short loop is worth its call."""
    return "numba" in sys.modules


def any_order(loop: Loop) -> Loop:
    """Let the machine code of a loop take sums in any order, so that they vectorise; for a decorator.

    NaN and infinity are respected.
    """
    _unordered.add(loop)
    return loop


def compiled_as(loop: Loop) -> Callable[[Loop], Loop]:
    """Let a loop be compiled in the place of a function that computes the same by numpy; for a decorator.

    Python runs the function, without a pass for each entry, and machine code the loop, without arrays of
    intermediate results. The name of the function stands for both, also where compiled loops call it.
    """

    def decorate(by_numpy: Loop) -> Loop:
        _loops[by_numpy] = loop
        return by_numpy

    return decorate


def compiled(loop: Loop, passes: float = np.inf) -> Loop:
    """Return a loop as machine code, or as Python runs it where its compilation would take longer.

    The machine code divides as numpy does, runs without the interpreter lock, and is cached on disk where
    that is possible. It is taken wherever this machine has it. Without it, Python runs loops until these
    runs, of all loops in this process, have taken as long as the compilation would. A run that is predicted
    to exceed this time is compiled before it begins. So the first calls on a machine take at most about twice
    as long as they would by the better choice, and short ones do not import numba. The results of both forms
    may differ by rounding.

    Parameters
    ----------
    loop : function of arrays and numbers
        The functions that it calls are compiled with it.
    passes : float, default inf
        The most passes of the innermost loop in one call. With inf the loop is always compiled.
    """
    return _code(loop).form(passes)


def affordable(loop: Loop, steps: int, passes: float) -> int:
    """Return how many of so many steps the next call of a loop should take: 1 to `steps`.

    They are all steps, unless Python can run some of them in the time that it is given for the loop: then as
    many as these. The loop must be able to go on where a call has ended.

    Parameters
    ----------
    loop : function
    steps : int
        The most steps that are left.
    passes : float
        The most passes of the innermost loop in one step.
    """
    few = min(float(steps), _code(loop).passes_left / passes)
    return int(few) if few >= 1 else steps


class _Code:
    """The two forms of a loop.

    Attributes
    ----------
    spent : float
        Seconds that Python has taken to run any loop in this process.
    """

    spent = 0.0

    def __init__(self, loop: Loop) -> None:
        self._python, self._loop = loop, _loops.get(loop, loop)
        self._machine_code: Loop | None = None
        self._functions, self._is_cached = len(set(_tree(self._loop))), _is_cached(self._loop)

    @property
    def passes_left(self) -> float:
        """The number of passes that Python may still run, -inf where there is machine code."""
        if self._machine_code is not None or self._is_cached:
            return -np.inf
        price = COMPILATION * self._functions + (0.0 if is_loaded() else IMPORT)
        return (price - self.spent) / PASS

    def form(self, passes: float) -> Loop:
        """Return the form for a call of so many passes."""
        return self._run if passes <= self.passes_left else self.machine_code()

    def machine_code(self) -> Loop:
        """Return the function that numba compiles at its first call, with those that it calls."""
        if self._machine_code is None:
            numba_clock.start()
            try:
                called = {name: _code(each).machine_code() for name, each in _called(self._loop).items()}
                options = {"fastmath": REASSOCIATION} if self._loop in _unordered else {}
                self._machine_code = _dispatcher(_with_names(self._loop, called), options)
            finally:
                numba_clock.stop()
        return self._machine_code

    def _run(self, *arguments: Any) -> Any:
        """Call the loop in Python, with numpy's divisions, and count the seconds."""
        started = time.thread_time()
        try:
            with np.errstate(all="ignore"):
                return self._python(*arguments)
        finally:
            seconds = time.thread_time() - started
            _Code.spent += seconds
            extend_budgets(seconds)


_code = cache(_Code)


def _tree(loop: Loop) -> Iterator[Loop]:
    """Yield a loop and the functions that it calls, directly or by others."""
    yield loop
    for function in _called(loop).values():
        yield from _tree(function)


def _called(loop: Any) -> dict[str, Loop]:
    """Return the functions that the code of a loop calls by a name of its module."""
    named = {name: loop.__globals__.get(name) for name in loop.__code__.co_names}
    called = {name: value for name, value in named.items() if isinstance(value, FunctionType)}
    return {name: _loops.get(value, value) for name, value in called.items()}


def _is_cached(loop: Any) -> bool:
    """Whether numba has cached machine code of a loop since the files of its package were changed.

    numba is asked without its import: the name of its file is known. A cache that is not found costs the time
    of some runs in Python.
    """
    source, version = Path(loop.__code__.co_filename), "".join(map(str, sys.version_info[:2]))
    name = f"{source.stem}.{loop.__qualname__}-{loop.__code__.co_firstlineno}.py{version}*.nbi"
    given, of_package = os.environ.get("NUMBA_CACHE_DIR"), f"{source.parent.name}_*/{name}"
    users = (".cache/numba", "Library/Caches/numba", "AppData/Local/numba/Cache")
    folders = [Path(given)] if given else [Path.home() / folder for folder in users]
    found = [] if given else [*(source.parent / "__pycache__").glob(name)]
    found += [file for folder in folders for file in folder.glob(of_package)]
    changed = max((time for _, time, _ in stamp(source.parent)), default=np.inf)
    return any(file.stat().st_mtime >= changed for file in found)


def _with_names(loop: Any, called: dict[str, Loop]) -> Any:
    """Return a loop in whose module these names stand for other functions."""
    scope = {**loop.__globals__, **called}
    return FunctionType(loop.__code__, scope, loop.__name__, loop.__defaults__, loop.__closure__)


def _dispatcher(loop: Any, options: dict[str, Any]) -> Loop:
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
    fast.compile = machine_lock.holding(fast.compile, fast.stats.cache_path)
    return fast  # type: ignore[no-any-return]


@lru_cache
def stamp(package: Path) -> list[tuple[str, float, int]]:
    """Return name, time of change and size of every source file of a package."""
    files = [(file.name, file.stat()) for file in sorted(package.glob("*.py"))]
    return [(name, found.st_mtime, found.st_size) for name, found in files]


class MachineLock:
    """Lets one process at a time compile for a folder of machine code: those that wait find it there.

    It is a lock of the folder, which ends with its process. Where the system has none, all compile.
    """

    def __init__(self) -> None:
        self._threads, self._depth = threading.RLock(), 0

    def holding(self, compile_: Loop, folder: str) -> Loop:
        """Return the function of numba that compiles or reads machine code, with the lock."""

        def locked(*arguments: Any) -> Any:
            numba_clock.start()
            try:
                with self._threads, ExitStack() as held:
                    if not self._depth:  # a function that another one calls is compiled within
                        with suppress(ImportError, OSError):
                            self._take(folder, held)
                    self._depth += 1
                    held.callback(self._leave)
                    return compile_(*arguments)
            finally:
                numba_clock.stop()

        return locked

    def _take(self, folder: str, held: ExitStack) -> None:
        from fcntl import LOCK_EX, flock  # not on Windows

        descriptor = os.open(folder, os.O_RDONLY)
        held.callback(os.close, descriptor)
        flock(descriptor, LOCK_EX)

    def _leave(self) -> None:
        self._depth -= 1


machine_lock = MachineLock()


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
