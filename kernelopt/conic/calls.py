"""One call of a solver on compiled data, which can be watched and ended."""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers import clarabel_conif

from kernelopt.conic.process import Apart, ApartFailed
from kernelopt.threads import Watch, seconds_left, watched

SCS_INTERRUPTED = -5  # SCS_SIGINT in scs.h
SETUP = 1.4e-7  # seconds for an entry of a dense block: 1.4 s at order 80, 3.5 s at order 100
CAUTION = 2.0  # predictions are good to about this factor on a shared machine
UNBROKEN = 0.2  # seconds of a set-up that nobody minds; a process costs as much
CVXOPT_RUNS = threading.Lock()  # its options are one dictionary for the whole process


class TooLong(Exception):
    """The solver was not started: what cannot be interrupted would take longer than there is time."""


class Abandoned(Exception):
    """Raised inside a solver written in Python, in the thread that nobody waits for any more."""


def call(
    solver: Any,
    data: dict[str, Any],
    through_cvxpy: Callable[[], Any],
    options: dict[str, Any],
    verbose: bool = False,
    watch: Watch | None = None,
) -> Any:
    """Return the raw result of a solver.

    Parameters
    ----------
    solver : cvxpy solver interface
        The last link of cvxpy's chain.
    data : dict
        The compiled problem.
    through_cvxpy : function without arguments
        The call of the solver by cvxpy's interface.
    options : dict
        Of the solver.
    verbose : bool, default False
    watch : function without arguments, optional
        Called in this thread every POLL seconds while the solver works in another. What it raises ends
        the call at once. Clarabel from 0.11 on and CVXOPT are told to stop; SCS and HiGHS go on in a
        daemon thread until their own limits of time or iterations. Clarabel's set-up of large semidefinite
        cones keeps the interpreter's lock: these go into a process of their own. Where there can be none,
        a set-up that may outlast the watch is not begun.
    """
    name = solver.name()
    work = own_options(through_cvxpy) if name == "CVXOPT" else through_cvxpy
    if watch is None:
        return checked(work(), name)
    worker = Worker(work)
    ended = threading.Event()
    process: Apart | None = None
    unbroken = setup_seconds(data["dims"].psd) if name == "CLARABEL" else 0.0
    if stoppable(solver, data):
        worker.work = clarabel(solver, data, options, verbose, ended)
        process = apart(solver, data, options, verbose) if unbroken > UNBROKEN else None
    if process is not None:
        worker.work = apart_or(process, worker.work, ended)
    elif CAUTION * unbroken > seconds_left(watch):
        raise TooLong("there is no time to set up an interior-point method")

    def look() -> None:
        if name == "SCS":
            take_back_interrupts()
        watch()

    def abandon() -> None:
        ended.set()
        if process is not None:
            process.end()
        if name == "CVXOPT":
            worker.interrupt()

    return checked(watched(worker.run, look, abandon), name)


def setup_seconds(orders: Iterable[int]) -> float:
    """Return the predicted time of Clarabel's set-up, which nothing can interrupt.

    A semidefinite cone of order n is a dense block of order n (n + 1) / 2.
    """
    return float(sum(SETUP * (order * (order + 1) / 2) ** 2 for order in orders))


class Worker:
    """Work that can be interrupted where it runs Python, by the thread that started it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.lock = threading.Lock()
        self.thread = 0  # while it works: afterwards the number may be that of another thread

    def run(self) -> Any:
        """Do the work."""
        with self.lock:
            self.thread = threading.get_ident()
        try:
            return self.work()
        finally:
            with self.lock:
                self.thread = 0

    def interrupt(self) -> None:
        """Raise `Abandoned` in the working thread, the next time that it runs Python."""
        with self.lock:
            if self.thread:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.thread), ctypes.py_object(Abandoned)
                )


def checked(raw: Any, name: str) -> Any:
    """Return the raw result, or raise the KeyboardInterrupt that SCS has caught in Python's place."""
    if name == "SCS" and isinstance(raw, dict) and raw["info"].get("status_val") == SCS_INTERRUPTED:
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()  # Ctrl-C is for the main thread, and SCS has kept it from it
        raise KeyboardInterrupt
    return raw


