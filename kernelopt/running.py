"""The running call: its clock, its deadline and its progress line, found from wherever work is done for it.

Work that may take long calls `check()` between its steps. Before a step that cannot be interrupted it calls
`check(seconds)` with the predicted seconds. Outside of a call these do nothing, and `seconds_left()` is
infinite.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kernelopt.errors import Stopped
from kernelopt.interrupts import DelayedInterrupt

if TYPE_CHECKING:
    from rich.status import Status

C = TypeVar("C", bound="Call")
HURRY = 0.7  # seconds in which an interrupted call must return
SHOWN = 0.3  # seconds of a loop before it says how far it is: many loops are shorter


def clock() -> float:
    """Return seconds of a clock that never goes back; a test of limits replaces it."""
    return time.perf_counter()


class Call:
    """One call of the user: its clock, its deadline, its progress line and its handling of Ctrl-C.

    Inside ``with call:`` it is the running call, in this thread and in those that copy its context. The block
    ends without an exception at Ctrl-C and at `Stopped`, which `check` raises at the deadline. So `Stopped`
    never leaves the call, and only the work in such blocks is interrupted. After a block inside another block
    of the same call, its results are gathered without an interruption.

    A call that is made while another one runs obeys the deadlines of both. At the deadline of the enclosing
    call `Stopped` leaves the blocks of this one, and ends the block of the enclosing call. Ctrl-C ends the
    block of this call, and leaves the enclosing one HURRY seconds. At its end a call is closed, by `close`.

    Parameters
    ----------
    time_limit : float, optional
        Seconds from now until the deadline.

    Attributes
    ----------
    enclosing : Call or None
        The call that was running when this one was made.
    interrupted : bool
        Whether Ctrl-C has ended the call.
    doing : str
        The last progress line: what the call does, such as "reading the problem".
    stage : str
        The part of the call that it does it for, such as "split 2 of 5"; it comes first in the line.
    steps : Steps or None
        The last loop of known length.
    verbose : bool
        Whether lines that matter stay on the terminal, also where it is none.
    compiling : float
        Seconds in which numba has compiled. They count towards the time limit, but not towards the budget of
        a method: numba compiles a function once on a machine, for seconds. Budgets do not count either the
        seconds of loops that Python runs where machine code is missing.
    """

    verbose = False

    def __init__(self, time_limit: float | None = None) -> None:
        self.time_limit, self.enclosing = time_limit, running_call()
        self.interrupted, self.doing, self.compiling = False, "", 0.0
        self.began = clock()
        self._deadline = math.inf if time_limit is None else self.began + time_limit
        self._budget_end = self._allowance = math.inf
        outer = self.enclosing
        self._progress: ProgressLine = ProgressLine() if outer is None else outer._progress
        self._interrupts: DelayedInterrupt = DelayedInterrupt() if outer is None else outer._interrupts
        self._tokens: list[Token[Call | None]] = []
        self.stage = ""
        self.steps: Steps | None = None

    @property
    def seconds(self) -> float:
        """The seconds since the call began."""
        return clock() - self.began

    @property
    def remaining(self) -> float:
        """The seconds until the first deadline or end of a budget of this call and the calls around it."""
        ends = (end for call in self.chain() for end in (call._deadline, call._budget_end))
        return max(0.0, min(ends) - clock())

    @property
    def out_of_time(self) -> bool:
        """Whether a deadline has passed, of this call or of one around it."""
        return self.remaining <= 0

    def chain(self) -> Iterator[Call]:
        """Yield this call and the calls around it."""
        call: Call | None = self
        while call is not None:
            yield call
            call = call.enclosing

    def check(self, seconds: float = 0.0) -> None:
        """Raise `Stopped` if less than these seconds are left, or are allowed."""
        left = self.remaining
        if left <= 0 or seconds > min(left, self._allowance):
            raise Stopped
        self._allowance -= seconds

    def show(self, line: str) -> None:
        """Set the progress line; it appears on a terminal once the call has taken a second."""
        self.doing = line
        line = f"{self.stage}: {line}" if self.stage else line
        if self.enclosing is not None:
            self.enclosing.show(line)
        else:
            self._progress.show(line, self.seconds)

    def announce(self, line: str) -> None:
        """Say what takes long before it starts: as the progress line, which stays where a call is verbose."""
        if any(call.verbose for call in self.chain()):
            self._progress.print(line)
        self.show(line)

    def close(self) -> None:
        """Remove the progress line from the terminal, and restore the handler of Ctrl-C."""
        if self.enclosing is None:
            self._progress.close()
            self._interrupts.restore()

    def delay_interrupts(self) -> None:
        """Let the call return before Ctrl-C acts again, for no longer than a second."""
        self._interrupts.delay()

    def record_end(self, error: BaseException) -> None:
        """Record what has ended the work: KeyboardInterrupt or `Stopped`."""
        if isinstance(error, KeyboardInterrupt):
            self.interrupted = True
            self._deadline = min(self._deadline, clock() + HURRY)
            self.delay_interrupts()
            if self.enclosing is not None:
                self.enclosing.record_end(error)

    def __enter__(self: C) -> C:
        self._tokens.append(_RUNNING.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Suppress the exceptions by which the caller or the clock ends the work."""
        _RUNNING.reset(self._tokens.pop())
        if _RUNNING.get() is self:
            _RUNNING.set(self.enclosing)
        if not isinstance(error, KeyboardInterrupt | Stopped):
            return False
        if isinstance(error, Stopped) and self.enclosing is not None and self.enclosing.out_of_time:
            return False
        self.record_end(error)
        return True


