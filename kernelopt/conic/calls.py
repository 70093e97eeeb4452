"""One call of a solver on compiled data, which the running call can end."""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers import clarabel_conif

from kernelopt.conic.process import SolverProcess
from kernelopt.running import check, running_call, seconds_left
from kernelopt.threads import interruptible

SCS_INTERRUPTED = -5  # SCS_SIGINT in scs.h
SETUP_SECONDS = 1.4e-7  # per entry of a dense block, measured: 1.4 s at order 80, 3.5 s at order 100
SETUP_ERROR = 2.0  # the prediction is good to about this factor on a shared machine
SHORT_SETUP = 0.2  # a set-up up to this long runs in this process: starting another takes as long
CVXOPT_RUNS = threading.Lock()  # the options of CVXOPT are one dictionary for the whole process


def call(
    solver: Any,
    data: dict[str, Any],
    through_cvxpy: Callable[[], Any],
    options: dict[str, Any],
    verbose: bool = False,
) -> Any:
    """Return the raw result of a solver, as cvxpy's interface to it returns it.

    While a call of kernelopt is running, the solver runs in a thread of its own, and `check` is called here
    every POLL seconds. `Stopped` and KeyboardInterrupt end the solver at once. Clarabel from 0.11 on and
    CVXOPT then stop; SCS and HiGHS go on in a daemon thread until their own limits of time or iterations.
    Clarabel's set-up of large semidefinite cones holds the interpreter's lock, so these problems are solved
    in a process of their own.

    Parameters
    ----------
    solver : cvxpy solver interface
        The last link of cvxpy's chain.
    data : dict
        The compiled problem.
    through_cvxpy : function without arguments
        Calls the solver through cvxpy's interface.
    options : dict
        Options of the solver.
    verbose : bool, default False

    Raises
    ------
    TimeoutError
        If no such process can be started, and the set-up may take longer than the running call has left. It
        cannot be interrupted, so the solver is not started.
    """
    name = solver.name()
    work = with_own_options(through_cvxpy) if name == "CVXOPT" else through_cvxpy
    if running_call() is None:
        return interrupts_raised(work(), name)
    worker = Worker(work)
    ended = threading.Event()
    process: SolverProcess | None = None
    setup = setup_seconds(data["dims"].psd) if name == "CLARABEL" else 0.0
    if has_callback(solver, data):
        worker.work = clarabel_call(solver, data, options, verbose, ended)
        process = clarabel_process(solver, data, options, verbose) if setup > SHORT_SETUP else None
    if process is not None:
        worker.work = with_fallback(process, worker.work, ended)
    elif SETUP_ERROR * setup > seconds_left():
        raise TimeoutError("there is no time to set up an interior-point method")

    def poll() -> None:
        if name == "SCS":
            restore_interrupt_handler()
        check()

    def abandon() -> None:
        ended.set()
        if process is not None:
            process.end()
        if name == "CVXOPT":
            worker.interrupt()

    return interrupts_raised(interruptible(worker.run, abandon, poll), name)


def setup_seconds(orders: Iterable[int]) -> float:
    """Return the predicted time of Clarabel's set-up, which cannot be interrupted.

    It is proportional to the entries of the dense blocks, of order n (n + 1) / 2 for a semidefinite cone of
    order n.
    """
    return float(sum(SETUP_SECONDS * (order * (order + 1) / 2) ** 2 for order in orders))


class Worker:
    """Work in a thread, into which another thread can raise an exception while it runs Python code."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.lock = threading.Lock()
        self.thread = 0  # the identifier while it runs, else 0: identifiers are used again

    def run(self) -> Any:
        """Return `work()`, and record the thread that runs it."""
        with self.lock:
            self.thread = threading.get_ident()
        try:
            return self.work()
        finally:
            with self.lock:
                self.thread = 0

    def interrupt(self) -> None:
        """Raise SystemExit, which ends a thread, in the thread of the work when it next runs Python code."""
        with self.lock:
            if self.thread:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.thread), ctypes.py_object(SystemExit)
                )


def interrupts_raised(raw: Any, name: str) -> Any:
    """Return the raw result, or raise KeyboardInterrupt where SCS has caught Ctrl-C and returned."""
    if name == "SCS" and isinstance(raw, dict) and raw["info"].get("status_val") == SCS_INTERRUPTED:
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()  # the main thread would have got it without SCS
        raise KeyboardInterrupt
    return raw


def restore_interrupt_handler() -> None:
    """Install Python's handler of Ctrl-C again: SCS replaces it while it runs, in whichever thread."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:  # None: the handler was not installed from Python
            signal.signal(signal.SIGINT, handler)