def take_back_interrupts() -> None:
    """Let Python handle Ctrl-C again: SCS takes the signal for itself while it works, in any thread."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:  # None: set by something else than Python
            signal.signal(signal.SIGINT, handler)


def stoppable(solver: Any, data: dict[str, Any]) -> bool:
    """Whether the call can go to Clarabel directly: a problem in its form, and a version with a callback.

    cvxpy does not pass the callback on. It refuses data that are not finite with a message of its own, so
    these go through it.
    """
    if type(solver) is not clarabel_conif.CLARABEL or not hasattr(clarabel_conif, "dims_to_solver_cones"):
        return False
    from clarabel import DefaultSolver

    finite = all(np.isfinite(data[key]).all() for key in ("b", "c")) and np.isfinite(data["A"].data).all()
    return finite and hasattr(DefaultSolver, "set_termination_callback")


def clarabel(
    solver: Any, data: dict[str, Any], options: dict[str, Any], verbose: bool, ended: threading.Event
) -> Callable[[], Any]:
    """Return the call that cvxpy makes to Clarabel, which stops before the next iteration once `ended`."""

    def work() -> Any:
        from clarabel import DefaultSolver

        P = quadratic(data)
        cones = clarabel_conif.dims_to_solver_cones(data["dims"])
        settings = solver.parse_solver_opts(verbose, dict(options))
        compiled = DefaultSolver(P, data["c"], data["A"], data["b"], cones, settings)
        compiled.set_termination_callback(lambda info: ended.is_set())
        return compiled.solve()

    return work


def quadratic(data: dict[str, Any]) -> sp.csc_array:
    """Return the upper triangle of the quadratic form of compiled data."""
    size = data["c"].size
    return sp.csc_array(sp.triu(data["P"] if "P" in data else sp.csc_array((size, size))))


def apart(solver: Any, data: dict[str, Any], options: dict[str, Any], verbose: bool) -> Apart | None:
    """Return Clarabel in a process of its own, None where the system allows none."""
    from clarabel import DefaultSettings

    dims = data["dims"]
    if dims.pnd:
        return None
    cones: list[tuple[Any, ...]] = [("ZeroConeT", int(dims.zero))] if dims.zero else []
    cones += [("NonnegativeConeT", int(dims.nonneg))] if dims.nonneg else []
    cones += [("SecondOrderConeT", int(order)) for order in dims.soc]
    cones += [("PSDTriangleConeT", int(order)) for order in dims.psd]
    cones += [("ExponentialConeT",)] * dims.exp + [("PowerConeT", float(np.ravel(a)[0])) for a in dims.p3d]
    chosen, usual = solver.parse_solver_opts(verbose, dict(options)), DefaultSettings()
    names = [name for name in dir(chosen) if not name.startswith("_")]
    settings = {name: getattr(chosen, name) for name in names if not callable(getattr(chosen, name))}
    changed = {name: value for name, value in settings.items() if value != getattr(usual, name)}
    try:
        return Apart(quadratic(data), data["c"], data["A"], data["b"], cones, changed)
    except (OSError, ValueError):
        return None


def apart_or(process: Apart, here: Callable[[], Any], ended: threading.Event) -> Callable[[], Any]:
    """Return the work of a process, done here where that fails without having been ended."""

    def work() -> Any:
        try:
            return process.work()
        except (ApartFailed, OSError):
            if ended.is_set():
                raise
            return here()

    return work


def own_options(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call of CVXOPT that no other disturbs, and that leaves the shared options as they were."""

    @contextmanager
    def alone() -> Iterator[None]:
        from cvxopt import solvers

        with CVXOPT_RUNS:
            before = dict(solvers.options)
            try:
                yield
            finally:  # cvxpy restores them too, but not when the call is abandoned
                solvers.options.clear()
                solvers.options.update(before)

    def guarded() -> Any:
        with alone():
            return work()

    return guarded
