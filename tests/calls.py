"""Calls that end when a test says so."""

from __future__ import annotations

import time

from kernelopt.errors import Stopped
from kernelopt.running import Call


class Ending(Call):
    """A call that raises `error` at the first check at which `ends(self)` holds; it records its checks.

    `checks` are the times of the checks, in seconds.
    """

    def __init__(self, ends, error=Stopped):
        super().__init__()
        self.ends, self.error, self.checks = ends, error, []

    def check(self, seconds=0.0):
        self.checks.append(time.perf_counter())
        if self.ends(self):
            raise self.error

    @property
    def lasted(self):
        """The seconds from the first check to the last."""
        return self.checks[-1] - self.checks[0]


def after(seconds):
    """Return a call that ends so many seconds after its first check."""
    return Ending(lambda call: call.lasted > seconds)


def at_once(error=Stopped):
    """Return a call that ends at its first check."""
    return Ending(lambda call: True, error)


def endless():
    """Return a call that never ends."""
    return Ending(lambda call: False)
