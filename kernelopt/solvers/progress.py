"""What an iterative method has proved so far: when to stop, and whom to tell."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from types import TracebackType
from typing import Any

import numpy as np
from rich.console import Console
from rich.status import Status

Callback = Callable[[dict[str, Any]], Any]
History = tuple[tuple[float, float, float], ...]
QUIET = 2.0  # seconds before the first line on a terminal


class Ended(Exception):
    """The callback raised StopIteration, which libraries in between would take for their own."""


class Progress:
    """The bounds of a minimisation, best so far, and their history; a context that an interrupt ends.

    Attributes
    ----------
    lower, upper : float
        The best bounds reported.
    best : anything
        The point that attains the best upper bound.
    proof : anything
        What is behind the best lower bound, such as its dual variable.
    history : tuple of (seconds, lower, upper)
        The best bounds at every report.
    stopped : str
        Why the method ended without reaching `tol`; empty if it did not.
    asked : bool
        Whether it was the caller who ended it.
    """

    def __init__(
        self,
        method: str,
        tol: float,
        time_limit: float | None,
        callback: Callback | None,
        verbose: bool,
        maximize: bool = False,
    ) -> None:
        self.maximize = maximize
        self.method, self.tol, self.time_limit = method, tol, time_limit
        self.callback, self.console = callback, Console(stderr=True)
        self.verbose = verbose
        self.lower, self.upper = -np.inf, np.inf
        self.best: Any = None
        self.proof: Any = None
        self.iterations = 0
        self.stopped, self.asked = "", False
        self._history: list[tuple[float, float, float]] = []
        self._status: Status | None = None
        self._started = time.perf_counter()

    @property
    def history(self) -> History:
        """(seconds, lower, upper) at every report."""
        return tuple(self._history)

    @property
    def seconds(self) -> float:
        """Since the method began."""
        return time.perf_counter() - self._started

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit is not None and self.seconds > self.time_limit

    @property
    def gap(self) -> float:
        """The gap of the best bounds relative to max(1, |upper|)."""
        if not (np.isfinite(self.lower) and np.isfinite(self.upper)):
            return np.inf
        return max(0.0, self.upper - self.lower) / max(1.0, abs(self.upper))

    def report(self, lower: float, upper: float, *, point: Any, proof: Any) -> bool:
        """Take the bounds of an iteration and what attains them; return whether to stop."""
        self.iterations += 1
        if lower > self.lower or self.proof is None:
            self.lower, self.proof = max(lower, self.lower), proof
        if upper < self.upper or self.best is None:
            self.upper, self.best = min(upper, self.upper), point
        bounds = (-self.upper, -self.lower) if self.maximize else (self.lower, self.upper)
        self._history.append((self.seconds, *bounds))
        self._tell(point)
        if self.late and self.gap > self.tol:
            self.stopped, self.asked = f"the time limit of {self.time_limit:g} s was reached", True
        return bool(self.gap <= self.tol) or bool(self.stopped)

    def _tell(self, point: Any) -> None:
        _, lower, upper = self._history[-1]
        line = f"{self.method}: iteration {self.iterations}, {lower:.8g} <= optimum <= {upper:.8g}"
        line += f", gap {self.gap:.1e}, {self.seconds:.1f} s"
        if self.verbose:
            self.console.print(line, highlight=False, soft_wrap=True)
        elif self.console.is_terminal and self.seconds > QUIET:
            if self._status is None:
                self._status = self.console.status(line)
                self._status.start()
            self._status.update(line)
        if self.callback is not None:
            report = {
                "method": self.method,
                "iteration": self.iterations,
                "seconds": self.seconds,
                "lower": lower,
                "upper": upper,
                "gap": self.gap,
                "point": deepcopy(point),
            }
            try:
                self.callback(report)
            except StopIteration as stop:
                raise Ended from stop

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End quietly on Ctrl-C, or when the callback raises StopIteration, once there is a point."""
        if self._status is not None:
            self._status.stop()
        if kind is None or not issubclass(kind, KeyboardInterrupt | Ended) or self.best is None:
            return False
        self.asked = True
        self.stopped = (
            "it was interrupted" if issubclass(kind, KeyboardInterrupt) else "the callback ended it"
        )
        return True
