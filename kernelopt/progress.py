"""The progress line that a long call shows on a terminal."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

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