@contextmanager
def user_call() -> Iterator[Call]:
    """Run a block as a call of its own without a deadline; after Ctrl-C it ends by KeyboardInterrupt."""
    call = Call()
    with closing(call), call:
        yield call
    if call.interrupted:
        raise KeyboardInterrupt


_RUNNING: ContextVar[Call | None] = ContextVar("the running call of kernelopt", default=None)


def running_call() -> Call | None:
    """Return the innermost running call, None outside of a call."""
    return _RUNNING.get()


def check(seconds: float = 0.0) -> None:
    """Raise `Stopped` if the running call should end, or has less than these seconds left.

    Parameters
    ----------
    seconds : float, default 0.0
        The time that the next step needs.

    Raises
    ------
    Stopped
        If the time limit, Ctrl-C or the callback ends the call. `solve` catches it.

    Examples
    --------
    Outside of a call it does nothing:

    >>> from kernelopt.extend import check
    >>> check(seconds=1.0)
    """
    call = _RUNNING.get()
    if call is not None:
        call.check(seconds)


def seconds_left() -> float:
    """Return the seconds until the deadline of the running call, infinite where there is none."""
    call = _RUNNING.get()
    return math.inf if call is None else call.remaining


def say(line: str) -> str:
    """Set the progress line of the running call, such as "certifying"; return the line before."""
    call = _RUNNING.get()
    if call is None:
        return ""
    before = call.doing
    call.show(line)
    return before


def announce(line: str) -> None:
    """Say what the running call does that takes long, before it starts; see `Call.announce`."""
    call = _RUNNING.get()
    if call is not None:
        call.announce(line)


def count_compilation(seconds: float) -> None:
    """Count seconds of numba's compiler, by which the budgets of the running calls end later."""
    for call in _running_calls():
        call.compiling += seconds
    extend_budgets(seconds)


def extend_budgets(seconds: float) -> None:
    """Let the budgets of the running calls end later, for seconds that machine code would not take."""
    for call in _running_calls():
        call._budget_end += seconds


def _running_calls() -> Iterator[Call]:
    """Return the innermost running call and those around it."""
    running = _RUNNING.get()
    return iter(()) if running is None else running.chain()


class Steps:
    """A loop of the running call of known length: it shows how far it is, and may end between two steps.

    Parameters
    ----------
    what : str
        The work and what is counted, such as "evaluating kernels".
    total : int
        The number of steps.

    Attributes
    ----------
    done : float
        The steps that were made; a part of one counts as a fraction.
    seconds : float
        The seconds that they took.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total = what, total
        self.done = self.seconds = 0.0
        self._began, self._call = clock(), _RUNNING.get()
        if self._call is not None:
            self._call.steps = self

    @property
    def predicted(self) -> float:
        """The seconds of all steps if each takes as long as one so far, infinite before the first."""
        return self.seconds * self.total / self.done if self.done else math.inf

    def take(self, steps: float = 1.0) -> None:
        """Count steps that were made, show how long the others will take, and `check` the running call."""
        self.done, self.seconds = self.done + steps, clock() - self._began
        if self._call is None:
            return
        if self.seconds > SHOWN and self.done < self.total:
            left = self.predicted - self.seconds
            self._call.show(f"{self.what} {int(self.done) + 1} of {self.total}, about {left:.0f} s left")
        self._call.check()


QUIET = 1.0  # seconds of a call before its first line appears: short calls print nothing


class ProgressLine:
    """One line on standard error that is overwritten as a call proceeds.

    It appears by itself at the age `QUIET` of the call: what is done then may take long without a word.
    """

    def __init__(self) -> None:
        from rich.console import Console  # here, since importing kernelopt should be quick

        self.console = Console(stderr=True)
        self._status: Status | None = None
        self._line = ""
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()

    def show(self, line: str, seconds: float) -> None:
        """Set the line, where `seconds` is the age of the call."""
        self._line = line
        if not self.console.is_terminal:
            return
        with self._lock:
            if self._status is not None:
                self._status.update(line)
            elif seconds > QUIET:
                self._appear()
            elif self._timer is None:
                self._timer = threading.Timer(QUIET - seconds, self._appear)
                self._timer.daemon = True
                self._timer.start()

    def _appear(self) -> None:
        with self._lock:
            if self._status is None and self._line:
                self._status = self.console.status(self._line)
                self._status.start()

    def print(self, line: str) -> None:
        """Print a line that stays, for `verbose=True`."""
        self.console.print(line, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the line from the terminal."""
        with self._lock:
            self._line = ""
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._status is not None:
                self._status.stop()
                self._status = None


def machine_bytes() -> float:
    """Return the memory of this machine in bytes, infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf
