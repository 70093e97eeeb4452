"""`Control`: how a method reports what it has proved, and learns when to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from rich.console import Console
from rich.status import Status

from kernelopt.certificates.gap import relative_gap
from kernelopt.errors import Stopped

Callback = Callable[[dict[str, Any]], Any]
History = tuple[tuple[float, float, float], ...]
QUIET = 2.0  # seconds before the first line on a terminal
GRACE_SECONDS, GRACE_SHARE = 0.7, 0.07  # of the second, or the tenth of the limit, that a call may be late
RETURN = 1.0  # seconds, in which a call that was interrupted returns, undisturbed by another Ctrl-C
STALL, PROGRESS = 50, 1e-3  # reports in which the distance of the bounds is to fall by this share
STALLED = (
    "its bounds no longer come nearer: it is limited by rounding. Rescale the kernels to a mean diagonal "
    "near one, or centre them"
)
CERTIFYING = 0.3  # the largest share of a time limit that is kept for the certificate


class CallerStopped(Stopped):
    """The callback raised StopIteration, which libraries in between would take for their own."""


class Control:
    """The bounds of one call, best so far; its clock; and whom to tell.

    A method runs inside `with control.running(name):`, which ends quietly on Ctrl-C, on StopIteration
    from the callback and at the time limit. `check` is the `watch` of the conic solvers.

    Attributes
    ----------
    tol : float
        The gap at which to stop.
    lower, upper : float
        The best bounds that the running method reported, of the minimisation.
    best : anything
        The point that attains the best upper bound of the running method; None before the first report.
    proof : anything
        What is behind its best lower bound, such as a dual variable.
    machines : list of arrays, or None
        The alpha of every risk's machine behind its best upper bound, where it said so.
    history : tuple of (seconds, lower, upper)
        The best bounds of the call at every report, in the user's sense.
    stopped : str
        Why the running method ended without reaching `tol`; empty if it did not.
    asked : bool
        Whether it was the caller who ended the call: by Ctrl-C, the callback or the time limit.
    interrupted : bool
        Whether that was by Ctrl-C.
    hurried : bool
        Whether that was by Ctrl-C or the callback: then the call is to return within a second.
    floor : float
        What the gap is relative to at least.
    certify_seconds : float
        Spent on certificates, those of a method's own included.
    start : the `Outcome` of an earlier method to go on from, or None
    alternatives : names of all methods that apply, the fastest first
    """

    def __init__(
        self,
        tol: float,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
        maximize: bool = False,
        memory: float | None = None,
        floor: float = 0.0,
    ) -> None:
        self.tol, self.time_limit, self.maximize, self.memory = tol, time_limit, maximize, memory
        self.floor = floor
        self.callback, self.verbose, self.console = callback, verbose, Console(stderr=True)
        self.lower, self.upper = -np.inf, np.inf
        self.best: Any = None
        self.proof: Any = None
        self.machines: Any = None
        self.start: Any = None
        self.alternatives: tuple[str, ...] = ()
        self.interrupted = self.hurried = False
        self.method, self.iterations = "", 0
        self.certify_seconds = 0.0
        self.stopped, self.asked = "", False
        self._known = (-np.inf, np.inf)  # the best bounds of all methods so far
        self._history: list[tuple[float, float, float]] = []
        self._status: Status | None = None
        self._line = ""  # of progress, shown or waiting
        self._handler: Any = None  # of Ctrl-C, while another stands in for it
        self._limited = time_limit is not None  # whether the deadline is the limit's, not the budget's
        self._began = time.perf_counter()
        self._deadline = np.inf if time_limit is None else self._began + time_limit

    @property
    def history(self) -> History:
        """(seconds, lower, upper) at every report."""
        return tuple(self._history)

    @property
    def seconds(self) -> float:
        """Since the call began."""
        return time.perf_counter() - self._began

    @property
    def remaining(self) -> float:
        """The seconds until the running method is to end, infinite without a limit."""
        return max(0.0, self._deadline - time.perf_counter())

    @property
    def whole_remaining(self) -> float:
        """The seconds until the time limit of the call, infinite without one."""
        return np.inf if self.time_limit is None else max(0.0, self.time_limit - self.seconds)

    @property
    def late(self) -> bool:
        """Whether the time of the running method has passed."""
        return self.remaining <= 0

    @property
    def gap(self) -> float:
        """The gap of the best bounds relative to max(|upper|, |lower|, floor)."""
        return relative_gap(self.lower, self.upper, self.floor)

    @property
    def allowed(self) -> float:
        """The distance of the bounds that meets the tolerance at the best upper bound."""
        return self.tol * max(abs(self.upper), self.floor)

    @property
    def stalled(self) -> bool:
        """Whether the bounds have come no nearer in the last reports of the running method."""
        if self.iterations <= STALL:
            return False
        distances = [self._history[k][2] - self._history[k][1] for k in (-1 - STALL, -1)]
        return bool(distances[1] > (1 - PROGRESS) * distances[0])

    def running(self, method: str, certification: float = 0.0, budget: float = np.inf) -> Control:
        """Begin a method that may take `budget` seconds; return the control itself, a context.

        Of a time limit the predicted seconds of the certificate are left, as far as it allows.
        """
        self.method, self.iterations = method, 0
        self.best = self.proof = self.machines = None
        self.lower, self.upper = -np.inf, np.inf
        self.stopped = ""
        self._deadline = time.perf_counter() + budget
        if self.time_limit is not None:
            kept = min(certification, CERTIFYING * self.time_limit)
            limit = self._began + self.time_limit - kept
            self._limited = limit <= self._deadline
            self._deadline = min(self._deadline, limit)
        return self

    @contextmanager
    def certifying(self) -> Iterator[None]:
        """Count the time inside as that of certificates, and say so where progress is shown."""
        method = f"{self.method}: " if self.method else ""
        self.show(f"{method}certifying")
        began = time.perf_counter()
        try:
            yield
        finally:
            self.certify_seconds += time.perf_counter() - began

    def check(self) -> None:
        """Raise `Stopped` if the time has passed; until then keep the line of progress shown."""
        if self._status is None and self._line:
            self._display()
        if self.late:
            raise Stopped

    def extend(self) -> None:
        """Move the deadline for the certificate: to the limit and its tolerance, or to a second from now."""
        now = time.perf_counter()
        limit = np.inf
        if self.time_limit is not None:
            limit = self._began + self.time_limit + max(GRACE_SECONDS, GRACE_SHARE * self.time_limit)
        self._deadline = min(limit, now + GRACE_SECONDS) if self.hurried else limit
        self._limited = self.time_limit is not None

    def report(
        self, lower: float, upper: float, *, point: Any, proof: Any = None, machines: Any = None, **more: Any
    ) -> bool:
        """Take the bounds of an iteration and what attains them; return whether to stop.

        What is in `more` is handed to the callback.
        """
        self.iterations += 1
        if self.proof is None or lower > self.lower:
            self.proof = proof
        if self.best is None or upper < self.upper:
            self.best, self.machines = point, machines
        self.lower, self.upper = max(lower, self.lower), min(upper, self.upper)
        self._known = low, high = max(self.lower, self._known[0]), min(self.upper, self._known[1])
        self._history.append((self.seconds, *((-high, -low) if self.maximize else (low, high))))
        self._tell(point, more)
        if self.late and self.gap > self.tol:
            self._out_of_time()
        return bool(self.gap <= self.tol) or bool(self.stopped)

    def _out_of_time(self) -> None:
        if self._limited:
            self.stopped, self.asked = f"the time limit of {self.time_limit:g} s was reached", True
        else:
            self.stopped = "it took longer than predicted"

    def _tell(self, point: Any, more: dict[str, Any]) -> None:
        _, lower, upper = self._history[-1]
        line = f"{self.method}: iteration {self.iterations}, {lower:.8g} <= optimum <= {upper:.8g}"
        line += f", gap {self.gap:.1e}, {self.seconds:.1f} s"
        if self.verbose:
            self.console.print(line, highlight=False, soft_wrap=True)
        else:
            self.show(line)
        if self.callback is None:
            return
        report = {
            "method": self.method,
            "iteration": self.iterations,
            "seconds": self.seconds,
            "lower": lower,
            "upper": upper,
            "gap": self.gap,
            "point": deepcopy(point),
            **more,
        }
        try:
            self.callback(report)
        except StopIteration as stop:
            raise CallerStopped from stop

    def show(self, line: str) -> None:
        """Show a line of progress on a terminal, once the call has taken some seconds."""
        self._line = line
        self._display()

    def _display(self) -> None:
        """Put the line on the terminal, unless it is too early for one."""
        line = self._line
        if self.console.is_terminal and self.seconds > QUIET:
            if self._status is None:
                self._status = self.console.status(line)
                self._status.start()
            self._status.update(line)

    def close(self) -> None:
        """Take the line of progress off the terminal, and give Ctrl-C back."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self._line = ""
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None

    def __enter__(self) -> Control:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End quietly where the caller or the clock ended the method."""
        if error is None or not isinstance(error, KeyboardInterrupt | Stopped):
            return False
        self.note(error)
        return True

    def note(self, error: BaseException) -> None:
        """Note who ended the work: Ctrl-C, the callback or the clock."""
        if isinstance(error, KeyboardInterrupt):
            self.stopped, self.interrupted = "it was interrupted", True
            self.shield()
        elif isinstance(error, CallerStopped):
            self.stopped = "the callback ended it"
        elif self.hurried:  # the clock ends the rest, the caller has ended the work
            return
        else:
            self._out_of_time()
            return
        self.asked = self.hurried = True

    def shield(self) -> None:
        """Let Ctrl-C wait for the end of the call, for no longer than a second."""
        if self._handler is not None or threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):  # ignored, or handled by something else than Python
            return
        until = time.perf_counter() + RETURN

        def patient(number: int, frame: FrameType | None) -> None:
            if time.perf_counter() > until:
                before(number, frame)

        self._handler = before
        signal.signal(signal.SIGINT, patient)
