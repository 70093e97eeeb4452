"""Delaying Ctrl-C while an interrupted call returns its best point, and while a file is written."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

RETURN = 1.0  # seconds during which an interrupted call may return before Ctrl-C acts again


class DelayedInterrupt:
    """A handler of SIGINT that ignores the signal for `RETURN` seconds, then calls the former handler."""

    def __init__(self) -> None:
        self._former: Any = None  # the handler to restore, while this one is installed

    def delay(self) -> None:
        """Install the handler, in the main thread, unless SIGINT is ignored or not handled by Python."""
        if self._former is not None or threading.current_thread() is not threading.main_thread():
            return
        former = signal.getsignal(signal.SIGINT)
        if not callable(former):
            return
        until = time.perf_counter() + RETURN

        def patient(number: int, frame: FrameType | None) -> None:
            if time.perf_counter() > until:
                former(number, frame)

        self._former = former
        signal.signal(signal.SIGINT, patient)

    def restore(self) -> None:
        """Install the former handler again."""
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)
            self._former = None


@contextmanager
def after_block() -> Iterator[None]:
    """Let Ctrl-C act after the block, which it would leave half done, in the main thread."""
    former, given = signal.getsignal(signal.SIGINT), []
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield
        return
    signal.signal(signal.SIGINT, lambda *arguments: given.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        if given:
            former(*given[0])
