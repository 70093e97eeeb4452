"""The progress line that a long call shows on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

QUIET = 2.0  # seconds of a call before its first line appears: short calls print nothing


class ProgressLine:
    """One line on standard error that is overwritten as a call proceeds."""

    def __init__(self) -> None:
        from rich.console import Console  # here, since importing kernelopt should be quick

        self.console = Console(stderr=True)
        self._status: Status | None = None
        self._line = ""

    def show(self, line: str, seconds: float) -> None:
        """Set the line, where `seconds` is the age of the call."""
        self._line = line
        if seconds > QUIET and self.console.is_terminal:
            if self._status is None:
                self._status = self.console.status(line)
                self._status.start()
            self._status.update(line)

    def refresh(self, seconds: float) -> None:
        """Show the line that was set before the call was old enough for it."""
        if self._status is None and self._line:
            self.show(self._line, seconds)

    def print(self, line: str) -> None:
        """Print a line that stays, for `verbose=True`."""
        self.console.print(line, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self._line = ""
