"""`Control`: the bounds and the clock of one call, and the reasons for which it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelopt.certificates.gap import relative_gap
from kernelopt.errors import Stopped
from kernelopt.methods.checkpoint import Checkpoint, State
from kernelopt.running import HURRY, Call

Callback = Callable[[dict[str, Any]], Any]
ROUNDING = "it is limited by rounding. Rescale the kernels to a mean diagonal near one, or centre them"
STALLED = f"its bounds no longer come nearer: {ROUNDING}"
ROUNDED = f"its bounds meet the tolerance only without their rounding errors: {ROUNDING}"


@dataclass(frozen=True)
class Patience:
    """The tuned numbers of a call: seconds, and factors of predicted or of spent seconds."""

    # A call may exceed its time limit by half a second and a tenth of it. A certificate may use these seconds
    # and this share of the limit, and so may reading the problem, and the last resort: the certificate
    # without solvers and training.
    grace: tuple[float, float] = (0.12, 0.02)
    last: tuple[float, float] = (0.2, 0.05)  # and these for machines on a sample, where no method has a point
    reserved: float = 0.3  # share of a time limit: the most that is reserved for the certificate
    # bounds have stalled where so many reports reduce the gap by less than this share of it
    stall: int = 50
    progress: float = 1e-3
    # After the first method, a method is run if its predicted seconds are at most the larger of two numbers:
    # this factor times the seconds spent so far, and these seconds.
    worthwhile: tuple[float, float] = (10.0, 60.0)
    # A method is ended after the larger of two numbers: this factor times its predicted seconds, and these
    # seconds, without the time that numba takes to compile functions. The numbers of the first method are
    # larger, since all other methods are predicted to be slower.
    overrun: tuple[float, float] = (3.0, 2.0)
    first_overrun: tuple[float, float] = (10.0, 10.0)
    compilation: float = (
        2.0  # a conic certificate is started if this multiple of its predicted seconds is left
    )
    # a certificate with trained machines, if this multiple of the seconds of the one without is left
    training: float = 2.0
    # seconds of a training, measured: for each entry of the kernel, and over n^3 of its factorisation
    training_entry: float = 1e-7
    factorisation: float = 2e-11
    passes: float = (
        6e-7  # measured seconds for each entry of a matrix variable in a certificate without solver
    )
    value_share: float = 0.1  # of the allowed gap: the certified value may exceed the reported value by it
    sample: int = 150  # points of the first sample of the last resort; the next ones are twice as large
    sample_share: float = 0.9  # of the seconds left that the next sample may take


PATIENCE = Patience()


def listed(details: dict[str, Any]) -> Iterator[str]:
    """Yield the details of a method as the end of a line: a comma, the name and the value of each.

    Of a tuple it is the number of entries.
    """
    for name, value in details.items():
        shown = len(value) if isinstance(value, tuple) else value
        yield f", {name} {shown:.3g}" if isinstance(shown, float) else f", {name} {shown}"


class Control(Call):
    """The best bounds of one call, its clock, and its callback.

    A method runs inside `with control.running(name):`. That block ends without an exception on Ctrl-C, when
    the callback raises StopIteration, and at the time limit. Inside it `kernelopt.running.check` is the
    `check` of this control.

    Parameters
    ----------
    tol : float
        The relative gap at which a method stops.
    time_limit : float > 0, optional
        Seconds of the call.
    callback : function of a dict, optional
        Called at each report, as for `kernelopt.solve`.
    verbose : bool, default False
        Whether each report is printed.
    memory : float > 0, optional
        Bytes, as for `kernelopt.solve`.

    Attributes
    ----------
    lower, upper : float
        The best bounds that the running method has reported, of the minimisation.
    best : anything
        The point that attains `upper`; None before the first report.
    proof : anything
        What proves `lower`, such as a dual variable.
    machines : list of arrays, or None
        The alpha of the machine of each risk at `best`, where the method reported it.
    history : list of (seconds, lower, upper)
        The best bounds of the call at every report. For a maximisation they are those of the maximum.
    details : dict
        The numbers and texts of the last report beside its bounds.
    stopped : str
        Why the running method ended before `tol`; empty otherwise.
    ended_by_caller : bool
        Whether Ctrl-C, the callback or the time limit ended the call.
    interrupted : bool
        Whether it was Ctrl-C.
    hurried : bool
        Whether it was Ctrl-C or the callback. Then the call returns within a second.
    maximize : bool
        Whether the problem is a maximisation. It is set when the problem has been read, as are `floor`,
        `checkpoint` and `start`.
    floor : float
        The gap is relative to max(|lower|, |upper|, floor).
    certify_seconds : float
        Seconds spent on certificates, including those that a method computes itself.
    start : Outcome or None
        The outcome of an earlier method or solution, from which the running one starts.
    alternatives : function without arguments
        It returns the names of all methods that apply, the fastest first.
    checkpoint : Checkpoint or None
    resumed : dict of arrays
        The state from which the running method goes on, as it has passed it to `report`; empty if it starts.
    """

    def __init__(
        self,
        tol: float,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
        memory: float | None = None,
    ) -> None:
        super().__init__(time_limit)
        self.tol, self.memory = tol, memory
        self.maximize, self.floor = False, 0.0
        self.checkpoint: Checkpoint | None = None
        self.resumed = State()
        self.callback, self.verbose = callback, verbose
        self.start: Any = None
        self.alternatives: Callable[[], tuple[str, ...]] = tuple
        self.ended_by_caller = self.hurried = False
        self.certify_seconds = 0.0
        self.history: list[tuple[float, float, float]] = []
        self._known = (-np.inf, np.inf)  # the best bounds of all methods so far
        self._forget("")

    def _forget(self, method: str) -> None:
        """Forget what the method before has reported."""
        self.method, self.iterations, self.stopped = method, 0, ""
        self.lower, self.upper = -np.inf, np.inf
        self.best: Any = None
        self.proof: Any = None
        self.machines: Any = None
        self.details: dict[str, Any] = {}

    @property
    def remaining_in_call(self) -> float:
        """The seconds until the time limit of the call and of those around it, infinite without one."""
        own = np.inf if self.time_limit is None else max(0.0, self.time_limit - self.seconds)
        return own if self.enclosing is None else min(own, self.enclosing.remaining)

    @property
    def gap(self) -> float:
        """The gap of the best bounds relative to max(|upper|, |lower|, floor)."""
        return relative_gap(self.lower, self.upper, self.floor)

    @property
    def allowed(self) -> float:
        """The distance upper - lower at which the gap meets the tolerance."""
        return self.tol * max(abs(self.upper), self.floor)

    def stall(self) -> bool:
        """Say that the bounds no longer come nearer, if the last reports show it; return whether they do."""
        if self.iterations <= PATIENCE.stall:
            return False
        before, now = (self.history[k][2] - self.history[k][1] for k in (-1 - PATIENCE.stall, -1))
        stalled = bool(now > (1 - PATIENCE.progress) * before)
        if stalled:
            self.stopped = STALLED
        return stalled

    def running(self, method: str, certification: float = 0.0, budget: float = np.inf) -> Control:
        """Start the clock of a method; return the control, as a context.

        Seconds in which numba compiles count towards the time limit, but not towards the budget. The
        predicted seconds of the certificate are reserved, up to a share of the time limit.

        Parameters
        ----------
        method : str
            Its name.
        certification : float >= 0, default 0.0
            The predicted seconds of the certificate.
        budget : float > 0, default inf
            The seconds that the method may take.
        """
        self._forget(method)
        self.resumed = State() if self.checkpoint is None else self.checkpoint.take(method)
        self._budget_end = self.began + self.seconds + budget
        self._deadline = self._allowance = np.inf
        if self.time_limit is not None:
            reserved = min(certification, PATIENCE.reserved * self.time_limit)
            self._deadline = self.began + self.time_limit - reserved
        self.show(f"{method}: before its first bounds")
        return self

    @contextmanager
    def certifying(self) -> Iterator[None]:
        """Count the time of the block as time of certificates, and show that on the progress line.

        Yields
        ------
        None
            Once, for the block.
        """
        method = f"{self.method}: " if self.method else ""
        self.show(f"{method}certifying")
        began = self.seconds
        try:
            yield
        finally:
            self.certify_seconds += self.seconds - began

    def exceed_limit(self, by: tuple[float, float] = PATIENCE.grace, *, last: bool = False) -> None:
        """Let a certificate, or other work, exceed the time limit by seconds and a share of it.

        It is HURRY seconds after Ctrl-C. The last resort has no deadline: a machine that others use too
        would prevent even a short one. Its decompositions may take so many seconds, as predicted.

        Parameters
        ----------
        by : pair of float >= 0
            The seconds, and the share.
        last : bool, default False
            Whether it is the last resort.
        """
        self._deadline = self._budget_end = self._allowance = np.inf
        if last:
            self._allowance = self.last_seconds
            return
        limit = np.inf if self.time_limit is None else self.time_limit
        reached = self.seconds if self.hurried else max(self.seconds, limit)
        self._deadline = self.began + reached + self._excess(*by)

    @property
    def last_seconds(self) -> float:
        """The seconds that the last resort may take, as predicted."""
        left = 0.0 if self.hurried else min(self.remaining_in_call, self.time_limit or 0.0)
        return left + self._excess(*PATIENCE.last)

    def _excess(self, seconds: float, share: float) -> float:
        """Return by how many seconds a time limit may be exceeded, or an interruption."""
        limit = np.inf if self.time_limit is None else self.time_limit
        return HURRY if self.hurried else seconds + share * limit

    def counted(self, most: int, of: str = "iterations") -> Iterator[int]:
        """Count the iterations of a method; where they are used up, that is why it has ended.

        Parameters
        ----------
        most : int
            Their largest number.
        of : str, default "iterations"
            What is counted, in the reason.

        Yields
        ------
        int
            From 0 to most - 1.
        """
        yield from range(most)
        self.stopped = f"{most} {of} were made"

    def report(
        self,
        lower: float,
        upper: float,
        *,
        point: Any,
        proof: Any = None,
        machines: Any = None,
        state: Callable[[], State] | None = None,
        **more: Any,
    ) -> bool:
        """Record the bounds of an iteration and what attains them; return whether the method must stop.

        Parameters
        ----------
        lower, upper : float
            Bounds of the minimum.
        point : anything
            What attains `upper`.
        proof : anything, optional
            What proves `lower`, such as a dual variable.
        machines : list of arrays, optional
            The alpha of the machine of each risk at the point.
        state : function without arguments, optional
            It returns the arrays from which the method can go on; it is called when a checkpoint is due.
        **more : anything
            Passed to the callback; numbers and texts are printed.
        """
        self.iterations += 1
        self.details = {name: x for name, x in more.items() if isinstance(x, int | float | str)}
        if self.proof is None or lower > self.lower:
            self.proof = proof
        if self.best is None or upper < self.upper:
            self.best, self.machines = point, machines
        self.lower, self.upper = max(lower, self.lower), min(upper, self.upper)
        self._known = low, high = max(self.lower, self._known[0]), min(self.upper, self._known[1])
        self.history.append((self.seconds, *((-high, -low) if self.maximize else (low, high))))
        gap = self.gap
        met = bool(gap <= self.tol)
        if self.checkpoint is not None and state is not None:
            self.checkpoint.offer(self.method, state, last=met or self.out_of_time)
        self._notify(point, gap, more)
        if not met and self.out_of_time:
            self._record_deadline()
        return met or bool(self.stopped)

    def _record_deadline(self) -> None:
        if self.time_limit is not None and self._deadline <= self._budget_end:
            outer = None if self.enclosing is None else self.enclosing.time_limit
            limit = self.time_limit if outer is None else outer  # this one's is a part of that
            self.stopped, self.ended_by_caller = f"the time limit of {limit:g} s was reached", True
        else:
            self.stopped = "it took longer than predicted"

    def _notify(self, point: Any, gap: float, more: dict[str, Any]) -> None:
        seconds, lower, upper = self.history[-1]
        line = f"{self.method}: iteration {self.iterations}, {lower:.8g} <= optimum <= {upper:.8g}"
        line += f", gap {gap:.1e}, {seconds:.1f} s"
        if self.verbose:
            self._progress.print(line + "".join(listed(self.details)))
        else:
            self.show(line)
        if self.callback is None:
            return
        report = {
            "method": self.method,
            "iteration": self.iterations,
            "seconds": seconds,
            "lower": lower,
            "upper": upper,
            "gap": gap,
            "point": deepcopy(point),
            **more,
        }
        try:
            self.callback(report)
        except StopIteration as stop:
            self.stopped, self.ended_by_caller, self.hurried = "the callback ended it", True, True
            raise Stopped from stop

    def record_end(self, error: BaseException) -> None:
        """Record what ended the work: Ctrl-C, or the clock unless the caller has ended the call before.

        Parameters
        ----------
        error : KeyboardInterrupt or Stopped
            What the work has raised.
        """
        if isinstance(error, KeyboardInterrupt):
            super().record_end(error)
            self.stopped, self.ended_by_caller, self.hurried = "it was interrupted", True, True
        elif not self.hurried:
            self._record_deadline()
