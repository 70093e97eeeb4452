"""What threads share: the lock on cvxpy, the threads of BLAS, and work that a call can leave."""

from __future__ import annotations

import sys
import threading
import time
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kernelopt import threads as module
from kernelopt.errors import Stopped
from kernelopt.running import running_call
from kernelopt.threads import COMPILING, LARGE, POLL, in_threads, interruptible, one_blas_thread, quietly
from tests.calls import Ending, at_once, endless
from tests.every import every


def blas():
    """The largest number of threads of a BLAS in this process; some are built for one."""
    return max(info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas")


@pytest.fixture(autouse=True)
def _two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        yield


def in_thread(work):
    """Start `work` in a thread; what it raises fails the test through pytest's hook."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


# -------------------------------------------------------------------- work in as many threads as BLAS


def test_parts_are_computed_side_by_side_and_returned_in_order():
    both = threading.Barrier(2, timeout=10)

    def work(start, stop):
        both.wait()
        return start, stop, blas()

    assert in_threads(work, 10, LARGE) == [(0, 5, 1), (5, 10, 1)]
    assert blas() == 2


def test_no_thread_is_started_for_few_entries_one_member_or_one_thread_of_blas():
    before = threading.active_count()
    with one_blas_thread():
        assert in_threads(lambda *part: (*part, threading.active_count()), 4, LARGE) == [(0, 4, before)]
    assert in_threads(lambda *part: (*part, threading.active_count()), 4, LARGE / 2) == [(0, 4, before)]
    assert in_threads(lambda *part: (*part, threading.active_count()), 1, LARGE) == [(0, 1, before)]


@every("part", [0, 1])
def test_what_a_part_raises_is_raised(part):
    def work(start, stop):
        if (start > 0) == part:
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        in_threads(work, 4, LARGE)


# ------------------------------------------------------------------------------- threads of BLAS


def test_the_smallest_limit_holds_inside_and_none_after():
    for outer, inner, expected in ((None, None, 2), (1, None, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1)):
        with one_blas_thread(outer):
            with one_blas_thread(inner):
                assert blas() == expected
            assert blas() == (outer or 2)
        assert blas() == 2


def test_libraries_are_looked_for_once_and_again_after_an_import(monkeypatch):
    searches, real = [], module.ThreadpoolController
    monkeypatch.setattr(module, "ThreadpoolController", lambda: searches.append(1) or real())
    module.blas_libraries.cache_clear()
    for _ in range(3):
        with one_blas_thread(1):
            pass
    assert len(searches) == 1
    monkeypatch.setitem(sys.modules, "a_module_that_was_not_there", module)
    with one_blas_thread(1):
        pass
    assert len(searches) == 2


def test_an_error_inside_restores_the_number():
    with pytest.raises(ZeroDivisionError), one_blas_thread(1):
        raise ZeroDivisionError
    assert blas() == 2


def test_the_last_of_two_threads_restores_the_number():
    """The first in is the first out: `threadpool_limits` alone would restore two while the second works."""
    both_in, first_out = threading.Event(), threading.Event()
    seen = {}

    def first():
        with one_blas_thread(1):
            both_in.wait(10)
        seen["after the first"] = blas()
        first_out.set()

    def second():
        with one_blas_thread(1):
            both_in.set()
            first_out.wait(10)
            seen["in the second"] = blas()

    one = in_thread(first)
    time.sleep(0.05)
    two = in_thread(second)
    one.join()
    two.join()
    assert seen == {"after the first": 1, "in the second": 1}
    assert blas() == 2


def test_many_threads_leave_the_number_and_the_filters_of_warnings_as_they_were():
    filters = list(warnings.filters)

    def work():
        for _ in range(100):
            with one_blas_thread(1), quietly(), quietly():
                assert blas() == 1

    threads = [in_thread(work) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert blas() == 2 and warnings.filters == filters


# ---------------------------------------------------------------------------------- warnings


def test_warnings_are_off_inside_alone():
    with quietly():
        warnings.warn("noise", stacklevel=1)
    with pytest.raises(UserWarning, match="news"):
        warnings.warn("news", stacklevel=1)


def test_a_call_may_end_while_it_waits_for_the_lock():
    held, release = threading.Event(), threading.Event()

    def hold():
        with COMPILING:
            held.set()
            release.wait(10)

    holder = in_thread(hold)
    held.wait(10)
    with at_once(), pytest.raises(Stopped), quietly():
        pass
    release.set()
    holder.join()
    with quietly():  # and the lock is free
        pass


# --------------------------------------------------------------------------- interruptible work


def nothing():
    """Do nothing."""


def test_the_result_the_context_and_errors_come_back():
    with np.errstate(over="raise"), endless() as call:
        assert interruptible(lambda: (np.geterr()["over"], running_call()), nothing) == ("raise", call)
        with pytest.raises(ZeroDivisionError):
            interruptible(lambda: 1 / 0, nothing)


def test_the_call_is_checked_here_and_often():
    threads = set()
    with Ending(lambda _: threads.add(threading.get_ident())) as call:
        interruptible(lambda: time.sleep(0.5), nothing)
    assert threads == {threading.get_ident()}
    assert 5 <= len(call.checks) <= 2 + 0.5 / POLL


@pytest.mark.parametrize("error", [Stopped, TimeoutError, KeyboardInterrupt])
def test_what_a_check_raises_ends_the_wait(error):
    release, abandoned = threading.Event(), []
    started = time.perf_counter()

    with Ending(lambda call: call.lasted > 0.05, error), pytest.raises(error):
        interruptible(lambda: release.wait(20), lambda: abandoned.append(True))
    assert time.perf_counter() - started < 2
    assert abandoned == [True]
    release.set()


def test_a_call_that_is_over_starts_nothing():
    ran, abandoned = [], []
    with at_once(), pytest.raises(Stopped):
        interruptible(lambda: ran.append(True), lambda: abandoned.append(True))
    assert ran == []
    assert abandoned == [True]  # what waits for the work, such as a process, is told
