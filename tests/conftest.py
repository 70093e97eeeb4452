"""What every test run shares: one BLAS thread, reproducible examples, and a word on licensed solvers."""

from __future__ import annotations

import gc
import math
import os
import signal
from importlib.util import find_spec

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # both before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from kernelopt import running
from kernelopt.numerics import compiling
from tests.arrays import compare_arrays_at_once

compiling.IMPORT = -math.inf  # all loops are machine code from the first call on: tests compare bits of calls

collect_ignore = ["outside"]  # a package of its own, which is imported as one that is installed

# Fewer collections of cycles: with the default of 700 new objects they take a twentieth of a run, because one
# problem of cvxpy is thousands of objects.
gc.set_threshold(100_000, 50, 100)

# A run in the background of a shell starts with Ctrl-C ignored; tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

compare_arrays_at_once()

settings.register_profile("kernelopt", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("kernelopt")


class Clock:
    """Seconds that a test sets."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch):
    """The clock of all calls, at zero."""
    one = Clock()
    monkeypatch.setattr(running, "clock", lambda: one.now)
    return one


COMPILED_FIRST = "test_spectra.py"  # needs nearly all functions that numba compiles, for some 15 seconds


def pytest_collection_modifyitems(items):
    """Order the tests, and refuse an id with a memory address, which would differ between processes.

    Where the cache of numba is empty, the first process compiles, while the tests of the second one do not
    need these functions yet. In another order both would compile them.
    """
    items.sort(key=lambda item: item.path.name != COMPILED_FIRST)
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"test ids must be the same in every run, got {unstable[0]}. Pass ids=.")


def pytest_terminal_summary(terminalreporter):
    state = "not installed, its tests were skipped"
    if find_spec("mosek"):
        from kernelopt.conic.ladder import mosek_is_licensed  # takes seconds in the process that only reports

        licensed = mosek_is_licensed()
        state = "licensed, tested" if licensed else "installed without a licence, its tests were skipped"
    terminalreporter.write_line(f"MOSEK: {state}")