def has_callback(solver: Any, data: dict[str, Any]) -> bool:
    """Whether Clarabel can be called directly: data in its form, and a version with a termination callback.

    cvxpy has no option for the callback. Data that are not finite go through cvxpy, which raises an error
    that says so.
    """
    if type(solver) is not clarabel_conif.CLARABEL or not hasattr(clarabel_conif, "dims_to_solver_cones"):
        return False
    from clarabel import DefaultSolver

    finite = all(np.isfinite(data[key]).all() for key in ("b", "c")) and np.isfinite(data["A"].data).all()
    return finite and hasattr(DefaultSolver, "set_termination_callback")


def clarabel_call(
    solver: Any, data: dict[str, Any], options: dict[str, Any], verbose: bool, ended: threading.Event
) -> Callable[[], Any]:
    """Return the call that cvxpy makes to Clarabel, which stops at the next iteration once `ended` is set."""

    def work() -> Any:
        from clarabel import DefaultSolver

        P = upper_triangle(data)
        cones = clarabel_conif.dims_to_solver_cones(data["dims"])
        settings = solver.parse_solver_opts(verbose, dict(options))
        compiled = DefaultSolver(P, data["c"], data["A"], data["b"], cones, settings)
        compiled.set_termination_callback(lambda info: ended.is_set())
        return compiled.solve()

    return work


def upper_triangle(data: dict[str, Any]) -> sp.csc_array:
    """Return the upper triangle of P, zero where the objective is linear."""
    size = data["c"].size
    return sp.csc_array(sp.triu(data["P"] if "P" in data else sp.csc_array((size, size))))


def clarabel_process(
    solver: Any, data: dict[str, Any], options: dict[str, Any], verbose: bool
) -> SolverProcess | None:
    """Return Clarabel in a process of its own, None where none can be started."""
    from clarabel import DefaultSettings

    dims = data["dims"]
    if dims.pnd:
        return None
    cones: list[tuple[Any, ...]] = [("ZeroConeT", int(dims.zero))] if dims.zero else []
    cones += [("NonnegativeConeT", int(dims.nonneg))] if dims.nonneg else []
    cones += [("SecondOrderConeT", int(order)) for order in dims.soc]
    cones += [("PSDTriangleConeT", int(order)) for order in dims.psd]
    cones += [("ExponentialConeT",)] * dims.exp + [("PowerConeT", float(np.ravel(a)[0])) for a in dims.p3d]
    chosen, default = solver.parse_solver_opts(verbose, dict(options)), DefaultSettings()
    names = [name for name in dir(chosen) if not name.startswith("_")]
    settings = {name: getattr(chosen, name) for name in names if not callable(getattr(chosen, name))}
    changed = {name: value for name, value in settings.items() if value != getattr(default, name)}
    try:
        return SolverProcess(upper_triangle(data), data["c"], data["A"], data["b"], cones, changed)
    except (OSError, ValueError):
        return None


def with_fallback(
    process: SolverProcess, fallback: Callable[[], Any], ended: threading.Event
) -> Callable[[], Any]:
    """Return the work of a process, followed by `fallback` where the process fails and `ended` is not set."""

    def work() -> Any:
        try:
            return process.work()
        except OSError:
            if ended.is_set():
                raise
            return fallback()

    return work


def with_own_options(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call of CVXOPT that has the global options for itself and restores them afterwards."""

    def guarded() -> Any:
        from cvxopt import solvers

        with CVXOPT_RUNS:
            before = dict(solvers.options)
            try:
                return work()
            finally:  # cvxpy restores them too, but not after `Worker.interrupt`
                solvers.options.clear()
                solvers.options.update(before)

    return guarded
